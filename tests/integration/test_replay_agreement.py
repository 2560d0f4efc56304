"""Two verifiers that share no code come to the same last line and exit status, on good and on bad files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from certification import replay
from tests.support.records.betting import bet_by_bet
from tests.support.records.factory import RecordFactory, join
from tests.support.records.granted import free_bets
from tests.support.records.lies import Planted
from tests.support.records.lying import (
    limits,
    named_by_an_ended_root,
    played,
    two_folds,
    two_rounds,
    void_and_round,
    void_factory,
)
from tests.support.records.planted import PLANTED
from tests.support.records.planted_demo import second_versions
from tests.support.records.planted_ids import boots, clock_set_back, seats, turned, turned_after_set_back, two_bettors
from tests.support.records.planted_voids import removed_later, reported_by_another
from tests.support.records.ready_made import large_factory, small_factory
from tests.support.seeded import turn
from tests.verifier import independent_verifier


class Verifiers:
    """Both, on files in one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._export, self._keys, self._capsys = folder / "export.jsonl", folder / "keys.json", capsys

    def verdicts(self, export: bytes, factory: RecordFactory, *, root: str | None = None) -> list[tuple[int, str]]:
        """(exit status, last line) of each."""
        self._export.write_bytes(export)
        self._keys.write_bytes(factory.keys())
        arguments = [str(self._export), "--keys", str(self._keys), "--root", root or factory.root.keyid]
        found = []
        for main in (replay.main, independent_verifier.main):
            status = main(arguments)
            found.append((status, self._capsys.readouterr().out.splitlines()[-1]))
        return found


@pytest.fixture
def verifiers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verifiers:
    return Verifiers(tmp_path, capsys)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_they_agree_on_a_planted_fault(planted: Planted, verifiers: Verifiers) -> None:
    factory = planted.build()
    ours, theirs = verifiers.verdicts(planted.exporting(factory), factory)
    assert ours == theirs
    assert ours[0] == 1


def without_lost_returns() -> RecordFactory:
    """As versions before told it: no transfer behind a round that returned nothing."""
    return bet_by_bet(reports_losses=False)


HONEST = {
    "small": small_factory,
    "large": large_factory,
    "bets": bet_by_bet,
    "bets of before": without_lost_returns,
    "two bettors": two_bettors,
    "free bets": partial(free_bets, law_version=None),
    "free bets of Casino Hold'em": partial(free_bets, law_version=None, ruleset="casino-holdem"),
    "void": void_factory,
    "unrecoverable": partial(void_factory, reason="DECK_UNRECOVERABLE"),
    "admin removed later": removed_later,
    "events by another": reported_by_another,
    "boots": boots,
    "turned": turned,
    "clock set back": clock_set_back,
    "another key after the clock was set back": turned_after_set_back,
    "tables": partial(seats, "t-1", "t-1", "t-2", ""),
    "Italy": partial(seats, "t-1", "t-1", "", "", jurisdiction="it-adm"),
    "Britain": partial(seats, "", "", jurisdiction="gb-ukgc"),
    "the newest of Italy": partial(played, jurisdiction="it-adm", law_version=None),
    "the newest of Britain": partial(played, jurisdiction="gb-ukgc", law_version=None),
    "the newest of the demo": partial(played, law_version=None),
    "second versions": second_versions,
}


@pytest.mark.parametrize("build", HONEST.values(), ids=HONEST)
def test_they_agree_on_honest_files(build: Callable[[], RecordFactory], verifiers: Verifiers) -> None:
    factory = build()
    ours, theirs = verifiers.verdicts(factory.export(), factory)
    assert ours == theirs
    assert ours[0] == 0
    assert ours[1].endswith(" 0 failed, ANCHORED")
    ours, theirs = verifiers.verdicts(factory.export(), factory, root="0" * 64)
    assert ours == theirs
    assert ours[0] == 1
    assert ours[1].endswith("UNANCHORED")


@pytest.mark.parametrize("size", [None, "1000"])
def test_they_agree_on_a_bundle_whose_root_is_revoked(size: str | None, verifiers: Verifiers) -> None:
    """Whatever its keys signed falls; that the bundle's own statements stand in the files changes nothing."""
    factory = small_factory()
    where = {} if size is None else {"origin": "log.example/2026h2", "size": size}
    factory.key_statement(factory.root, "revocation", {"key": factory.root.keyid, "reason": "STOLEN", **where})
    for envelope in factory.bundle:
        factory.line(envelope)
    ours, theirs = verifiers.verdicts(factory.export(), factory)
    assert ours == theirs
    assert ours[0] == 1
    assert ours[1].startswith("0 rounds verified")


def test_they_agree_that_an_ended_root_names_no_further_key(verifiers: Verifiers) -> None:
    """The bundle is refused as a whole."""
    factory = named_by_an_ended_root()
    ours, theirs = verifiers.verdicts(factory.export(), factory)
    assert ours == theirs
    assert ours == (1, "0 rounds verified, 0 failed, UNANCHORED")


WITHIN = [
    (played, {"loss_minor": "600", "stake_minor": "600"}),
    (played, {"duration_ms": "5701"}),
    (two_rounds, {"stake_minor": "1200"}),
    (two_folds, {"loss_minor": "400", "stake_minor": "400"}),
    (void_and_round, {"loss_minor": "200", "stake_minor": "400"}),
]


@pytest.mark.parametrize(("build", "reported"), WITHIN)
def test_they_agree_on_limits_that_are_just_kept(
    build: Callable[..., RecordFactory], reported: dict[str, str], verifiers: Verifiers
) -> None:
    factory = build(lie=limits(**reported))
    ours, theirs = verifiers.verdicts(factory.export(), factory)
    assert ours == theirs
    assert ours[0] == 0


def test_limits_bind_nothing_whose_sums_are_not_known(verifiers: Verifiers) -> None:
    """The final of the first round is left out: whether the second is within the stake limit is not known."""
    factory = two_folds(limits(stake_minor="399"))
    lines = list(factory.lines)
    del lines[4]
    ranges = [("1", "4"), ("6", str(len(factory.lines)))]
    scope = factory.scope([{"first": first, "instance": "rgs-1", "last": last} for first, last in ranges])
    ours, theirs = verifiers.verdicts(join([scope, *lines]), factory)
    assert ours == theirs
    assert ours == (0, "1 rounds verified, 0 failed, ANCHORED")
    whole, again = verifiers.verdicts(factory.export(), factory)
    assert whole == again
    assert whole == (1, "1 rounds verified, 1 failed, ANCHORED")


def agree_on_lines(verifiers: Verifiers, first: int, step: int) -> None:
    factory = large_factory()
    for place in range(first, len(factory.lines), step):
        line = factory.lines[place]
        for lines in (
            [*factory.lines[:place], *factory.lines[place + 1 :]],
            [*factory.lines, line],
            [*factory.lines[:place], *factory.lines[place + 1 : place + 2], line, *factory.lines[place + 2 :]],
            factory.lines[:place],
        ):
            ours, theirs = verifiers.verdicts(join(lines), factory)
            assert ours == theirs, place


def test_they_agree_on_a_line_removed_repeated_or_moved(verifiers: Verifiers, pytestconfig: pytest.Config) -> None:
    agree_on_lines(verifiers, turn(pytestconfig, 5), 5)


@pytest.mark.slow_exhaustive
def test_they_agree_on_every_line_removed_repeated_or_moved(verifiers: Verifiers) -> None:
    agree_on_lines(verifiers, 0, 1)


def test_they_agree_on_flipped_bits(verifiers: Verifiers) -> None:
    factory = small_factory()
    export = factory.export()
    for bit in range(0, 8 * len(export), 331):
        place, shift = divmod(bit, 8)
        changed = export[:place] + bytes([export[place] ^ (1 << shift)]) + export[place + 1 :]
        ours, theirs = verifiers.verdicts(changed, factory)
        assert ours == theirs, bit
        assert ours[0] == 1, bit


def test_the_independent_verifier_imports_nothing_of_ours() -> None:
    source = Path(independent_verifier.__file__).read_text("utf-8")
    imported = {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert not imported & {"rgs", "rng", "certification", "tests"}
    assert "cryptography" in imported
