"""Kills a change before each of its writes in turn, and reports what that leaves.

Run as `python -m tests.support.process.killing`: a process of its own, with one thread, so that it may fork.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rgs.core.statements import Ed25519Signer
from rgs.node.home import ensure_home
from rgs.node.keyring import (
    format_private_key,
    install,
    list_keys,
    load_bundle,
    load_node_signer,
    load_root_signer,
    new_key,
    node_key_statement,
    root_key_statement,
    settle,
)
from rgs.store.parties import SqliteParties
from rng.entropy import EntropySource
from tests.support.waiting import at_once

NOW_MS = 1_763_764_200_123
WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "sqlite3.connect"}


def killed_at(step: int, change: Callable[[], object]) -> bool:
    """Run `change` in a child that is killed just before its `step`-th write; whether it came so far."""
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            is_open = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in WRITES or is_open:
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.addaudithook(hook)
            change()
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        raise RuntimeError(f"step {step} failed by itself")
    return os.WIFSIGNALED(status)


def kill_init(folder: Path) -> list[dict[str, Any]]:
    """One row a step: whether it was killed, what lay there then, and what the next init did and left."""
    home = folder / "home"
    rows: list[dict[str, Any]] = []
    while not rows or rows[-1]["killed"]:
        killed = killed_at(len(rows) + 1, lambda: ensure_home(home, "node1", EntropySource().read, NOW_MS))
        there, litter = home.exists(), sorted(path.name for path in folder.iterdir() if path != home)
        found = ensure_home(home, "node1", EntropySource().read, NOW_MS)
        load_node_signer(found.config)
        assert isinstance(found.config.store, Path)
        parties = SqliteParties(found.config.store)
        allowed = len(at_once(parties.allowed()))
        at_once(parties.close())
        left = sorted(path.name for path in folder.iterdir())
        rows.append(
            {"killed": killed, "there": there, "litter": litter, "made": found.made, "left": left, "allowed": allowed}
        )
        shutil.rmtree(home)
    return rows


def kill_install(folder: Path, which: str) -> list[dict[str, Any]]:
    """One row a step: whether it was killed, which key counted then and after `settle`, and what files were left."""
    config = ensure_home(folder / "home", "node1", EntropySource().read, NOW_MS).config

    def current() -> str:
        return (load_node_signer(config) if which == "node" else load_root_signer(config.keys)).keyid

    rows: list[dict[str, Any]] = []
    while not rows or rows[-1]["killed"]:
        before, root, key = current(), load_root_signer(config.keys), new_key(EntropySource().read)
        public_key = key.public_key().public_bytes_raw()
        if which == "root":
            statement = root_key_statement(public_key, root, NOW_MS)
        else:
            statement = node_key_statement(public_key, "node1", root, NOW_MS, development=True)

        def change() -> None:
            content = format_private_key(key)  # noqa: B023 - called in this round
            install(config.keys, f"{which}.key", content, statement)  # noqa: B023 - called in this round

        names = {before: "old", Ed25519Signer(key).keyid: "new"}
        killed = killed_at(len(rows) + 1, change)
        counts = names[current()]
        settle(config.keys)
        rows.append(
            {
                "killed": killed,
                "counts": counts,
                "settled": names[current()],
                "named": names[[row.keyid for row in list_keys(load_bundle(config)) if row.role == which][-1]],
                "left": sorted(path.name for path in config.keys.iterdir()),
            }
        )
    return rows


if __name__ == "__main__":
    # A kill loses nothing that the kernel has; what a power cut would lose is not tested here.
    os.fsync = os.fstat  # type: ignore[assignment]
    what, where = sys.argv[1], Path(sys.argv[2])
    sys.stdout.write(json.dumps(kill_init(where) if what == "init" else kill_install(where, what)))
