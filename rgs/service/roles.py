"""The roles that parties have. A client that only names one imports nothing else of the server."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The role of a party: the certificate's URI names it, and the allow-list must agree."""

    OPERATOR = "operator"
    AUDITOR = "auditor"
    REGULATOR = "regulator"
    LAB = "lab"
    ADMIN = "admin"
    SUPPORT = "support"
    """Staff that answers players. It reads, changes nothing and sees no undealt card (`rgs.service.support`)."""
