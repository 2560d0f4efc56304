"""Rows and values: how sessions, rounds and affairs stand in columns, and the SQL texts that name those columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, Final

from rgs.core.ledger import Participation
from rgs.core.limits import SessionLimits
from rgs.core.rounds import Round, RoundStatus, TakenAction
from rgs.core.sessions import Funding, Session, SessionStatus
from rgs.core.times import format_date
from rgs.ports.regulator import StageReport
from rgs.store.changes import (
    Affair,
    AllowListChanged,
    BalanceTold,
    CertificateOff,
    CertificateOn,
    DayAligned,
    DayCount,
    LargeWin,
    LargeWinTold,
    LatchCleared,
    LatchSet,
    MetaSet,
    PartyOn,
    ReportsHeld,
    ReportsReleased,
    SwitchOff,
    SwitchOn,
    TokenDropped,
    TokenKept,
    VoidProposal,
    VoidProposalEnd,
)
from rgs.store.closing_out import CLOSE_OUT_SQL
from rgs.store.erasure import ERASE_SQL
from rgs.store.returns import RETURNS_ONE_ROW, RETURNS_SQL

SELECT_SESSION: Final = """
    SELECT session_id, operator, player, operator_reference, ruleset_id, jurisdiction_id, currency, open_ms, status,
    last_ms, version, close_ms, regulator_session_id, test_register, participation_id, regulator_participation_id,
    bought_minor, staked_minor, returned_minor, paid_out_minor, ended, purchase_no, stage_no, rounds, open_round_id,
    last_start_ms, code_count, pending_affair, limit_loss_minor, limit_stake_minor, limit_duration_ms, funding,
    link_no, link_hash, wallet_balance_minor, wallet_credited_minor, wallet_balance_ms, id FROM sessions
"""
INSERT_SESSION: Final = """
    INSERT INTO sessions (status, last_ms, version, close_ms, regulator_session_id, test_register, participation_id,
    regulator_participation_id, bought_minor, staked_minor, returned_minor, paid_out_minor, ended, purchase_no,
    stage_no, rounds, open_round_id, last_start_ms, code_count, pending_affair, link_no, link_hash, session_id,
    operator, player, operator_reference, ruleset_id, jurisdiction_id, currency, open_ms, limit_loss_minor,
    limit_stake_minor, limit_duration_ms, funding) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
UPDATE_SESSION: Final = """
    UPDATE sessions SET status = ?, last_ms = ?, version = ?, close_ms = ?, regulator_session_id = ?, test_register
    = ?, participation_id = ?, regulator_participation_id = ?, bought_minor = ?, staked_minor = ?, returned_minor =
    ?, paid_out_minor = ?, ended = ?, purchase_no = ?, stage_no = ?, rounds = ?, open_round_id = ?, last_start_ms =
    ?, code_count = ?, pending_affair = ?, link_no = ?, link_hash = ? WHERE session_id = ?
"""
UPDATE_SESSION_WITHIN: Final = UPDATE_SESSION.replace("status = ?, ", "", 1).rstrip() + " AND status = ?"
"""The same of a session whose status stays: SQLite writes every index that a column of the SET list stands in, changed
or not.
"""
SELECT_ROUND: Final = """
    SELECT round_id, session_id, operator, player, ruleset_id, stage_no, seat_no, game_code, instance, draw_no,
    deal, commitment, bets, balance_before_minor, start_ms, opening_hash, sealed, status, version, actions, end_ms,
    staked_minor, returned_minor, funds_minor, malfunction, malfunction_code, id FROM rounds
"""
INSERT_ROUND: Final = """
    INSERT INTO rounds (round_id, session_id, operator, player, ruleset_id, stage_no, seat_no, game_code, instance,
    draw_no, deal, commitment, bets, balance_before_minor, start_ms, opening_hash, sealed, status, version, actions,
    end_ms, staked_minor, returned_minor, funds_minor, malfunction, malfunction_code) VALUES (?, ?, ?, ?, ?, ?, ?,
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
UPDATE_ROUND: Final = """
    UPDATE rounds SET sealed = ?, status = ?, version = ?, actions = ?, end_ms = ?, staked_minor = ?, returned_minor
    = ?, malfunction = ?, malfunction_code = ? WHERE round_id = ? AND seat_no = ? AND version = ?
"""
UPDATE_ROUND_WITHIN: Final = (
    UPDATE_ROUND.replace("status = ?, ", "", 1).replace("end_ms = ?, ", "", 1).rstrip() + " AND status = 'open'"
)
"""The same of a round that stays open."""
INSERT_STATEMENT: Final = """
    INSERT INTO statements (instance, statement_no, kind, code, session_id, link_no, round_id, seat_no, hash, envelope)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SELECT_AFFAIR: Final = """
    SELECT affair_id, session_id, kind, status, party, method, request_id, digest, amount_minor, purchase_no,
    created_ms, detail, stage, attempts, next_ms, reason, refusal FROM affairs
"""
INSERT_AFFAIR: Final = """
    INSERT INTO affairs (affair_id, session_id, kind, status, party, method, request_id, digest, amount_minor,
    purchase_no, created_ms, detail, stage, attempts, next_ms, reason, refusal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (affair_id) DO UPDATE SET status = excluded.status, stage = excluded.stage,
    attempts = excluded.attempts, next_ms = excluded.next_ms, reason = excluded.reason, refusal = excluded.refusal
    WHERE affairs.status = 'pending' AND (excluded.status <> 'pending' OR excluded.stage >= affairs.stage)
"""
"""What has ended stays ended, and a stage never falls: a note that comes late changes nothing."""
SELECT_REPORTS: Final = """
    SELECT id, session_id, stage_no, regulator_session_id, regulator_participation_id, available_minor,
    staked_minor, returned_minor, opening_hash, end_ms, final_hash FROM stage_reports
"""
INSERT_PRIVATE: Final = "INSERT INTO privates (instance, statement_no, private) VALUES (?, ?, ?)"
INSERT_REPORT: Final = """
    INSERT INTO stage_reports (session_id, stage_no, regulator_session_id, regulator_participation_id,
    available_minor, staked_minor, returned_minor, opening_hash, end_ms, final_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?)
"""
INSERT_TOTALS: Final = """
    INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds,
    void_minor) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (operator, day, player, game, currency) DO UPDATE SET rounds = totals.rounds + excluded.rounds,
    staked_minor = totals.staked_minor + excluded.staked_minor,
    returned_minor = totals.returned_minor + excluded.returned_minor,
    void_rounds = totals.void_rounds + excluded.void_rounds, void_minor = totals.void_minor + excluded.void_minor
"""
INSERT_DAY: Final = """
    INSERT INTO register_days AS d (operator, currency, day, purchases, bought_minor, stages, staked_minor,
    returned_minor, ends, final_balance_minor) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (operator, day, currency) DO UPDATE SET purchases = d.purchases + excluded.purchases,
    bought_minor = d.bought_minor + excluded.bought_minor, stages = d.stages + excluded.stages,
    staked_minor = d.staked_minor + excluded.staked_minor,
    returned_minor = d.returned_minor + excluded.returned_minor, ends = d.ends + excluded.ends,
    final_balance_minor = d.final_balance_minor + excluded.final_balance_minor
"""
DROP_TOKEN: Final = "DELETE FROM session_tokens WHERE session_id = ?"  # noqa: S105 - SQL
RECORD_SQL: Final[dict[type, str]] = {
    VoidProposal: "INSERT OR REPLACE INTO voids (round_id, reason, party, time_ms) VALUES (?, ?, ?, ?)",
    VoidProposalEnd: "DELETE FROM voids WHERE round_id = ?",
    SwitchOff: "INSERT OR REPLACE INTO switches (scope, subject, reason, party, time_ms) VALUES (?, ?, ?, ?, ?)",
    SwitchOn: "DELETE FROM switches WHERE scope = ? AND subject = ?",
    LatchSet: "INSERT OR IGNORE INTO latches (node, guard, code, time_ms) VALUES (?, ?, ?, ?)",
    LatchCleared: "DELETE FROM latches WHERE node = ? AND guard = ?",
    PartyOn: "INSERT OR IGNORE INTO parties (party, role, jurisdiction, added_ms) VALUES (?, ?, ?, ?)",
    CertificateOn: (
        "INSERT INTO certificates (fingerprint, added_ms, party, last_ms) SELECT ?1, ?2, party, ?6 FROM parties"
        " WHERE party = ?3 AND role = ?4 AND jurisdiction = ?5"
    ),
    CertificateOff: """
        UPDATE certificates SET removed_ms = ?1 WHERE fingerprint = ?2 AND removed_ms IS NULL AND (
        NOT EXISTS (SELECT 1 FROM parties p WHERE p.party = certificates.party AND p.role = 'admin')
        OR EXISTS (SELECT 1 FROM certificates c JOIN parties p ON p.party = c.party
        WHERE p.role = 'admin' AND c.fingerprint <> ?2 AND c.removed_ms IS NULL AND c.last_ms > ?1))
    """,
    AllowListChanged: "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'parties'",
    MetaSet: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
    LargeWin: "INSERT INTO large_wins (round_id, session_id, won_minor, end_ms) VALUES (?, ?, ?, ?)",
    LargeWinTold: "DELETE FROM large_wins WHERE round_id = ?",
    DayAligned: "UPDATE register_days SET aligned = ? WHERE operator = ? AND day = ? AND currency = ?",
    ReportsHeld: "INSERT OR IGNORE INTO held_reports (kind, subject, reason, since_ms) VALUES (?, ?, ?, ?)",
    ReportsReleased: "DELETE FROM held_reports WHERE kind = ? AND subject = ?",
    TokenKept: "INSERT INTO session_tokens (session_id, sealed) VALUES (?, ?)",
    TokenDropped: DROP_TOKEN,
    **CLOSE_OUT_SQL,
    BalanceTold: (
        "UPDATE sessions SET wallet_balance_minor = ?, wallet_credited_minor = ?, wallet_balance_ms = ?"
        " WHERE session_id = ?"
    ),
    **ERASE_SQL,
    **RETURNS_SQL,
}
"""How the records of admins are written; the fields of a record are its parameters, in order."""
ONE_ROW: Final = (CertificateOn, CertificateOff, LargeWinTold, *RETURNS_ONE_ROW)
"""Records that change exactly one row, or nothing of their commit takes effect."""

Row = Sequence[Any]


def _session_state(session: Session, link_no: int, link_hash: str) -> tuple[Any, ...]:
    money = session.participation
    return (
        session.status.value, session.last_ms, session.version, session.close_ms, session.regulator_session_id,
        int(session.test_register), session.participation_id, session.regulator_participation_id, money.bought_minor,
        money.staked_minor, money.returned_minor, money.paid_out_minor, int(money.ended), session.purchase_no,
        session.stage_no, session.rounds, session.open_round_id, session.last_start_ms, session.code_count,
        session.pending_affair, link_no, link_hash,
        session.session_id,
    )  # fmt: skip


def session_insert(session: Session, link_no: int, link_hash: str) -> tuple[Any, ...]:
    """Parameters of INSERT_SESSION, with the newest link as just signed."""
    return (
        *_session_state(session, link_no, link_hash), session.operator, session.player, session.operator_reference,
        session.ruleset_id, session.jurisdiction_id, session.currency, session.open_ms, session.limits.loss_minor,
        session.limits.stake_minor, session.limits.duration_ms, session.funding.value,
    )  # fmt: skip


def session_update(session: Session, link_no: int, link_hash: str) -> tuple[Any, ...]:
    """Parameters of UPDATE_SESSION, with the newest link as just signed."""
    return _session_state(session, link_no, link_hash)


def session_from(row: Row) -> Session:
    """The session of a row of SELECT_SESSION."""
    return Session(
        session_id=row[0],
        operator=row[1],
        player=row[2],
        operator_reference=row[3],
        ruleset_id=row[4],
        jurisdiction_id=row[5],
        currency=row[6],
        open_ms=row[7],
        status=SessionStatus(row[8]),
        last_ms=row[9],
        version=row[10],
        close_ms=row[11],
        regulator_session_id=row[12],
        test_register=bool(row[13]),
        participation_id=row[14],
        regulator_participation_id=row[15],
        participation=Participation(row[16], row[17], row[18], row[19], bool(row[20])),
        purchase_no=row[21],
        stage_no=row[22],
        rounds=row[23],
        open_round_id=row[24],
        last_start_ms=row[25],
        code_count=row[26],
        pending_affair=row[27],
        limits=SessionLimits(row[28], row[29], row[30]),
        funding=Funding(row[31]),
        link_no=row[32],
        link_hash=row[33],
        wallet_balance_minor=row[34],
        wallet_credited_minor=row[35],
        wallet_balance_ms=row[36],
    )


def _actions_text(actions: Sequence[TakenAction]) -> str:
    return json.dumps(
        [[a.phase, a.action, a.amount_minor, a.time_ms, a.by, a.party, a.request_digest] for a in actions],
        separators=(",", ":"),
    )


def round_insert(round_: Round, opening_hash: str) -> tuple[Any, ...]:
    """Parameters of INSERT_ROUND, with the hash of the opening as just signed."""
    return (
        round_.round_id, round_.session_id, round_.operator, round_.player, round_.ruleset_id, round_.stage_no,
        round_.seat_no, round_.game_code, round_.instance, round_.draw_no, round_.deal, round_.commitment,
        json.dumps(round_.bets, separators=(",", ":")), round_.balance_before_minor, round_.start_ms, opening_hash,
        round_.sealed, round_.status.value, round_.version, _actions_text(round_.actions), round_.end_ms,
        round_.staked_minor, round_.returned_minor, round_.funds_minor, round_.malfunction, round_.malfunction_code,
    )  # fmt: skip


def round_update(round_: Round) -> tuple[Any, ...]:
    """Parameters of UPDATE_ROUND; the row must stand one version below."""
    return (
        round_.sealed, round_.status.value, round_.version, _actions_text(round_.actions), round_.end_ms,
        round_.staked_minor, round_.returned_minor, round_.malfunction, round_.malfunction_code, round_.round_id,
        round_.seat_no, round_.version - 1,
    )  # fmt: skip


def session_update_within(row: Row) -> tuple[Any, ...]:
    """Parameters of UPDATE_SESSION_WITHIN from those of UPDATE_SESSION."""
    return (*row[1:], row[0])


def round_update_within(row: Row) -> tuple[Any, ...]:
    """Parameters of UPDATE_ROUND_WITHIN from those of UPDATE_ROUND."""
    return (row[0], *row[2:4], *row[5:])


def round_from(row: Row) -> Round:
    """The round of a row of SELECT_ROUND."""
    return Round(
        round_id=row[0],
        session_id=row[1],
        operator=row[2],
        player=row[3],
        ruleset_id=row[4],
        stage_no=row[5],
        seat_no=row[6],
        game_code=row[7],
        instance=row[8],
        draw_no=row[9],
        deal=row[10],
        commitment=row[11],
        bets=tuple((bet, amount) for bet, amount in json.loads(row[12])),
        balance_before_minor=row[13],
        start_ms=row[14],
        opening_hash=row[15],
        sealed=row[16],
        status=RoundStatus(row[17]),
        version=row[18],
        actions=tuple(TakenAction(*taken) for taken in json.loads(row[19])),
        end_ms=row[20],
        staked_minor=row[21],
        returned_minor=row[22],
        funds_minor=row[23],
        malfunction=row[24],
        malfunction_code=row[25],
    )


def affair_insert(affair: Affair) -> tuple[Any, ...]:
    """Parameters of INSERT_AFFAIR."""
    return (
        affair.affair_id, affair.session_id, affair.kind, affair.status, affair.party, affair.method, affair.request_id,
        affair.digest, affair.amount_minor, affair.purchase_no, affair.created_ms,
        affair.detail, int(affair.stage), affair.attempts, affair.next_ms, affair.reason, affair.refusal,
    )  # fmt: skip


def report_insert(report: StageReport, final_hash: str) -> tuple[Any, ...]:
    """Parameters of INSERT_REPORT."""
    return (
        report.session_id, report.stage_no, report.regulator_session_id, report.regulator_participation_id,
        report.available_minor, report.staked_minor, report.returned_minor, report.opening_hash, report.end_ms,
        final_hash,
    )  # fmt: skip


def day_row(count: DayCount) -> tuple[Any, ...]:
    """Parameters of INSERT_DAY."""
    return astuple(count)


def totals_row(round_: Round, currency: str) -> tuple[Any, ...]:
    """Parameters of INSERT_TOTALS for a round that ends."""
    key = (format_date(round_.end_ms), round_.operator, round_.player, round_.ruleset_id, currency)
    if round_.status is RoundStatus.VOID:
        return (*key, 0, 0, 0, 1, round_.staked_minor)
    return (*key, 1, round_.staked_minor, round_.returned_minor, 0, 0)
