"""The kinds of statement: for each its payload type, its shape, and the key roles that may sign it (docs/formats.md).

`rgs.core.replay` checks what a statement means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from rgs.core.errors import FormatError
from rgs.core.statements.canonical import PAYLOAD_BYTES_MAX, parse_canonical
from rgs.core.statements.envelope import Envelope
from rgs.core.statements.shapes import Array, Flag, Record, Shape, Text, canonical_pattern, check_shape, one_of


class UnhandledKindError(Exception):
    """A place that must handle every kind of statement has no case for this one.

    It is a fault of this software, not of a file: a statement of an unknown kind is a FormatError. So it is no
    RgsError, and no caller catches it.
    """

    def __init__(self, kind: str, place: str) -> None:
        super().__init__(f"statement kind {kind} is not handled in {place}: add a case there (docs/howto.md)")


class KeyRole(StrEnum):
    """The key that signs, of the path root -> node -> instance."""

    ROOT = "root"
    NODE = "node"
    INSTANCE = "instance"


INTEGER = Text(r"0|[1-9][0-9]{0,17}", "a non-negative integer in decimal")
POSITIVE = Text(r"[1-9][0-9]{0,17}", "a positive integer in decimal")
HASH = Text(r"[0-9a-f]{64}", "32 bytes in lowercase hex")
ULID = Text(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", "a ULID: 48 bits of milliseconds, 80 random bits, Crockford base 32")
TIME = Text(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", "UTC, milliseconds")
CODE = Text(r"[A-Z][A-Z0-9_]{0,62}", "a code, never free text")
NAME = Text(r"[a-z0-9][a-z0-9._-]{0,63}", "a node, instance, party, ruleset or jurisdiction name")
VERSION = Text(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,31}")
CARD = Text(r"[2-9TJQKA][cdhs]")
ORIGIN = Text(r"[a-z0-9][a-z0-9._/-]{0,112}/[1-9][0-9]{3}h[12]", "the origin of a shard of the log")
CURRENCY = Text(r"[A-Z]{3}", "ISO 4217")
GAME_CODE = Text(r"#[0-2][0-9]:[0-5][0-9]:[0-5][0-9](-[1-9][0-9]{0,5})?", "RULEBOOK R-4")
BET = one_of("ante", "blind", "trips", "play", "aa", "call")
CATEGORY = one_of(
    "high_card", "pair", "two_pair", "trips", "straight", "flush", "full_house", "quads", "straight_flush",
    "royal_flush",
)  # fmt: skip
ACTION = one_of("check", "play_4x", "play_3x", "play_2x", "play_1x", "call", "fold")
PHASE = one_of("preflop", "flop", "river")

RULES = Record({"id": NAME, "version": VERSION, "sha256": HASH})
PLACED = Record({"amount_minor": POSITIVE, "bet": BET})
SEAT = Record({"bets": Array(PLACED, 8), "seat_no": POSITIVE, "session_id": ULID})
DEAL = Record(
    {
        "draw_no": POSITIVE,
        "game_code": GAME_CODE,
        "instance": NAME,
        "reseed_counter": POSITIVE,
        "round_id": ULID,
        "ruleset": RULES,
        "seats": POSITIVE,
        "seats_root": HASH,
        "shuffle": Text(r"[a-z0-9][a-z0-9./-]{0,63}", "name and version of the transcript -> deck procedure"),
        "start_time": TIME,
        "table": Text(r"(|[a-z0-9][a-z0-9._-]{0,63})", "empty for solo play"),
    }
)
TAKEN = Record(
    {
        "action": ACTION,
        "amount_minor": INTEGER,
        "by": one_of("player", "timer", "rule"),
        "party": NAME,
        "phase": PHASE,
        "request_digest": HASH,
        "time": TIME,
    }
)
HAND = Record({"best5": Array(CARD, 5), "category": CATEGORY})
OUTCOME = Record(
    {
        "dealer_hand": HAND,
        "dealer_qualifies": Flag(),
        "outcome": one_of("player", "dealer", "tie", "fold"),
        "player_hand": HAND,
    },
    {"flop_hand": HAND},
)
SETTLED_BET = Record(
    {"bet": BET, "result": one_of("win", "lose", "push"), "returned_minor": INTEGER, "stake_minor": POSITIVE}
)
CARDS = Record(
    {
        "board": Array(CARD, 5),
        "burns": Array(CARD, 4),
        "dealer_cards": Array(CARD, 2),
        "hole_cards": Array(CARD, 2),
    }
)
TABLE_DEAL = Record(
    {
        "draw_no": POSITIVE,
        "instance": NAME,
        "reseed_counter": POSITIVE,
        "shuffle": Text(r"[a-z0-9][a-z0-9./-]{0,63}", "name and version of the transcript -> deck procedure"),
        "table_round": HASH,
    }
)
WINDOW = Record(
    {
        "close_time": TIME,
        "end": one_of("decided", "paused", "time"),
        "open_time": TIME,
        "phase": PHASE,
    }
)
LIMIT = Record({"bet": BET, "max_minor": POSITIVE, "min_minor": POSITIVE})
BOX_SEAT = Record(SEAT.required, {"box": POSITIVE})
TABLE_CARDS = Record(
    {"board": Array(CARD, 5), "burns": Array(CARD, 4), "dealer_cards": Array(CARD, 2)},
    {"hole_cards": Array(CARD, 2)},
)
TABLE_HANDS = Record({"dealer_hand": HAND, "dealer_qualifies": Flag()}, {"flop_hand": HAND, "player_hand": HAND})
SEAT_OUTCOME = Record({"outcome": one_of("player", "dealer", "tie", "fold")}, {"flop_hand": HAND, "player_hand": HAND})
TABLE_VOID = Record({"approvals": Array(Record({"party": NAME, "time": TIME}), 2), "malfunction": HASH, "reason": CODE})
VOID = Record(
    {"approvals": Array(Record({"party": NAME, "time": TIME}), 2), "malfunction": HASH, "reason": CODE},
    {"would_have_been": Array(SETTLED_BET, 8), "would_have_outcome": OUTCOME},
)

_NUMBERED: Mapping[str, Shape] = {"instance": NAME, "statement_no": POSITIVE}
_LINKED: Mapping[str, Shape] = {**_NUMBERED, "link_no": POSITIVE, "previous": HASH, "session_id": ULID}
CHECKPOINT = Record({"origin": ORIGIN, "root": HASH, "size": INTEGER})
_BOOT = Record({"instance": NAME, "last_draw_no": INTEGER, "last_statement_no": INTEGER})


@dataclass(frozen=True)
class Kind:
    """One kind of statement."""

    name: str
    roles: frozenset[KeyRole]
    shape: Record
    numbered: bool
    linked: bool
    private: bool
    """Whether the statement has a private block beside it and the block's salted hash inside."""
    version: int = 1

    @property
    def payload_type(self) -> str:
        return f"application/vnd.rgs.{self.name.replace('_', '-')}.v{self.version}+json"

    @cached_property
    def canonical(self) -> re.Pattern[bytes]:
        """Matches the canonical bytes of this kind's statements and nothing else."""
        return re.compile(canonical_pattern(self.shape).encode("ascii"))


def _kind(name: str, role: KeyRole, fields: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Kind:
    return Kind(
        name,
        frozenset({role}),
        Record({"kind": one_of(name), "time": TIME, **fields}, optional or {}),
        numbered="statement_no" in fields,
        linked="link_no" in fields,
        private="private" in fields,
    )


def _numbered(name: str, fields: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Kind:
    return _kind(name, KeyRole.INSTANCE, {**_NUMBERED, **fields}, optional)


def _linked(name: str, fields: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Kind:
    return _kind(name, KeyRole.INSTANCE, {**_LINKED, **fields}, optional)


_SESSION_OPEN: Mapping[str, Shape] = {
    "currency": CURRENCY,
    "jurisdiction": RULES,
    "operator": NAME,
    "private": HASH,
    "ruleset": RULES,
    "test_regulator": Flag(),
}
_SESSION_OPEN_OPTIONAL: Mapping[str, Shape] = {
    "funding": one_of("seamless"),
    "limits": Record({}, {"duration_ms": POSITIVE, "loss_minor": POSITIVE, "stake_minor": POSITIVE}),
    "table": NAME,
}
_SESSION_OPEN_2: Mapping[str, Shape] = {"bet_limits": Array(LIMIT, 8), "mode": one_of("demo")}
"""What version 2 of a session_open can say beside version 1."""

_ALL = (
    # --- numbered, under the node key -----------------------------------------------------------------------------
    _kind(
        "instance_start",
        KeyRole.NODE,
        {
            **_NUMBERED,
            "boot_no": POSITIVE,
            "draws_in_flight_max": POSITIVE,
            "manifest": HASH,
            "node": NAME,
            "public_key": HASH,
            "rng_version": VERSION,
            "software_version": VERSION,
            "store_epoch": ULID,
            "worker": INTEGER,
        },
        optional={"checkpoint": CHECKPOINT, "previous_boot": _BOOT},
    ),
    # --- numbered, under an instance key --------------------------------------------------------------------------
    _numbered("instance_end", {"last_draw_no": INTEGER, "reason": CODE}),
    _numbered("instance_lost", {"lost": _BOOT, "reason": CODE}),
    _numbered("draw_window", {"draws_in_flight_max": POSITIVE}),
    _numbered(
        "discarded_draw",
        {"draw_no": POSITIVE, "reason": CODE, "reseed_counter": POSITIVE, "transcript": Text(r"([0-9a-f]{2}){1,4096}")},
        optional={"round_id": ULID},
    ),
    _numbered(
        "event",
        {"code": CODE},
        optional={
            "actor": NAME,
            "after": Text(r"[ -!#-\[\]-~]{0,200}"),
            "before": Text(r"[ -!#-\[\]-~]{0,200}"),
            "reason": CODE,
            "round_id": ULID,
            "session_id": ULID,
            "subject": Text(r"[ -!#-\[\]-~]{1,200}"),
        },
    ),
    _numbered("artifact", {"bytes": POSITIVE, "name": Text(r"[a-z0-9][a-z0-9._/-]{0,127}"), "sha256": HASH}),
    # --- numbered, the rounds of a table --------------------------------------------------------------------------
    _numbered(
        "table_round",
        {
            "betting_close_time": TIME,
            "betting_ms": INTEGER,
            "betting_open_time": TIME,
            "config": HASH,
            "decision_ms": INTEGER,
            "early_close": Flag(),
            "game_code": GAME_CODE,
            "hands": POSITIVE,
            "jurisdiction": RULES,
            "leaves": POSITIVE,
            "limits": Array(LIMIT, 8),
            "previous": HASH,
            "round_id": ULID,
            "ruleset": RULES,
            "seats_root": HASH,
            "table": NAME,
            "table_round_no": POSITIVE,
        },
    ),
    _numbered(
        "table_seats",
        {"round_id": ULID, "salt": HASH, "seats": POSITIVE, "table_round": HASH},
    ),
    _numbered("table_deal", {"commitment": HASH, "deal": TABLE_DEAL, "round_id": ULID}),
    _numbered(
        "table_final",
        {
            "round_id": ULID,
            "status": one_of("settled", "void"),
            "table_round": HASH,
            "windows": Array(WINDOW, 64),
        },
        optional={
            "cards": TABLE_CARDS,
            "deal": HASH,
            "deck": Array(CARD, 52),
            "hands": TABLE_HANDS,
            "salt": HASH,
            "transcript": Text(r"([0-9a-f]{2}){1,4096}"),
            "void": TABLE_VOID,
        },
    ),
    # --- numbered and linked to a session -------------------------------------------------------------------------
    _linked("session_open", _SESSION_OPEN, optional=_SESSION_OPEN_OPTIONAL),
    _linked(
        "purchase",
        {
            "amount_minor": POSITIVE,
            "balance_after_minor": INTEGER,
            "balance_before_minor": INTEGER,
            "bought_minor": POSITIVE,
            "participation_id": ULID,
            "private": HASH,
            "purchase_no": POSITIVE,
        },
    ),
    _linked(
        "transfer",
        {
            "amount_minor": INTEGER,
            "direction": one_of("debit", "credit"),
            "round_id": ULID,
            "transaction_id": ULID,
        },
    ),
    _linked(
        "free_bet",
        {
            "amount_minor": INTEGER,
            "direction": one_of("debit", "credit"),
            "grant_id": ULID,
            "round_id": ULID,
            "transaction_id": ULID,
        },
        optional={"campaign": Text(r"[a-z0-9][a-z0-9._-]{0,31}"), "expiry_time": TIME},
    ),
    _linked(
        "round_opening",
        {
            "balance_after_minor": INTEGER,
            "balance_before_minor": POSITIVE,
            "commitment": HASH,
            "deal": DEAL,
            "path": Array(HASH, 8),
            "seat": SEAT,
            "round_no": POSITIVE,
        },
    ),
    _linked(
        "round_final",
        {
            "actions": Array(TAKEN, 8),
            "actions_hash": HASH,
            "balance_after_minor": INTEGER,
            "balance_before_minor": POSITIVE,
            "opening": HASH,
            "returned_minor": INTEGER,
            "round_id": ULID,
            "seat_no": POSITIVE,
            "round_no": POSITIVE,
            "staked_minor": POSITIVE,
            "status": one_of("settled", "void"),
        },
        optional={
            "cards": CARDS,
            "deck": Array(CARD, 52),
            "outcome": OUTCOME,
            "salt": HASH,
            "settlement": Array(SETTLED_BET, 8),
            "transcript": Text(r"([0-9a-f]{2}){1,4096}"),
            "void": VOID,
        },
    ),
    _linked(
        "seat_opening",
        {
            "balance_after_minor": INTEGER,
            "balance_before_minor": POSITIVE,
            "deal": HASH,
            "round_id": ULID,
            "round_no": POSITIVE,
            "seat": BOX_SEAT,
        },
    ),
    _linked(
        "seat_final",
        {
            "actions": Array(TAKEN, 8),
            "actions_hash": HASH,
            "balance_after_minor": INTEGER,
            "balance_before_minor": POSITIVE,
            "opening": HASH,
            "returned_minor": INTEGER,
            "round_id": ULID,
            "round_no": POSITIVE,
            "seat_no": POSITIVE,
            "settlement": Array(SETTLED_BET, 8),
            "staked_minor": POSITIVE,
            "status": one_of("settled", "void"),
            "table_final": HASH,
        },
        optional={
            "hole_cards": Array(CARD, 2),
            "outcome": SEAT_OUTCOME,
            "would_have_been": Array(SETTLED_BET, 8),
            "would_have_outcome": SEAT_OUTCOME,
        },
    ),
    _linked(
        "participation_end",
        {
            "bought_minor": POSITIVE,
            "paid_out_minor": INTEGER,
            "participation_id": ULID,
            "private": HASH,
            "returned_minor": INTEGER,
            "rounds": INTEGER,
            "staked_minor": INTEGER,
        },
    ),
    _linked("session_close", {"reason": CODE, "rounds": INTEGER}),
    # --- without a number -----------------------------------------------------------------------------------------
    _kind("root_key", KeyRole.ROOT, {"public_key": HASH}, optional={"previous": HASH}),
    _kind("node_key", KeyRole.ROOT, {"development": Flag(), "node": NAME, "public_key": HASH}),
    _kind(
        "key_end",
        KeyRole.ROOT,
        {"key": HASH, "reason": CODE},
        optional={"instance": NAME, "last_statement_no": INTEGER},
    ),
    _kind("revocation", KeyRole.ROOT, {"key": HASH, "reason": CODE}, optional={"origin": ORIGIN, "size": INTEGER}),
    _kind(
        "export_scope",
        KeyRole.NODE,
        {
            "instances": Array(Record({"first": POSITIVE, "instance": NAME, "last": POSITIVE}), 100),
            "reason": CODE,
            "sessions": Array(Record({"first": POSITIVE, "last": POSITIVE, "session_id": ULID}), 200),
        },
    ),
    _kind("report", KeyRole.NODE, {"name": Text(r"[a-z0-9][a-z0-9._/-]{0,127}"), "sha256": HASH}),
    _kind("countersignature", KeyRole.NODE, {"party": NAME, "statement": HASH}),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}
SESSION_OPEN_2 = replace(
    _linked("session_open", _SESSION_OPEN, optional={**_SESSION_OPEN_OPTIONAL, **_SESSION_OPEN_2}), version=2
)
"""It is signed only where version 1 cannot say it: with `mode` or `bet_limits`."""
KIND_OF_PAYLOAD_TYPE: Mapping[str, Kind] = {kind.payload_type: kind for kind in (*_ALL, SESSION_OPEN_2)}

LINK_ZERO = "0" * 64
"""`previous` of the first link of a session."""


_DECODER = json.JSONDecoder()


def kind_of(name: str, body: Mapping[str, Any]) -> Kind:
    """The kind of a body that is to be signed, in the version that can say it."""
    if name == SESSION_OPEN_2.name and not body.keys().isdisjoint(_SESSION_OPEN_2):
        return SESSION_OPEN_2
    return KINDS[name]


def is_formed(envelope: Envelope) -> bool:
    """Whether the payload is canonical and of its kind's schema. `parse_statement` says what is wrong if it is not."""
    kind, payload = KIND_OF_PAYLOAD_TYPE.get(envelope.payload_type), envelope.payload
    return kind is not None and len(payload) <= PAYLOAD_BYTES_MAX and kind.canonical.fullmatch(payload) is not None


def parse_statement(envelope: Envelope, *, formed: bool = False) -> tuple[Kind, dict[str, Any]]:
    """Kind and body of an envelope whose signature was (or will be) verified. `formed`: `is_formed` was asked before,
    and said so.

    Raises FormatError on any deviation from the kind's schema or the canonical form, naming the first.
    """
    kind = KIND_OF_PAYLOAD_TYPE.get(envelope.payload_type)
    if kind is None:
        raise FormatError(f"payload type {envelope.payload_type} is not known", value=envelope.payload_type)
    payload = envelope.payload
    if formed or is_formed(envelope):
        body: dict[str, Any]
        body, _ = _DECODER.raw_decode(payload.decode("ascii"))  # nothing follows it
        return kind, body
    # The bytes are not canonical or not of the shape: the slow way finds out which, and where.
    refused = parse_canonical(payload)
    check_shape(kind.shape, refused, kind.name)
    raise FormatError(f"not the canonical form of {kind.name}")  # pragma: no cover - the two ways agree (tested)
