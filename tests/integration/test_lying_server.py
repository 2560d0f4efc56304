"""The server that lies with its own valid key and recomputes everything: what exposes it, and what does not.

The server of these tests is complete: root, node and instance keys, all of its statements, an honest generator that it
can use as often as it likes. A round goes badly for it, and it tells another one: another deck under a new commitment,
the round left out, a smaller stake; then everything that follows is computed and signed again. No check of the replay
can see that, and none does. What exposes it is the opening that the player was given, if somebody has kept it: one key,
one number, two statements (docs/verify.md, section 6).
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rgs.core.replay import KeyBook, Replay, Rulebook, Summary
from rgs.core.statements import leaf_hash, parse_envelope, parse_line, parse_statement, verify_signature
from tests.support.records.factory import RecordFactory
from tests.support.records.parts import SessionRecord, Worker
from tests.support.seeded import Bytes

STAKES = {"ante": 500}
RULEBOOK = Rulebook()
VERIFIER = Path(__file__).parents[1] / "verifier" / "independent_verifier.py"


@dataclass(frozen=True)
class Reported:
    """A story of the server: its export, its keys, and what the player had at the end."""

    factory: RecordFactory
    receipts: tuple[bytes, ...]
    """The openings, as they were answered."""
    paid_out_minor: int

    @property
    def export(self) -> bytes:
        return self.factory.export()


def emit(decks: tuple[str, ...], *, stakes: dict[str, int] | None = None) -> Reported:
    """Two rounds at most, one for each deck, by its seed; the same server, keys, ids and player each time."""
    factory = RecordFactory("the lying server")
    one: Worker = factory.start("rgs-1")
    player: SessionRecord = factory.open(one)
    factory.buy(one, player, 50_000)
    for deck in decks:
        number, reseeds, _ = factory.draw(one)
        draw = number, reseeds, Bytes(deck).transcript()
        factory.deal(one, [player], STAKES if stakes is None else stakes, draw=draw)
        factory.act(player, ["play_4x"])
        factory.settle(one, player)
    paid_out = player.balance
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    envelopes = [parse_line(line).envelope for line in factory.lines]
    return Reported(factory, tuple(one for one in envelopes if b"round-opening" in one), paid_out)


def replay(reported: Reported) -> tuple[list[str], Summary]:
    """What an auditor with the right fingerprint sees: the failed checks, and the summary."""
    keys = KeyBook(reported.factory.keys(), root=reported.factory.root.keyid)
    assert keys.anchored
    made = Replay(keys, RULEBOOK)
    failures = [failure for line in reported.factory.lines for failure in made.feed(line)]
    failures += made.finish()
    return [failure.metadata["check"] for failure in failures], made.summary


# --- with a receipt ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contradiction:
    """Two statements under one key with one number."""

    instance: str
    statement_no: str
    receipt: str
    exported: str | None
    """None: the export has no statement of this number."""


def compare(receipt: bytes, reported: Reported) -> Contradiction | None:
    """What docs/verify.md tells the holder of an opening to do with an export. None: the export holds the receipt.

    The signature of the receipt is verified under the instance key that the *export* names: so it is the server's.
    """
    envelopes = [parse_line(line).envelope for line in reported.factory.lines]
    if receipt in envelopes:
        return None
    _, body = parse_statement(parse_envelope(receipt))
    bodies = {envelope: parse_statement(parse_envelope(envelope))[1] for envelope in envelopes}
    start = next(
        other for other in bodies.values() if (other["kind"], other["instance"]) == ("instance_start", body["instance"])
    )
    verify_signature(parse_envelope(receipt), bytes.fromhex(start["public_key"]))
    place = (body["instance"], body["statement_no"])
    found = [one for one, other in bodies.items() if (other.get("instance"), other.get("statement_no")) == place]
    return Contradiction(*place, leaf_hash(receipt).hex(), leaf_hash(found[0]).hex() if found else None)


@pytest.fixture(scope="module")
def honest() -> Reported:
    """What happened: a round that the player wins."""
    return emit((winning_deck(),))


def winning_deck() -> str:
    """A seed of a deck with which the player wins."""
    return next(seed for seed in map(str, range(100)) if emit((seed,)).paid_out_minor > 50_000)


def losing_deck() -> str:
    return next(seed for seed in map(str, range(100)) if emit((seed,)).paid_out_minor < 50_000)


LIES = ("another deck", "round left out", "smaller stake", "one more round before")


def lie(name: str) -> Reported:
    return {
        "another deck": lambda: emit((losing_deck(),)),
        "round left out": lambda: emit(()),
        "smaller stake": lambda: emit((winning_deck(),), stakes={"ante": 10}),
        "one more round before": lambda: emit((losing_deck(), winning_deck())),
    }[name]()


def test_what_happened_verifies_and_holds_its_receipt(honest: Reported) -> None:
    checks, summary = replay(honest)
    assert (checks, summary.rounds_verified) == ([], 1)
    assert compare(honest.receipts[0], honest) is None


@pytest.mark.parametrize("name", LIES)
def test_no_check_sees_a_lie_that_is_told_from_the_beginning(honest: Reported, name: str) -> None:
    """Not a weakness of the replay: without something kept outside, both stories are equally good."""
    lied = lie(name)
    assert lied.export != honest.export
    assert lied.factory.keys() == honest.factory.keys()
    assert lied.paid_out_minor != honest.paid_out_minor
    checks, summary = replay(lied)
    assert (checks, summary.failures, summary.rounds_failed) == ([], 0, 0)
    assert summary.rounds_verified == len(lied.receipts)


@pytest.mark.parametrize("name", LIES)
def test_the_independent_verifier_does_not_see_it_either(tmp_path: Path, name: str) -> None:
    lied = lie(name)
    export, keys = tmp_path / "statements.jsonl", tmp_path / "keys.json"
    export.write_bytes(lied.export)
    keys.write_bytes(lied.factory.keys())
    command = [sys.executable, str(VERIFIER), str(export), "--keys", str(keys), "--root", lied.factory.root.keyid]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    rounds = len(lied.receipts)
    assert done.stdout.splitlines()[-1] == f"{rounds} rounds verified, 0 failed, ANCHORED", done.stdout + done.stderr
    assert done.returncode == (0 if rounds else 1)


@pytest.mark.parametrize("name", LIES)
def test_a_kept_opening_exposes_it(honest: Reported, name: str) -> None:
    lied, receipt = lie(name), honest.receipts[0]
    found = compare(receipt, lied)
    assert found is not None
    assert found.receipt == leaf_hash(receipt).hex() != found.exported
    assert found.exported is not None  # the number is taken: by another opening, or by what came next


def test_a_kept_opening_exposes_a_story_that_ends_before_it(honest: Reported) -> None:
    """The server may also say that it never came so far: then the number is missing, and the receipt has it."""
    factory = RecordFactory("the lying server")
    factory.end(factory.start("rgs-1"))
    short = Reported(factory, (), 0)
    assert replay(short)[0] == []
    found = compare(honest.receipts[0], short)
    assert found is not None
    assert found.exported is None
    assert int(found.statement_no) > len(factory.lines)


def test_a_receipt_of_somebody_else_accuses_nobody(honest: Reported) -> None:
    """A forged receipt does not verify under the server's key: who shows one has shown nothing."""
    envelope = json.loads(honest.receipts[0])
    other = RecordFactory("another server")
    stranger = other.start("rgs-1")
    forged = other.seal(stranger.signer, "round_opening", json.loads(json.dumps(body_of(honest.receipts[0]))))
    assert forged != honest.receipts[0]
    assert json.loads(forged)["payloadType"] == envelope["payloadType"]
    with pytest.raises(Exception, match=r"signature|keyid"):
        compare(forged, lie("another deck"))


def body_of(envelope: bytes) -> dict[str, object]:
    return dict(parse_statement(parse_envelope(envelope))[1])


# --- the halfway lie, for contrast -------------------------------------------------------------------------------


def test_a_lie_that_keeps_the_opening_is_seen_by_everybody(honest: Reported) -> None:
    """With the opening left as it was given, only the final can be told anew, and the commitment does not fit."""
    factory = RecordFactory("the lying server")
    one = factory.start("rgs-1")
    player = factory.open(one)
    factory.buy(one, player, 50_000)
    number, reseeds, _ = factory.draw(one)
    factory.deal(one, [player], STAKES, draw=(number, reseeds, Bytes(winning_deck()).transcript()))
    factory.act(player, ["play_4x"])
    factory.settle(one, player, transcript=Bytes(losing_deck()).transcript())
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    reported = Reported(factory, honest.receipts, 0)
    assert compare(honest.receipts[0], reported) is None
    assert replay(reported)[0] == ["12 commitment"]
