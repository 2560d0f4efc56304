"""Finds rounds that come more than once, because exports overlap or a file is named twice. A round that is counted
twice would make every statistic over the rounds too large.

An opening is recognised by instance, draw, seat number and 16 bits of its hash. That takes two bytes a round. The bits
tell two systems apart whose instances have the same names. Nothing is verified here: `certify replay` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PAGE: Final = 512
_MARK: Final = 2


class SeenRounds:
    """The openings that were read so far."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, int, int], bytearray] = {}
        self._again: set[str] = set()

    def is_again(self, opening_hash: str, opening: Mapping[str, Any]) -> bool:
        """Whether this opening came before; its final, which comes later, is then recognised too."""
        return self.is_seat_again(opening_hash, opening["deal"], int(opening["seat"]["seat_no"]))

    def is_seat_again(self, opening_hash: str, deal: Mapping[str, Any], seat_no: int) -> bool:
        """The same of a seat at a table, where the deal stands in another statement."""
        if self.is_deal_again(opening_hash, deal, seat_no):
            self._again.add(opening_hash)
            return True
        return False

    def is_deal_again(self, name: str, deal: Mapping[str, Any], seat_no: int = 0) -> bool:
        """Whether this deal, or seat of it, came before under this hash."""
        number, place = divmod(int(deal["draw_no"]), _PAGE)
        page = self._pages.setdefault((deal["instance"], seat_no, number), bytearray(_MARK * _PAGE))
        mark = max(int(name[: 2 * _MARK], 16), 1).to_bytes(_MARK)
        if page[_MARK * place : _MARK * (place + 1)] == mark:
            return True
        page[_MARK * place : _MARK * (place + 1)] = mark
        return False

    def why_unopened(self, opening_hash: str) -> str:
        """Why a final has no open round: its opening came before, or never."""
        if opening_hash not in self._again:
            return "finals without their opening"
        self._again.remove(opening_hash)
        return "rounds that came before"
