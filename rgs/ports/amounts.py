"""The bounds of an amount of a message, for every wallet and every regulator.

Refuses what is no whole number of minor units.
"""

from __future__ import annotations

from typing import Final

from rgs.core.values import check_range

AMOUNT_MINOR_MAX: Final = 10**18 - 1
"""Largest amount of a message: the 18 digits that an integer of a statement holds."""


def check_amount(amount_minor: int, field: str, least: int) -> int:
    """The amount if it is a whole number from `least` to AMOUNT_MINOR_MAX; InvalidFieldError naming `field` if not."""
    return check_range(amount_minor, field, least, AMOUNT_MINOR_MAX)
