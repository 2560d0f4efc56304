-- The schema of the main store from version 0.1.0 on (PostgreSQL). Money in minor units, times in milliseconds since 1970, hashes as
-- bytes; flags are integers, as in the store's other form.
--
-- Keys. The primary key of a table leads with what it would be distributed by: sessions and all that hangs on one by
-- session_id, answers by party, totals by operator. Row numbers (`id`) come from no sequence: the writer makes them
-- (rgs.store.numbers), and a page's cursor is one of them.
-- statements lead with the instance: each process writes at its own edge of the key, and the one order that every
-- statement has, (instance, statement_no), is the one that an auditor counts by. Distributed by session_id instead, the
-- statements without a session would fall on one shard, and that order could not be held by a constraint. The order
-- within a session, (session_id, link_no), is held twice: by its index where there is one PostgreSQL, and everywhere by
-- the version and the link number in the session's row, which every commit locks.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE parties (
  party TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('operator', 'auditor', 'regulator', 'lab', 'admin')),
  jurisdiction TEXT NOT NULL DEFAULT '',
  added_ms BIGINT NOT NULL
);

CREATE TABLE certificates (
  fingerprint TEXT PRIMARY KEY,
  party TEXT NOT NULL REFERENCES parties (party),
  added_ms BIGINT NOT NULL,
  removed_ms BIGINT,
  last_ms BIGINT -- when it ends by itself
);

CREATE TABLE instances (
  instance TEXT PRIMARY KEY,
  node TEXT NOT NULL,
  boot_no BIGINT NOT NULL,
  worker BIGINT NOT NULL,
  alive INTEGER NOT NULL,
  statement_no BIGINT NOT NULL,
  draw_no BIGINT NOT NULL,
  start_ms BIGINT NOT NULL,
  end_ms BIGINT NOT NULL DEFAULT 0,
  slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 4095), -- its part of every row number that it makes
  last_id BIGINT NOT NULL, -- the greatest row number that it has made
  lease_ms BIGINT NOT NULL DEFAULT 0, -- alive until then, by this database's clock; 0: no lease was ever taken
  UNIQUE (node, boot_no, worker)
);
CREATE UNIQUE INDEX instances_slot ON instances (slot) WHERE alive = 1;

CREATE TABLE sessions (
  id BIGINT NOT NULL,
  session_id TEXT PRIMARY KEY,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  operator_reference TEXT NOT NULL,
  ruleset_id TEXT NOT NULL,
  jurisdiction_id TEXT NOT NULL,
  currency TEXT NOT NULL,
  open_ms BIGINT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'open', 'closed')),
  last_ms BIGINT NOT NULL,
  version BIGINT NOT NULL,
  close_ms BIGINT NOT NULL,
  regulator_session_id TEXT NOT NULL,
  test_regulator INTEGER NOT NULL,
  participation_id TEXT NOT NULL,
  regulator_participation_id TEXT NOT NULL,
  bought_minor BIGINT NOT NULL CHECK (bought_minor >= 0),
  staked_minor BIGINT NOT NULL CHECK (staked_minor >= 0),
  returned_minor BIGINT NOT NULL CHECK (returned_minor >= 0),
  paid_out_minor BIGINT NOT NULL CHECK (paid_out_minor >= 0),
  ended INTEGER NOT NULL,
  purchase_no BIGINT NOT NULL,
  round_no BIGINT NOT NULL,
  rounds BIGINT NOT NULL,
  open_round_id TEXT NOT NULL,
  last_start_ms BIGINT NOT NULL,
  code_count BIGINT NOT NULL,
  limit_loss_minor BIGINT NOT NULL,
  limit_stake_minor BIGINT NOT NULL,
  limit_duration_ms BIGINT NOT NULL,
  pending_operation TEXT NOT NULL,
  link_no BIGINT NOT NULL,
  link_hash TEXT NOT NULL,
  funding TEXT NOT NULL CHECK (funding IN ('participation', 'seamless')),
  -- Of a session that is funded bet by bet: what its wallet reported last, when, and what had been credited to it by
  -- then. Written beside the session's version, for it decides nothing; time 0: nothing was reported yet.
  wallet_balance_minor BIGINT NOT NULL DEFAULT 0,
  wallet_credited_minor BIGINT NOT NULL DEFAULT 0,
  wallet_balance_ms BIGINT NOT NULL DEFAULT 0,
  last_id BIGINT NOT NULL, -- of its newest statement
  CHECK (bought_minor - staked_minor + returned_minor - paid_out_minor >= 0),
  CHECK (ended = 0 OR bought_minor - staked_minor + returned_minor = paid_out_minor)
) WITH (fillfactor = 80);
CREATE INDEX sessions_by_operator ON sessions (operator, id);
CREATE INDEX sessions_by_player ON sessions (operator, player, id);
CREATE INDEX sessions_not_closed ON sessions (operator, id) WHERE status <> 'closed';
-- The sessions of one player that are not closed: found without passing by all that are.
CREATE INDEX sessions_not_closed_of ON sessions (operator, player, id) WHERE status <> 'closed';

CREATE TABLE rounds (
  id BIGINT NOT NULL,
  round_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  ruleset_id TEXT NOT NULL,
  round_no BIGINT NOT NULL,
  seat_no INTEGER NOT NULL,
  game_code TEXT NOT NULL,
  instance TEXT NOT NULL,
  draw_no BIGINT NOT NULL,
  deal BYTEA NOT NULL,
  commitment BYTEA NOT NULL,
  bets TEXT NOT NULL,
  balance_before_minor BIGINT NOT NULL,
  start_ms BIGINT NOT NULL,
  opening_hash TEXT NOT NULL,
  sealed BYTEA NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'settled', 'void')),
  version BIGINT NOT NULL,
  actions TEXT NOT NULL,
  end_ms BIGINT NOT NULL,
  staked_minor BIGINT NOT NULL,
  returned_minor BIGINT NOT NULL,
  funds_minor BIGINT NOT NULL,
  malfunction TEXT NOT NULL,
  malfunction_code TEXT NOT NULL,
  PRIMARY KEY (session_id, round_no, seat_no),
  CONSTRAINT rounds_by_round UNIQUE (round_id, seat_no),
  CONSTRAINT rounds_by_draw UNIQUE (instance, draw_no, seat_no)
);
CREATE INDEX rounds_by_player_end ON rounds (operator, player, end_ms, id) WHERE end_ms > 0;
CREATE INDEX rounds_by_player_start ON rounds (operator, player, start_ms);
CREATE INDEX rounds_open ON rounds (id) WHERE status = 'open';
CREATE INDEX rounds_open_of ON rounds (operator, id) WHERE status = 'open';

CREATE TABLE statements (
  id BIGINT NOT NULL,
  instance TEXT NOT NULL,
  statement_no BIGINT NOT NULL,
  kind TEXT NOT NULL,
  code TEXT NOT NULL, -- of events, empty for other kinds
  session_id TEXT NOT NULL,
  link_no BIGINT NOT NULL,
  round_id TEXT NOT NULL,
  seat_no INTEGER NOT NULL,
  hash BYTEA NOT NULL,
  envelope BYTEA NOT NULL,
  PRIMARY KEY (instance, statement_no)
);
CREATE UNIQUE INDEX statements_in_order ON statements (id);
CREATE INDEX statements_events ON statements (id) WHERE kind = 'event';
CREATE INDEX statements_events_by_code ON statements (code, id) WHERE kind = 'event';
CREATE UNIQUE INDEX statements_by_session ON statements (session_id, link_no) WHERE link_no > 0;
CREATE UNIQUE INDEX statements_by_round ON statements (round_id, seat_no, kind) WHERE seat_no > 0;
CREATE INDEX statements_by_hash ON statements USING hash (hash);

CREATE TABLE privates (
  instance TEXT NOT NULL,
  statement_no BIGINT NOT NULL,
  private BYTEA NOT NULL,
  PRIMARY KEY (instance, statement_no)
);

-- Stored answers, one partition a UTC day of their time, dropped whole when the window of retries has passed. A unique
-- key over all days would need the time in it, and so would hold nothing: each day has its own
-- (`make_partitions`). What stops a request that is repeated over midnight from taking effect twice is what stops a
-- very late one (ARCHITECTURE 2.16): the session's version, under the lock on its row, and round number, round version
-- and purchase number; `operations_by_request` where there is no session yet; the keys of what admins change.
CREATE TABLE answers (
  party TEXT NOT NULL,
  method TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest BYTEA NOT NULL,
  body BYTEA NOT NULL,
  instance TEXT NOT NULL,
  statement_no BIGINT NOT NULL,
  time_ms BIGINT NOT NULL
) PARTITION BY RANGE (time_ms);
-- What has no day yet: it should stay empty, and no commit fails because a job was late.
CREATE TABLE answers_other PARTITION OF answers DEFAULT;
CREATE UNIQUE INDEX answers_other_by_request ON answers_other (party, request_id, method);

CREATE FUNCTION make_partitions(first_ms BIGINT, days INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
  from_ms BIGINT;
  name TEXT;
  made INTEGER := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('rgs answers'));
  FOR number IN 0..days - 1 LOOP
    from_ms := (first_ms / 86400000 + number) * 86400000;
    name := 'answers_' || to_char(to_timestamp(from_ms / 1000) AT TIME ZONE 'UTC', 'YYYYMMDD');
    -- Rows of the day that came before its partition stay where they are, and the day stays without one.
    CONTINUE WHEN to_regclass(name) IS NOT NULL OR EXISTS (
      SELECT FROM answers_other o WHERE o.time_ms >= from_ms AND o.time_ms < from_ms + 86400000
    );
    EXECUTE format(
      'CREATE TABLE %I PARTITION OF answers FOR VALUES FROM (%s) TO (%s)', name, from_ms, from_ms + 86400000
    );
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (party, request_id, method)', name || '_by_request', name);
    made := made + 1;
  END LOOP;
  RETURN made;
END $$;

-- Drops the days that lie whole before a time; the rows before it that have no day are deleted. How many partitions and
-- rows went.
CREATE FUNCTION drop_answers(before_ms BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
  name TEXT;
  gone BIGINT;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('rgs answers'));
  DELETE FROM answers_other o WHERE o.time_ms < before_ms;
  GET DIAGNOSTICS gone = ROW_COUNT;
  FOR name IN
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'answers'::regclass AND c.relname ~ '^answers_[0-9]{8}$'
    AND (extract(epoch FROM to_date(substr(c.relname, 9), 'YYYYMMDD') + 1) * 1000)::BIGINT <= before_ms
  LOOP
    EXECUTE format('DROP TABLE %I', name);
    gone := gone + 1;
  END LOOP;
  RETURN gone;
END $$;

CREATE TABLE operations (
  operation_id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('open', 'purchase', 'end', 'close', 'start', 'act', 'credit')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'done', 'failed', 'undone')),
  party TEXT NOT NULL,
  method TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest BYTEA NOT NULL,
  amount_minor BIGINT NOT NULL,
  purchase_no BIGINT NOT NULL,
  created_ms BIGINT NOT NULL,
  detail TEXT NOT NULL, -- canonical JSON of what the request asked, where columns do not say it
  progress INTEGER NOT NULL, -- how far money is known to have moved (rgs.store.changes.OperationProgress)
  attempts BIGINT NOT NULL,
  next_ms BIGINT NOT NULL,
  reason TEXT NOT NULL,
  refusal TEXT NOT NULL DEFAULT '' -- of one that came to nothing (rgs.service.money.refusals)
);
-- One operation at a time in a session; what it owes the player waits beside it.
CREATE UNIQUE INDEX operations_pending ON operations (session_id) WHERE status = 'pending' AND kind <> 'credit';
CREATE INDEX operations_pending_in_order ON operations (operation_id) WHERE status = 'pending';
CREATE INDEX operations_credits ON operations (session_id, operation_id) WHERE status = 'pending' AND kind = 'credit';
CREATE INDEX pending_credits ON operations (operation_id) WHERE status = 'pending' AND kind IN ('end', 'credit');
-- A request has one operation that is under way or done, for ever: two nodes that were sent it at once cannot both begin,
-- and `OpenSession` has no number by which a late repeat would be missed.
CREATE UNIQUE INDEX operations_by_request ON operations (party, request_id, method) WHERE status <> 'failed';

CREATE TABLE stage_reports (
  id BIGINT NOT NULL,
  session_id TEXT NOT NULL,
  stage_no BIGINT NOT NULL,
  regulator_session_id TEXT NOT NULL,
  regulator_participation_id TEXT NOT NULL,
  available_minor BIGINT NOT NULL,
  staked_minor BIGINT NOT NULL,
  returned_minor BIGINT NOT NULL,
  opening_hash TEXT NOT NULL,
  final_hash TEXT NOT NULL,
  end_ms BIGINT NOT NULL,
  PRIMARY KEY (session_id, stage_no)
);
CREATE INDEX stage_reports_in_order ON stage_reports (id);

CREATE TABLE artifacts (sha256 TEXT PRIMARY KEY, name TEXT NOT NULL, content BYTEA NOT NULL);

-- Proposals to void a paused round, until they are approved or the round is resumed.
CREATE TABLE voids (
  round_id TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  party TEXT NOT NULL,
  time_ms BIGINT NOT NULL
);

-- What stands on "disabled": scope play, operator, game or player; the subject is empty, `operator`, `game`,
-- `operator/player`.
CREATE TABLE switches (
  scope TEXT NOT NULL CHECK (scope IN ('play', 'operator', 'game', 'player')),
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  party TEXT NOT NULL,
  time_ms BIGINT NOT NULL,
  PRIMARY KEY (scope, subject)
);

-- Guards that stay closed over a restart until an admin clears them.
CREATE TABLE latches (
  node TEXT NOT NULL,
  guard TEXT NOT NULL,
  code TEXT NOT NULL,
  time_ms BIGINT NOT NULL,
  PRIMARY KEY (node, guard)
);

-- Running totals by day (UTC, of the rounds' end), kept in the commit that ends a round.
CREATE TABLE totals (
  day TEXT NOT NULL,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  game TEXT NOT NULL,
  currency TEXT NOT NULL,
  rounds BIGINT NOT NULL,
  staked_minor BIGINT NOT NULL,
  returned_minor BIGINT NOT NULL,
  void_rounds BIGINT NOT NULL,
  void_minor BIGINT NOT NULL,
  PRIMARY KEY (operator, day, player, game, currency)
) WITH (fillfactor = 80);
CREATE INDEX totals_by_day ON totals (day, operator, player, game, currency);
CREATE INDEX totals_by_player ON totals (operator, player, day, game, currency);

-- Large wins whose event is not signed yet.
CREATE TABLE large_wins (
  round_id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  won_minor BIGINT NOT NULL,
  end_ms BIGINT NOT NULL
);

-- What the regulator has refused: set aside until an admin releases it. kind stages: of a session; kind alignment: of
-- `operator:currency:day`.
CREATE TABLE held_reports (
  kind TEXT NOT NULL CHECK (kind IN ('stages', 'alignment')),
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms BIGINT NOT NULL,
  PRIMARY KEY (kind, subject)
);

-- What the regulator is told of one operator's day in one currency, by the time of each event, kept in the commits
-- that bring it about; `aligned` is the sums as they were told last.
CREATE TABLE regulator_days (
  operator TEXT NOT NULL,
  currency TEXT NOT NULL,
  day TEXT NOT NULL,
  purchases BIGINT NOT NULL,
  bought_minor BIGINT NOT NULL,
  stages BIGINT NOT NULL,
  staked_minor BIGINT NOT NULL,
  returned_minor BIGINT NOT NULL,
  ends BIGINT NOT NULL,
  final_balance_minor BIGINT NOT NULL,
  aligned TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (operator, day, currency)
);
CREATE INDEX regulator_days_by_day ON regulator_days (day);

-- The watch over returns: counts by ruleset, how far the statements of each instance are counted, and rounds that were
-- open for too long to be waited for.

CREATE TABLE returns (
  ruleset_sha256 TEXT NOT NULL PRIMARY KEY,
  ruleset_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  tally TEXT NOT NULL -- canonical JSON (rgs.core.returns.tally)
);

CREATE TABLE returns_read (
  instance TEXT NOT NULL PRIMARY KEY,
  statement_no BIGINT NOT NULL,
  before_no BIGINT NOT NULL
);

CREATE TABLE returns_late (
  round_id TEXT NOT NULL PRIMARY KEY
);

-- The operators' own tokens of sessions that are not closed, sealed (rgs.service.sealing).
CREATE TABLE session_tokens (
  session_id TEXT NOT NULL PRIMARY KEY,
  sealed BYTEA NOT NULL
);
