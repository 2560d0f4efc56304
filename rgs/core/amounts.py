"""Amounts for people, in major units: "250.00 EUR", "25,000 JPY", "25.000 TND". Machines get minor units.

Games calculate with `rgs.core.money`; nothing here is certified. Decimals are written only for currencies whose number
of decimals is known (ISO 4217). Other amounts are shown in minor units, and say so.
"""

from __future__ import annotations

from typing import Final

_TWO_DECIMALS: Final = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC
    CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES
    KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR
    NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT
    TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD YER ZAR ZMW
"""
_NO_DECIMALS: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE_DECIMALS: Final = "BHD IQD JOD KWD LYD OMR TND"
_FOUR_DECIMALS: Final = "CLF UYW"
_EXPONENTS: Final[dict[str, int]] = {
    code: exponent
    for codes, exponent in ((_TWO_DECIMALS, 2), (_NO_DECIMALS, 0), (_THREE_DECIMALS, 3), (_FOUR_DECIMALS, 4))
    for code in codes.split()
}
"""Decimals by currency (ISO 4217, list one)."""

_LARGEST_MINOR: Final = 10**15
"""No amount that a person types is larger, in minor units."""


def exponent_of(currency: str) -> int:
    """The decimals of a currency's major unit; 0 where they are not known."""
    return _EXPONENTS.get(currency, 0)


def format_money(amount_minor: int, currency: str, *, signed: bool = False) -> str:
    """An amount for people, in major units: `1,234.50 EUR`; `+` before a gain where `signed`.

    A currency whose decimals are not known (or an empty one) stays in minor units, and the text says so.
    """
    sign = "-" if amount_minor < 0 else "+" if signed and amount_minor else ""
    exponent = _EXPONENTS.get(currency)
    if exponent is None:
        return f"{sign}{abs(amount_minor):,} minor units of {currency or 'an unknown currency'}"
    whole, rest = divmod(abs(amount_minor), 10**exponent)
    decimals = f".{rest:0{exponent}d}" if exponent else ""
    return f"{sign}{whole:,}{decimals} {currency}"


def typed_money(amount_minor: int, currency: str) -> str:
    """An amount as a person would type it. Inverse of `parse_money`."""
    exponent = exponent_of(currency)
    whole, rest = divmod(amount_minor, 10**exponent)
    return f"{whole}.{rest:0{exponent}d}" if exponent else str(whole)


def parse_money(text: str, currency: str) -> int | None:
    """Minor units of what a person types (`5`, `5.5`, `5,50`); None if it is no amount, or finer than the currency."""
    whole, mark, part = text.strip().replace(",", ".").partition(".")
    exponent = exponent_of(currency)
    digits = whole + part
    if not (whole and digits.isascii() and digits.isdecimal() and len(digits) <= len(str(_LARGEST_MINOR))):
        return None
    if len(part) > exponent or (mark and not exponent):
        return None
    amount_minor = int(whole + part.ljust(exponent, "0"))
    return amount_minor if amount_minor <= _LARGEST_MINOR else None
