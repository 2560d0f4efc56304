"""The rules of the allow-list, as functions over its rows: what may be added, and what may be removed.

A certificate is added once. One that was removed stays denied for ever, as its row and its signed events say; its
party gets another. A party keeps its role, jurisdiction and operator. The last certificate of an admin cannot be
removed: an allowed one that is still valid must remain. One with an unknown end does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rgs.core.errors import CertificateKnownError, InvalidFieldError, LastAdminError, NotFoundError
from rgs.core.times import format_time
from rgs.store.changes import StoreRefusedError
from rgs.store.interface import PartyRow

ADMIN: Final = "admin"
OPERATOR: Final = "operator"
SUPPORT: Final = "support"
SELECT_CERTIFICATES: Final = (
    "SELECT c.fingerprint, c.party, p.role, p.jurisdiction, c.added_ms, c.removed_ms, c.last_ms, p.operator"
    " FROM certificates c JOIN parties p ON p.party = c.party WHERE c.removed_ms IS NULL OR ?"
    " ORDER BY c.added_ms, c.fingerprint"
)
"""The rows of the list, in the order of `PartyRow`; with True those that were removed, too."""


def links_key(party: str) -> str:
    """The key of `meta` with an operator's links."""
    return f"links/{party}"


def party_of(row: PartyRow) -> tuple[str, str, str, int, str]:
    """The fields of `PartyOn`."""
    return (row.party, row.role, row.jurisdiction, row.added_ms, row.operator)


def certificate_of(row: PartyRow) -> tuple[str, int, str, str, str, int | None, str]:
    """The fields of `CertificateOn`; the end of the validity may be unknown here."""
    return (row.fingerprint, row.added_ms, row.party, row.role, row.jurisdiction, row.last_ms, row.operator)


def refused_party(row: PartyRow) -> StoreRefusedError:
    """What is raised where the schema takes no such party."""
    return StoreRefusedError(f"the store takes no party {row.party} of role {row.role}", party=row.party, role=row.role)


def verify_new(row: PartyRow, known: Sequence[PartyRow], field: str = "party") -> None:
    """CertificateKnownError if the list has the certificate, also as a removed one. InvalidFieldError naming `field` if
    its party is known with another role, jurisdiction or operator.
    """
    for other in known:
        if other.fingerprint == row.fingerprint:
            since = format_time(other.added_ms)
            known_as = f"is in the allow-list since {since}"
            if other.removed_ms is not None:
                known_as = (
                    f"was removed from the allow-list at {format_time(other.removed_ms)}, and stays denied: issue"
                    " another one for the party"
                )
            raise CertificateKnownError(
                f"this certificate {known_as}", fingerprint=row.fingerprint, party=other.party, role=other.role
            )
        if other.party == row.party and _terms(other) != _terms(row):
            named = f" and looks up players of {other.operator or 'all operators'}" * (other.role == SUPPORT)
            raise InvalidFieldError(
                f"party {row.party} is {other.role} in jurisdiction {other.jurisdiction or '-'} already{named}",
                field=field,
                limit=" ".join(filter(None, _terms(other))),
                value=" ".join(filter(None, _terms(row))),
            )


def _terms(row: PartyRow) -> tuple[str, str, str]:
    """What a party keeps for good."""
    return row.role, row.jurisdiction, row.operator


def verify_scope(role: str, operator: str, known: Sequence[PartyRow]) -> None:
    """InvalidFieldError if a role that is not support names an operator. NotFoundError if no such operator is known."""
    if role != SUPPORT:
        if operator:
            raise InvalidFieldError(
                f"only the role {SUPPORT} names an operator, role {role} does not",
                field="operator",
                limit="",
                value=operator[:80],
            )
    elif operator:
        verify_operator(operator, known, field="operator")


def verify_operator(party: str, known: Sequence[PartyRow], field: str = "party") -> None:
    """NotFoundError unless the list has the party as an operator, with a certificate that is allowed."""
    if not any(row.party == party and row.role == OPERATOR and row.removed_ms is None for row in known):
        raise NotFoundError(f"no operator {party} is in the allow-list", kind="operator", field=field, party=party)


def removable(fingerprint: str, known: Sequence[PartyRow], now_ms: int) -> PartyRow:
    """The row of an allowed certificate that may be removed now. NotFoundError, LastAdminError."""
    allowed = [row for row in known if row.removed_ms is None]
    found = next((row for row in allowed if row.fingerprint == fingerprint), None)
    if found is None:
        raise NotFoundError("no such certificate is allowed", kind="certificate", fingerprint=fingerprint)
    others = [row for row in allowed if row.role == ADMIN and row.fingerprint != fingerprint]
    if found.role == ADMIN and not any(row.last_ms is not None and row.last_ms > now_ms for row in others):
        unknown = sum(row.last_ms is None for row in others)
        raise LastAdminError(
            "no other admin's certificate is allowed and known to be valid still: add one first, at the machine,"
            f" with `rgs party add` ({len(others)} others, {unknown} of them of unknown end)",
            fingerprint=fingerprint,
            party=found.party,
            value=len(others),
        )
    return found
