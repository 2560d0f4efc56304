"""The tables of the main store and what is written to them: once for SQLite and PostgreSQL.

SQL is written as both read it; `rgs.store.postgres.texts.postgres_text` only numbers its parameters. Columns follow
from the types of the rows (`rgs.store.tables`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from rgs.core.bet_limits import BetLimits
from rgs.core.games.types import StakeLimits
from rgs.core.rounds import Round, RoundStatus, TakenAction
from rgs.core.sessions import Session
from rgs.core.times import format_date
from rgs.ports.regulator import StageReport
from rgs.store import changes
from rgs.store.finals import FINALS_ONE_ROW, FINALS_SQL
from rgs.store.free_bets import ERASE_FREE_BETS_SQL, FREE_BET_ONE_ROW, FREE_BET_SQL
from rgs.store.launches import ERASE_LAUNCHES, LAUNCH_CONDITIONS, LAUNCH_SQL
from rgs.store.returns import RETURNS_ONE_ROW, RETURNS_SQL
from rgs.store.table_rows import BETS, CONDITIONS, ERASE_TABLE_SQL, TABLE_SQL, dump
from rgs.store.tables import JsonField, Table


class SignedRow(NamedTuple):
    """A row of `statements`; `code` is that of an event."""

    instance: str
    statement_no: int
    kind: str
    code: str = ""
    session_id: str = ""
    link_no: int = 0
    round_id: str = ""
    seat_no: int = 0
    hash: bytes = b""
    envelope: bytes = b""


class PrivateRow(NamedTuple):
    """A row of `privates`: the private block beside a statement."""

    instance: str
    statement_no: int
    private: bytes


class AnswerRow(NamedTuple):
    """A row of `answers`; `instance` and `statement_no` name the signed statement that the answer carries."""

    party: str
    method: str
    request_id: str
    digest: bytes
    body: bytes
    instance: str
    statement_no: int
    time_ms: int


class DayTotalsAdded(NamedTuple):
    """What is added to a row of `day_totals`; `worker` is the node and worker that adds."""

    operator: str
    day: str
    game: str
    currency: str
    worker: str
    rounds: int
    staked_minor: int
    returned_minor: int
    void_rounds: int
    void_minor: int


class TotalsAdded(NamedTuple):
    """What is added to a row of `totals`."""

    day: str
    operator: str
    player: str
    game: str
    currency: str
    rounds: int = 0
    staked_minor: int = 0
    returned_minor: int = 0
    void_rounds: int = 0
    void_minor: int = 0


def _dump_actions(actions: tuple[TakenAction, ...]) -> str:
    return dump([[a.phase, a.action, a.amount_minor, a.time_ms, a.by, a.party, a.request_digest] for a in actions])


def _dump_limits(limits: BetLimits) -> str:
    return dump([[bet, one.min_minor, one.max_minor] for bet, one in limits])


def _load_limits(text: str) -> BetLimits:
    return tuple((bet, StakeLimits(least, most)) for bet, least, most in json.loads(text))


SESSIONS: Final = Table(
    "sessions",
    Session,
    key=("session_id",),
    fixed=(
        *("operator", "player", "operator_reference", "ruleset_id", "jurisdiction_id", "currency", "open_ms"),
        *("limit_loss_minor", "limit_stake_minor", "limit_duration_ms", "funding", "table_id"),
        *("mode", "bet_limits", "language", "return_url"),
    ),
    json={"bet_limits": JsonField(_dump_limits, _load_limits)},
    beside=("wallet_balance_minor", "wallet_credited_minor", "wallet_balance_ms"),  # `BalanceReported` writes them
    prefixes={"limits": "limit_"},
    is_numbered=True,
)
ROUNDS: Final = Table(
    "rounds",
    Round,
    key=("session_id", "round_id", "seat_no"),
    fixed=(
        *("operator", "player", "ruleset_id", "round_no", "game_code", "instance", "draw_no", "deal"),
        *("commitment", "bets", "balance_before_minor", "start_ms", "opening_hash", "funds_minor", "table_id", "path"),
        "free_bet",
    ),
    json={
        "bets": BETS,
        "actions": JsonField(_dump_actions, lambda text: tuple(TakenAction(*taken) for taken in json.loads(text))),
    },
    is_numbered=True,
)
STATEMENTS: Final = Table("statements", SignedRow)
PRIVATES: Final = Table("privates", PrivateRow)
ANSWERS: Final = Table("answers", AnswerRow)
OPERATIONS: Final = Table("operations", changes.Operation)
REPORTS: Final = Table("stage_reports", StageReport, is_numbered=True)
TOTALS: Final = Table("totals", TotalsAdded, key=("operator", "day", "player", "game", "currency"))
DAY_TOTALS: Final = Table("day_totals", DayTotalsAdded, key=("operator", "day", "game", "currency", "worker"))
DAYS: Final = Table("regulator_days", changes.DayCount, key=("operator", "day", "currency"))
VOIDS: Final = Table("voids", changes.VoidProposal, key=("round_id",))
SWITCHES: Final = Table("switches", changes.SwitchOff, key=("scope", "subject"))
LATCHES: Final = Table("latches", changes.LatchSet)
LARGE_WINS: Final = Table("large_wins", changes.LargeWin)
HELD_REPORTS: Final = Table("held_reports", changes.ReportsHeld)

REFERENCE_INDEX: Final = "sessions_by_reference"
"""Holds each reference of an operator to one session."""
UPDATE_SESSION: Final = SESSIONS.update()
UPDATE_ROUND: Final = ROUNDS.update(is_versioned=True)
INSERT_OPERATION: Final = OPERATIONS.insert + (
    " ON CONFLICT (operation_id) DO UPDATE SET status = excluded.status, progress = excluded.progress,"
    " attempts = excluded.attempts, next_ms = excluded.next_ms, reason = excluded.reason, refusal = excluded.refusal"
    " WHERE operations.status = 'pending'"
    " AND (excluded.status <> 'pending' OR excluded.progress >= operations.progress)"
)
"""An ended operation stays as it is, and its progress never falls: a late note changes nothing."""
INSERT_TOTALS: Final = TOTALS.insert + TOTALS.adding()
INSERT_DAY_TOTALS: Final = DAY_TOTALS.insert + DAY_TOTALS.adding()
INSERT_DAY: Final = DAYS.insert + DAYS.adding()
INSERT_ARTIFACT: Final = "INSERT INTO artifacts (sha256, name, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
END_INSTANCE: Final = "UPDATE instances SET alive = 0, end_ms = ? WHERE instance = ? AND alive = 1"
DROP_TOKEN: Final = "DELETE FROM session_tokens WHERE session_id = ?"  # noqa: S105 - SQL
STATE_CHANGED: Final = (
    "INSERT INTO meta AS m (key, value) VALUES (?, '1')"
    " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(m.value AS BIGINT) + 1 AS TEXT)"
)
ERASE_SQL: Final = (
    """
        DELETE FROM privates WHERE EXISTS (SELECT 1 FROM statements s JOIN sessions o ON o.session_id = s.session_id
        WHERE o.operator = ? AND o.player = ? AND s.instance = privates.instance
        AND s.statement_no = privates.statement_no)
    """,
    """
        UPDATE operations SET detail = '', refusal = '', digest = x'' WHERE status <> 'pending' AND session_id IN
        (SELECT session_id FROM sessions WHERE operator = ? AND player = ?)
    """,
    "UPDATE rounds SET player = '' WHERE operator = ? AND player = ?",
    """
        INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds,
        void_minor) SELECT day, operator, '', game, currency, rounds, staked_minor, returned_minor, void_rounds,
        void_minor FROM totals WHERE operator = ? AND player = ?
    """  # noqa: S608 - names of columns, no values
    + TOTALS.adding(),
    "DELETE FROM totals WHERE operator = ? AND player = ?",
    "DELETE FROM switches WHERE scope = 'player' AND subject = ? || '/' || ?",
    *ERASE_TABLE_SQL,
    *ERASE_FREE_BETS_SQL,
    ERASE_LAUNCHES,
    """
        DELETE FROM session_tokens WHERE session_id IN
        (SELECT session_id FROM sessions WHERE operator = ? AND player = ?)
    """,
    """
        UPDATE sessions SET player = '', operator_reference = '', regulator_session_id = '',
        regulator_participation_id = '', return_url = '' WHERE operator = ? AND player = ?
    """,
)
"""What erases a player (ARCHITECTURE 2.14, the erasable private block): private blocks go with their salts, pseudonym
and ids beside them are emptied, the totals stay without the player. Statements stay: they hold salted hashes only.
Sessions come last, because the other texts find their rows by them. The parameters are operator and player.
"""
RECORD_SQL: Final[dict[type, str]] = {
    changes.VoidProposal: VOIDS.upsert(),
    changes.VoidProposalEnd: "DELETE FROM voids WHERE round_id = ?",
    changes.SwitchOff: SWITCHES.upsert(),
    changes.SwitchOn: "DELETE FROM switches WHERE scope = ? AND subject = ?",
    changes.LatchSet: LATCHES.insert + " ON CONFLICT DO NOTHING",
    changes.LatchCleared: "DELETE FROM latches WHERE node = ? AND guard = ?",
    changes.PartyOn: Table("parties", changes.PartyOn).insert + " ON CONFLICT DO NOTHING",
    changes.CertificateOn: """
        INSERT INTO certificates (fingerprint, added_ms, party, last_ms)
        SELECT CAST(?1 AS TEXT), CAST(?2 AS BIGINT), party, CAST(?6 AS BIGINT) FROM parties
        WHERE party = ?3 AND role = ?4 AND jurisdiction = ?5 AND operator = ?7
    """,
    changes.CertificateOff: """
        UPDATE certificates SET removed_ms = CAST(?1 AS BIGINT) WHERE fingerprint = CAST(?2 AS TEXT)
        AND removed_ms IS NULL AND (
        NOT EXISTS (SELECT 1 FROM parties p WHERE p.party = certificates.party AND p.role = 'admin')
        OR EXISTS (SELECT 1 FROM certificates c JOIN parties p ON p.party = c.party
        WHERE p.role = 'admin' AND c.fingerprint <> ?2 AND c.removed_ms IS NULL AND c.last_ms > ?1))
    """,
    changes.AllowListChanged: "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE key = 'parties'",
    changes.MetaSet: Table("meta", changes.MetaSet, key=("key",)).upsert(),
    changes.LargeWin: LARGE_WINS.insert,
    changes.LargeWinReported: "DELETE FROM large_wins WHERE round_id = ?",
    changes.DayAligned: "UPDATE regulator_days SET aligned = ? WHERE operator = ? AND day = ? AND currency = ?",
    changes.ReportsHeld: HELD_REPORTS.insert + " ON CONFLICT DO NOTHING",
    changes.ReportsReleased: "DELETE FROM held_reports WHERE kind = ? AND subject = ?",
    changes.TokenKept: Table("session_tokens", changes.TokenKept).insert,
    changes.TokenDropped: DROP_TOKEN,
    changes.StagesClosedOut: "DELETE FROM stage_reports WHERE session_id = ?",
    changes.DayClosedOut: """
        UPDATE regulator_days SET aligned = purchases || ',' || bought_minor || ',' || stages || ',' || staked_minor
        || ',' || returned_minor || ',' || ends || ',' || final_balance_minor
        WHERE operator || ':' || currency || ':' || day = ?
    """,
    changes.BalanceReported: (
        "UPDATE sessions SET wallet_balance_minor = ?, wallet_credited_minor = ?, wallet_balance_ms = ?"
        " WHERE session_id = ?"
    ),
    changes.ReferenceFreed: "UPDATE sessions SET reference_slot = NULL WHERE session_id = ?",
    **FINALS_SQL,
    **LAUNCH_SQL,
    **RETURNS_SQL,
    **TABLE_SQL,
    **FREE_BET_SQL,
}
"""How the records of a change are written. The fields of a record are the parameters, in order."""
ONE_ROW: Final = (
    changes.CertificateOn, changes.CertificateOff, changes.LargeWinReported, *CONDITIONS, *FINALS_ONE_ROW,
    *FREE_BET_ONE_ROW, *LAUNCH_CONDITIONS, *RETURNS_ONE_ROW,
)  # fmt: skip
"""Records that must change exactly one row: otherwise the whole commit is undone."""


def texts_of(record: changes.Record) -> tuple[str, ...]:
    """The statements that write a record, each with the record's fields as parameters."""
    return ERASE_SQL if isinstance(record, changes.PlayerErased) else (RECORD_SQL[type(record)],)


def table_of(record: changes.Record) -> str:
    """The table in which a record did not find its row, as the error of the commit names it."""
    kinds = {
        "tables": CONDITIONS,
        "launches": LAUNCH_CONDITIONS,
        "free_bets": FREE_BET_ONE_ROW,
        "returns": RETURNS_ONE_ROW,
        "finals": FINALS_ONE_ROW,
        "large_wins": (changes.LargeWinReported,),
    }
    return next((name for name, kind in kinds.items() if isinstance(record, kind)), "records")


def totals_row(round_: Round, currency: str) -> TotalsAdded:
    """What a round that ends adds to the totals of its day."""
    key = (format_date(round_.end_ms), round_.operator, round_.player, round_.ruleset_id, currency)
    if round_.status is RoundStatus.VOID:
        return TotalsAdded(*key, void_rounds=1, void_minor=round_.staked_minor)
    return TotalsAdded(*key, 1, round_.staked_minor, round_.returned_minor)


def day_totals_rows(totals: Iterable[TotalsAdded], worker: str) -> list[DayTotalsAdded]:
    """The same without the players: one row for each day, operator, game and currency, in the order of the key."""
    sums: dict[tuple[str, str, str, str], list[int]] = {}
    for row in totals:
        held = sums.setdefault((row.operator, row.day, row.game, row.currency), [0] * 5)
        for at, value in enumerate(row[5:]):
            held[at] += value
    return [DayTotalsAdded(*key, worker, *sums[key]) for key in sorted(sums)]
