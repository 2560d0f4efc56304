"""The log that a demo leaves, through everybody's hands: witness, auditor, player with a receipt, a complaint."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from certification import dispute, log, omission
from certification import receipt as receipts
from rgs.cli import witness
from rgs.cli.dispute import command as dispute_export
from rgs.cli.options import run_app
from rgs.cli.receipt import command as receipt
from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.core.tlog.merkle import consistency_proof
from rgs.core.tlog.note import add_signatures, format_note, parse_note, parse_signatures
from rgs.core.tlog.witness import AddCheckpoint, format_add_checkpoint
from rgs.node import witness_folder
from rgs.node.config import load_config
from rgs.node.log_folder import shards, vkey_now
from rgs.tlog.directory import LogDirectory

pytestmark = pytest.mark.slow

TRANSACTION = re.compile(r"transaction [0-9A-HJKMNP-TV-Z]{26}")
"""A transaction of the wallet, as the page names it in English."""


def test_from_the_demo_to_the_complaint(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(folder, tmp_path / "evidence")
    home, root = folder / "home", (folder / "root.fingerprint").read_text("ascii").strip()
    config = load_config(home)
    (shard,) = shards(config)
    vkey = vkey_now(config)
    run_app(witness.app, "witness", ["init", str(tmp_path / "w"), "--name", "witness.example", "--log", vkey])
    policy = tmp_path / "policy.txt"
    policy.write_text(f"log {vkey}\nwitness w {(tmp_path / 'w' / 'witness.vkey').read_text()}quorum w\n")
    seen, store = witness_folder.open_witness(tmp_path / "w")
    directory = LogDirectory(shard)
    note = parse_note(directory.checkpoint())
    assert list(consistency_proof(directory.subtrees(1), 0, 1)) == []
    line = seen.add_checkpoint(format_add_checkpoint(AddCheckpoint(0, (), note)))
    cosigned = format_note(add_signatures(note, parse_signatures(line)))
    directory.keep_cosigned(cosigned)
    directory.publish(cosigned)
    store.close()
    trusted = ["--policy", str(policy), "--root", root]
    keys = ["--keys", str(folder / "keys.json")]
    assert log.main([str(shard), *trusted, *keys, "--state", str(tmp_path / "state")]) == 0
    assert "46 verified, 0 failed, 0 open" in capsys.readouterr().out

    lines = (folder / "statements.jsonl").read_bytes().splitlines()
    bodies = [parse_statement(parse_envelope(parse_line(one).envelope))[1] for one in lines]
    round_id = next(body["round_id"] for body in bodies if body["kind"] == "round_final")
    for opening, name in ((False, "final"), (True, "opening")):
        given = tmp_path / "for" / "the player"  # made by the command
        receipt(round_id, home=home, opening=opening, output=given)
        files = [str(given / f"{round_id}-{name}{suffix}") for suffix in (".json", ".tlog-proof")]
        assert receipts.main([*files, *trusted]) == 0
        assert omission.main([files[0], "--log", str(shard), *trusted, *keys]) == 0
    with pytest.raises(NotFoundError, match="no round_final"):
        receipt("0" * 26, home=home)
    (tmp_path / "empty").mkdir()
    receipt(round_id, log=tmp_path / "empty", home=home, output=tmp_path / "empty")
    assert [path.suffix for path in (tmp_path / "empty").iterdir()] == [".json"]

    made = tmp_path / "complaint.zip"
    dispute_export(round_id, made, home=home)
    assert dispute.main([str(made), *trusted, "--html", str(tmp_path / "page.html")]) == 0
    assert TRANSACTION.search((tmp_path / "page.html").read_text("utf-8"))
    bare = tmp_path / "bare.zip"
    dispute_export(round_id, bare, home=home, private=False)
    assert dispute.main([str(bare), *trusted, "--html", str(tmp_path / "page.html")]) == 0
    assert not TRANSACTION.search((tmp_path / "page.html").read_text("utf-8"))
    with pytest.raises(InvalidFieldError, match="--session"):
        dispute_export(round_id, tmp_path / "no.zip", home=home, session="0" * 26)
