"""The SQL of reconciliation, for duckdb: tables, loading, and the joins by id that leave only what does not agree.

Everything is bound, nothing is put together; every result that is read has an ORDER BY. Table names follow
`rgs.core.reconcile`: transfers, seats and sessions are the record's, wallet and receipts the operator's, r_… the
regulator's.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final, get_type_hints

from rgs.core.reconcile import facts

FOLDERS: Final = "SET VARIABLE folders = ?"
FILES: Final = "SET VARIABLE files = ?"
LIMITS: Final = (
    "SET allowed_directories = getvariable('folders')",
    "SET allowed_paths = getvariable('files')",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)

_TYPES: Final = {str: "VARCHAR", int: "BIGINT", int | None: "BIGINT", bool: "BOOLEAN"}


def _columns(kind: type, *, but: tuple[str, ...] = ()) -> dict[str, str]:
    """Name and type of the columns that hold a dataclass, except some of its fields."""
    hints = get_type_hints(kind)
    return {field.name: _TYPES[hints[field.name]] for field in fields(kind) if field.name not in but}


_JOINED: Final = ("currency", "is_session_known")
"""Fields that a query adds from other tables."""
COLUMNS: Final[dict[str, dict[str, str]]] = {
    "transfers": _columns(facts.SignedTransfer),
    "seats": _columns(facts.SeatFact),
    "sessions": _columns(facts.SessionFact),
    "play_money": {"session_id": "VARCHAR"},
    "wallet": _columns(facts.WalletRow),
    "receipts": _columns(facts.ReceiptRow, but=_JOINED),
    "r_sessions": _columns(facts.RegulatorSessionRow, but=("closes", "closed_ms")),
    "r_purchases": _columns(facts.Ticket, but=_JOINED),
    "r_stages": _columns(facts.Stage, but=_JOINED),
    "r_ends": _columns(facts.RegulatorEnd),
    "r_closes": {"regulator_session_id": "VARCHAR", "time_ms": "BIGINT"},
    "r_totals": {
        "date": "VARCHAR",
        "operator": "VARCHAR",
        "currency": "VARCHAR",
        "rounds": "BIGINT",
        "bought_minor": "BIGINT",
        "staked_minor": "BIGINT",
        "returned_minor": "BIGINT",
        "paid_out_minor": "BIGINT",
    },
    "breaks": {
        "priority": "BIGINT",
        "time_ms": "BIGINT",
        "subject": "VARCHAR",
        "break_id": "VARCHAR",
        "class": "VARCHAR",
        "document": "VARCHAR",
    },
    "earlier": {"break_id": "VARCHAR", "class": "VARCHAR", "subject": "VARCHAR"},
    "money": {"key": "VARCHAR"},
    "rounds": {"participation": "VARCHAR", "round_no": "BIGINT"},
    "opened": {"session_id": "VARCHAR", "round_no": "BIGINT"},
}
"""The columns of every table that is made at the start, in the order in which files of rows have them."""
LINE_MAX: Final = {"breaks": "max_line_size = 16777216, "}
"""A break holds a whole document; lines of other tables are within duckdb's own limit."""


def _table(name: str) -> str:
    columns = [column + " " + kind for column, kind in COLUMNS[name].items()]
    return "CREATE TABLE " + name + " (" + ", ".join(columns) + ")"


def _load(name: str) -> str:
    """The statement that takes in a file of rows: tab-separated, without quotes."""
    columns = ", ".join(f"'{column}': '{kind}'" for column, kind in COLUMNS[name].items())
    return "".join(
        [
            *("INSERT INTO ", name, " SELECT * FROM read_csv(?, auto_detect = false, header = false, delim = chr(9), "),
            *("quote = '', escape = '', nullstr = '\\N', ", LINE_MAX.get(name, ""), "columns = {", columns, "})"),
        ]
    )


TABLES: Final = tuple(map(_table, COLUMNS))
LOAD: Final = {name: _load(name) for name in COLUMNS}

# --- the plain wallet file, without a mapping: read and checked by duckdb; one doubtful row and the strict reader takes
# over. Column names are bound by the header, which has been checked. ---

PLAIN_CSV: Final = """CREATE TABLE plain AS SELECT transaction_id, kind, player, currency,
    CASE WHEN regexp_full_match(amount_minor, '0|[1-9][0-9]{0,17}') THEN TRY_CAST(amount_minor AS BIGINT) END
        AS amount_minor,
    CASE WHEN strftime(TRY_CAST(time[:23] AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%gZ') = time
        THEN epoch_ms(TRY_CAST(time[:23] AS TIMESTAMP)) END AS time_ms,
    reference, status, CASE WHEN balance_after_minor = '' THEN -1
        WHEN regexp_full_match(balance_after_minor, '0|[1-9][0-9]{0,17}')
        THEN TRY_CAST(balance_after_minor AS BIGINT) END AS balance_after_minor, operator, book
    FROM read_csv(?, auto_detect = false, header = true, delim = ',', quote = '', escape = '', nullstr = '\\N',
        strict_mode = true, columns = {'transaction_id': 'VARCHAR', 'kind': 'VARCHAR', 'player': 'VARCHAR',
        'currency': 'VARCHAR', 'amount_minor': 'VARCHAR', 'time': 'VARCHAR', 'reference': 'VARCHAR',
        'status': 'VARCHAR', 'balance_after_minor': 'VARCHAR', 'operator': 'VARCHAR', 'book': 'VARCHAR'})"""
PLAIN_PARQUET: Final = """CREATE TABLE plain AS SELECT transaction_id, kind, player, currency, amount_minor,
    CASE WHEN strftime(TRY_CAST(time[:23] AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%gZ') = time
        THEN epoch_ms(TRY_CAST(time[:23] AS TIMESTAMP)) END AS time_ms,
    reference, status, CASE WHEN balance_after_minor IS NULL THEN -1
        WHEN balance_after_minor BETWEEN 0 AND 999999999999999999 THEN balance_after_minor END AS balance_after_minor,
    operator, book FROM read_parquet(?)"""
PLAIN_DOUBTFUL: Final = """SELECT count(*) FROM plain WHERE NOT coalesce(
    transaction_id <> '' AND length(transaction_id) <= 256 AND length(player) <= 256 AND length(reference) <= 256
    AND length(operator) <= 256 AND length(book) <= 256
    AND regexp_full_match(concat(transaction_id, player, reference, operator, book), '[!-~]+')
    AND kind IN ('debit', 'credit', 'rollback') AND status IN ('accepted', 'refused', 'pending', 'tombstone')
    AND regexp_full_match(currency, '[A-Z]{3}') AND amount_minor BETWEEN 0 AND 999999999999999999 AND time_ms >= 0
    AND balance_after_minor >= -1, false)"""
PLAIN_COUNT: Final = "SELECT count(*) FROM plain"
PLAIN_TAKE: Final = (
    "DROP TABLE wallet",
    "ALTER TABLE plain RENAME TO wallet",
)
PLAIN_DROP: Final = "DROP TABLE IF EXISTS plain"
PARQUET_SCHEMA: Final = "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet(?)) ORDER BY 1"
PARQUET_ROWS: Final = "SELECT * FROM read_parquet(?, file_row_number = true) ORDER BY file_row_number"
ATTACH_TRANSFERS: Final = ("DROP TABLE transfers", "CREATE TABLE transfers AS SELECT * FROM read_parquet(?)")

# --- one operator of several: what is another's by its own word goes, unless the record has it as this one's; what
# names no operator stays ---

ONE_OPERATOR: Final = (
    """DELETE FROM wallet WHERE operator NOT IN ('', ?)
        AND transaction_id NOT IN (SELECT transaction_id FROM transfers)""",
    """CREATE TABLE others AS SELECT regulator_session_id FROM r_sessions WHERE operator NOT IN ('', ?)
        AND regulator_session_id NOT IN (SELECT regulator_session_id FROM sessions) ORDER BY regulator_session_id""",
    "DELETE FROM r_totals WHERE operator NOT IN ('', ?)",
)
WITHOUT_OTHERS: Final = tuple(
    "DELETE FROM " + table + " WHERE regulator_session_id IN (SELECT regulator_session_id FROM others)"  # noqa: S608
    for table in ("r_sessions", "r_purchases", "r_stages", "r_ends", "r_closes")
)

# --- money: which ids do not agree in plain ---

MONEY_JOIN: Final = """CREATE TABLE joined AS
    SELECT CASE WHEN l.transaction_id = w.transaction_id AND l.kind = w.kind AND l.amount_minor = w.amount_minor
        AND (l.currency = w.currency OR l.currency = '') AND (l.player = w.player OR l.player = '' OR w.player = '')
        AND w.status = 'accepted' AND l.is_sound
        AND (l.operator = w.operator OR l.operator = '' OR w.operator = '')
        AND (w.reference = '' OR w.reference = l.reference
            OR (l.source IN ('transfer', 'free_bet') AND w.reference = l.session_id))
        AND w.time_ms BETWEEN l.begun_ms - $clock_limit_ms AND l.time_ms + $clock_limit_ms
        AND (l.time_ms >= $from_ms AND l.time_ms < $to_ms) = (w.time_ms >= $from_ms AND w.time_ms < $to_ms)
        THEN NULL ELSE coalesce(l.transaction_id, w.transaction_id) END AS key, count(*) AS n
    FROM transfers l FULL JOIN wallet w ON l.transaction_id = w.transaction_id GROUP BY 1"""
MONEY_TAKE: Final = "INSERT INTO money SELECT key FROM joined WHERE key IS NOT NULL"
MONEY_COUNTS: Final = """SELECT (SELECT coalesce(sum(n), 0) FROM joined WHERE key IS NULL),
    (SELECT count(*) FROM transfers WHERE transaction_id NOT IN (SELECT key FROM money)),
    (SELECT count(*) FROM wallet WHERE transaction_id NOT IN (SELECT key FROM money))"""
MONEY_REPEATED: Final = """INSERT INTO money SELECT transaction_id FROM wallet GROUP BY transaction_id
    HAVING count(*) > 1 UNION SELECT transaction_id FROM transfers GROUP BY transaction_id
    HAVING count(*) > 1"""
TRANSFERS_ALL: Final = (
    "INSERT INTO money SELECT transaction_id FROM transfers GROUP BY transaction_id HAVING count(*) > 1"
)
TICKETS: Final = """CREATE TABLE tickets AS SELECT coalesce(l.transaction_id, nullif(p.transaction_id, ''),
    'participation ' || p.regulator_participation_id || ' purchase ' || p.purchase_no) AS key, p.*,
    coalesce((SELECT min(r.currency) FROM r_sessions r WHERE r.regulator_session_id = p.regulator_session_id), '')
        AS currency,
    (NOT $is_regulator OR p.regulator_session_id IN (SELECT regulator_session_id FROM sessions)) AS is_known
    FROM r_purchases p LEFT JOIN (SELECT regulator_participation_id, purchase_no, min(transaction_id) AS transaction_id
        FROM transfers WHERE source = 'purchase' GROUP BY 1, 2) l
    ON l.regulator_participation_id = p.regulator_participation_id AND l.purchase_no = p.purchase_no"""
TICKETS_TAKE: Final = """INSERT INTO money SELECT coalesce(l.transaction_id, t.key)
    FROM (SELECT * FROM transfers WHERE source = 'purchase') l FULL JOIN tickets t ON l.transaction_id = t.key
    WHERE l.transaction_id IS NULL OR t.key IS NULL OR l.amount_minor <> t.amount_minor
        OR (l.player <> t.player AND l.player <> '' AND t.player <> '')
        OR (l.regulator_session_id <> t.regulator_session_id AND l.regulator_session_id <> '')
        OR (l.regulator_participation_id <> t.regulator_participation_id AND l.regulator_participation_id <> '')
        OR (l.transaction_id <> t.transaction_id AND t.transaction_id <> '') OR l.purchase_no <> t.purchase_no
        OR t.time_ms NOT BETWEEN l.begun_ms - $clock_limit_ms AND l.time_ms + $clock_limit_ms
    UNION SELECT key FROM tickets GROUP BY key HAVING count(*) > 1"""

SELECT_TRANSFERS: Final = """SELECT transaction_id, l.* FROM transfers l WHERE transaction_id IN (SELECT key FROM money)
    ORDER BY transaction_id, time_ms, statement"""
SELECT_WALLET: Final = """SELECT transaction_id, w.* FROM wallet w WHERE transaction_id IN (SELECT key FROM money)
    ORDER BY transaction_id, time_ms, kind DESC, amount_minor, player, currency, status, reference"""
SELECT_TICKETS: Final = """SELECT key, regulator_session_id, regulator_participation_id, purchase_no, player,
    amount_minor, transaction_id, time_ms, currency, is_known FROM tickets WHERE key IN (SELECT key FROM money)
        AND regulator_session_id NOT IN (SELECT regulator_session_id FROM unknown)
    ORDER BY key, time_ms, regulator_participation_id, purchase_no, amount_minor"""
UNKNOWN_SESSIONS: Final = """CREATE TABLE unknown AS SELECT DISTINCT s.regulator_session_id FROM sessions s
    WHERE $is_regulator AND s.regulator_session_id <> '' AND s.is_whole
        AND s.regulator_session_id NOT IN (SELECT regulator_session_id FROM r_sessions)"""

# --- rounds, receipts, sessions ---

ROUNDS_TAKE: Final = """INSERT INTO rounds
    SELECT coalesce(s.regulator_participation_id, r.regulator_participation_id), coalesce(s.round_no, r.round_no)
    FROM (SELECT * FROM seats WHERE regulator_participation_id <> '') s FULL JOIN r_stages r
        ON s.regulator_participation_id = r.regulator_participation_id AND s.round_no = r.round_no
    WHERE (s.round_no IS NULL OR r.round_no IS NULL OR s.opening <> r.opening OR s.final <> r.final
        OR s.available_minor <> r.available_minor OR s.staked_minor <> r.staked_minor
        OR s.returned_minor <> r.returned_minor OR s.regulator_session_id <> r.regulator_session_id
        OR r.time_ms < s.ended_ms - $clock_limit_ms) AND NOT (r.round_no IS NULL AND s.status = 'open')
    UNION SELECT regulator_participation_id, round_no FROM r_stages GROUP BY 1, 2 HAVING count(*) > 1"""
SELECT_ROUND_SEATS: Final = """SELECT (regulator_participation_id, s.round_no), s.* FROM seats s
    WHERE (regulator_participation_id, s.round_no) IN (SELECT (participation, round_no) FROM rounds)
        AND regulator_session_id NOT IN (SELECT regulator_session_id FROM unknown)
    ORDER BY regulator_participation_id, s.round_no, session_id"""
SELECT_STAGES: Final = """SELECT (regulator_participation_id, r.round_no), r.*,
        coalesce((SELECT min(k.currency) FROM r_sessions k WHERE k.regulator_session_id = r.regulator_session_id), ''),
        r.regulator_session_id IN (SELECT regulator_session_id FROM sessions) AS is_known
    FROM r_stages r WHERE (regulator_participation_id, r.round_no) IN (SELECT (participation, round_no) FROM rounds)
        AND regulator_session_id NOT IN (SELECT regulator_session_id FROM unknown)
    ORDER BY regulator_participation_id, r.round_no, time_ms, opening, final, staked_minor, returned_minor"""
RECEIPTS_OF_PLAY_MONEY: Final = "DELETE FROM receipts WHERE session_id IN (SELECT session_id FROM play_money)"
RECEIPTS_TAKE: Final = """INSERT INTO opened
    SELECT coalesce(s.session_id, r.session_id), coalesce(s.round_no, r.round_no)
    FROM seats s FULL JOIN receipts r ON s.session_id = r.session_id AND s.round_no = r.round_no
    WHERE s.session_id IS NULL OR r.session_id IS NULL OR s.opening <> r.opening GROUP BY 1, 2"""
SELECT_OPENED_SEATS: Final = """SELECT (session_id, round_no), s.* FROM seats s
    WHERE (session_id, round_no) IN (SELECT (session_id, round_no) FROM opened) ORDER BY session_id, round_no"""
SELECT_RECEIPTS: Final = """SELECT (session_id, round_no), r.*,
        session_id IN (SELECT session_id FROM sessions) AS is_known FROM receipts r
    WHERE (session_id, round_no) IN (SELECT (session_id, round_no) FROM opened)
    ORDER BY session_id, round_no, time_ms, opening"""
SELECT_OPEN_SEATS: Final = "SELECT * FROM seats WHERE status = 'open' ORDER BY session_id, round_no"
SELECT_SESSIONS: Final = """SELECT regulator_session_id, s.* FROM sessions s WHERE regulator_session_id <> ''
    ORDER BY regulator_session_id, session_id"""
SELECT_REGULATOR_SESSIONS: Final = """SELECT r.regulator_session_id, r.regulator_session_id, r.reference, r.operator,
        r.currency, r.opened_ms, r.ruleset, r.test_regulator, coalesce(c.n, 0), coalesce(c.time_ms, 0)
    FROM r_sessions r LEFT JOIN (SELECT regulator_session_id, count(*) AS n, min(time_ms) AS time_ms FROM r_closes
        GROUP BY 1) c ON c.regulator_session_id = r.regulator_session_id
    ORDER BY r.regulator_session_id, r.opened_ms, r.reference"""
SELECT_REGULATOR_ENDS: Final = """SELECT regulator_session_id, regulator_session_id, regulator_participation_id, rounds,
    final_balance_minor, time_ms FROM r_ends
    ORDER BY regulator_session_id, regulator_participation_id, time_ms, final_balance_minor, rounds"""
SELECT_ENDED: Final = "SELECT * FROM sessions WHERE ended_ms > 0 ORDER BY session_id"

# --- what has no id of its own, for its private block is gone: found by the participation or session that it names ---

HAS_NAMELESS: Final = """SELECT EXISTS (SELECT 1 FROM transfers WHERE transaction_id = '')
    OR EXISTS (SELECT 1 FROM sessions WHERE regulator_session_id = '' AND is_whole)"""
NAME_TRANSFERS: Final = """UPDATE transfers SET transaction_id = f.transaction_id FROM (
    SELECT l.statement, w.transaction_id
    FROM (SELECT statement, participation_id AS reference, kind, CASE WHEN $exactly THEN amount_minor END AS amount,
            row_number() OVER (PARTITION BY participation_id, kind, amount ORDER BY time_ms, statement) AS n
        FROM transfers WHERE transaction_id = '' AND participation_id <> '') l
    JOIN (SELECT transaction_id, reference, kind, CASE WHEN $exactly THEN amount_minor END AS amount,
            row_number() OVER (PARTITION BY reference, kind, amount ORDER BY time_ms, transaction_id) AS n
        FROM wallet WHERE status = 'accepted' AND kind <> 'rollback'
            AND transaction_id NOT IN (SELECT transaction_id FROM transfers)
            AND transaction_id NOT IN (SELECT transaction_id FROM wallet WHERE kind = 'rollback')
            AND reference IN (SELECT participation_id FROM transfers WHERE transaction_id = '')) w
    ON l.reference = w.reference AND l.kind = w.kind AND l.n = w.n AND l.amount IS NOT DISTINCT FROM w.amount) f
    WHERE transfers.statement = f.statement"""
NAME_SESSIONS: Final = (
    """UPDATE sessions SET regulator_session_id = r.id FROM (SELECT reference, min(regulator_session_id) AS id
        FROM r_sessions WHERE reference <> '' GROUP BY reference HAVING count(*) = 1) r
        WHERE sessions.regulator_session_id = '' AND sessions.session_id = r.reference""",
    """UPDATE sessions SET regulator_participation_id = p.id FROM (SELECT regulator_session_id,
            min(regulator_participation_id) AS id FROM r_purchases GROUP BY 1
            HAVING count(DISTINCT regulator_participation_id) = 1) p
        WHERE sessions.regulator_participation_id = '' AND sessions.participation_id <> ''
            AND sessions.regulator_session_id = p.regulator_session_id""",
    """UPDATE seats SET regulator_session_id = s.regulator_session_id,
        regulator_participation_id = s.regulator_participation_id FROM sessions s WHERE seats.session_id = s.session_id
        AND (seats.regulator_session_id = '' OR seats.regulator_participation_id = '')""",
    """UPDATE transfers SET regulator_session_id = s.regulator_session_id,
        regulator_participation_id = s.regulator_participation_id FROM sessions s
        WHERE transfers.session_id = s.session_id
        AND (transfers.regulator_session_id = '' OR transfers.regulator_participation_id = '')""",
)
NAME_PURCHASES: Final = """UPDATE transfers SET transaction_id = p.transaction_id
    FROM (SELECT regulator_participation_id, purchase_no, min(transaction_id) AS transaction_id FROM r_purchases
        WHERE transaction_id <> '' AND regulator_participation_id <> '' GROUP BY 1, 2) p
    WHERE transfers.transaction_id = '' AND transfers.source = 'purchase' AND transfers.purchase_no = p.purchase_no
        AND transfers.regulator_participation_id = p.regulator_participation_id"""
STILL_NAMELESS: Final = """SELECT statement, '' FROM transfers WHERE transaction_id = ''
    UNION ALL SELECT '', session_id FROM sessions WHERE regulator_session_id = '' ORDER BY 1, 2"""
SET_ASIDE: Final = "DELETE FROM transfers WHERE transaction_id = ''"
STAND_IN: Final = "UPDATE transfers SET transaction_id = 'statement ' || statement WHERE transaction_id = ''"

# --- balances: accounts in which some balance is not what another row begins from. In a chain of rows the balances
# before and those after are the same but for the first and the last; which row it is, Python finds. ---

REPORTS_BALANCES: Final = "SELECT EXISTS (SELECT 1 FROM wallet WHERE balance_after_minor >= 0)"
ACCOUNTS: Final = """CREATE TABLE accounts AS SELECT player, currency
    FROM (SELECT player, currency, time_ms, balance_after_minor AS after, balance_after_minor
            - CASE WHEN status <> 'accepted' THEN 0 WHEN kind = 'debit' THEN -amount_minor ELSE amount_minor END
            AS before
        FROM wallet WHERE status <> 'pending' AND player <> '')
    GROUP BY 1, 2 HAVING count(*) > 1 AND max(after) >= 0 AND (min(coalesce(after, -1)) < 0
        OR sum(hash(after)) - sum(hash(before)) <> hash(arg_max(after, time_ms))::HUGEINT
            - hash(arg_min(before, time_ms))::HUGEINT)"""
SELECT_ACCOUNTS: Final = """SELECT (player, currency), transaction_id, kind, player, currency, amount_minor, at_ms,
        reference, status, CASE WHEN balance_after_minor >= 0 THEN balance_after_minor END, operator, book, is_doubtful
    FROM (SELECT w.*, m.key IS NOT NULL AS is_doubtful, CASE WHEN m.key IS NULL THEN w.time_ms
            ELSE coalesce(l.time_ms, w.time_ms) END AS at_ms
        FROM wallet w LEFT JOIN (SELECT DISTINCT key FROM money) m ON m.key = w.transaction_id
        LEFT JOIN (SELECT transaction_id, min(time_ms) AS time_ms FROM transfers GROUP BY 1) l
            ON l.transaction_id = w.transaction_id
        WHERE w.status <> 'pending' AND (w.player, w.currency) IN (SELECT (player, currency) FROM accounts))
    ORDER BY player, currency, at_ms, transaction_id, kind, amount_minor, status"""
"""A row that is doubtful stands where the record has it, for its time may be what is wrong."""

# --- totals ---

TOTALS: Final = """
    SELECT day, operator, currency, game, 'statements' AS source, sum(rounds), sum(bought), sum(paid_out), sum(staked),
        sum(returned)
    FROM (SELECT time_ms // 86400000 AS day, operator, currency, game, 0 AS rounds,
            sum(CASE kind WHEN 'debit' THEN amount_minor WHEN 'rollback' THEN -amount_minor ELSE 0 END) AS bought,
            sum(CASE kind WHEN 'credit' THEN amount_minor ELSE 0 END) AS paid_out, 0 AS staked, 0 AS returned
        FROM transfers WHERE is_sound AND time_ms >= $from_ms AND time_ms < $to_ms GROUP BY 1, 2, 3, 4
        UNION ALL SELECT ended_ms // 86400000, operator, currency, game, count(*), 0, 0, sum(staked_minor),
            sum(returned_minor)
        FROM seats WHERE is_sound AND status <> 'open' AND ended_ms >= $from_ms AND ended_ms < $to_ms
        GROUP BY 1, 2, 3, 4) GROUP BY 1, 2, 3, 4
    UNION ALL SELECT time_ms // 86400000, operator, currency, '', 'wallet', 0,
        sum(CASE kind WHEN 'debit' THEN amount_minor WHEN 'rollback' THEN -amount_minor ELSE 0 END),
        sum(CASE kind WHEN 'credit' THEN amount_minor ELSE 0 END), 0, 0
    FROM wallet WHERE status = 'accepted' AND time_ms >= $from_ms AND time_ms < $to_ms GROUP BY 1, 2, 3
    UNION ALL SELECT day, coalesce(s.operator, ''), coalesce(s.currency, ''), coalesce(s.ruleset, ''), 'regulator',
        sum(rounds), sum(bought), sum(paid_out), sum(staked), sum(returned)
    FROM (SELECT regulator_session_id, time_ms // 86400000 AS day, 0 AS rounds, amount_minor AS bought, 0 AS paid_out,
            0 AS staked, 0 AS returned FROM r_purchases WHERE time_ms >= $from_ms AND time_ms < $to_ms
        UNION ALL SELECT regulator_session_id, time_ms // 86400000, 0, 0, final_balance_minor, 0, 0 FROM r_ends
            WHERE time_ms >= $from_ms AND time_ms < $to_ms
        UNION ALL SELECT regulator_session_id, time_ms // 86400000, 1, 0, 0, staked_minor, returned_minor
            FROM r_stages WHERE time_ms >= $from_ms AND time_ms < $to_ms) x
    LEFT JOIN (SELECT regulator_session_id, min(operator) AS operator, min(currency) AS currency,
        min(ruleset) AS ruleset FROM r_sessions GROUP BY 1) s USING (regulator_session_id) GROUP BY 1, 2, 3, 4
    ORDER BY 1, 2, 3, 4, 5"""
DECLARED: Final = "SELECT * FROM r_totals ORDER BY date, operator, currency, rounds, bought_minor, staked_minor"

# --- participations: the identity in each source ---

PARTICIPATIONS: Final = """CREATE TABLE participations AS
    SELECT s.participation_id, s.session_id, s.operator, s.currency, s.game, s.bought_minor, s.staked_minor,
        s.returned_minor, s.paid_out_minor, s.ended_ms > 0 AS is_ended,
        w.debited AS wallet_debited_minor, w.credited AS wallet_credited_minor,
        p.bought AS regulator_bought_minor, g.staked AS regulator_staked_minor, g.returned AS regulator_returned_minor,
        e.balance AS regulator_final_minor
    FROM sessions s
    LEFT JOIN (SELECT reference,
            sum(CASE kind WHEN 'debit' THEN amount_minor WHEN 'rollback' THEN -amount_minor ELSE 0 END) AS debited,
            sum(CASE kind WHEN 'credit' THEN amount_minor ELSE 0 END) AS credited
        FROM wallet WHERE status = 'accepted' AND reference <> '' GROUP BY 1) w ON w.reference = s.participation_id
    LEFT JOIN (SELECT regulator_participation_id AS id, sum(amount_minor) AS bought FROM r_purchases GROUP BY 1) p
        ON p.id = s.regulator_participation_id
    LEFT JOIN (SELECT regulator_participation_id AS id, sum(staked_minor) AS staked, sum(returned_minor) AS returned
        FROM r_stages GROUP BY 1) g ON g.id = s.regulator_participation_id
    LEFT JOIN (SELECT regulator_participation_id AS id, min(final_balance_minor) AS balance FROM r_ends GROUP BY 1) e
        ON e.id = s.regulator_participation_id
    WHERE s.participation_id <> '' AND s.is_whole AND s.is_sound AND s.opened_ms >= $from_ms AND s.opened_ms < $to_ms"""
IDENTITY: Final = """SELECT count(*) FILTER (is_ended),
    count(*) FILTER (is_ended AND bought_minor - staked_minor + returned_minor = paid_out_minor),
    count(*) FILTER (is_ended AND wallet_debited_minor IS NOT NULL),
    count(*) FILTER (is_ended AND wallet_debited_minor = bought_minor AND wallet_credited_minor = paid_out_minor),
    count(*) FILTER (is_ended AND regulator_final_minor IS NOT NULL),
    count(*) FILTER (is_ended AND regulator_bought_minor - coalesce(regulator_staked_minor, 0)
        + coalesce(regulator_returned_minor, 0) = regulator_final_minor AND regulator_final_minor = paid_out_minor)
    FROM participations"""
PARTICIPATIONS_OUT: Final = """COPY (SELECT * FROM participations ORDER BY participation_id, session_id) TO ?
    (FORMAT csv, HEADER true)"""

# --- breaks ---

SELECT_BREAKS: Final = """SELECT document, break_id IN (SELECT break_id FROM earlier) FROM breaks
    ORDER BY priority, time_ms, subject, break_id"""
SELECT_GONE: Final = """SELECT class, subject, break_id FROM earlier
    WHERE break_id NOT IN (SELECT break_id FROM breaks) ORDER BY class, subject, break_id"""
COUNTS: Final = """SELECT (SELECT count(*) FROM transfers), (SELECT count(*) FROM seats),
    (SELECT count(*) FROM sessions),
    (SELECT count(*) FROM wallet), (SELECT count(*) FROM receipts), (SELECT count(*) FROM r_sessions),
    (SELECT count(*) FROM r_purchases), (SELECT count(*) FROM r_stages), (SELECT count(*) FROM r_ends),
    (SELECT count(*) FROM wallet WHERE book IN ('embedded', 'simulated')),
    (SELECT count(*) FROM r_sessions WHERE test_regulator)"""
SELECT_UNKNOWN: Final = "SELECT regulator_session_id FROM unknown ORDER BY 1"
TRANSFERS_OUT: Final = (
    "COPY (SELECT * FROM transfers ORDER BY transaction_id, time_ms, statement) TO ? (FORMAT parquet)"
)
