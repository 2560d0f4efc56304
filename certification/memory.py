"""The file in which an auditor remembers, between two runs, what was verified.

It is one JSON document behind a line with its SHA-256. `Replay.state` and `AuditFindings.state` say what stands
in it: ids, numbers and times, no objects. A file that is damaged or of another version is a FormatError: it must not
pass as the beginning of a log.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from rgs.core.errors import FormatError, RgsError
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import KeyRole

FORMAT: Final = "rgs/audit-state/v4"
_DIGEST_LENGTH: Final = 64


def format_replay(replay: Replay, keys: KeyBook) -> dict[str, Any]:
    """The state of the replay, and the instance keys that it has learnt."""
    learnt = [
        {"instance": key.name, "parent": key.parent, "public_key": key.public_key.hex(), "since": key.since}
        for key in keys.known.values()
        if key.role is KeyRole.INSTANCE
    ]
    return {"keys": learnt, "state": replay.state()}


def parse_replay(document: Mapping[str, Any], keys: KeyBook, rulebook: Rulebook) -> Replay:
    """The replay that goes on from there, under today's key bundle. FormatError."""
    replay = Replay(keys, rulebook, goes_on=True)
    try:
        for key in document["keys"]:
            keys.add_instance(key, key["parent"], key["since"])
        replay.restore(document["state"])
    except (KeyError, TypeError, ValueError, AttributeError, RgsError) as error:
        raise FormatError(f"the state does not fit these keys and rules, or this version: {error!r}") from None
    return replay


def format_state(document: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The two lines of the file: the hash of the content, and the content."""
    content = json.dumps({"format": FORMAT, **document}, separators=(",", ":")).encode("ascii") + b"\n"
    return hashlib.sha256(memoryview(content)[:-1]).hexdigest().encode("ascii") + b"\n", content


def parse_state(data: bytes) -> dict[str, Any]:
    """The document of a file; FormatError."""
    content = data[_DIGEST_LENGTH + 1 :]
    digest = hashlib.sha256(memoryview(content)[:-1]).hexdigest().encode("ascii")
    if not data.startswith(digest + b"\n") or not content.endswith(b"\n"):
        raise FormatError("the state file is damaged: its hash does not fit")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FormatError(f"the state file is not of format {FORMAT}")
    return document
