"""Shared by all conformance checks: calls and answers, verdicts, the table and the JUnit file.

A check is a name, a sentence and a coroutine that raises CheckFailedError. Checks run one after the other, each with
transaction ids of its own. A peer that cannot be reached is an error, not a failed check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any, Final, Generic, TypeVar
from xml.etree import ElementTree as ET

import grpc
from google.protobuf.message import Message
from rich.console import Console
from rich.table import Table

from rgs.adapters.grpc.peer import DETAILS, PeerContract, RefusedError, read_refusal
from rgs.core.errors import UnavailableError
from rgs.node.clock import monotonic_ms

NO_ANSWER: Final = "no answer"
_PIPED_WIDTH: Final = 1_000
"""Columns of a table that no terminal shows."""
_SILENT: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})

Kit = TypeVar("Kit")


class CheckFailedError(Exception):
    """The peer breaks the contract; the message says what it did."""


class CheckSkippedError(Exception):
    """The check cannot run; the message says what is missing."""


@unique
class CheckVerdict(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class ConformanceCheck(Generic[Kit]):
    """One check: its stable name, the sentence of the contract, and the function that tries it."""

    name: str
    says: str
    run: Callable[[Kit], Awaitable[None]]


def checks(*functions: Callable[[Kit], Awaitable[None]]) -> Iterator[ConformanceCheck[Kit]]:
    """Make a check of each function, with its name and the sentence of its docstring."""
    for run in functions:
        yield ConformanceCheck(run.__name__, (run.__doc__ or "").rstrip("."), run)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: verdict, reason, and milliseconds."""

    name: str
    says: str
    verdict: CheckVerdict
    why: str
    took_ms: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A response, or the reason of a refusal (`no answer` and the code if there is none)."""

    response: Any
    reason: str

    def __str__(self) -> str:
        return self.reason or "an acceptance"


class ContractCaller:
    """Calls methods of one contract, and reads refusals as the game server does: by the same function."""

    def __init__(self, contract: PeerContract, deadline_ms: int) -> None:
        self._contract = contract
        self._deadline_s = deadline_ms / 1000

    async def call(self, method: Any, name: str, request: Message) -> Answered:
        """Send the request once. `name` is that of the method in the contract."""
        try:
            response = await method(request, timeout=self._deadline_s)
        except grpc.aio.AioRpcError as error:
            return Answered(None, self._reason(error, name))
        return Answered(response, "" if response is not None else f"{NO_ANSWER} (bytes that are no message)")

    def _reason(self, error: grpc.aio.AioRpcError, name: str) -> str:
        refused = read_refusal(error, name, self._contract)
        if isinstance(refused, RefusedError):
            return refused.reason
        code = error.code()
        if code in _SILENT and DETAILS not in dict(error.trailing_metadata() or ()):
            return f"{NO_ANSWER} ({code.name})"
        return f"a refusal that the game server does not believe ({code.name}: {refused})"


async def verify_reachable(channel: grpc.aio.Channel, target: str, deadline_ms: int) -> None:
    """UnavailableError if nobody answers at the target, or TLS fails."""
    try:
        await asyncio.wait_for(channel.channel_ready(), deadline_ms / 1000)
    except TimeoutError:
        raise UnavailableError(
            f"no connection to {target}: address, authority or certificates", target=target
        ) from None


async def run_checks(
    checks: Sequence[ConformanceCheck[Kit]], kit: Kit, emit: Callable[[CheckResult], None] = lambda _: None
) -> list[CheckResult]:
    """Run all checks in order. `emit` receives each result."""
    results = []
    for check in checks:
        begun_ms = monotonic_ms()
        verdict, why = CheckVerdict.PASSED, ""
        try:
            await check.run(kit)
        except CheckFailedError as error:
            verdict, why = CheckVerdict.FAILED, str(error)
        except CheckSkippedError as error:
            verdict, why = CheckVerdict.SKIPPED, str(error)
        result = CheckResult(check.name, check.says, verdict, why, monotonic_ms() - begun_ms)
        results.append(result)
        emit(result)
    return results


def demand(holds: bool, what: str) -> None:
    """CheckFailedError with `what` unless it holds."""
    if not holds:
        raise CheckFailedError(what)


def demand_reason(answered: Answered, *reasons: str) -> None:
    """CheckFailedError unless the call was refused with one of these reasons."""
    demand(answered.reason in reasons, f"expected {' or '.join(reasons)}, got {answered}")


def demand_accepted(answered: Answered) -> Any:
    """The response; CheckFailedError if there is none."""
    demand(answered.reason == "", f"expected an acceptance, got {answered}")
    return answered.response


def print_table(title: str, results: Sequence[CheckResult]) -> None:
    """Print the results as a table, and a line of counts. In a pipe or a file no row is wrapped."""
    table = Table(title=title, title_justify="left", show_lines=False)
    for column in ("check", "verdict", "what the contract says / what was found"):
        table.add_column(column, overflow="fold")
    for result in results:
        style = {CheckVerdict.FAILED: "bold red", CheckVerdict.SKIPPED: "yellow"}.get(result.verdict, "green")
        table.add_row(result.name, f"[{style}]{result.verdict}[/]", result.why or result.says)
    console = Console()
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    console.print(table)
    counts = {verdict: sum(result.verdict is verdict for result in results) for verdict in CheckVerdict}
    console.print(f"{len(results)} checks: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def format_junit(suite: str, results: Sequence[CheckResult]) -> bytes:
    """The results as JUnit XML."""
    root = ET.Element(
        "testsuite",
        name=suite,
        tests=str(len(results)),
        failures=str(sum(result.verdict is CheckVerdict.FAILED for result in results)),
        skipped=str(sum(result.verdict is CheckVerdict.SKIPPED for result in results)),
    )
    for result in results:
        case = ET.SubElement(root, "testcase", classname=suite, name=result.name, time=f"{result.took_ms / 1000:.3f}")
        if result.verdict is CheckVerdict.FAILED:
            ET.SubElement(case, "failure", message=result.why).text = result.says
        elif result.verdict is CheckVerdict.SKIPPED:
            ET.SubElement(case, "skipped", message=result.why)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"
