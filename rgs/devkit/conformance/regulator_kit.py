"""Helpers of the regulator checks: new sessions and seats, and messages with fields changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from rgs.adapters.grpc.regulator import disbelieved
from rgs.core.ids import REGULATOR_ID_ALPHABET, REGULATOR_ID_CHARACTERS
from rgs.devkit.conformance.kit import Answered, ContractCaller, demand, demand_accepted
from rgs.regulator.v1 import regulator_pb2 as pb

CAP_MINOR: Final = 1_000
BOUGHT_MINOR: Final = 500
STAKED_MINOR: Final = 30
FUTURE_MS: Final = 3_600_000
"""A time so far ahead must be refused: no clock is so wrong."""
PARALLEL: Final = 8
NOBODY: Final = "0" * REGULATOR_ID_CHARACTERS
_ID: Final = re.compile(f"[{REGULATOR_ID_ALPHABET}]{{{REGULATOR_ID_CHARACTERS}}}")

Sent = TypeVar("Sent")


def timestamp(time_ms: int) -> Timestamp:
    """Milliseconds since 1970 as a message of the contract."""
    moment = Timestamp()
    moment.FromMilliseconds(time_ms)
    return moment


@dataclass(frozen=True, slots=True)
class RegulatorSeat:
    """A session with one participation of BOUGHT_MINOR, and the purchase that made it."""

    session: str
    participation: str
    purchase: pb.BuyParticipationRequest


@dataclass(frozen=True, slots=True)
class RegulatorKit:
    """The system under test, and the values to test it with. `new_id` makes ULIDs, `now_ms` is the clock."""

    stub: Any
    caller: ContractCaller
    new_id: Callable[[], str]
    now_ms: Callable[[], int]
    operator: str
    jurisdiction: str
    ruleset: str
    currency: str

    async def send(self, request: Any) -> Answered:
        """Send any message of the contract; its type names the method. An answer for another transaction is none."""
        name = type(request).__name__.removesuffix("Request")
        is_report = hasattr(request, "attempt_id")
        if is_report:
            request.attempt_id = self.new_id()
        answered = await self.caller.call(getattr(self.stub, name), name, request)
        if is_report and not answered.reason and (field := disbelieved(request, answered.response)):
            return Answered(None, f"another {field}, which the game server does not believe")
        return answered

    def _message(self, kind: Callable[..., Sent], changed: dict[str, Any], **fields: Any) -> Sent:
        """A message with these fields, a new transaction id and the time of now where it has them; then changed."""
        names = kind.DESCRIPTOR.fields_by_name  # type: ignore[attr-defined]
        made: dict[str, Any] = {name: timestamp(self.now_ms()) for name in names if name.endswith("_time")}
        if "transaction_id" in names:
            made["transaction_id"] = self.new_id()
        return kind(**{**made, **fields, **changed})

    def opening(self, **changed: Any) -> pb.OpenSessionRequest:
        return self._message(
            pb.OpenSessionRequest,
            changed,
            reference=self.new_id(),
            operator=self.operator,
            jurisdiction=self.jurisdiction,
            ruleset=self.ruleset,
            currency=self.currency,
            participation_cap_minor=CAP_MINOR,
        )

    def purchase(self, session: str, **changed: Any) -> pb.BuyParticipationRequest:
        return self._message(
            pb.BuyParticipationRequest,
            changed,
            regulator_session_id=session,
            reference=self.new_id(),
            player="conformance-player",
            purchase_no=1,
            amount_minor=BOUGHT_MINOR,
        )

    def top_up(self, seat: RegulatorSeat, **changed: Any) -> pb.BuyParticipationRequest:
        """A second purchase of the seat's participation, up to the cap."""
        return self.purchase(seat.session, **{"reference": seat.purchase.reference, "purchase_no": 2, **changed})

    def stage(self, seat: RegulatorSeat, stage_no: int, available_minor: int, **changed: Any) -> pb.Stage:
        return self._message(
            pb.Stage,
            changed,
            regulator_session_id=seat.session,
            regulator_participation_id=seat.participation,
            stage_no=stage_no,
            available_minor=available_minor,
            staked_minor=STAKED_MINOR,
            returned_minor=0,
            opening_hash=f"{stage_no:064x}",
            final_hash=f"{stage_no:x}".rjust(64, "f"),
        )

    def report(self, *stages: pb.Stage) -> pb.ReportStagesRequest:
        return pb.ReportStagesRequest(transaction_id=self.new_id(), stages=stages)

    def end(
        self, seat: RegulatorSeat, final_balance_minor: int = BOUGHT_MINOR, **changed: Any
    ) -> pb.EndParticipationRequest:
        return self._message(
            pb.EndParticipationRequest,
            changed,
            regulator_session_id=seat.session,
            regulator_participation_id=seat.participation,
            final_balance_minor=final_balance_minor,
            rounds=0,
        )

    def closing(self, session: str, **changed: Any) -> pb.CloseSessionRequest:
        return self._message(pb.CloseSessionRequest, changed, regulator_session_id=session)

    def modules(self, **changed: Any) -> pb.ReportModulesRequest:
        return self._message(
            pb.ReportModulesRequest,
            changed,
            node="conformance",
            modules=[pb.Module(name="rng", version="1.0.0", sha256="a" * 64)],
        )

    async def opened(self) -> str:
        """Open a session. Returns its id."""
        session: str = demand_accepted(await self.send(self.opening())).regulator_session_id
        return session

    async def seated(self) -> RegulatorSeat:
        """Open a session and buy a seat in it."""
        session = await self.opened()
        purchase = self.purchase(session)
        right = demand_accepted(await self.send(purchase))
        return RegulatorSeat(session, right.regulator_participation_id, purchase)


def demand_id(text: str) -> None:
    """CheckFailedError unless the text is a well-formed regulator's id."""
    demand(_ID.fullmatch(text) is not None, f"{text[:40]!r} is not {REGULATOR_ID_CHARACTERS} of 0-9 A-Z")
