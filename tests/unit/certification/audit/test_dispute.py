"""`certify dispute`: the file of a complaint, made from a record factory, good and tampered with."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from certification import dispute
from certification.dispute_page import Dispute, _amount, languages
from certification.replay import FileError
from rgs.cli.dispute import page_of, zip_of
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import leaf_hash
from rgs.tlog.published import make_proof
from tests.support.records.audited import Case, entries_of
from tests.support.records.factory import RecordFactory

Act = Callable[[RecordFactory, Any, Any], None]


def play(factory: RecordFactory, worker: Any, player: Any) -> None:
    factory.act(player, ["check", "play_2x"])
    factory.settle(worker, player)


def void(factory: RecordFactory, worker: Any, player: Any) -> None:
    factory.void(worker, player)


def unrecoverable(factory: RecordFactory, worker: Any, player: Any) -> None:
    factory.void(worker, player, "DECK_UNRECOVERABLE")


def fold(factory: RecordFactory, worker: Any, player: Any) -> None:
    factory.act(player, ["fold"])
    factory.settle(worker, player)


def made(
    tmp_path: Path, act: Act, ruleset: str = "uth-solo", stakes: dict[str, int] | None = None, *, demo: bool = False
) -> tuple[Case, dict[str, bytes]]:
    """A round, and the files of its zip."""
    factory = RecordFactory("dispute", law_version=None if demo else 1)
    worker = factory.start("node-1-b1-w0")
    player = factory.open(worker, ruleset, demo=demo)
    factory.buy(worker, player, 50_000)
    factory.deal(worker, [player], stakes or {"ante": 100, "trips": 50})
    act(factory, worker, player)
    factory.end_participation(worker, player)
    factory.close(worker, player)
    factory.end(worker)
    case = Case(tmp_path, factory)
    case.publish()
    (tmp_path / "policy.txt").write_text(case.policy)
    entries, rows = entries_of(factory), len(factory.lines)
    final = rows - 4
    files = {
        "session.jsonl": b"".join(line + b"\n" for line in factory.lines),
        "keys.json": factory.keys(),
        "ruleset.json": load_ruleset(ruleset).canonical,
        "opening.json": entries[3],
        "final.json": entries[final],
    }
    for name, index in (("opening", 3), ("final", final)):
        proof = make_proof(case.log, leaf_hash(entries[index]), bundle=factory.keys(), start=entries[0])
        files[f"{name}.tlog-proof"] = proof
    return case, files


def run(case: Case, files: dict[str, bytes], *more: str) -> int:
    path = case.folder / "dispute.zip"
    path.write_bytes(zip_of(files))
    return dispute.main(
        [str(path), "--root", case.factory.root.keyid, "--policy", str(case.folder / "policy.txt"), *more]
    )


@pytest.mark.parametrize(
    ("act", "ruleset", "stakes", "reported"),
    [
        (play, "uth-solo", None, ("U-5", "U-7", "VERIFIED ANCHORED", "entry 4 of log.example/2026h2, WITNESSED")),
        (void, "uth-solo", None, ("MALFUNCTION", "Would have returned", "void round: every stake is returned in full")),
        (
            unrecoverable,
            "uth-solo",
            None,
            ("lässt sich nicht öffnen (DECK_UNRECOVERABLE)", "nothing of it is revealed"),
        ),
        (fold, "casino-holdem", {"ante": 100, "aa": 50}, ("C-7", "the player folded")),
    ],
)
def test_a_round_as_a_page(
    tmp_path: Path, act: Act, ruleset: str, stakes: dict[str, int] | None, reported: tuple[str, ...]
) -> None:
    case, files = made(tmp_path, act, ruleset, stakes)
    page = tmp_path / "page.html"
    assert run(case, files, "--html", str(page)) == 0
    text = page.read_text()
    for words in (
        *reported,
        *(one["name"] for one in languages().values()),
        # both ids of the regulator, beside the round and in the transfers, in each language.
        "Regulator&#39;s session id",
        "ID di partecipazione del regolatore",
        "Teilnahme-ID der Aufsichtsbehörde",
        "M1795000001AAAAA",
        "session id M1795000001AAAAA",
        "ID di partecipazione N1795000002AAAAA, transazione W1795000003AAAAA",
    ):
        assert words in text, words
    assert text.count('<td class="long">N1795000002AAAAA</td>') == len(languages())
    assert "_id " not in text, "no field's name stands on the page"
    assert "<script" not in text
    assert text.count("<svg") == (0 if act is unrecoverable else 3 * 9)


def test_a_page_says_that_a_round_was_played_with_play_money(tmp_path: Path) -> None:
    case, files = made(tmp_path, play, demo=True)
    page = tmp_path / "page.html"
    assert run(case, files, "--html", str(page)) == 0
    text = page.read_text()
    assert "500.00 EUR" in text
    assert all(one["play_money"] in text for one in languages().values())
    assert "wallet_transaction_id" not in text.split("PLAY_MONEY")[0]
    (tmp_path / "money").mkdir()
    case, files = made(tmp_path / "money", play)
    assert run(case, files, "--html", str(page)) == 0
    assert not any(one["play_money"] in page.read_text() for one in languages().values())


def test_a_page_is_in_the_words_and_amounts_of_its_language(tmp_path: Path) -> None:
    case, files = made(tmp_path, play)
    page = tmp_path / "page.html"
    assert run(case, files, "--html", str(page)) == 0
    _, english, italian, german = page.read_text().split("<section")
    for text, words in (
        (english, ("before the flop", "play 2x", "500.00 EUR", "Everything in this file verifies")),
        (
            italian,
            ("prima del flop", "500,00 EUR", "Tutto ciò che questo file contiene è stato verificato", "acquisto"),
        ),
        (german, ("vor dem Flop", "500,00 EUR", "Alles in dieser Datei wurde geprüft", "Kauf")),
    ):
        for one in words:
            assert one in text, one
    assert dispute.main([str(_written(case, files)), "--html", str(page)]) == 0
    assert "The owner of the keys was not checked" in page.read_text()
    assert run(case, {**files, "final.tlog-proof": b"nothing"}, "--html", str(page)) == 1
    assert "This file does NOT verify" in page.read_text()


def test_bets_and_decisions_have_the_words_of_their_game() -> None:
    """F-7 (each game's own words): vedi is the check of one game and the call of the other."""
    words = languages()["it"]
    assert words["action"]["ultimate_texas_holdem"]["check"] == "vedi"
    assert words["action"]["casino_holdem"]["call"] == "vedi"
    assert words["bet"]["casino_holdem"]["ante"] == "Puntata Antecedente"
    assert words["bet"]["ultimate_texas_holdem"]["ante"] == "Ante"


def test_a_page_says_bets_and_decisions_in_the_words_of_its_game(tmp_path: Path) -> None:
    case, files = made(tmp_path, fold, "casino-holdem", {"ante": 100, "aa": 50})
    page = tmp_path / "page.html"
    assert run(case, files, "--html", str(page)) == 0
    _, english, italian, german = page.read_text().split("<section")
    assert "Puntata Antecedente" in italian
    assert "Puntata Antecedente" not in english + german
    for text, decision in ((english, "fold"), (italian, "lascia"), (german, "passen")):
        assert f"<td>{decision}</td>" in text


def test_amounts_are_told_in_the_marks_of_the_language() -> None:
    words, german = languages()["en"], languages()["de"]
    for currency, minor, shown in (
        ("EUR", "5", "0.05 EUR"),
        ("EUR", "", ""),
        ("GBP", "123456", "1,234.56 GBP"),
        ("JPY", "123456", "123,456 JPY"),
        ("TND", "1234560", "1,234.560 TND"),
        ("XXX", "5", "5 minor units of XXX"),
    ):
        of = Dispute({}, {}, load_ruleset("uth-solo"), currency, [], [], is_good=True, is_anchored=True)
        assert _amount(words, of, minor) == shown
        assert _amount(german, of, minor) == shown.translate(str.maketrans(",.", ".,"))


def test_stakes_debited_one_by_one_are_among_the_transfers_of_their_round(tmp_path: Path) -> None:
    ids = ["01DEBJT0FTHJSR0VND00000000", "01DEBJT0FAN0THERR0VND00000"]

    def debited(factory: RecordFactory, worker: Any, player: Any) -> None:
        for transaction_id, round_id in zip(ids, (player.round.round_id, factory.ulid()), strict=True):
            body = {"amount_minor": "100", "direction": "debit", "round_id": round_id, "transaction_id": transaction_id}
            factory.link(worker, player, "transfer", body)
        play(factory, worker, player)

    case, files = made(tmp_path, debited)
    page = tmp_path / "page.html"
    assert run(case, files, "--html", str(page)) == 1  # no session has both ways of funding
    assert page.read_text().count(ids[0]) == 3
    assert ids[1] not in page.read_text()
    assert "stake debited" in page.read_text()


def test_the_same_words_in_every_language() -> None:
    def keys(words: Any) -> Any:
        return {name: keys(one) for name, one in words.items()} if isinstance(words, dict) else None

    first, *others = (keys(words) for words in languages().values())
    assert all(other == first for other in others)
    assert len(others) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda files: {**files, "final.json": files["opening.json"]},
        lambda files: {**files, "session.jsonl": files["session.jsonl"].replace(b"sig", b"gis", 1)},
        lambda files: {**files, "session.jsonl": b"\n".join(files["session.jsonl"].split(b"\n")[:-3]) + b"\n"},
        lambda files: {**files, "ruleset.json": load_ruleset("uth-lugano").canonical},
        lambda files: {**files, "ruleset.json": b"{}"},
        lambda files: {**files, "keys.json": RecordFactory("another").keys()},
        lambda files: {**files, "final.tlog-proof": files["opening.tlog-proof"]},
        lambda files: {**files, "final.tlog-proof": b"nothing"},
    ],
    ids=["final", "signature", "end", "ruleset", "rules", "keys", "proof", "no proof"],
)
def test_what_was_tampered_with_fails(tmp_path: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> None:
    case, files = made(tmp_path, play)
    assert run(case, change(files)) == 1


def test_what_no_page_has_words_for_is_told_and_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Planted: the rules of another game beside the round."""
    case, files = made(tmp_path, play)
    page = tmp_path / "page.html"
    assert run(case, {**files, "ruleset.json": load_ruleset("casino-holdem").canonical}, "--html", str(page)) == 1
    reported = capsys.readouterr().out
    assert "FAILED: ruleset.json is not the ruleset of the round" in reported
    assert "cannot be shown as a page" in reported
    assert not page.exists()
    assert page_of({**files, "ruleset.json": load_ruleset("casino-holdem").canonical}) == {}
    assert "without a page" in capsys.readouterr().out
    assert page_of(files).keys() == {"page.html"}
    assert run(case, files, "--html", str(tmp_path / "no" / "where.html")) == 2


def test_without_proofs_or_policy_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, files = made(tmp_path, play)
    assert dispute.main([str(_written(case, files))]) == 0
    assert "UNANCHORED" in (reported := capsys.readouterr().out)
    assert "not verified, no policy" in reported
    assert run(case, {name: data for name, data in files.items() if "proof" not in name}) == 0
    assert "no proof that it is in the log" in capsys.readouterr().out


def _written(case: Case, files: dict[str, bytes]) -> Path:
    path = case.folder / "plain.zip"
    path.write_bytes(zip_of(files))
    return path


def test_a_zip_that_is_damaged_anywhere_is_told(tmp_path: Path) -> None:
    """Every 23rd byte of a good one, one at a time: it is refused as a zip, or opened."""
    case, files = made(tmp_path, play)
    good = _written(case, files).read_bytes()
    path, refused = tmp_path / "damaged.zip", list[str]()
    for at in range(0, len(good), 23):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        try:
            dispute.read_zip(path)
        except FileError as error:
            refused.append(str(error))
    assert len(refused) > len(good) // 23 // 2
    assert {reported.count(str(path)) for reported in refused} == {1}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as zipped:  # its head may ask for gigabytes
        zipped.writestr("keys.json", b"")
    path.write_bytes(packed.getvalue())
    with pytest.raises(FileError, match="packed by method 14"):
        dispute.read_zip(path)


def test_zips_that_are_none(tmp_path: Path) -> None:
    case, files = made(tmp_path, play)
    assert run(case, {"keys.json": b""}) == 2
    assert run(case, {**files, "../evil": b""}) == 2
    assert run(case, {**files, "README.txt": bytes(1 << 20)}) == 2
    assert dispute.main([str(tmp_path / "nowhere.zip")]) == 2
    (tmp_path / "no.zip").write_bytes(b"nothing")
    assert dispute.main([str(tmp_path / "no.zip")]) == 2
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as zipped:
        zipped.writestr("keys.json", b"")
        with pytest.warns(UserWarning, match="Duplicate name"):
            zipped.writestr("keys.json", b"")
    (tmp_path / "twice.zip").write_bytes(twice.getvalue())
    assert dispute.main([str(tmp_path / "twice.zip")]) == 2
