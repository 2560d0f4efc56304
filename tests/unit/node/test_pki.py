"""The development authority is recognised, its certificates are good for TLS; others are judged by what they say."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rgs.core.errors import FormatError, InvalidFieldError, JurisdictionError
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, load_jurisdiction
from rgs.node.pki import (
    DEVELOPMENT_OID,
    LEAF_DAYS,
    Issued,
    fingerprint_of,
    format_party_uri,
    is_development,
    issue_client,
    issue_peer_certificate,
    issue_server,
    load_certificate,
    load_issued,
    make_development_ca,
    parse_party_uri,
    verify_ca_allowed,
    verify_client_certificate,
)
from rgs.service.callers import Role
from rng.entropy import EntropySource

NOW_MS = 1_763_764_200_123
DAY_MS = 86_400_000
URI = "rgs://party/operator/acme"


@pytest.fixture(scope="module")
def read() -> Callable[[int], bytes]:
    return EntropySource().read


@pytest.fixture(scope="module")
def authority(read: Callable[[int], bytes]) -> Issued:
    return make_development_ca(read, NOW_MS)


@pytest.fixture(scope="module")
def client(authority: Issued, read: Callable[[int], bytes]) -> Issued:
    return issue_client(authority, Role.OPERATOR, "acme", read, NOW_MS)


def made(
    sans: Sequence[x509.GeneralName] | None = (x509.UniformResourceIdentifier(URI),),
    *,
    subject: str = "somebody",
    extensions: Sequence[x509.ExtensionType] = (),
    start: timedelta = timedelta(days=-1),
    end: timedelta = timedelta(days=1),
) -> x509.Certificate:
    """A certificate of somebody else's."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    now = datetime.fromtimestamp(NOW_MS // 1000, UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + start)
        .not_valid_after(now + end)
    )
    if sans is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key, hashes.SHA256())


def pem(certificate: x509.Certificate) -> bytes:
    return Issued(certificate, ec.generate_private_key(ec.SECP256R1())).certificate_pem


# --- the marks ------------------------------------------------------------------------------------------------------


def test_the_development_authority_is_recognised_by_either_mark_and_others_are_not(authority: Issued) -> None:
    assert is_development(authority.certificate_pem)
    mark = x509.UnrecognizedExtension(DEVELOPMENT_OID, b"\x0c\x01x")
    assert is_development(pem(made(extensions=[mark])))
    assert is_development(pem(made(subject="rgs DEVELOPMENT CA")))
    assert not is_development(pem(made(subject="A real authority")))


def test_peers_that_hold_numbers_of_an_identifier_in_31_bits_read_every_certificate(
    authority: Issued, client: Issued, read: Callable[[int], bytes]
) -> None:
    server = issue_server(authority, ["localhost"], read, NOW_MS)
    for one in (authority, client, server, issue_peer_certificate(authority, "node-1", read, NOW_MS)):
        for extension in one.certificate.extensions:
            assert max(map(int, extension.oid.dotted_string.split("."))) < 2**31, extension.oid  # as Go does


def test_one_development_authority_among_others_is_enough(authority: Issued) -> None:
    assert is_development(pem(made()) + authority.certificate_pem)


def test_a_file_without_certificates_is_not_taken_for_a_production_authority() -> None:
    for content in (b"", b"no PEM", pem(made())[:-40]):
        with pytest.raises(FormatError, match="must be a certificate in PEM"):
            is_development(content)


@pytest.mark.parametrize("jurisdiction", SHIPPED_JURISDICTIONS)
def test_the_development_authority_is_for_testing_only(authority: Issued, jurisdiction: str) -> None:
    loaded = load_jurisdiction(jurisdiction)
    verify_ca_allowed(pem(made()), [loaded])
    if jurisdiction in {"demo", "demo-seamless"}:
        verify_ca_allowed(authority.certificate_pem, [loaded])
        return
    with pytest.raises(JurisdictionError, match=jurisdiction) as caught:
        verify_ca_allowed(authority.certificate_pem, [load_jurisdiction("demo"), loaded])
    assert caught.value.field == "jurisdiction"


# --- what is issued -------------------------------------------------------------------------------------------------


def test_a_client_certificate_has_one_uri_a_year_and_one_use(client: Issued) -> None:
    certificate = client.certificate
    verify_client_certificate(certificate, Role.OPERATOR, "acme", NOW_MS)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [name.value for name in names] == [URI]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    now = datetime.fromtimestamp(NOW_MS // 1000, UTC)
    assert certificate.not_valid_before_utc == now - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == now + timedelta(days=LEAF_DAYS)
    assert fingerprint_of(certificate) == certificate.fingerprint(hashes.SHA256()).hex()


def test_keys_serials_and_signatures_come_from_the_source_alone() -> None:
    def counting() -> Callable[[int], bytes]:
        state = [0]

        def read(n_bytes: int) -> bytes:
            state[0] += 1
            return bytes([state[0]]) * n_bytes

        return read

    assert make_development_ca(counting(), NOW_MS).certificate == make_development_ca(counting(), NOW_MS).certificate


def test_a_scalar_outside_the_group_is_drawn_again() -> None:
    served: list[bytes] = [b"\xff" * 32, b"\x00" * 32, b"\x01" * 32, b"\x02" * 16]
    issued = make_development_ca(lambda n_bytes: served.pop(0)[:n_bytes], NOW_MS)
    assert issued.key.private_numbers().private_value == int.from_bytes(b"\x01" * 32, "big")
    assert served == []


def test_no_leaf_outlives_its_authority(authority: Issued, read: Callable[[int], bytes]) -> None:
    end = authority.certificate.not_valid_after_utc
    late_ms = int(end.timestamp() * 1000) - DAY_MS
    assert issue_client(authority, Role.LAB, "lab", read, late_ms).certificate.not_valid_after_utc == end
    with pytest.raises(FormatError, match="has expired"):
        issue_client(authority, Role.LAB, "lab", read, late_ms + DAY_MS)


def test_an_authority_is_read_back_and_not_with_another_key(authority: Issued, client: Issued) -> None:
    assert load_issued(authority.certificate_pem, authority.key_pem).certificate == authority.certificate
    with pytest.raises(FormatError, match="does not belong to its certificate"):
        load_issued(authority.certificate_pem, client.key_pem)
    with pytest.raises(FormatError, match="must be PEM"):
        load_issued(authority.certificate_pem, b"key")


def test_private_keys_are_in_no_repr(client: Issued) -> None:
    assert "key" not in repr(client)


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """TLS in memory; the client's certificate as the server sees it, DER."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=name)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [near, far]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    return far.getpeercert(binary_form=True) or b""


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_tls_takes_the_certificates(
    tmp_path: Path, authority: Issued, client: Issued, read: Callable[[int], bytes], name: str
) -> None:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    authority = make_development_ca(read, now_ms)
    issued = {
        "server": issue_server(authority, ("localhost", "127.0.0.1"), read, now_ms),
        "client": issue_client(authority, Role.OPERATOR, "acme", read, now_ms),
    }
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.certificate_pem)
    contexts: dict[str, ssl.SSLContext] = {}
    for side, protocol in (("server", ssl.PROTOCOL_TLS_SERVER), ("client", ssl.PROTOCOL_TLS_CLIENT)):
        stem = tmp_path / side
        stem.with_suffix(".pem").write_bytes(issued[side].certificate_pem)
        stem.with_suffix(".key").write_bytes(issued[side].key_pem)
        context = contexts[side] = ssl.SSLContext(protocol)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_cert_chain(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
    seen = _handshake(contexts["server"], contexts["client"], name)
    assert hashlib.sha256(seen).hexdigest() == fingerprint_of(issued["client"].certificate)
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(contexts["server"], contexts["client"], "example.org")


# --- what is judged -------------------------------------------------------------------------------------------------

SAN = x509.UniformResourceIdentifier
WRONG = [
    ("two URIs", made([SAN(URI), SAN("rgs://party/admin/acme")]), "has 2 URIs"),
    ("no URI", made([x509.DNSName("acme")]), "has 0 URIs"),
    ("no names", made(None), "has 0 URIs"),
    (
        "another party",
        made([SAN("rgs://party/operator/other")]),
        "has the URI rgs://party/operator/other, it must be " + URI,
    ),
    ("another role", made([SAN("rgs://party/admin/acme")]), "has the URI rgs://party/admin/acme, it must be " + URI),
    ("more behind", made([SAN(URI + "/x")]), "has the URI rgs://party/operator/acme/x"),
    ("ended", made(end=timedelta(seconds=-1)), "is not valid now"),
    ("not begun", made(start=timedelta(seconds=1)), "is not valid now"),
    ("an authority", made(extensions=[x509.BasicConstraints(ca=True, path_length=None)]), "belongs to a CA"),
    ("a server", made(extensions=[x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])]), "is not for TLS clients"),
]


@pytest.mark.parametrize(("certificate", "text"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_certificate_is_refused_with_what_is_wrong(certificate: x509.Certificate, text: str) -> None:
    with pytest.raises(InvalidFieldError, match=text) as caught:
        verify_client_certificate(certificate, Role.OPERATOR, "acme", NOW_MS)
    assert caught.value.field == "cert"
    assert caught.value.metadata["limit"]


def test_a_partys_own_certificate_is_taken() -> None:
    verify_client_certificate(made(), Role.OPERATOR, "acme", NOW_MS)
    verify_client_certificate(made([SAN(URI), x509.DNSName("acme")]), Role.OPERATOR, "acme", NOW_MS)


def test_a_file_holds_one_certificate_and_no_key(client: Issued) -> None:
    assert load_certificate(client.certificate_pem) == client.certificate
    with pytest.raises(FormatError, match="2 certificates"):
        load_certificate(client.certificate_pem * 2)
    with pytest.raises(FormatError, match="private key"):
        load_certificate(client.certificate_pem + client.key_pem)


def test_a_partys_uri_has_one_form() -> None:
    for role in Role:
        assert parse_party_uri(format_party_uri(role, "a.b-c_1")) == (role, "a.b-c_1")
    for text in (
        "rgs://party/boss/acme",
        "rgs://party/operator/Acme",
        "RGS://party/operator/acme",
        "rgs://party/operator/",
        "rgs://party/operator/acme?x",
        "rgs://party/operator/acme\n",
        "http://party/operator/acme",
    ):
        with pytest.raises(FormatError, match="rgs://party"):
            parse_party_uri(text)


def test_issued_certificates_differ(authority: Issued, client: Issued, read: Callable[[int], bytes]) -> None:
    again = issue_client(authority, Role.OPERATOR, "acme", read, NOW_MS)
    assert again.certificate.serial_number != client.certificate.serial_number
    assert again.key_pem != client.key_pem
    assert replace(again, key=client.key).key_pem == client.key_pem
