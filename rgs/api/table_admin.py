"""rgs.v1.TableAdminService over `rgs.service.tables.admin`: each call answers with its signed statement.

The services check reasons, codes and who may do what; an operator calls `BarPlayer` alone.
"""

from __future__ import annotations

from typing import Any

from rgs.api.calls import Methods, Unary
from rgs.api.table_mapping import entry_message
from rgs.core.ids import check_name, check_ulid
from rgs.service.callers import Caller
from rgs.service.tables.admin import TableAdmin
from rgs.v1 import table_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["TableAdminService"].full_name


def table_admin_methods(tables: TableAdmin) -> Methods:
    """The methods of the service."""
    return {**_running(tables), **_rounds(tables), **_players(tables)}


def _running(tables: TableAdmin) -> Methods:
    async def configure_table(caller: Caller, message: pb.ConfigureTableRequest) -> bytes:
        entry, statement = await tables.configure(caller, message.request_id, message.config, message.reason)
        return pb.ConfigureTableResponse(table=entry_message(entry), statement=statement).SerializeToString()

    async def set_table_open(caller: Caller, message: pb.SetTableOpenRequest) -> bytes:
        statement = await tables.set_open(
            caller, message.request_id, _table_of(message), is_open=message.open, reason=message.reason
        )
        return pb.SetTableOpenResponse(statement=statement).SerializeToString()

    return {
        "ConfigureTable": Unary(pb.ConfigureTableRequest, configure_table),
        "SetTableOpen": Unary(pb.SetTableOpenRequest, set_table_open),
    }


def _rounds(tables: TableAdmin) -> Methods:
    async def pause_table(caller: Caller, message: pb.PauseTableRequest) -> bytes:
        statement = await tables.pause(caller, message.request_id, _table_of(message), message.malfunction_code)
        return pb.PauseTableResponse(statement=statement).SerializeToString()

    async def resume_table(caller: Caller, message: pb.ResumeTableRequest) -> bytes:
        statement = await tables.resume(caller, message.request_id, _table_of(message), message.reason)
        return pb.ResumeTableResponse(statement=statement).SerializeToString()

    async def cancel_bets(caller: Caller, message: pb.CancelBetsRequest) -> bytes:
        statement = await tables.cancel(caller, message.request_id, _table_of(message), message.reason)
        return pb.CancelBetsResponse(statement=statement).SerializeToString()

    async def void_table_round(caller: Caller, message: pb.VoidTableRoundRequest) -> bytes:
        round_id = check_ulid(message.round_id, "round_id")
        table_id, dry_run = _table_of(message), message.dry_run
        order = (caller, message.request_id, table_id, round_id, message.reason)
        approved, statement = await tables.void(*order, dry_run=dry_run)
        answer = pb.VoidTableRoundResponse(approved=approved, statement=statement)
        if dry_run:
            stakes = await tables.stakes(table_id, round_id)
            answer.seats, answer.staked_minor, answer.currency = stakes.seats, stakes.staked_minor, stakes.currency
            for one in stakes.listed:
                answer.stakes.add(
                    seat_no=one.seat_no,
                    session_id=one.session_id,
                    operator=one.operator,
                    staked_minor=one.staked_minor,
                )
        return answer.SerializeToString()

    return {
        "PauseTable": Unary(pb.PauseTableRequest, pause_table),
        "ResumeTable": Unary(pb.ResumeTableRequest, resume_table),
        "CancelBets": Unary(pb.CancelBetsRequest, cancel_bets),
        "VoidTableRound": Unary(pb.VoidTableRoundRequest, void_table_round),
    }


def _players(tables: TableAdmin) -> Methods:
    async def bar_player(caller: Caller, message: pb.BarPlayerRequest) -> bytes:
        statement = await tables.bar(
            caller,
            message.request_id,
            _table_of(message),
            message.operator,
            message.player,
            barred=message.barred,
            reason=message.reason,
        )
        return pb.BarPlayerResponse(statement=statement).SerializeToString()

    async def reserve_box(caller: Caller, message: pb.ReserveBoxRequest) -> bytes:
        statement = await tables.reserve(
            caller,
            message.request_id,
            _table_of(message),
            message.box,
            message.operator,
            message.player,
            message.reason,
        )
        return pb.ReserveBoxResponse(statement=statement).SerializeToString()

    async def erase_message(caller: Caller, message: pb.EraseMessageRequest) -> bytes:
        message_id = check_ulid(message.message_id, "message_id")
        statement = await tables.erase_message(caller, message.request_id, message_id, message.reason)
        return pb.EraseMessageResponse(statement=statement).SerializeToString()

    return {
        "BarPlayer": Unary(pb.BarPlayerRequest, bar_player),
        "ReserveBox": Unary(pb.ReserveBoxRequest, reserve_box),
        "EraseMessage": Unary(pb.EraseMessageRequest, erase_message),
    }


def _table_of(message: Any) -> str:
    """The table that a request names."""
    table: str = message.table
    return check_name(table, "table")
