-- The schema of the main store from version 0.1.0 on (SQLite). Money in minor units, times in milliseconds since 1970, hashes as bytes.
-- Text keys stand in unique indexes beside an integer rowid: appends stay at the right edge of the tables.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE parties (
  party TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('operator', 'auditor', 'regulator', 'lab', 'admin')),
  jurisdiction TEXT NOT NULL DEFAULT '',
  added_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE certificates (
  fingerprint TEXT NOT NULL PRIMARY KEY,
  party TEXT NOT NULL REFERENCES parties (party),
  added_ms INTEGER NOT NULL,
  removed_ms INTEGER,
  last_ms INTEGER -- when it ends by itself
) WITHOUT ROWID;

CREATE TABLE instances (
  instance TEXT NOT NULL PRIMARY KEY,
  node TEXT NOT NULL,
  boot_no INTEGER NOT NULL,
  worker INTEGER NOT NULL,
  alive INTEGER NOT NULL,
  statement_no INTEGER NOT NULL,
  draw_no INTEGER NOT NULL,
  start_ms INTEGER NOT NULL,
  end_ms INTEGER NOT NULL DEFAULT 0,
  UNIQUE (node, boot_no, worker)
) WITHOUT ROWID;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  operator_reference TEXT NOT NULL,
  ruleset_id TEXT NOT NULL,
  jurisdiction_id TEXT NOT NULL,
  currency TEXT NOT NULL,
  open_ms INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'open', 'closed')),
  last_ms INTEGER NOT NULL,
  version INTEGER NOT NULL,
  close_ms INTEGER NOT NULL,
  regulator_session_id TEXT NOT NULL,
  test_regulator INTEGER NOT NULL,
  participation_id TEXT NOT NULL,
  regulator_participation_id TEXT NOT NULL,
  bought_minor INTEGER NOT NULL CHECK (bought_minor >= 0),
  staked_minor INTEGER NOT NULL CHECK (staked_minor >= 0),
  returned_minor INTEGER NOT NULL CHECK (returned_minor >= 0),
  paid_out_minor INTEGER NOT NULL CHECK (paid_out_minor >= 0),
  ended INTEGER NOT NULL,
  purchase_no INTEGER NOT NULL,
  round_no INTEGER NOT NULL,
  rounds INTEGER NOT NULL,
  open_round_id TEXT NOT NULL,
  last_start_ms INTEGER NOT NULL,
  code_count INTEGER NOT NULL,
  limit_loss_minor INTEGER NOT NULL,
  limit_stake_minor INTEGER NOT NULL,
  limit_duration_ms INTEGER NOT NULL,
  pending_operation TEXT NOT NULL,
  link_no INTEGER NOT NULL,
  link_hash TEXT NOT NULL,
  funding TEXT NOT NULL CHECK (funding IN ('participation', 'seamless')),
  -- Of a session that is funded bet by bet: what its wallet reported last, when, and what had been credited to it by
  -- then. Written beside the session's version, for it decides nothing; time 0: nothing was reported yet.
  wallet_balance_minor INTEGER NOT NULL DEFAULT 0,
  wallet_credited_minor INTEGER NOT NULL DEFAULT 0,
  wallet_balance_ms INTEGER NOT NULL DEFAULT 0,
  CHECK (bought_minor - staked_minor + returned_minor - paid_out_minor >= 0),
  CHECK (ended = 0 OR bought_minor - staked_minor + returned_minor = paid_out_minor)
);
CREATE INDEX sessions_by_operator ON sessions (operator, id);
CREATE INDEX sessions_by_player ON sessions (operator, player, id);
CREATE INDEX sessions_not_closed ON sessions (operator, id) WHERE status <> 'closed';
-- The sessions of one player that are not closed: found without passing by all that are.
CREATE INDEX sessions_not_closed_of ON sessions (operator, player, id) WHERE status <> 'closed';

CREATE TABLE rounds (
  id INTEGER PRIMARY KEY,
  round_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  ruleset_id TEXT NOT NULL,
  round_no INTEGER NOT NULL,
  seat_no INTEGER NOT NULL,
  game_code TEXT NOT NULL,
  instance TEXT NOT NULL,
  draw_no INTEGER NOT NULL,
  deal BLOB NOT NULL,
  commitment BLOB NOT NULL,
  bets TEXT NOT NULL,
  balance_before_minor INTEGER NOT NULL,
  start_ms INTEGER NOT NULL,
  opening_hash TEXT NOT NULL,
  sealed BLOB NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'settled', 'void')),
  version INTEGER NOT NULL,
  actions TEXT NOT NULL,
  end_ms INTEGER NOT NULL,
  staked_minor INTEGER NOT NULL,
  returned_minor INTEGER NOT NULL,
  funds_minor INTEGER NOT NULL,
  malfunction TEXT NOT NULL,
  malfunction_code TEXT NOT NULL,
  UNIQUE (round_id, seat_no),
  UNIQUE (session_id, round_no),
  UNIQUE (instance, draw_no, seat_no)
);
CREATE INDEX rounds_by_player_end ON rounds (operator, player, end_ms, id) WHERE end_ms > 0;
CREATE INDEX rounds_by_player_start ON rounds (operator, player, start_ms);
CREATE INDEX rounds_open ON rounds (id) WHERE status = 'open';
CREATE INDEX rounds_open_of ON rounds (operator, id) WHERE status = 'open';

CREATE TABLE statements (
  id INTEGER PRIMARY KEY,
  instance TEXT NOT NULL,
  statement_no INTEGER NOT NULL,
  kind TEXT NOT NULL,
  code TEXT NOT NULL, -- of events, empty for other kinds
  session_id TEXT NOT NULL,
  link_no INTEGER NOT NULL,
  round_id TEXT NOT NULL,
  seat_no INTEGER NOT NULL,
  hash BLOB NOT NULL,
  envelope BLOB NOT NULL,
  UNIQUE (instance, statement_no)
);
CREATE INDEX statements_events ON statements (id) WHERE kind = 'event';
CREATE INDEX statements_events_by_code ON statements (code, id) WHERE kind = 'event';
CREATE UNIQUE INDEX statements_by_session ON statements (session_id, link_no) WHERE link_no > 0;
CREATE UNIQUE INDEX statements_by_round ON statements (round_id, seat_no, kind) WHERE seat_no > 0;
CREATE INDEX statements_by_hash ON statements (hash);

CREATE TABLE privates (
  instance TEXT NOT NULL,
  statement_no INTEGER NOT NULL,
  private BLOB NOT NULL,
  PRIMARY KEY (instance, statement_no)
) WITHOUT ROWID;

CREATE TABLE answers (
  id INTEGER PRIMARY KEY,
  party TEXT NOT NULL,
  method TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest BLOB NOT NULL,
  body BLOB NOT NULL,
  instance TEXT NOT NULL,
  statement_no INTEGER NOT NULL,
  time_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX answers_by_request ON answers (request_id, method, party);

CREATE TABLE operations (
  operation_id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('open', 'purchase', 'end', 'close', 'start', 'act', 'credit')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'done', 'failed', 'undone')),
  party TEXT NOT NULL,
  method TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest BLOB NOT NULL,
  amount_minor INTEGER NOT NULL,
  purchase_no INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  detail TEXT NOT NULL, -- canonical JSON of what the request asked, where columns do not say it
  progress INTEGER NOT NULL, -- how far money is known to have moved (rgs.store.changes.OperationProgress)
  attempts INTEGER NOT NULL,
  next_ms INTEGER NOT NULL,
  reason TEXT NOT NULL,
  refusal TEXT NOT NULL DEFAULT '' -- of one that came to nothing (rgs.service.money.refusals)
) WITHOUT ROWID;
-- One operation at a time in a session; what it owes the player waits beside it.
CREATE UNIQUE INDEX operations_pending ON operations (session_id) WHERE status = 'pending' AND kind <> 'credit';
CREATE INDEX operations_in_order ON operations (operation_id) WHERE status = 'pending';
CREATE INDEX operations_credits ON operations (session_id, operation_id) WHERE status = 'pending' AND kind = 'credit';
CREATE INDEX pending_credits ON operations (operation_id) WHERE status = 'pending' AND kind IN ('end', 'credit');
CREATE UNIQUE INDEX operations_by_request ON operations (request_id, method, party) WHERE status IN ('pending', 'undone');
-- A request opens one session, for ever: `OpenSession` has no number by which a late repeat would be missed.
CREATE UNIQUE INDEX operations_opened ON operations (request_id, party) WHERE kind = 'open' AND status = 'done';

CREATE TABLE stage_reports (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: a row is deleted by its number
  session_id TEXT NOT NULL,
  stage_no INTEGER NOT NULL,
  regulator_session_id TEXT NOT NULL,
  regulator_participation_id TEXT NOT NULL,
  available_minor INTEGER NOT NULL,
  staked_minor INTEGER NOT NULL,
  returned_minor INTEGER NOT NULL,
  opening_hash TEXT NOT NULL,
  final_hash TEXT NOT NULL,
  end_ms INTEGER NOT NULL,
  UNIQUE (session_id, stage_no)
);

CREATE TABLE artifacts (
  sha256 TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  content BLOB NOT NULL
) WITHOUT ROWID;

-- Proposals to void a paused round, until they are approved or the round is resumed.
CREATE TABLE voids (
  round_id TEXT NOT NULL PRIMARY KEY,
  reason TEXT NOT NULL,
  party TEXT NOT NULL,
  time_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- What stands on "disabled": scope play, operator, game or player; the subject is empty, `operator`, `game`, `operator/player`.
CREATE TABLE switches (
  scope TEXT NOT NULL CHECK (scope IN ('play', 'operator', 'game', 'player')),
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  party TEXT NOT NULL,
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (scope, subject)
) WITHOUT ROWID;

-- Guards that stay closed over a restart until an admin clears them.
CREATE TABLE latches (
  node TEXT NOT NULL,
  guard TEXT NOT NULL,
  code TEXT NOT NULL,
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (node, guard)
) WITHOUT ROWID;

-- Running totals by day (UTC, of the rounds' end), kept in the commit that ends a round.
CREATE TABLE totals (
  day TEXT NOT NULL,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  game TEXT NOT NULL,
  currency TEXT NOT NULL,
  rounds INTEGER NOT NULL,
  staked_minor INTEGER NOT NULL,
  returned_minor INTEGER NOT NULL,
  void_rounds INTEGER NOT NULL,
  void_minor INTEGER NOT NULL,
  PRIMARY KEY (operator, day, player, game, currency)
) WITHOUT ROWID;
CREATE INDEX totals_by_day ON totals (day, operator, player, game, currency);
CREATE INDEX totals_by_player ON totals (operator, player, day, game, currency);

-- Large wins whose event is not signed yet.
CREATE TABLE large_wins (
  round_id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  won_minor INTEGER NOT NULL,
  end_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- What the regulator has refused: set aside until an admin releases it. kind stages: of a session; kind alignment: of
-- `operator:currency:day`.
CREATE TABLE held_reports (
  kind TEXT NOT NULL CHECK (kind IN ('stages', 'alignment')),
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  PRIMARY KEY (kind, subject)
) WITHOUT ROWID;

-- What the regulator is told of one operator's day in one currency, by the time of each event, kept in the commits
-- that bring it about; `aligned` is the sums as they were told last.
CREATE TABLE regulator_days (
  operator TEXT NOT NULL,
  currency TEXT NOT NULL,
  day TEXT NOT NULL,
  purchases INTEGER NOT NULL,
  bought_minor INTEGER NOT NULL,
  stages INTEGER NOT NULL,
  staked_minor INTEGER NOT NULL,
  returned_minor INTEGER NOT NULL,
  ends INTEGER NOT NULL,
  final_balance_minor INTEGER NOT NULL,
  aligned TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (operator, day, currency)
) WITHOUT ROWID;
CREATE INDEX regulator_days_by_day ON regulator_days (day);

-- The watch over returns: counts by ruleset, how far the statements of each instance are counted, and rounds that were
-- open for too long to be waited for.

CREATE TABLE returns (
  ruleset_sha256 TEXT NOT NULL PRIMARY KEY,
  ruleset_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  tally TEXT NOT NULL -- canonical JSON (rgs.core.returns.tally)
) WITHOUT ROWID;

CREATE TABLE returns_read (
  instance TEXT NOT NULL PRIMARY KEY,
  statement_no INTEGER NOT NULL,
  before_no INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE returns_late (
  round_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- The operators' own tokens of sessions that are not closed, sealed (rgs.service.sealing).
CREATE TABLE session_tokens (
  session_id TEXT NOT NULL PRIMARY KEY,
  sealed BLOB NOT NULL
) WITHOUT ROWID;
