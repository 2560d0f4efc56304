"""The folder in which a demo leaves its evidence: made by the demo, marked, locked while it runs, emptied by the next.

Refuses to touch a folder that a demo has not made, a link, and a folder in which anything lies that no demo puts there.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgs.core.errors import UnavailableError
from rgs.node.files import FileRefusedError, make_folder

MARK: Final = ".made-by-rgs-demo"
_MARK_TEXT: Final = b"Everything in this folder was made by `rgs demo`, and is removed by the next one.\n"
_NAMES: Final = (
    *("home", "keys.json", "log", "log.json", "log.state", "log.state.part", "log.vkey", "midway", "policy.txt"),
    *("receipts.jsonl", "reconciliation", "regulator.jsonl", "regulator.txt", "replay.jsonl", "root.fingerprint"),
    *("server.txt", "statements.jsonl", "wallet.csv", "wallet.txt", "witness.txt"),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a demo leaves behind, by path."""

    folder: Path

    @property
    def home(self) -> Path:
        """The node's home: store, wallet, log, and keys."""
        return self.folder / "home"

    @property
    def statements(self) -> Path:
        """The export, in commit order."""
        return self.folder / "statements.jsonl"

    @property
    def keys(self) -> Path:
        """The key bundle."""
        return self.folder / "keys.json"

    @property
    def root(self) -> Path:
        """The fingerprint of the first root."""
        return self.folder / "root.fingerprint"

    @property
    def replay(self) -> Path:
        """What `certify replay --json` said."""
        return self.folder / "replay.jsonl"

    @property
    def log(self) -> Path:
        """The transparency log, for any static web server."""
        return self.folder / "log"

    @property
    def log_vkey(self) -> Path:
        """Its verifier key, a line."""
        return self.folder / "log.vkey"

    @property
    def policy(self) -> Path:
        """Whom to trust about the log: its key, the witness, the quorum."""
        return self.folder / "policy.txt"

    @property
    def log_state(self) -> Path:
        """What the audit of the log remembers."""
        return self.folder / "log.state"

    @property
    def audit(self) -> Path:
        """What `certify log` said."""
        return self.folder / "log.json"

    @property
    def witness(self) -> Path:
        """The folder of the house's own witness."""
        return self.home / "witness"

    @property
    def witness_said(self) -> Path:
        """What the witness said."""
        return self.folder / "witness.txt"

    @property
    def receipts(self) -> Path:
        """What the operator kept of each opening that it was answered with."""
        return self.folder / "receipts.jsonl"

    @property
    def wallet(self) -> Path:
        """The statement of the operator's wallet."""
        return self.folder / "wallet.csv"

    @property
    def regulator(self) -> Path:
        """The register of the central system."""
        return self.folder / "regulator.jsonl"

    @property
    def reconciliation(self) -> Path:
        """The folder of the report over all of these."""
        return self.folder / "reconciliation"

    @property
    def midway(self) -> Path:
        """The same files and report while the faults were on."""
        return self.folder / "midway"

    @property
    def wallet_said(self) -> Path:
        """What the simulated wallet said: each fault that it committed."""
        return self.folder / "wallet.txt"

    @property
    def regulator_said(self) -> Path:
        """What the simulated central system said."""
        return self.folder / "regulator.txt"

    @property
    def server(self) -> Path:
        """What the server said on stdout and stderr."""
        return self.folder / "server.txt"


@contextmanager
def claim(folder: Path) -> Iterator[Evidence]:
    """The folder, empty but for its mark, held until the end. FileRefusedError, UnavailableError."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FileRefusedError(f"{folder} is no folder: name another with --home", path=folder)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_folder(folder)
    mark = folder / MARK
    if not any(folder.iterdir()):
        mark.write_bytes(_MARK_TEXT)
    if mark.is_symlink() or not mark.is_file() or mark.read_bytes() != _MARK_TEXT:
        raise FileRefusedError(
            f"{folder} was not made by a demo, and is left alone: name another with --home", path=folder
        )
    with mark.open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnavailableError(f"another demo is at work in {folder}", path=folder) from None
        _empty(folder)
        yield Evidence(folder)


def _empty(folder: Path) -> None:
    """Remove what a former demo left, after looking at all of it."""
    found = sorted(path for path in folder.iterdir() if path.name != MARK)
    strange = [path.name for path in found if not _is_ours(path.name)]
    if strange:
        raise FileRefusedError(
            f"{folder} holds {', '.join(strange)}, which no demo made: move it away, or name another with --home",
            path=folder,
        )
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _is_ours(name: str) -> bool:
    """One of our names, or what a killed command leaves while it writes one (`.home.unfinished`)."""
    return name in _NAMES or any(name.startswith(f".{ours}.") for ours in _NAMES)
