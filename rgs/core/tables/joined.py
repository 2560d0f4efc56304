"""A seat of a table in the form of solo play: its opening and final together with what all seats share.

Readers that know the form of a `round_opening` and a `round_final` (measured returns, disputes) read seats with it.
Nothing is verified here: `rgs.core.replay` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Body = dict[str, Any]
_SHARED: Final = ("deck", "salt", "transcript")
_WOULD_HAVE: Final = ("would_have_been", "would_have_outcome")


def joined_opening(table_round: Mapping[str, Any], table_deal: Mapping[str, Any], opening: Mapping[str, Any]) -> Body:
    """The body of a `seat_opening`, with commitment and deal of its table. The table's hands stand in for the seats."""
    deal = {
        **table_deal["deal"],
        "game_code": table_round["game_code"],
        "round_id": table_round["round_id"],
        "ruleset": table_round["ruleset"],
        "seats": table_round["hands"],
        "start_time": table_deal["time"],
        "table": table_round["table"],
    }
    return {**opening, "commitment": table_deal["commitment"], "deal": deal}


def joined_final(table_final: Mapping[str, Any], final: Mapping[str, Any]) -> Body:
    """The body of a `seat_final`, with deck, cards, hands and void of its `table_final`, as far as these are there."""
    cards = {**table_final.get("cards", {}), **{name: final[name] for name in ("hole_cards",) if name in final}}
    hands = table_final.get("hands", {})
    joined = {name: value for name, value in final.items() if name not in {*_WOULD_HAVE, "hole_cards"}}
    joined |= {name: table_final[name] for name in _SHARED if name in table_final}
    if {"hole_cards", "board"} <= cards.keys():
        joined["cards"] = cards
    if "outcome" in final:
        joined["outcome"] = {**hands, **final["outcome"]}
    if "void" in table_final:
        joined["void"] = dict(table_final["void"])
        if all(name in final for name in _WOULD_HAVE):
            joined["void"] |= {
                "would_have_been": final["would_have_been"],
                "would_have_outcome": {**hands, **final["would_have_outcome"]},
            }
    return joined
