"""Every parser under fuzz: garbage, and good documents cut, flipped, repeated and nested. Each reads or refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st

from certification.vectors import RowError, check_row, parse_row
from rgs.core.errors import FormatError, InvalidFieldError, RgsError, RulesetError, TableConfigError
from rgs.core.games.published import parse_published_returns
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, load_jurisdiction, parse_jurisdiction
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.returns.certified import parse_certified_returns
from rgs.core.rulesets import (
    SHIPPED_RULESETS,
    load_ruleset,
    parse_canonical_ruleset,
    parse_document,
    parse_ruleset,
)
from rgs.core.statements import format_canonical, parse_canonical, parse_envelope
from rgs.core.statements.kinds import parse_statement
from rgs.core.statements.lines import parse_key_bundle, parse_line
from rgs.core.tables.config import parse_table_config
from rgs.core.times import format_time, parse_date, parse_time
from rgs.node.config import load_config
from rgs.node.pki import load_certificate, parse_party_uri
from rgs.node.tls_identity import identify_certificate, read_certificate
from rgs.service.pages import format_key_token, format_page_token, parse_key_token, parse_page_token
from tests.support.api.harness import operator_certificate
from tests.support.fuzz import campaign
from tests.support.records.factory import RecordFactory
from tests.support.records.ready_made import small_factory

EXAMPLES = 120
ROOT = Path(__file__).resolve().parents[2]


@cache
def factory() -> RecordFactory:
    return small_factory()


@cache
def lines() -> list[bytes]:
    return factory().export().splitlines()


@cache
def envelopes() -> list[bytes]:
    return [parse_line(line).envelope for line in lines()]


def shipped(pattern: str) -> list[bytes]:
    found = [path.read_bytes() for path in sorted((ROOT / "rgs/core").glob(pattern))]
    assert found
    return found


def read_whole_config(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "rgs.toml").write_bytes(data)
        load_config(Path(folder))


def replay(data: bytes) -> None:
    """An export with one strange line in its middle: the replay tells, and goes on."""
    run = Replay(KeyBook(factory().keys(), root=parse_statement_key()), Rulebook())
    for line in (*lines()[:3], data, *lines()[3:]):
        for failure in run.feed(line):
            str(failure.metadata)
    run.finish()


@cache
def parse_statement_key() -> str:
    return parse_envelope(parse_key_bundle(factory().keys())[0]).keyid


def exact(parse: Callable[[bytes], Any], format_: Callable[[Any], bytes]) -> Callable[[bytes], None]:
    """A parser of one form: what it reads is written as it was."""

    def read(data: bytes) -> None:
        assert format_(parse(data)) == data

    return read


def of_text(parse: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: parse(data.decode("latin-1"))


def row(data: bytes) -> None:
    ruleset = load_ruleset("casino-holdem")
    check_row(ruleset, parse_row(data, ruleset))


@cache
def certificates() -> list[bytes]:
    pem = operator_certificate().certificate_pem
    return [pem, *misnamed(pem)]


@dataclass(frozen=True)
class Parser:
    read: Callable[[bytes], Any]
    refusals: tuple[type[Exception], ...]
    samples: Callable[[], list[bytes]]


VECTORS = ROOT / "tests/vectors/games/casino_holdem_rounds.jsonl"
FORMAT = (FormatError,)
RULESETS = {name: load_ruleset(name) for name in SHIPPED_RULESETS}
JURISDICTIONS = {name: load_jurisdiction(name) for name in SHIPPED_JURISDICTIONS}
PARSERS = {
    "canonical": Parser(
        exact(parse_canonical, format_canonical), FORMAT, lambda: [parse_envelope(data).payload for data in envelopes()]
    ),
    "envelope": Parser(parse_envelope, FORMAT, envelopes),
    "statement": Parser(lambda data: parse_statement(parse_envelope(data)), FORMAT, envelopes),
    "line": Parser(parse_line, FORMAT, lambda: [line + b"\n" for line in lines()] + lines()),
    "key bundle": Parser(parse_key_bundle, FORMAT, lambda: [factory().keys()]),
    "ruleset": Parser(of_text(parse_ruleset), (RulesetError, FormatError), lambda: shipped("games/rulesets/*.toml")),
    "canonical ruleset": Parser(
        parse_canonical_ruleset, (RulesetError, FormatError), lambda: [load_ruleset("uth-solo").canonical]
    ),
    "document": Parser(of_text(parse_document), (RulesetError, FormatError), lambda: shipped("games/rulesets/*.toml")),
    "jurisdiction": Parser(
        of_text(parse_jurisdiction), (RulesetError, FormatError), lambda: shipped("jurisdiction_data/*.toml")
    ),
    "table": Parser(
        of_text(partial(parse_table_config, rulesets=RULESETS, jurisdictions=JURISDICTIONS)),
        (TableConfigError,),
        lambda: shipped("table_data/*.toml"),
    ),
    "returns": Parser(
        of_text(parse_published_returns), (RulesetError, FormatError), lambda: shipped("games/published_returns.toml")
    ),
    "certified returns": Parser(
        of_text(lambda text: parse_certified_returns(text, load_ruleset("casino-holdem"))),
        (RulesetError, FormatError),
        lambda: shipped(f"certificate_data/{load_ruleset('casino-holdem').sha256}.json"),
    ),
    "page token": Parser(
        exact(
            lambda data: parse_page_token(data.decode("latin-1"), 2),
            lambda found: format_page_token(*found).encode() if any(found) else b"",
        ),
        (InvalidFieldError,),
        lambda: [format_page_token(1, 2).encode(), base64.urlsafe_b64encode(b"p1.1.99999999999999999999")],
    ),
    "key token": Parser(
        of_text(lambda text: parse_key_token(text, 2)),
        (InvalidFieldError,),
        lambda: [format_key_token("2026-11-21", "op-1").encode(), base64.urlsafe_b64encode(b"k1/a/b")],
    ),
    "time": Parser(
        exact(lambda data: parse_time(data.decode("latin-1")), lambda time_ms: format_time(time_ms).encode()),
        FORMAT,
        lambda: [b"2026-11-21T22:30:00.123Z", b"9999-12-31T23:59:59.999Z", b"0000-00-00T00:00:00.000Z"],
    ),
    "date": Parser(of_text(parse_date), FORMAT, lambda: [b"2026-11-21"]),
    "party": Parser(of_text(parse_party_uri), FORMAT, lambda: [b"rgs://party/operator/op-1"]),
    "certificate": Parser(load_certificate, FORMAT, certificates),
    "peer": Parser(read_certificate, FORMAT, certificates),
    "presented": Parser(
        lambda data: identify_certificate(data, 1_795_000_000_000),
        (FormatError, InvalidFieldError),
        certificates,
    ),
    "config": Parser(read_whole_config, (RgsError,), lambda: [b'listen = "127.0.0.1:0"\ndrain_s = 5\n', b"a = [[]]\n"]),
    "vectors": Parser(row, (RowError,), lambda: VECTORS.read_bytes().splitlines()[:5]),
    "replay": Parser(replay, (), lines),
}
DEEP = [head * 30_000 for head in (b"[", b'{"a":', b"a=[", b"a={b=", b"(")]


@st.composite
def mutated(draw: Any, samples: list[bytes]) -> bytes:
    """A good document after one to four misfortunes."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.integers(0, 8))
        put = draw(
            st.binary(max_size=6)
            | st.sampled_from([b'"', b"\\", b"\x00", b"-1", b"1e999", b"9" * 5_000, b"null", b"\\ud800"])
        )
        data = data[:place] + put + data[place + length :]
    return bytes(data)


def misnamed(pem: bytes) -> list[bytes]:
    """Certificates that the library reads only as a whole: an extension twice, a name of an odd kind, a bad number."""
    der = base64.b64decode(b"".join(pem.splitlines()[1:-1]))
    uri = der.index(b"rgs://party") - 2
    changed = [
        der.replace(b"\x55\x1d\x25", b"\x55\x1d\x11"),
        der.replace(b"\x55\x1d\x11", b"\x55\x1d\x25"),
        *(der[:uri] + bytes([kind]) + der[uri + 1 :] for kind in range(0xA0, 0xAA)),
    ]
    serial = der.index(b"\xa0\x03\x02\x01\x02\x02") + 7
    changed.append(der[:serial] + b"\x80" + der[serial + 1 :])  # negative, against RFC 5280
    assert der not in changed
    return [in_pem(certificate) for certificate in changed]


def in_pem(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"


def mutated_der(data: bytes, place: int, put: int) -> bytes:
    """A certificate with one byte of its DER form exchanged, in good PEM."""
    der = bytearray(base64.b64decode(b"".join(data.splitlines()[1:-1])))
    der[place % len(der)] = put
    return in_pem(bytes(der))


def inputs(name: str) -> st.SearchStrategy[bytes]:
    samples = PARSERS[name].samples()
    found = st.binary(max_size=400) | mutated(samples) | mutated(samples) | st.sampled_from(DEEP)
    if name in ("certificate", "peer", "presented"):
        der = st.builds(mutated_der, st.sampled_from(samples), st.integers(0, 2_000), st.integers(0, 255))
        return found | der | der | der
    return found


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", PARSERS)
def test_it_reads_or_refuses(name: str, pytestconfig: pytest.Config) -> None:
    parser = PARSERS[name]

    def read(data: bytes) -> None:
        try:
            parser.read(data)
        except parser.refusals as error:
            str(error)

    for sample in [*parser.samples(), *DEEP]:
        read(sample)
    for seed in campaign.seeds(pytestconfig):
        campaign.run(read, {"data": inputs(name)}, seed, EXAMPLES)


def test_the_fuzz_sees_a_parser_that_breaks(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.setitem(PARSERS, "plain", Parser(json.loads, FORMAT, lambda: [b"{}"]))
    with pytest.raises((ValueError, RecursionError)):
        test_it_reads_or_refuses("plain", pytestconfig)
