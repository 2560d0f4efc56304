"""Killed between every two writes of a life that is funded bet by bet: opening, bets, decisions, returns, close. The
processes of `test_crash_lives`, with the operator's wallet called for each transfer.

After the restart the client goes on with its request ids: every answer that was said is said again, and the signed
transfers are the wallet's transfers, one for one. A purchase and an end that are given up, or owed, in the
participation model are killed the same way.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.errors import RegulatorRefusedError, RgsError, TransactionRolledBackError, WalletRefusedError
from rgs.ports.wallet import Receipt, Transfer
from rgs.store.sqlite.store import connect, create_store
from tests.integration.test_crash_lives import Client, lives, verify_left
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.crashing import FAILPOINT, Run, forking, live, points_of, serve_children
from tests.support.service.harness import STORE_EPOCH, ServiceHarness
from tests.support.service.oracles import verify_books
from tests.support.service.player import Player
from tests.support.service.seamless import FUNDINGS, PACE_MS, Better, verify_seamless

pytestmark = pytest.mark.slow

TOKEN = "tok-1"  # noqa: S105 - of a test

# --- the process that dies --------------------------------------------------------------------------------------------


class Bettor(Client):
    """A client whose bets are debited one by one."""

    def __init__(self, harness: ServiceHarness) -> None:
        super().__init__(harness, "bettor", 0)
        self.player: Better = Better(harness)

    async def live(self) -> None:
        player = self.player
        FAILPOINT.step = "fill"
        await player.fill()
        await self.say("open", replace(player.opening(), session_token=TOKEN))
        for number in (1, 2, 3):
            player.harness.clock.tick(PACE_MS)
            await self.say(f"start{number}", player.starting(100))
            await self.say(f"act{number}", player.decision("check"))
            await self.say(f"settle{number}", player.decision("play_2x"))
        await self.say("close", player.closing())


class Barred(Bettor):
    """A client whose first bet the wallet refuses, and who asks again under the same request id and another."""

    async def live(self) -> None:
        player, harness = self.player, self.player.harness
        FAILPOINT.step = "fill"
        await player.fill()
        await self.say("open", replace(player.opening(), session_token=TOKEN))
        harness.clock.tick(PACE_MS)
        FAILPOINT.step = "barred"
        self._sent += 1
        request = player.starting(100)
        for _ in range(3):
            with pytest.raises(WalletRefusedError, match="barred"):
                await harness.send(request, player.caller)
            harness.wallet_script.forget()  # from now on it would accept
        await self.say("start", player.starting(100))
        await self.say("settle", player.decision("play_4x"))
        await self.say("close", player.closing())


class Refused(Client):
    """A client whose first top-up the regulator refuses: its debit is rolled back."""

    async def live(self) -> None:
        player, harness = self.player, self.player.harness
        await self.say("sit", player.opening())
        await self.say("sit", player.purchase(3000))
        harness.regulator_script.plan(
            "buy_participation", *[RegulatorRefusedError("no", rejection="LIMIT_REACHED")] * 4
        )
        FAILPOINT.step = "refused"
        await self.refuse(player)
        harness.regulator_script.forget()
        await self.say("end", player.ending())
        await self.say("close", player.closing())

    async def refuse(self, player: Player) -> None:
        self._sent += 1
        request = player.purchase(500)
        try:
            await player.send(request)
        except (RegulatorRefusedError, TransactionRolledBackError):
            return
        except RgsError as error:
            raise AssertionError(error.reason) from error
        raise AssertionError("bought what was refused")


def statuses(folder: Path) -> set[str]:
    """Of the operations that stand in the store."""
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        return {status for (status,) in connection.execute("SELECT status FROM operations")}


async def life(folder: Path, clock_ms: int, which: str, *, recover_first: bool) -> None:
    harness = ServiceHarness(folder, clock=ManualClock(clock_ms), fundings=FUNDINGS)
    genuine = harness.wallet.debit

    async def debit(transfer: Transfer, *, session_token: str = "") -> Receipt:
        assert session_token == (TOKEN if which != "refused" else "")
        return await genuine(transfer, session_token=session_token)

    harness.wallet.debit = debit  # type: ignore[method-assign]
    await harness.start()
    FAILPOINT.step = "recover"
    if which == "barred" and "undone" not in statuses(folder):
        harness.wallet_script.plan("debit", WalletRefusedError("barred", refusal="PLAYER_BLOCKED"))
    if recover_first:
        if which == "refused":  # the refusal stands, whoever asks
            refusal = RegulatorRefusedError("no", rejection="LIMIT_REACHED")
            harness.regulator_script.plan(
                "buy_participation", *(["ok"] * (not (folder / "answers-1.txt").exists())), refusal
            )
        await harness.settle()
        harness.regulator_script.forget()
    client = {"bets": Bettor, "barred": Barred}[which](harness) if which != "refused" else Refused(harness, "anna", 1)
    await client.live()
    FAILPOINT.step = "stop"
    await harness.settle()
    await harness.stop()


def main() -> None:
    """This file as a program."""
    serve_children(
        lambda order: life(
            Path(order["folder"]), order["clock_ms"], order["which"], recover_first=order["recover_first"]
        )
    )


# --- the tests --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    with forking("tests.integration.test_crash_bets") as process:
        yield process


@pytest.fixture
def run(tmp_path: Path, processes: subprocess.Popen[str]) -> Run:
    create_store(tmp_path / "rgs.db", STORE_EPOCH)
    number = [0]

    def one_life(kill_at: str = "", *, which: str = "bets", recover_first: bool = False) -> int:
        number[0] += 1
        order = {
            "folder": str(tmp_path),
            "kill_at": kill_at,
            "clock_ms": NOW_MS + 60_000 * number[0],
            "which": which,
            "recover_first": recover_first,
        }
        return live(processes, order)

    return one_life


BETS = {
    "open": ["rgs", "wallet", "rgs"],
    **{f"start{number}": ["rgs", "wallet", "rgs"] for number in (1, 2, 3)},
    **{f"act{number}": ["rgs"] for number in (1, 2, 3)},
    **{f"settle{number}": ["rgs", "wallet", "rgs", "wallet", "rgs"] for number in (1, 2, 3)},
    "close": ["rgs"] * 2,
}
"""Writes in each step; behind a round its return, the wallet's write and the one that says that it landed."""


def test_the_matrix_has_every_write(tmp_path: Path, run: Run) -> None:
    lives(tmp_path, run())
    passed = (tmp_path / "points.txt").read_text("ascii").split()
    of_steps = [point for point in passed if point.split("/")[0] in BETS]
    assert sorted(of_steps) == sorted(points_of(BETS))
    verify_seamless(tmp_path)


@pytest.mark.parametrize("point", points_of(BETS))
def test_killed_between_every_two_writes(tmp_path: Path, run: Run, point: str) -> None:
    assert run(point) == -signal.SIGKILL
    verify_left(tmp_path)
    lives(tmp_path, run(recover_first=points_of(BETS).index(point) // 2 % 2 == 0))
    verify_seamless(tmp_path)


@pytest.mark.parametrize("point", ["rgs/1/before", "rgs/1/after", "rgs/2/before", "rgs/2/after"])
@pytest.mark.parametrize("recover_first", [False, True])
def test_a_refused_bet_killed_between_every_two_writes(
    tmp_path: Path, run: Run, point: str, recover_first: bool
) -> None:
    """Intent, and the refusal that is the answer from then on: no later life stakes under that request again."""
    assert run(f"barred/{point}", which="barred") == -signal.SIGKILL
    verify_left(tmp_path)
    lives(tmp_path, run(which="barred", recover_first=recover_first))
    verify_seamless(tmp_path)


REFUSED = [("rgs", 1), ("wallet", 1), ("rgs", 2), ("wallet", 2), ("rgs", 3)]
"""Intent, debit, the decision to undo it, its rollback, the end of it: the writes of a purchase that is refused."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("file", "count"), REFUSED)
@pytest.mark.parametrize("recover_first", [False, True])
def test_a_refused_purchase_killed_between_every_two_writes(
    tmp_path: Path, run: Run, file: str, count: int, when: str, recover_first: bool
) -> None:
    assert run(f"refused/{file}/{count}/{when}", which="refused") == -signal.SIGKILL
    verify_left(tmp_path)
    lives(tmp_path, run(which="refused", recover_first=recover_first))
    verify_books(tmp_path)


if __name__ == "__main__":
    main()
