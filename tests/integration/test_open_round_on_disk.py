"""What a thief of the disk finds of a round in play: everything under the home but the key of its sealed decks.

Store, write-ahead log, wallet, regulator and technical log are read as bytes while the round is open, and searched for
salt, transcript and deck in every form in which the server writes them: raw, hex, and hex inside the base64 of a
statement at each of its three places. The same search finds them once the round has ended, so it would have.
"""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from pathlib import Path

import pytest

from rgs.core.cards import parse_card
from rgs.node.logging import Log
from rgs.v1 import common_pb2
from tests.support.api.client import ApiClient
from tests.support.api.harness import serving
from tests.support.service.harness import read_statement


def forms(secret: bytes) -> set[bytes]:
    """The bytes as they stand, as hex in both cases, and what of that hex stands in base64 wherever it begins."""
    found = {secret, secret.hex().encode(), secret.hex().upper().encode()}
    for text in (secret, secret.hex().encode()):
        for shift in range(3):
            whole = base64.b64encode(bytes(shift) + text)
            found.add(whole[4 * bool(shift) : len(whole) - 4])
    return found


def forms_of_deck(deck: list[str]) -> set[bytes]:
    """As card numbers one a byte, as text, and as the JSON list of a statement in base64."""
    numbers = bytes(parse_card(card) for card in deck)
    listed = '","'.join(deck).encode()
    return {numbers, "".join(deck).encode(), " ".join(deck).encode(), listed} | {
        base64.b64encode(bytes(shift) + listed)[4 * bool(shift) : -4] for shift in range(3)
    }


def files_of(home: Path, *, but: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(home.rglob("*")):
        with suppress(FileNotFoundError):  # what the log stages comes and goes
            if path.is_file() and but not in (path, *path.parents):
                found[str(path.relative_to(home))] = path.read_bytes()
    return found


def seen_in(files: dict[str, bytes], secrets: set[bytes]) -> list[str]:
    return [name for name, content in files.items() if any(secret in content for secret in secrets)]


@pytest.mark.parametrize("decisions", [0, 1, 2])
async def test_the_disk_of_an_open_round_holds_no_deck(tmp_path: Path, decisions: int) -> None:
    async with serving(tmp_path) as harness:
        with Log(harness.config.log, "debug", harness.clock, people=None) as log:
            player = await ApiClient(harness.channel()).seated()
            await player.start()
            for _ in range(decisions):
                await player.act(common_pb2.ACTION_CHECK)
            log.flush()
            during = files_of(tmp_path / "home", but=harness.config.kek)
            answer = await player.act(common_pb2.ACTION_PLAY_4X if not decisions else last_of(decisions))
            after = files_of(tmp_path / "home", but=harness.config.kek)
    final = read_statement(answer.final)
    salt, transcript = (bytes.fromhex(final[field]) for field in ("salt", "transcript"))
    deck = final["deck"]
    # Halves, for a page of the store may end within a whole one.
    for secrets in (
        forms(salt[:16]) | forms(salt[16:]),
        forms(transcript[:20]) | forms(transcript[-20:]),
        forms_of_deck(deck[:20]) | forms_of_deck(deck[-20:]),
    ):
        assert seen_in(during, secrets) == []
        assert len(seen_in(after, secrets)) >= 1
    assert any("wal" in name for name in during)
    assert len(during) > 8


def last_of(decisions: int) -> common_pb2.Action.ValueType:
    return common_pb2.ACTION_PLAY_2X if decisions == 1 else common_pb2.ACTION_PLAY_1X


async def test_the_keys_that_sign_are_in_no_file_but_their_own(tmp_path: Path) -> None:
    """The instance's key lives in memory alone; the node's and the root's stand in their files and nowhere else."""
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        await player.start()
        home = tmp_path / "home"
        everything = files_of(home, but=harness.config.keys)
        for path in sorted(harness.config.keys.rglob("*.key")):
            text = path.read_text("ascii")
            body = "".join(line for line in text.splitlines() if not line.startswith("-"))
            assert len(body) > 40
            assert seen_in(everything, {body.encode(), base64.b64decode(body)[-32:]}) == []
        others = files_of(home, but=harness.config.kek)
        found = [key for path in kek_files(harness.config.kek) for key in re.findall(r"[0-9a-f]{64}", path.read_text())]
        assert found
        for key in found:
            assert seen_in(others, forms(bytes.fromhex(key))) == []


def kek_files(kek: Path) -> list[Path]:
    return [path for path in sorted(kek.rglob("*")) if path.is_file()] if kek.is_dir() else [kek]
