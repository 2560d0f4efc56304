"""Turns what may be seen of tables into messages of the contract (protos/rgs/v1/table.proto).

Views hold only what their caller may see, and a message holds only what its view has: a card that is not in a view
cannot be in a message, and nothing is looked up here. What goes to many streams is serialized once.
"""

from __future__ import annotations

from typing import Any, Final

from rgs.api.mapping import PHASES, Encoder, field_bytes, round_bytes, same_fields, tag_of, time_fields
from rgs.core.amounts import exponent_of
from rgs.core.cards import format_cards
from rgs.core.hands import HandValue
from rgs.core.tables.machine import State
from rgs.core.tables.seating import Bets
from rgs.core.tables.views import BoxView, ChatLine, SeatView, TableEntry, TableView
from rgs.core.views import SessionView
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import PHASE_UNSPECIFIED

STATES: Final = {state: pb.TableState.Value(f"TABLE_STATE_{state.name}") for state in State}

_ROUND: Final = tag_of(pb.SeatView.DESCRIPTOR, "round")
_SESSION: Final = tag_of(pb.JoinResponse.DESCRIPTOR, "session")
_SEAT: Final = tag_of(pb.JoinResponse.DESCRIPTOR, "seat")
"""Session and seat are fields 1 and 2 of every response that has them (a test compares)."""
_METHODS: Final = frozenset({"Join", "Leave", "PlaceBets", "Decide"})
_WATCHED: Final = pb.WatchResponse.DESCRIPTOR
_WATCHED_TABLE: Final = tag_of(_WATCHED, "table")
_WATCHED_SEAT: Final = tag_of(_WATCHED, "seat")
_WATCHED_LINE: Final = tag_of(_WATCHED, "line")


class TableEncoder:
    """The `TableEncode` of the services: (method, session, seat) -> bytes of the response."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def __call__(self, method: str, session: SessionView, seat: SeatView) -> bytes:
        if method not in _METHODS:
            raise KeyError(method)
        shown = self._encoder.session_bytes(session)
        return field_bytes(_SESSION, shown) + field_bytes(_SEAT, seat_bytes(seat))


# --- tables -----------------------------------------------------------------------------------------------------------


def table_message(view: TableView) -> pb.TableView:
    """A table as one operator's players see it."""
    return pb.TableView(
        **same_fields(view, "version", "round_id", "table_round_no", "game_code", "malfunction_code"),
        **same_fields(view, "hole_cards", "board", "dealer_cards", "dealer_qualifies", "players_at_least"),
        **same_fields(view, "commitment", "table_round", "table_deal", "table_final"),
        table=view.table_id,
        state=STATES[view.state],
        paused_from=pb.TABLE_STATE_UNSPECIFIED if view.paused_from is None else STATES[view.paused_from],
        phase=PHASE_UNSPECIFIED if view.phase is None else PHASES[view.phase],
        open_time=time_fields(view.open_ms),
        amber_time=time_fields(view.amber_ms),
        deadline=time_fields(view.deadline_ms),
        time=time_fields(view.time_ms),
        dealer_hand=_hand(view.dealer_hand),
        player_hand=_hand(view.player_hand),
        boxes=[_box(box) for box in view.boxes],
    )


def _box(box: BoxView) -> pb.BoxView:
    return pb.BoxView(
        **same_fields(box, "box", "nickname", "session_id", "in_round", "decided", "hole_cards", "reserved"),
        bets=_bets(box.bets),
    )


def _hand(hand: HandValue | None) -> Any:
    return None if hand is None else {"category": hand.category.text, "cards": format_cards(hand.best5)}


def _bets(bets: Bets) -> Any:
    return [{"bet": bet, "amount_minor": amount_minor} for bet, amount_minor in bets]


def entry_message(entry: TableEntry) -> pb.TableEntry:
    """A table as the lobby shows it."""
    config = entry.config
    return pb.TableEntry(
        **same_fields(config, "currency", "tables_beside", "chat", "early_close"),
        **same_fields(config.timers, "betting_ms", "amber_ms", "decision_ms", "result_ms"),
        **same_fields(entry, "players_at_least", "boxes", "boxes_free"),
        table=config.id,
        names=dict(config.names),
        game=config.ruleset_id,
        limits=[
            pb.TableLimits(bet=bet, **same_fields(limits, "min_minor", "max_minor"))
            for bet, limits in config.limits.items()
        ],
        state=STATES[entry.state],
        hours_change_time=time_fields(entry.hours_change_ms),
        config=config.sha256,
        hours=[
            pb.OpeningHours(weekday=span.weekday + 1, opens_minute=span.opens, closes_minute=span.closes)
            for span in config.hours.spans
        ],
        time_zone=config.hours.zone,
        currency_exponent=exponent_of(config.currency),
    )


# --- seats and chat ---------------------------------------------------------------------------------------------------


def seat_message(view: SeatView) -> pb.SeatView:
    """A player's seat."""
    return pb.SeatView.FromString(seat_bytes(view))


def seat_bytes(view: SeatView) -> bytes:
    """A player's seat, serialized."""
    single = pb.SeatView(
        **same_fields(view, "session_id", "box", "device_no", "seat_version", "reserved_minor", "ended"),
        **same_fields(view, "regulator_session_id", "regulator_participation_id"),
        table=view.table_id,
        bets=_bets(view.bets),
    ).SerializeToString()
    return single if view.round is None else single + field_bytes(_ROUND, round_bytes(view.round))


def line_message(line: ChatLine) -> pb.ChatLine:
    """A line of chat."""
    return pb.ChatLine(
        **same_fields(line, "message_id", "nickname", "text", "code", "player", "operator", "is_own"),
        table=line.table_id,
        time=time_fields(line.time_ms),
    )


# --- what streams send ------------------------------------------------------------------------------------------------


def watched_table(view: TableView) -> bytes:
    """The WatchResponse of a table's view."""
    return field_bytes(_WATCHED_TABLE, table_message(view).SerializeToString())


def watched_seat(view: SeatView) -> bytes:
    """The WatchResponse of a seat's view."""
    return field_bytes(_WATCHED_SEAT, seat_bytes(view))


def watched_line(line: ChatLine) -> bytes:
    """The WatchResponse of a line of chat."""
    return field_bytes(_WATCHED_LINE, line_message(line).SerializeToString())
