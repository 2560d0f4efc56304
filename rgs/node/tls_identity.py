"""Reads client certificates, and decides which operators a server with its CAs may serve."""

from __future__ import annotations

from collections.abc import Callable

from cryptography import x509

from rgs.api.auth import PeerCertificate
from rgs.api.endpoint import Tls
from rgs.core.errors import FormatError, JurisdictionError
from rgs.node import pki
from rgs.node.config import Config
from rgs.node.files import read_whole
from rgs.service.admin.certificates import Presented
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import GameCatalog

Admit = Callable[[Caller], None]
"""Raises JurisdictionError for an operator that is not served."""


def load_tls(config: Config) -> Tls:
    """The home's files for the server's TLS. FileRefusedError."""
    return Tls(
        key=read_whole(config.tls / "server.key", "server key", secret=True),
        chain=read_whole(config.tls / "server.pem", "server certificate"),
        client_ca=read_whole(config.ca, "client authorities"),
    )


def read_certificate(pem: bytes) -> PeerCertificate:
    """The facts of a certificate that the gate needs. FormatError if it cannot be read."""
    certificate = pki.load_certificate(pem)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (x509.ExtensionNotFound, *pki.UNREADABLE):
        uris = []
    return PeerCertificate(
        fingerprint=pki.fingerprint_of(certificate),
        uris=uris,
        first_ms=int(certificate.not_valid_before_utc.timestamp()) * 1000,
        last_ms=pki.last_ms_of(certificate),
    )


def identify_certificate(pem: bytes, now_ms: int) -> Presented:
    """Role and party of a certificate, checked as by `rgs party add --cert`. FormatError, InvalidFieldError."""
    uris = read_certificate(pem).uris
    if len(uris) != 1:
        raise FormatError(f"the certificate has {len(uris)} URIs, not one", value=len(uris), limit=1)
    role, party = pki.parse_party_uri(uris[0])
    certificate = pki.load_certificate(pem)
    pki.verify_client_certificate(certificate, role, party, now_ms)
    return Presented(pki.fingerprint_of(certificate), role, party, pki.last_ms_of(certificate))


def admit_with(client_ca: bytes, games: GameCatalog) -> Admit:
    """A check that an operator's jurisdiction is shipped and allows the server's CA."""
    development = pki.is_development(client_ca)

    def admit(caller: Caller) -> None:
        if caller.role is not Role.OPERATOR:
            return
        jurisdiction = games.jurisdictions.get(caller.jurisdiction)
        if jurisdiction is None or (development and not jurisdiction.development_ca_allowed):
            raise JurisdictionError(
                f"jurisdiction {caller.jurisdiction} does not allow operators with certificates of this server's CA",
                operator=caller.party,
                jurisdiction=caller.jurisdiction,
            )

    return admit
