"""Export lines and key bundles: one form each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError
from rgs.core.statements import Ed25519Signer, ExportLine, format_line, parse_line, seal_envelope
from rgs.core.statements.lines import (
    KEY_BUNDLE_BYTES_MAX,
    LINE_BYTES_MAX,
    PRIVATE_BLOCK,
    format_key_bundle,
    parse_key_bundle,
)
from tests.support.records.shape_values import values_of

ENVELOPES = st.binary(min_size=1, max_size=40).map(
    lambda payload: seal_envelope("application/x", payload, Ed25519Signer.from_seed(bytes(32)))
)
PRIVATE = st.none() | st.fixed_dictionaries(
    {"block": values_of(PRIVATE_BLOCK), "salt": st.from_regex("[0-9a-f]{64}", fullmatch=True)}
)
ENVELOPE = seal_envelope("application/x", b"x", Ed25519Signer.from_seed(bytes(32)))
BLOCK = b'{"block":{"player":"p"},"salt":"' + b"0" * 64 + b'"}'


@given(ENVELOPES, PRIVATE)
def test_lines_format_and_parse_inversely(envelope: bytes, private: dict[str, Any] | None) -> None:
    line = ExportLine(envelope, private)
    assert parse_line(format_line(line)) == line
    assert format_line(parse_line(format_line(line))) == format_line(line)


@given(ENVELOPES, PRIVATE, st.lists(st.binary(min_size=32, max_size=32), max_size=20).map(tuple))
def test_a_path_stands_between_envelope_and_private_block(
    envelope: bytes, private: dict[str, Any] | None, path: tuple[bytes, ...]
) -> None:
    line = ExportLine(envelope, private, path)
    data = format_line(line)
    assert parse_line(data) == line
    assert format_line(parse_line(data)) == data
    if not path:
        assert data == format_line(ExportLine(envelope, private))


def test_a_line_with_a_path_in_its_one_form() -> None:
    path = (bytes(32), bytes(range(32)))
    beside = f',"path":["{"00" * 32}","{bytes(range(32)).hex()}"],"private":null}}'
    assert format_line(ExportLine(ENVELOPE, None, path)) == b'{"envelope":' + ENVELOPE + beside.encode()


@pytest.mark.parametrize(
    ("path", "why", "field"),
    [
        (b"[]", "path: an empty one is left out", "path"),
        (b"null", "null stands", None),
        (b'"' + b"0" * 64 + b'"', "path is not a list", "path"),
        (b'["' + b"0" * 63 + b'"]', "not of the form", "path[0]"),
        (b'["' + b"A" * 64 + b'"]', "not of the form", "path[0]"),
        (b"[" + b",".join([b'"' + b"0" * 64 + b'"'] * 21) + b"]", "21 items, more than 20", "path"),
        (b'["' + b"0" * 64 + b'" ]', "canonical", None),
        (b"", "not JSON", None),
        (b'["' + b"0" * 64 + b'"],"path":["' + b"0" * 64 + b'"]', "not JSON", None),
    ],
)
def test_another_form_of_path_is_refused(path: bytes, why: str, field: str | None) -> None:
    good = b'["' + b",".join([b"0" * 64]) + b'"]'
    assert parse_line(b'{"envelope":' + ENVELOPE + b',"path":' + good + b',"private":null}').path == (bytes(32),)
    with pytest.raises(FormatError, match=why) as caught:
        parse_line(b'{"envelope":' + ENVELOPE + b',"path":' + path + b',"private":null}')
    assert caught.value.field == field


@given(st.lists(ENVELOPES, min_size=1, max_size=4))
def test_key_bundles_format_and_parse_inversely(statements: list[bytes]) -> None:
    assert parse_key_bundle(format_key_bundle(statements)) == statements


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "export line"),
        (b'{"envelope":' + ENVELOPE + b"}", "export line"),
        (b'{"envelope": ' + ENVELOPE + b',"private":null} ', "export line"),
        (b'{"envelope":' + ENVELOPE + b',"private":null', "export line"),
        (b'{"envelope":' + ENVELOPE + b',"private":null }', "null stands"),
        (b'{"envelope":' + ENVELOPE + b',"private":{}}', "block is missing"),
        (b'{"envelope":' + ENVELOPE + b',"private":' + BLOCK.replace(b"player", b"plaier") + b"}", "not known"),
        (b'{"envelope":' + ENVELOPE + b',"private":' + BLOCK.replace(b":", b": ", 1) + b"}", "canonical"),
        (b'{"envelope":' + ENVELOPE + b',"private":null},"private":null}', "not JSON"),
        (b" " * (LINE_BYTES_MAX + 1), "longer"),
    ],
)
def test_another_form_of_line_is_refused(data: bytes, why: str) -> None:
    assert parse_line(b'{"envelope":' + ENVELOPE + b',"private":' + BLOCK + b"}").private is not None
    with pytest.raises(FormatError, match=why):
        parse_line(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[1:],
        lambda data: data[:-1],
        lambda data: data.replace(b"v1", b"v2"),
        lambda _: b'{"format":"rgs/keys/v1","statements":[\n\n]}\n',
        lambda data: data + b"\n",
    ],
    ids=["head", "foot", "version", "empty", "surplus"],
)
def test_another_form_of_bundle_is_refused(change: Any) -> None:
    bundle = format_key_bundle([ENVELOPE])
    assert parse_key_bundle(bundle) == [ENVELOPE]
    with pytest.raises(FormatError, match="not a key bundle"):
        parse_key_bundle(change(bundle))


def test_a_bundle_is_limited() -> None:
    with pytest.raises(FormatError, match="too long"):
        parse_key_bundle(b"x" * (KEY_BUNDLE_BYTES_MAX + 1))
