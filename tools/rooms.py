"""Draws the rooms in docs/architecture.md from the table ROOMS of tools/tidy.py.

`python -m tools.rooms docs/architecture.md` updates the page. A test compares the two. A room that may import the
whole of the room around it is drawn as a part of that room. The entrances, tests, benches, tools and examples are not
drawn.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.tidy import ENTRANCES, GRPC, LOG, OUTSIDE, ROOMS, SHARED, Room, holders, reaches

BEGIN: Final = "<!-- rooms: made by tools/rooms.py -->"
END: Final = "<!-- end of rooms -->"
BETWEEN: Final = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)


def boxes(rooms: Sequence[Room] = ROOMS) -> dict[str, list[Room]]:
    """The rooms of the drawing by name, innermost first, each with its rows of the table."""
    found: dict[str, list[Room]] = {}
    for room in sorted(rooms, key=lambda room: len(room.prefix)):  # the room around it comes first
        if room.prefix.startswith((*ENTRANCES, *OUTSIDE)):
            continue
        around = max((name for name in found if room.prefix.startswith(f"{name}/")), key=len, default="")
        if around and (room.prefix.endswith(".py") or around.replace("/", ".") in room.ours):
            found[around].append(room)
        elif room.prefix.endswith("/"):
            found[room.prefix.rstrip("/")] = [room]
    order = [room.prefix.rstrip("/") for room in rooms]
    return {name: found[name] for name in sorted(found, key=order.index)}


def granted(rooms: Sequence[Room] = ROOMS) -> dict[str, dict[str, set[str]]]:
    """Box -> a name that it may import -> the other boxes that this name stands for."""
    drawn = boxes(rooms)
    box_of = {room.prefix: name for name, rows in drawn.items() for room in rows}
    found: dict[str, dict[str, set[str]]] = {}
    for box, rows in drawn.items():
        names = dict.fromkeys(name for room in rows for name in room.ours)
        leads = {name: {box_of[prefix] for prefix in holders(name, rooms) if prefix in box_of} for name in names}
        found[box] = {name: others - {box} for name, others in leads.items() if others - {box}}
    return found


def arrows(edges: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows of a graph, innermost first, without those that follow from a longer way."""
    beyond: dict[str, set[str]] = {}
    for box, others in edges.items():
        beyond[box] = {far for near in others for far in {near} | beyond[near]}
    return [
        (box, other)
        for box, others in edges.items()
        for other in edges
        if other in others and not any(other in beyond[near] for near in others)
    ]


def picture(rooms: Sequence[Room] = ROOMS) -> str:
    """The drawing. The importer stands above, the imported room below."""
    edges = {box: {other for others in names.values() for other in others} for box, names in granted(rooms).items()}
    lines = [f'    {box.replace("/", "_")}["{box}"]' for box in reversed(edges)]
    lines += [f"    {box} --> {other}".replace("/", "_") for box, other in reversed(arrows(edges))]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def table(rooms: Sequence[Room] = ROOMS) -> str:
    """The table below the drawing, which is exact."""
    lines = ["| room | may import, of ours | of others |", "|---|---|---|"]
    before: set[str] = set()
    for box, names in granted(rooms).items():
        rows = boxes(rooms)[box]
        lines.append(f"| `{box}` | {_ours(box, names, before)} | {_others(rows)} |")
        before.add(box)
    return "\n".join(lines)


def _ours(box: str, names: Mapping[str, set[str]], before: set[str]) -> str:
    own = box.replace("/", ".")
    reported: dict[str, str] = {}
    whole: set[str] = set()
    for name, others in names.items():
        inside = {other for other in others if reaches(other.replace("/", "."), name)}
        whole |= inside
        if reaches(own, name):  # its own name, with rooms inside it
            reported |= {other: f"`{other}`" for other in sorted(inside)}
        elif name in SHARED and set(SHARED) <= set(names):
            reported["shared"] = "`rgs/service` (what its subjects share)"
            whole.add("rgs/service")
        elif name in LOG and set(LOG) <= set(names):
            reported["log"] = "`rgs/tlog`"
            whole.add("rgs/tlog")
        else:
            reported[name] = f"`{name.replace('.', '/')}`" if inside else f"`{name}` alone"
    if before and whole >= before:
        return "every room above"
    return ", ".join(reported.values()) or "nothing"


def _others(rows: Sequence[Room]) -> str:
    libraries = sorted({library for room in rows for library in room.libraries or ()})
    reported = [f"`{library}`" for library in libraries if library not in GRPC]
    reported += ["gRPC"] if set(GRPC) <= set(libraries) else []
    reported += ["the code made from `protos/`"] if any(room.generated for room in rows) else []
    return ", ".join(reported) or "nothing"


def renewed(page: str) -> str:
    """The page with the drawing and the table of ROOMS."""
    if len(BETWEEN.findall(page)) != 1:
        raise ValueError(f"the page must have exactly one {BEGIN} and, after it, {END}")
    return BETWEEN.sub(lambda _: f"{BEGIN}\n\n{picture()}\n\n{table()}\n\n{END}", page)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(renewed(path.read_text("utf-8")), "utf-8")
