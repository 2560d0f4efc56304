"""The folder of a demo's files. A demo creates and marks it, locks it while it runs, and empties an old one first.

Refuses to touch a folder that no demo has made, a link, and a folder that holds a file of another origin.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rgs.core.errors import UnavailableError
from rgs.node.files import FileRefusedError, make_folder

MARK: Final = ".made-by-rgs-demo"
_MARK_TEXT: Final = b"Everything in this folder was made by `rgs demo`, and is removed by the next one.\n"


class _Named:
    """The path of this name in the folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, evidence: Evidence, _owner: type[Evidence]) -> Path:
        return evidence.folder / self.name


class Evidence:
    """The files of a demo."""

    home = _Named("home")  # the node's home: store, wallet, log, and keys
    server = _Named("server.txt")  # what the server wrote on stdout and stderr
    keys = _Named("keys.json")  # the key bundle
    root = _Named("root.fingerprint")  # of the first root
    statements = _Named("statements.jsonl")  # the export, in commit order
    replay = _Named("replay.jsonl")  # the output of `certify replay --json`
    log = _Named("log")  # the transparency log, for any static web server
    log_vkey = _Named("log.vkey")  # its verifier key, a line
    policy = _Named("policy.txt")  # whom to trust about the log: its key, the witness, the quorum
    log_state = _Named("log.state")  # what the audit of the log remembers
    audit = _Named("log.json")  # the report of `certify log`
    witness = _Named("home/witness")  # the folder of our own witness
    witness_said = _Named("witness.txt")  # the output of the witness
    receipts = _Named("receipts.jsonl")  # what the operator kept of each opening that it received
    wallet = _Named("wallet.csv")  # the statement of the operator's wallet
    wallet_said = _Named("wallet.txt")  # the output of the simulated wallet: each fault that it committed
    regulator = _Named("regulator.jsonl")  # the regulator of the regulator
    regulator_said = _Named("regulator.txt")  # the output of the simulated regulator
    reconciliation = _Named("reconciliation")  # the folder of the report over all of these
    midway = _Named("midway")  # the same files and report while the faults were on

    def __init__(self, folder: Path) -> None:
        self.folder = folder


_NAMES: Final = ("log.state.part", *(found.name for found in vars(Evidence).values() if isinstance(found, _Named)))


@contextmanager
def claim(folder: Path) -> Iterator[Evidence]:
    """Lock the folder, and empty it except for its mark. FileRefusedError, UnavailableError."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FileRefusedError(f"{folder} is not a folder: name another with --home", path=folder)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_folder(folder)
    mark = folder / MARK
    if not any(folder.iterdir()):
        mark.write_bytes(_MARK_TEXT)
    if mark.is_symlink() or not mark.is_file() or mark.read_bytes() != _MARK_TEXT:
        raise FileRefusedError(
            f"{folder} was not made by a demo, and stays as it is: name another with --home", path=folder
        )
    with mark.open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnavailableError(f"another demo runs in {folder}", path=folder) from None
        _empty(folder)
        yield Evidence(folder)


def _empty(folder: Path) -> None:
    """Remove the files of an earlier demo, once all of them are known to be its own."""
    found = sorted(path for path in folder.iterdir() if path.name != MARK)
    unfinished = tuple(f".{name}." for name in _NAMES)  # a killed command leaves `.home.unfinished` behind
    strange = [path.name for path in found if path.name not in _NAMES and not path.name.startswith(unfinished)]
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
