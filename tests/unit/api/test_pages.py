"""Page tokens at the wire: good for one method, one party, one set of filters."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from rgs.api import admin, audit, catalog, history, play, reconciliation, report, session, support, table
from rgs.api.calls import Unary
from rgs.api.pages import format_bound_token, mark_of, paged, parse_bound_token
from rgs.core.errors import InvalidFieldError
from rgs.service.callers import Caller, Role
from rgs.v1 import history_pb2, session_pb2
from tests.support.api.wired import REQUESTS

ANNA = Caller("op-1", Role.OPERATOR, "demo")


def all_methods() -> dict[str, Any]:
    return {
        **{f"{catalog.SERVICE}/{name}": found for name, found in catalog.catalog_methods(Mock(), Mock()).items()},
        **{
            f"{session.SERVICE}/{name}": found
            for name, found in session.session_methods(Mock(), Mock(), Mock()).items()
        },
        **{
            f"{play.SERVICE}/{name}": found for name, found in play.play_methods(Mock(), Mock(), Mock(), Mock()).items()
        },
        **{f"{history.SERVICE}/{name}": found for name, found in history.history_methods(Mock()).items()},
        **{f"{report.SERVICE}/{name}": found for name, found in report.report_methods(Mock(), Mock()).items()},
        **{f"{support.SERVICE}/{name}": found for name, found in support.support_methods(Mock()).items()},
        **{f"{audit.SERVICE}/{name}": found for name, found in audit.audit_methods(Mock(), Mock()).items()},
        **{
            f"{admin.SERVICE}/{name}": found
            for name, found in admin.admin_methods(Mock(), Mock(), Mock(), Mock(), Mock()).items()
        },
        **{
            f"{reconciliation.SERVICE}/{name}": found
            for name, found in reconciliation.reconciliation_methods(Mock(), Mock(), Mock()).items()
        },
        **{
            f"{table.SERVICE}/{name}": found
            for name, found in table.table_methods(
                seats=Mock(), views=Mock(), lobby=Mock(), chat=Mock(), feed=Mock(), encoder=Mock()
            ).items()
        },
    }


def test_every_list_of_the_contract_binds_its_tokens() -> None:
    lists = {name for name, request in REQUESTS.items() if "page_token" in request.fields_by_name}
    bound = {
        name
        for name, method in all_methods().items()
        if isinstance(method, Unary) and method.answer.__qualname__.startswith(f"{paged.__name__}.")
    }
    assert len(lists) >= 11
    assert bound == lists


@pytest.mark.parametrize(
    ("caller", "request_"),
    [
        (ANNA, session_pb2.ListSessionsRequest(player="berta")),
        (ANNA, session_pb2.ListSessionsRequest()),
        (ANNA, session_pb2.ListSessionsRequest(player="anna", open_only=True)),
        (ANNA, history_pb2.ListRoundsRequest(player="anna")),
        (Caller("op-2", Role.OPERATOR, "demo"), session_pb2.ListSessionsRequest(player="anna")),
        (Caller("op-1", Role.AUDITOR, ""), session_pb2.ListSessionsRequest(player="anna")),
    ],
    ids=["player", "no filter", "another filter", "method", "party", "role"],
)
def test_a_token_of_another_list_is_refused(caller: Caller, request_: Any) -> None:
    mark = mark_of(ANNA, session_pb2.ListSessionsRequest(player="anna"))
    token = format_bound_token("cDEuNQ", mark)
    assert parse_bound_token(token, mark) == "cDEuNQ"
    with pytest.raises(InvalidFieldError) as caught:
        parse_bound_token(token, mark_of(caller, request_))
    assert caught.value.field == "page_token"


def test_a_page_may_have_another_size() -> None:
    first = session_pb2.ListSessionsRequest(player="anna", page_size=2)
    second = session_pb2.ListSessionsRequest(player="anna", page_size=7, page_token="x")  # noqa: S106
    assert mark_of(ANNA, first) == mark_of(ANNA, second)


@pytest.mark.parametrize("token", [".", "x", "x.", ".x", "cDEuNQ", "\x00", "é"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    mark = mark_of(ANNA, session_pb2.ListSessionsRequest())
    for text in (token, token + mark[1:], f".{mark}"):
        with pytest.raises(InvalidFieldError):
            parse_bound_token(text, mark)


def test_no_token_is_the_beginning_and_the_end() -> None:
    assert parse_bound_token("", "mark") == ""
    assert format_bound_token("", "mark") == ""
