"""Cut exports of one session: the links of some ranges, and the start of each instance."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.records.factory import RecordFactory, join

Range = tuple[int, int]


def cut_session(factory: RecordFactory, session: str, *ranges: Range) -> bytes:
    """A cut export with these links of a session, first to last of each range."""
    rows = [{"first": str(first), "last": str(last), "session_id": session} for first, last in ranges]
    lines = [factory.scope(sessions=rows)]
    for line, body in zip(factory.lines, _bodies(factory), strict=True):
        link = int(body.get("link_no", "0"))
        is_held = body.get("session_id") == session and any(first <= link <= last for first, last in ranges)
        if is_held or body["kind"] == "instance_start":
            lines.append(line)
    return join(lines)


def held(*ranges: Range) -> Callable[[RecordFactory], bytes]:
    """The cut export with these links of the first session; a last number of 0 is its highest."""

    def exporting(factory: RecordFactory) -> bytes:
        session, most = next(sessions_of(factory))
        return cut_session(factory, session, *((first, last or most) for first, last in ranges))

    return exporting


def sessions_of(factory: RecordFactory) -> Iterator[tuple[str, int]]:
    """Each session of the story, and its highest link number."""
    bodies = [body for body in _bodies(factory) if "link_no" in body]
    for session in dict.fromkeys(body["session_id"] for body in bodies):
        yield session, max(int(body["link_no"]) for body in bodies if body["session_id"] == session)


def kinds_of(factory: RecordFactory, session: str) -> dict[int, str]:
    """The kinds of the session's links, by their numbers."""
    links = [body for body in _bodies(factory) if body.get("session_id") == session and "link_no" in body]
    return {int(body["link_no"]): body["kind"] for body in links}


def _bodies(factory: RecordFactory) -> list[dict[str, Any]]:
    return [json.loads(base64.b64decode(json.loads(line)["envelope"]["payload"])) for line in factory.lines]
