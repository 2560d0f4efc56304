"""The certificates of a home: of the server, of its authorities, and those with which it calls its peers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier

from rgs.core.errors import FormatError, RgsError
from rgs.core.times import format_time
from rgs.node import pki
from rgs.node.doctor.findings import Finding, Home, fine, found
from rgs.node.files import read_whole
from rgs.node.home import PEERS_CERTIFICATE
from rgs.service.admin.certificates import ends_soon

CERTIFICATES: Final = "certificates"
RSA_BITS_MIN: Final = 2048
DAY_MS: Final = 86_400_000
_WEAK_HASHES: Final = (hashes.MD5, hashes.SHA1)


def check_certificates(home: Home) -> Iterator[Finding]:
    """The files of the home's `tls` folder."""
    config = home.config
    yield from check_leaf(
        home, config.tls / "server.pem", config.tls / "server.key", ExtendedKeyUsageOID.SERVER_AUTH, is_named=True
    )
    yield from check_authorities(home, config.ca)
    peers = config.tls / f"{PEERS_CERTIFICATE}.pem"
    if peers.exists():
        yield from check_leaf(home, peers, peers.with_suffix(".key"), ExtendedKeyUsageOID.CLIENT_AUTH)
    if config.witness_ca is not None:
        yield from check_authorities(home, config.witness_ca)
    for name in ("ca.key", "root.key"):
        if (config.tls / name).exists():
            yield found(
                CERTIFICATES, "CA_KEY_IN_HOME", f"{name} of an authority lies in the home", value=config.tls / name
            )
    left = sorted((config.tls / "clients").glob("*.key"))
    if left:
        yield found(
            CERTIFICATES,
            "CLIENT_KEYS_IN_HOME",
            f"{len(left)} private keys of clients lie in the home",
            value=" ".join(path.name for path in left[:8]),
        )


def check_leaf(
    home: Home, path: Path, key: Path, purpose: ObjectIdentifier, *, is_named: bool = False
) -> Iterator[Finding]:
    """A certificate with its chain and its private key. `is_named`: it needs names that clients call."""
    try:
        chain = pki.load_certificates(read_whole(path, "certificate"))
        private = serialization.load_pem_private_key(read_whole(key, "private key", secret=True), password=None)
        leaf = chain[0]
        if private.public_key() != leaf.public_key():
            raise FormatError(f"{home.within(key)} is not the key of {home.within(path)}")
        extensions = leaf.extensions
    except RgsError as error:
        yield found(CERTIFICATES, "CERTIFICATE_REFUSED", error.message, value=home.within(path))
        return
    except (TypeError, UnsupportedAlgorithm, *pki.UNREADABLE):
        what = f"{home.within(path)} or {home.within(key)} cannot be read as a certificate and its key in PEM"
        yield found(CERTIFICATES, "CERTIFICATE_REFUSED", what, value=home.within(path))
        return
    before = len(problems := [*check_times(home, home.within(path), chain), *_check_chain(home, path, chain)])
    problems += [finding for one in chain for finding in _check_strength(home, path, one)]
    usage = pki.extension_of(extensions, x509.ExtendedKeyUsage)
    if usage is None or purpose not in usage:
        has = "none" if usage is None else " ".join(one.dotted_string for one in usage)
        what = f"{home.within(path)} lacks the extended key usage that its peers ask for"
        problems.append(found(CERTIFICATES, "PURPOSE_WRONG", what, value=has, limit=purpose.dotted_string))
    names = pki.extension_of(extensions, x509.SubjectAlternativeName)
    callable_ = (
        [] if names is None else [*names.get_values_for_type(x509.DNSName), *names.get_values_for_type(x509.IPAddress)]
    )
    if is_named and not callable_:
        problems.append(
            found(CERTIFICATES, "NAME_MISSING", f"{home.within(path)} names no host", limit="a subjectAltName")
        )
    yield from problems
    if not problems and before == 0:
        yield fine(CERTIFICATES, f"{home.within(path)} is good until {_day(leaf)}")


def check_authorities(home: Home, path: Path) -> Iterator[Finding]:
    """A file of authorities."""
    try:
        pem = read_whole(path, "authorities")
        authorities = pki.load_certificates(pem)
        is_development = pki.is_development(pem)
        constraints = [pki.extension_of(one.extensions, x509.BasicConstraints) for one in authorities]
    except RgsError as error:
        yield found(CERTIFICATES, "CERTIFICATE_REFUSED", error.message, value=home.within(path))
        return
    except pki.UNREADABLE:
        yield found(CERTIFICATES, "CERTIFICATE_REFUSED", f"{home.within(path)} cannot be read", value=home.within(path))
        return
    problems = [*check_times(home, home.within(path), authorities)]
    problems += [finding for one in authorities for finding in _check_strength(home, path, one)]
    for one, constraint in zip(authorities, constraints, strict=True):
        if constraint is None or not constraint.ca:
            what = f"{home.within(path)} holds a certificate that is no authority: {one.subject.rfc4514_string()[:80]}"
            problems.append(found(CERTIFICATES, "PURPOSE_WRONG", what, value="CA:FALSE", limit="CA:TRUE"))
    if is_development:
        what = f"{home.within(path)} trusts a development authority"
        problems.append(found(CERTIFICATES, "DEVELOPMENT_CA", what, value=home.within(path)))
    yield from problems
    if not problems:
        ends = min(authorities, key=pki.last_ms_of)
        yield fine(CERTIFICATES, f"{home.within(path)} has {len(authorities)} authorities, good until {_day(ends)}")


def check_times(home: Home, name: str, certificates: Iterable[x509.Certificate]) -> Iterator[Finding]:
    """Whether certificates are valid now, and for how long. `name` is their file for people."""
    now = format_time(home.now_ms)
    for one in certificates:
        last_ms = pki.last_ms_of(one)
        first_ms = int(one.not_valid_before_utc.timestamp()) * 1000
        where = f"{name} ({one.subject.rfc4514_string()[:80]})"
        if home.now_ms < first_ms:
            yield found(
                CERTIFICATES, "CERTIFICATE_NOT_YET", f"{where} is not valid yet", value=now, limit=format_time(first_ms)
            )
        elif last_ms < home.now_ms:
            yield found(CERTIFICATES, "CERTIFICATE_ENDED", f"{where} has ended", value=now, limit=format_time(last_ms))
        elif ends_soon(last_ms, home.now_ms):
            days = (last_ms - home.now_ms) // DAY_MS
            what = f"{where} ends at {format_time(last_ms)}"
            yield found(CERTIFICATES, "CERTIFICATE_ENDS_SOON", what, value=f"{days} days", limit="30 days")


def _check_chain(home: Home, path: Path, chain: list[x509.Certificate]) -> Iterator[Finding]:
    for place, (one, issuer) in enumerate(pairwise(chain)):
        try:
            one.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            what = f"certificate {place + 1} of {home.within(path)} was not issued by the next one"
            yield found(CERTIFICATES, "CHAIN_BROKEN", what, value=one.issuer.rfc4514_string()[:80])


def _check_strength(home: Home, path: Path, one: x509.Certificate) -> Iterator[Finding]:
    key = one.public_key()
    match key:
        case rsa.RSAPublicKey():
            weak = f"RSA {key.key_size}" if key.key_size < RSA_BITS_MIN else ""
        case ec.EllipticCurvePublicKey():
            weak = key.curve.name if key.curve.key_size < 256 else ""
        case ed25519.Ed25519PublicKey():
            weak = "Ed25519, which the TLS of gRPC does not offer"
        case _:
            weak = type(key).__name__
    if isinstance(one.signature_hash_algorithm, _WEAK_HASHES):
        weak = f"{one.signature_hash_algorithm.name} signature"
    if weak:
        yield found(CERTIFICATES, "KEY_WEAK", f"{home.within(path)} is weak", value=weak, limit="P-256, or RSA 2048")


def _day(certificate: x509.Certificate) -> str:
    return format_time(pki.last_ms_of(certificate))[:10]
