"""What the game server says of the operator's jurisdiction, and its texts; both are kept for a while.

The platform's own settings can only be stricter than the jurisdiction's.
"""

from __future__ import annotations

import time
from typing import Any, Final

from rgs.v1 import catalog_pb2

from .config import Config
from .rgs_client import Rgs, as_json

KEPT_S: Final = 600.0
EXPONENTS: Final = {"JPY": 0}
"""Before the game server has answered. All others have two decimal places."""
LANGUAGES: Final = ("en", "it", "de")


class Terms:
    """The values of the jurisdiction, and the texts by language."""

    def __init__(self, config: Config, rgs: Rgs) -> None:
        self._config = config
        self._rgs = rgs
        self._terms: tuple[float, Any] | None = None
        self._texts: dict[str, tuple[float, dict[str, Any]]] = {}

    async def now(self) -> Any:
        """The terms of today. PlatformError if they are not known: then nothing that rests on them is done."""
        if self._terms is None or self._terms[0] < time.monotonic():
            found = await self._rgs.call(self._rgs.catalog.GetTerms, catalog_pb2.GetTermsRequest())
            self._terms = (time.monotonic() + KEPT_S, found.terms)
        return self._terms[1]

    async def known(self) -> Any:
        """The terms as they were last known; asked for only if they never were."""
        return await self.now() if self._terms is None else self._terms[1]

    async def limit_raise_delay_ms(self) -> int:
        """How long a raised limit waits."""
        return max(int((await self.now()).limit_raise_delay_ms), self._config.limit_raise_delay_ms)

    async def reality_check_ms(self) -> int:
        """The time between reality checks; 0: none."""
        stated = [one for one in (int((await self.now()).reality_check_ms), self._config.reality_check_ms) if one]
        return min(stated, default=0)

    def exponent(self, currency: str) -> int:
        """Decimal places of a currency, as far as the game server has said them."""
        known = self._terms[1].currencies if self._terms is not None else ()
        return next((int(one.exponent) for one in known if one.currency == currency), EXPONENTS.get(currency, 2))

    @property
    def known_raise_delay_ms(self) -> int:
        """The delay as it was last known, to be shown."""
        known = 0 if self._terms is None else int(self._terms[1].limit_raise_delay_ms)
        return max(known, self._config.limit_raise_delay_ms)

    async def texts(self, language: str, games: list[str]) -> dict[str, Any]:
        """The texts by game, and under "" those of all games. A game has only what differs."""
        kept = self._texts.get(language)
        if kept is not None and kept[0] >= time.monotonic() and all(game in kept[1] for game in games):
            return kept[1]
        shared = await self._texts_of(language, "")
        found = {"": shared}
        for game in games:
            texts = await self._texts_of(language, game)
            found[game] = {name: value for name, value in texts.items() if shared.get(name) != value}
        self._texts[language] = (time.monotonic() + KEPT_S, found)
        return found

    async def _texts_of(self, language: str, game: str) -> dict[str, Any]:
        request = catalog_pb2.GetTextsRequest(language=language, game=game)
        return as_json(await self._rgs.call(self._rgs.catalog.GetTexts, request))
