"""`certify dispute` of a seat at a table: a cut export with what all seats share, and the page of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from certification import dispute
from certification.dispute_page import card_text, languages
from rgs.cli.dispute import page_of, zip_of
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import ExportLine, format_line, leaf_hash, parse_envelope, parse_line, parse_statement
from rgs.tlog.published import make_proof
from tests.support.records.audited import Case, entries_of
from tests.support.records.factory import RecordFactory
from tests.support.records.parts import SessionRecord
from tests.support.records.table_day import TableDay, table_day

SHARED = ("table_round", "table_deal", "table_final")
RULESETS = ("uth-online", "uth-seven-box", "uth-lugano")
SETTLED, SHOWN, HIDDEN = 0, 2, 3
"""Rounds of a day by their place in the session."""


def parsed(line: bytes) -> tuple[str, dict[str, Any]]:
    kind, body = parse_statement(parse_envelope(parse_line(line).envelope))
    return kind.name, body


def session_of(factory: RecordFactory, player: SessionRecord) -> list[bytes]:
    """The cut export of a session, as a dispute holds it."""
    rounds = {body["round_id"] for kind, body in map(parsed, factory.lines) if is_seat_of(kind, body, player)}
    kept, numbers = [], dict[str, list[int]]()
    for line in factory.lines:
        kind, body = parsed(line)
        if kind == "instance_start":
            kept.append(line)
        elif body.get("session_id") == player.session_id or (kind in SHARED and body["round_id"] in rounds):
            kept.append(line)
            numbers.setdefault(body["instance"], []).append(int(body["statement_no"]))
    ranges = [
        {"first": str(first), "instance": name, "last": str(last)}
        for name, held in numbers.items()
        for first, last in runs(held)
    ]
    links = {"first": "1", "last": str(player.link_no), "session_id": player.session_id}
    return [factory.scope(ranges, [links]), *kept]


def is_seat_of(kind: str, body: dict[str, Any], player: SessionRecord) -> bool:
    return kind == "seat_opening" and body["session_id"] == player.session_id


def runs(numbers: list[int]) -> list[tuple[int, int]]:
    """The numbers as ranges that do not touch."""
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    return list(zip(starts, ends, strict=True))


def made(
    folder: Path, ruleset: str = "uth-online", *, nth: int = SETTLED, seat: int = 2
) -> tuple[Case, dict[str, bytes]]:
    """The files of a dispute about the nth round of a player."""
    day: TableDay = table_day(ruleset)
    factory, player = day.factory, day.players[seat - 1]
    case = Case(folder, factory)
    case.publish()
    (folder / "policy.txt").write_text(case.policy)
    session = session_of(factory, player)
    links = [(kind, line) for line in session for kind, body in [parsed(line)] if "session_id" in body]
    named = {
        name: [parse_line(line).envelope for kind, line in links if kind == f"seat_{name}"][nth]
        for name in ("opening", "final")
    }
    entries = entries_of(factory)
    starts = {
        parsed(line)[1]["instance"]: parse_line(line).envelope
        for line in factory.lines
        if parsed(line)[0] == "instance_start"
    }
    files = {
        "session.jsonl": b"".join(line + b"\n" for line in session),
        "keys.json": factory.keys(),
        "ruleset.json": load_ruleset(ruleset).canonical,
    }
    for name, envelope in named.items():
        assert envelope in entries
        start = starts[parse_statement(parse_envelope(envelope))[1]["instance"]]
        files[f"{name}.json"] = envelope
        files[f"{name}.tlog-proof"] = make_proof(case.log, leaf_hash(envelope), bundle=factory.keys(), start=start)
    return case, files


def run(case: Case, files: dict[str, bytes], *more: str) -> int:
    path = case.folder / "dispute.zip"
    path.write_bytes(zip_of(files))
    arguments = [str(path), "--root", case.factory.root.keyid, "--policy", str(case.folder / "policy.txt")]
    return dispute.main([*arguments, *more])


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize(
    ("nth", "shown"),
    [
        (SETTLED, ("U-5", "U-7")),
        (SHOWN, ("MALFUNCTION", "Would have returned", "void round: every stake is returned in full")),
        (HIDDEN, ("DECK_UNRECOVERABLE", "nothing of it is revealed")),
    ],
)
def test_a_seat_as_a_page(tmp_path: Path, ruleset: str, nth: int, shown: tuple[str, ...]) -> None:
    case, files = made(tmp_path, ruleset, nth=nth)
    page = tmp_path / "page.html"
    assert run(case, files, "--html", str(page)) == 0
    text = page.read_text()
    for words in (
        *shown,
        "VERIFIED ANCHORED: 4 rounds of the session",
        "table-1",
        "WITNESSED",
        "ID di partecipazione del regolatore",
        "Sitzungs-ID der Aufsichtsbehörde",
    ):
        assert words in text, words
    for one in languages().values():
        assert one["fact"]["table"] in text
        assert one["table_step"].replace("'", "&#39;") in text
    assert text.count("<svg") == (0 if nth == HIDDEN else 3 * 9)
    finals = [body for kind, body in map(parsed, case.factory.lines) if kind == "table_final" and "deal" in body]
    cards = finals[nth].get("cards", {})
    for card in (*cards.get("board", ()), *cards.get("dealer_cards", ()), *cards.get("hole_cards", ())):
        assert f'aria-label="{card_text(card)}"' in text
    assert page_of(files).keys() == {"page.html"}


def test_the_page_shows_the_cards_of_the_seat_where_each_has_its_own(tmp_path: Path) -> None:
    case, files = made(tmp_path, "uth-seven-box", seat=3)
    page = tmp_path / "page.html"
    assert run(case, files, "--html", str(page)) == 0
    (final,) = [parse_statement(parse_envelope(files["final.json"]))[1]]
    assert final["seat_no"] == "3"
    for card in final["hole_cards"]:
        assert page.read_text().count(f'aria-label="{card_text(card)}"') == 3


def without(kind: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    """The session without the first statement of a kind."""

    def change(files: dict[str, bytes]) -> dict[str, bytes]:
        lines = files["session.jsonl"].splitlines()
        first = next(line for line in lines if parsed(line)[0] == kind)
        return {**files, "session.jsonl": b"".join(line + b"\n" for line in lines if line != first)}

    return change


def with_path_of(number: int) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    """The first seat_opening with the path of another one."""

    def change(files: dict[str, bytes]) -> dict[str, bytes]:
        lines = files["session.jsonl"].splitlines()
        places = [nth for nth, line in enumerate(lines) if parsed(line)[0] == "seat_opening"]
        mine, other = (parse_line(lines[places[nth]]) for nth in (0, number))
        lines[places[0]] = format_line(ExportLine(mine.envelope, mine.private, other.path if number else ()))
        return {**files, "session.jsonl": b"".join(line + b"\n" for line in lines)}

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("table_round"), "session.jsonl lacks table_round"),
        (without("table_deal"), "session.jsonl lacks table_deal"),
        (without("table_final"), "session.jsonl lacks table_final"),
        (with_path_of(1), "28 seats"),
        (with_path_of(0), "28 seats"),
        (lambda files: {**files, "final.json": files["opening.json"]}, "not a round of session.jsonl"),
        (lambda files: {**files, "ruleset.json": load_ruleset("uth-lugano").canonical}, "not the ruleset of the round"),
        (lambda files: {**files, "final.tlog-proof": files["opening.tlog-proof"]}, "FAILED final in the log"),
    ],
    ids=["round", "deal", "final", "path", "no path", "statement", "ruleset", "proof"],
)
def test_what_was_tampered_with_fails(
    tmp_path: Path,
    change: Callable[[dict[str, bytes]], dict[str, bytes]],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case, files = made(tmp_path)
    assert run(case, change(files)) == 1
    assert said in capsys.readouterr().out


def test_a_session_shows_nothing_of_the_other_players(tmp_path: Path) -> None:
    case, files = made(tmp_path)
    kinds = {parsed(line)[0] for line in files["session.jsonl"].splitlines()}
    assert "table_seats" not in kinds
    assert {"table_round", "table_deal", "table_final", "seat_opening", "seat_final"} <= kinds
    sessions = {parsed(line)[1].get("session_id", "") for line in files["session.jsonl"].splitlines()}
    assert len(sessions) == 2
    assert run(case, files) == 0
