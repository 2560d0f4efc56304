"""Certificates: the development CA, what it issues, and the checks of client certificates (ARCHITECTURE 3).

All keys are P-256, which every TLS of gRPC supports. Private keys are drawn by rejection (FIPS 186-5 A.2.2) from the
tested entropy source, and signatures are deterministic (RFC 6979), so that no other randomness is used.

The development CA has two marks: its subject says DEVELOPMENT, for people, and a non-critical extension DEVELOPMENT_OID
(of the arc for examples 2.999, ITU-T X.660) holds the same text, for programs. Either mark suffices. No number of the
identifier has more than 31 bits: Go refuses certificates with a larger one, such as those with a UUID (2.25).

A jurisdiction may forbid the development CA. A client certificate must have exactly one URI,
`rgs://party/<role>/<party>`.
"""

from __future__ import annotations

import ipaddress
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rgs.core.errors import FormatError, InvalidFieldError, JurisdictionError
from rgs.core.ids import check_name
from rgs.core.jurisdictions import Jurisdiction
from rgs.service.callers import Role

ReadEntropy = Callable[[int], bytes]
"""`rng.entropy.EntropySource.read`: returns that many fresh bytes."""

DEVELOPMENT: Final = "DEVELOPMENT"
DEVELOPMENT_OID: Final = x509.ObjectIdentifier("2.999.1")
_MARK: Final = b"\x0c" + bytes([len(DEVELOPMENT)]) + DEVELOPMENT.encode("ascii")  # DER UTF8String

LEAF_DAYS: Final = 365
AUTHORITY_DAYS: Final = 3650
UNREADABLE: Final = (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
"""The errors of the library for a malformed certificate or extension."""
SERVER_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_SKEW: Final = timedelta(minutes=5)  # a peer's clock may be a little behind

_Kind = TypeVar("_Kind", bound=x509.ExtensionType)
_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # SP 800-186 3.2.1.3
_URI: Final = re.compile(r"rgs://party/([a-z]+)/([a-z0-9][a-z0-9._-]{0,63})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def certificate_pem(self) -> bytes:
        """The certificate in PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key in PEM (PKCS #8, not encrypted)."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


# --- making ---------------------------------------------------------------------------------------------------------


def make_development_ca(read: ReadEntropy, now_ms: int) -> Issued:
    """A new development CA: self-signed, marked, and only for leaf certificates."""
    key, now = _new_key(read), _moment(now_ms)
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, f"{DEVELOPMENT} - not for real money"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"rgs {DEVELOPMENT} CA"),
        ]
    )
    builder = (
        _builder(read, name, name, key.public_key(), now, now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.UnrecognizedExtension(DEVELOPMENT_OID, _MARK), critical=False)
    )
    return Issued(builder.sign(key, hashes.SHA256(), ecdsa_deterministic=True), key)


def issue_server(authority: Issued, names: Sequence[str], read: ReadEntropy, now_ms: int) -> Issued:
    """A server certificate for host names and addresses."""
    general = [_general_name(name) for name in names]
    return _issue(authority, names[0], general, ExtendedKeyUsageOID.SERVER_AUTH, read, now_ms)


def issue_client(authority: Issued, role: Role, party: str, read: ReadEntropy, now_ms: int) -> Issued:
    """A client certificate with the one URI of the party."""
    uri = x509.UniformResourceIdentifier(format_party_uri(role, party))
    return _issue(authority, party, [uri], ExtendedKeyUsageOID.CLIENT_AUTH, read, now_ms)


def issue_peer_certificate(authority: Issued, node: str, read: ReadEntropy, now_ms: int) -> Issued:
    """A client certificate with which a node calls wallets and the regulator's system. It names no party."""
    uri = x509.UniformResourceIdentifier(f"rgs://node/{check_name(node, 'node')}")
    return _issue(authority, node, [uri], ExtendedKeyUsageOID.CLIENT_AUTH, read, now_ms)


def load_issued(certificate_pem: bytes, key_pem: bytes) -> Issued:
    """A CA from the content of its files. FormatError if they do not belong together."""
    certificate = load_certificate(certificate_pem)
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError):
        raise FormatError("the CA's private key must be PEM without a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise FormatError("the CA's private key does not belong to its certificate")
    return Issued(certificate, key)


# --- checking -------------------------------------------------------------------------------------------------------


def format_party_uri(role: Role, party: str) -> str:
    """`rgs://party/<role>/<party>`. Inverse of `parse_party_uri`."""
    return f"rgs://party/{role}/{check_name(party, 'party')}"


def parse_party_uri(text: str) -> tuple[Role, str]:
    """Role and party of a certificate's URI. FormatError if it has another form."""
    match = _URI.fullmatch(text)
    if match is None or match[1] not in set(Role):
        raise FormatError("the certificate's URI must be rgs://party/<role>/<party>", value=text[:120])
    return Role(match[1]), match[2]


def load_certificate(pem: bytes) -> x509.Certificate:
    """The one certificate of a PEM file. FormatError if it holds none, several, or a private key."""
    if b"PRIVATE KEY" in pem:
        raise FormatError("the file holds a private key: give the certificate alone")
    certificates = load_certificates(pem)
    if len(certificates) != 1:
        raise FormatError(f"the file holds {len(certificates)} certificates, not one", value=len(certificates), limit=1)
    return certificates[0]


def load_certificates(pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM file, at least one; FormatError otherwise."""
    try:
        with warnings.catch_warnings():
            # The library warns of violations of RFC 5280 that a later release will refuse.
            warnings.simplefilter("error", CryptographyDeprecationWarning)
            return x509.load_pem_x509_certificates(pem)
    except (*UNREADABLE, CryptographyDeprecationWarning):
        raise FormatError("the file must be a certificate in PEM") from None


def fingerprint_of(certificate: x509.Certificate) -> str:
    """Hex SHA-256 of the certificate's DER form, as in the allow-list."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def last_ms_of(certificate: x509.Certificate) -> int:
    """The end of its validity, in milliseconds since 1970."""
    return int(certificate.not_valid_after_utc.timestamp()) * 1000


def verify_client_certificate(certificate: x509.Certificate, role: Role, party: str, now_ms: int) -> None:
    """InvalidFieldError, with the reason, if the certificate cannot be used for this party."""
    now = _moment(now_ms)
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first <= now <= last:
        raise _refusal("is not valid now", f"{first.isoformat()} to {last.isoformat()}", now.isoformat())
    try:
        extensions = certificate.extensions
    except UNREADABLE:
        raise _refusal("has extensions that cannot be read", "X.509 version 3", "malformed") from None
    if (constraints := extension_of(extensions, x509.BasicConstraints)) is not None and constraints.ca:
        raise _refusal("belongs to a CA, not to a client", "CA:FALSE", "CA:TRUE")
    usage = extension_of(extensions, x509.ExtendedKeyUsage)
    if usage is not None and ExtendedKeyUsageOID.CLIENT_AUTH not in usage:
        raise _refusal("is not for TLS clients", "clientAuth", "other uses")
    names = extension_of(extensions, x509.SubjectAlternativeName)
    uris = [] if names is None else names.get_values_for_type(x509.UniformResourceIdentifier)
    expected = format_party_uri(role, party)
    if len(uris) != 1:
        raise _refusal(f"has {len(uris)} URIs, it must have the one {expected}", expected, ", ".join(uris)[:200])
    if uris[0] != expected:
        raise _refusal(f"has the URI {uris[0][:120]}, it must be {expected}", expected, uris[0][:120])


def extension_of(extensions: x509.Extensions, kind: type[_Kind]) -> _Kind | None:
    """The extension of this kind; None if the certificate has none."""
    try:
        return extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def is_development(ca_pem: bytes) -> bool:
    """Whether any CA of the PEM file has a mark of the development CA. FormatError."""
    return any(_is_marked(certificate) for certificate in load_certificates(ca_pem))


def verify_ca_allowed(ca_pem: bytes, jurisdictions: Iterable[Jurisdiction]) -> None:
    """JurisdictionError if the file has a development CA and one of the jurisdictions does not allow it."""
    if not is_development(ca_pem):
        return
    for jurisdiction in jurisdictions:
        if not jurisdiction.development_ca_allowed:
            raise JurisdictionError(
                f"jurisdiction {jurisdiction.id} does not allow the development CA: put the operator's own CA into"
                " ca.pem of the tls folder",
                field="jurisdiction",
                limit="development_ca_allowed = false",
                value=jurisdiction.id,
            )


# --- inside -----------------------------------------------------------------------------------------------------------


def _is_marked(certificate: x509.Certificate) -> bool:
    if any(DEVELOPMENT in str(attribute.value) for attribute in certificate.subject):
        return True
    try:
        extensions = certificate.extensions
    except UNREADABLE:
        raise FormatError("a CA certificate has extensions that cannot be read") from None
    return any(extension.oid == DEVELOPMENT_OID for extension in extensions)


def _refusal(what: str, limit: str, value: str) -> InvalidFieldError:
    return InvalidFieldError(f"the certificate {what}", field="cert", limit=limit, value=value)


def _new_key(read: ReadEntropy) -> ec.EllipticCurvePrivateKey:
    while True:
        scalar = int.from_bytes(read(32), "big")
        if 1 <= scalar < _P256_ORDER:
            return ec.derive_private_key(scalar, ec.SECP256R1())


def _moment(now_ms: int) -> datetime:
    return datetime.fromtimestamp(now_ms // 1000, UTC)


def _builder(
    read: ReadEntropy,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    first: datetime,
    last: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(int.from_bytes(b"\x01" + read(16), "big"))  # positive, 17 bytes (RFC 5280 4.1.2.2: at most 20)
        .not_valid_before(first - _SKEW)
        .not_valid_after(last)
    )


def _issue(
    authority: Issued,
    common_name: str,
    names: list[x509.GeneralName],
    purpose: x509.ObjectIdentifier,
    read: ReadEntropy,
    now_ms: int,
) -> Issued:
    key = _new_key(read)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    issuer = authority.certificate
    now = _moment(now_ms)
    last = min(now + timedelta(days=LEAF_DAYS), issuer.not_valid_after_utc)
    if last <= now:
        raise FormatError("the CA's certificate has expired", value=issuer.not_valid_after_utc.isoformat())
    builder = (
        _builder(read, subject, issuer.subject, key.public_key(), now, last)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    return Issued(builder.sign(authority.key, hashes.SHA256(), ecdsa_deterministic=True), key)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
