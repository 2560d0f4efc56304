"""Kinds: each has one payload type, one role, and a strict reader."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certification.schemas import schemas
from rgs.core.errors import FormatError
from rgs.core.statements import KINDS, PAYLOAD_BYTES_MAX, Envelope, KeyRole, format_canonical, parse_statement
from rgs.core.statements.kinds import KIND_OF_PAYLOAD_TYPE
from tests.support.records.shape_values import values_of

END = {
    "instance": "a",
    "kind": "instance_end",
    "last_draw_no": "0",
    "reason": "X",
    "statement_no": "2",
    "time": "2026-11-21T22:30:00.123Z",
}


def envelope(kind: str, payload: bytes) -> Envelope:
    return Envelope(KINDS[kind].payload_type, payload, "0" * 64, bytes(64))


@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_what_a_kind_formats_parses_to_the_same(data: st.DataObject, kind: str) -> None:
    body = data.draw(values_of(KINDS[kind].shape))
    assert parse_statement(envelope(kind, format_canonical(body))) == (KINDS[kind], body)


def test_every_kind_has_a_payload_type_of_its_own_and_one_role() -> None:
    assert len(KIND_OF_PAYLOAD_TYPE) == len(KINDS) + 1 == 29  # session_open has two versions
    assert KINDS["round_final"].payload_type == "application/vnd.rgs.round-final.v1+json"
    assert all(len(kind.roles) == 1 for kind in KINDS.values())
    assert {name for name, kind in KINDS.items() if kind.roles == {KeyRole.NODE}} == {
        "countersignature",
        "export_scope",
        "instance_start",
        "report",
    }


def test_links_are_numbered_and_private_blocks_are_told_by_their_field() -> None:
    for kind in KINDS.values():
        assert kind.linked <= kind.numbered
        assert kind.private == ("private" in kind.shape.required)


def test_an_unknown_payload_type_is_refused() -> None:
    with pytest.raises(FormatError, match="not known"):
        parse_statement(Envelope("application/x", b"{}", "0" * 64, bytes(64)))


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (json.dumps(END).encode(), "canonical"),
        (format_canonical(END)[:-1], "not JSON"),
        (format_canonical({**END, "more": "x"}), "more is not known"),
        (format_canonical({**END, "last_draw_no": "01"}), "last_draw_no"),
        (format_canonical({**END, "kind": "event"}), "kind"),
        (format_canonical([END]), "not an object"),
        (format_canonical({key: END[key] for key in END if key != "time"}), "time is missing"),
        (b" " * (PAYLOAD_BYTES_MAX + 1), "longer"),
    ],
)
def test_what_is_not_of_the_kind_is_refused_by_name(payload: bytes, why: str) -> None:
    assert parse_statement(envelope("instance_end", format_canonical(END)))[1] == END
    with pytest.raises(FormatError, match=why):
        parse_statement(envelope("instance_end", payload))


def test_a_payload_of_its_shape_and_too_long_is_refused() -> None:
    cards = ["As"] * 52
    rows = [{"bet": "ante", "result": "win", "returned_minor": "9" * 18, "stake_minor": "9" * 18}] * 8
    assert len(format_canonical([cards, rows])) < PAYLOAD_BYTES_MAX  # no honest statement comes near the limit
    ranges = [{"first": "9" * 18, "instance": "x" * 64, "last": "9" * 18}] * 100
    links = [{"first": "9" * 18, "last": "9" * 18, "session_id": "0" * 26}] * 200
    body = {"instances": ranges, "kind": "export_scope", "reason": "X" * 63, "sessions": links, "time": END["time"]}
    payload = format_canonical(body)
    assert KINDS["export_scope"].canonical.fullmatch(payload)
    if len(payload) <= PAYLOAD_BYTES_MAX:
        assert parse_statement(envelope("export_scope", payload))[1] == body
    else:
        with pytest.raises(FormatError, match="longer"):
            parse_statement(envelope("export_scope", payload))


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_published_schemas_are_those_of_the_shapes(name: str, pytestconfig: pytest.Config) -> None:
    published = pytestconfig.rootpath / "docs" / "schemas" / name
    assert published.read_text("utf-8") == schemas()[name], "run: certify schemas docs/schemas"


def test_no_schema_is_published_that_no_shape_has(pytestconfig: pytest.Config) -> None:
    assert {path.name for path in (pytestconfig.rootpath / "docs" / "schemas").iterdir()} == set(schemas())
