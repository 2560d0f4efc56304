"""rgs.v1.HistoryService over `rgs.service.play.history`."""

from __future__ import annotations

from rgs.api.calls import Methods, Unary
from rgs.api.mapping import MODES, ROUND_STATUSES, round_message, same_fields, time_fields
from rgs.api.pages import paged
from rgs.api.parsing import verify_record_request
from rgs.service.callers import Caller
from rgs.service.play.history import History, RoundsFilter, RoundSummary
from rgs.v1 import history_pb2 as pb

_FILTERS = tuple(RoundsFilter.__dataclass_fields__)
SERVICE = pb.DESCRIPTOR.services_by_name["HistoryService"].full_name


def history_methods(history: History) -> Methods:
    """The methods of the service."""

    async def list_rounds(caller: Caller, message: pb.ListRoundsRequest) -> pb.ListRoundsResponse:
        wanted = RoundsFilter(**same_fields(message, *_FILTERS))
        rounds, token = await history.list_rounds(caller, wanted, message.page_size, message.page_token)
        return pb.ListRoundsResponse(rounds=map(summary_message, rounds), next_page_token=token)

    async def get_round_record(caller: Caller, message: pb.GetRoundRecordRequest) -> bytes:
        verify_record_request(message)
        found = await history.get_records(
            caller, **same_fields(message, "round_id", "player", "date", "game_code", "operator", "session_id")
        )
        records = [
            pb.RoundRecord(
                summary=summary_message(record.summary),
                round=round_message(record.view),
                opening=record.opening,
                final=record.final,
                path=record.path,
                free_bets=record.free_bets,
                **record.shared,
            )
            for record in found
        ]
        return pb.GetRoundRecordResponse(records=records).SerializeToString()

    return {
        "ListRounds": paged(pb.ListRoundsRequest, list_rounds),
        "GetRoundRecord": Unary(pb.GetRoundRecordRequest, get_round_record),
    }


def summary_message(summary: RoundSummary) -> pb.RoundSummary:
    """A line of the list."""
    round_, session = summary.round, summary.session
    return pb.RoundSummary(
        **same_fields(round_, "round_id", "session_id", "round_no", "game_code", "staked_minor", "returned_minor"),
        **same_fields(session, "currency", "regulator_session_id", "regulator_participation_id", "operator_reference"),
        player=round_.player,
        game=round_.ruleset_id,
        mode=MODES[session.mode],
        status=ROUND_STATUSES[round_.status],
        start_time=time_fields(round_.start_ms),
        end_time=time_fields(round_.end_ms),
    )
