"""The bounds of an amount in a message to a wallet or a regulator."""

from __future__ import annotations

from typing import Final

from rgs.core.values import check_range

AMOUNT_MINOR_MAX: Final = 10**18 - 1
"""Largest amount of a message, in minor units: the 18 digits that an integer of a statement holds."""


def check_amount(amount_minor: int, field: str, least: int) -> int:
    """The amount, a whole number from `least` to AMOUNT_MINOR_MAX; otherwise InvalidFieldError naming `field`."""
    return check_range(amount_minor, field, least, AMOUNT_MINOR_MAX)
