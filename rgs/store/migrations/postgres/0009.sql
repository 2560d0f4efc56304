-- Tables that players share (docs/tables.md). Ids whose order matters are ordered by their bytes, as Python sorts them.

ALTER TABLE sessions ADD COLUMN table_id TEXT NOT NULL DEFAULT '';
-- Reserved for bets at the table: a part of the balance. Funded bet by bet, the wallet covers it.
ALTER TABLE sessions ADD COLUMN reserved_minor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD CONSTRAINT sessions_covers_reserved CHECK (
  reserved_minor >= 0
  AND (funding = 'seamless' OR reserved_minor <= bought_minor - staked_minor + returned_minor - paid_out_minor)
);
CREATE INDEX sessions_reserved ON sessions (table_id, session_id COLLATE "C") WHERE reserved_minor > 0;

ALTER TABLE rounds ADD COLUMN table_id TEXT NOT NULL DEFAULT '';
ALTER TABLE rounds ADD COLUMN phase TEXT NOT NULL DEFAULT '';
ALTER TABLE rounds ADD COLUMN path BYTEA NOT NULL DEFAULT '';
CREATE INDEX rounds_open_seats ON rounds (round_id, phase) WHERE status = 'open' AND table_id <> '';
-- A session has one seat in a round.
CREATE UNIQUE INDEX rounds_seat_of ON rounds (session_id, round_id) WHERE table_id <> '';
CREATE INDEX rounds_seats_of_operator ON rounds (round_id, operator, seat_no) WHERE table_id <> '';

CREATE TABLE tables (
  table_id TEXT COLLATE "C" PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN (
    'shut', 'idle', 'betting', 'closed', 'fixed', 'opening', 'deciding', 'settling', 'voiding', 'result', 'paused'
  )),
  version BIGINT NOT NULL CHECK (version >= 1),
  phase TEXT NOT NULL,
  opened_ms BIGINT NOT NULL,
  deadline_ms BIGINT NOT NULL,
  step_ms BIGINT NOT NULL,
  round_no BIGINT NOT NULL,
  head TEXT NOT NULL,
  round_id TEXT NOT NULL,
  table_round TEXT NOT NULL,
  deal TEXT NOT NULL,
  final TEXT NOT NULL,
  windows TEXT NOT NULL,
  paused_from TEXT NOT NULL,
  malfunction TEXT NOT NULL,
  config TEXT NOT NULL,
  next_config TEXT NOT NULL,
  is_shut INTEGER NOT NULL,
  due_ms BIGINT NOT NULL, -- when it is to be looked at; 0: never by time
  closed_ms BIGINT NOT NULL,
  malfunction_code TEXT NOT NULL,
  last_id BIGINT NOT NULL DEFAULT 0 -- what was committed with its newest change stands at or below this row number
) WITH (fillfactor = 80);
CREATE INDEX tables_due ON tables (due_ms, table_id) WHERE due_ms > 0;

-- Rounds of tables, from their `table_round` on. Their seats stand in `rounds`.
CREATE TABLE table_rounds (
  round_id TEXT PRIMARY KEY,
  table_id TEXT NOT NULL,
  table_round_no BIGINT NOT NULL,
  game_code TEXT NOT NULL,
  ruleset_id TEXT NOT NULL,
  jurisdiction_id TEXT NOT NULL,
  config TEXT NOT NULL,
  seats BIGINT NOT NULL,
  hands BIGINT NOT NULL,
  salt BYTEA NOT NULL, -- of the padding behind the seats
  seats_root BYTEA NOT NULL,
  betting_open_ms BIGINT NOT NULL,
  betting_close_ms BIGINT NOT NULL,
  version BIGINT NOT NULL,
  table_round TEXT NOT NULL,
  instance TEXT NOT NULL,
  draw_no BIGINT NOT NULL,
  core BYTEA NOT NULL,
  commitment BYTEA NOT NULL,
  sealed BYTEA NOT NULL,
  deal TEXT NOT NULL,
  deal_ms BIGINT NOT NULL,
  final TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'settled', 'void')),
  end_ms BIGINT NOT NULL,
  seats_ms BIGINT NOT NULL DEFAULT 0, -- the time of the newest seat_opening or seat_final
  last_id BIGINT NOT NULL DEFAULT 0, -- what is signed of its seats stands at or below this row number
  UNIQUE (table_id, table_round_no)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX table_rounds_by_draw ON table_rounds (instance, draw_no) WHERE draw_no > 0;

-- Who sits where, and what is reserved there until the seat is opened.
CREATE TABLE sittings (
  table_id TEXT NOT NULL,
  session_id TEXT PRIMARY KEY,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  nickname TEXT NOT NULL,
  place_no BIGINT NOT NULL CHECK (place_no >= 1), -- which of the player's tables it is, up to the law's number
  box BIGINT NOT NULL CHECK (box >= 0),
  device_no BIGINT NOT NULL,
  bets TEXT NOT NULL,
  reserved_minor BIGINT NOT NULL CHECK (reserved_minor >= 0),
  version BIGINT NOT NULL,
  seat_no BIGINT NOT NULL CHECK (seat_no >= 0),
  played_no BIGINT NOT NULL,
  leaving INTEGER NOT NULL,
  CONSTRAINT sittings_of_player UNIQUE (table_id, operator, player),
  CONSTRAINT sittings_by_place UNIQUE (operator, player, place_no)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX sittings_by_box ON sittings (table_id, box) WHERE box > 0;
CREATE INDEX sittings_of_table ON sittings (table_id, session_id COLLATE "C");
CREATE INDEX sittings_with_bets ON sittings (table_id, box, session_id COLLATE "C") WHERE reserved_minor > 0;
CREATE INDEX sittings_fixed ON sittings (table_id, seat_no) WHERE seat_no > 0;

CREATE TABLE table_configs (
  sha256 TEXT PRIMARY KEY,
  table_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  canonical BYTEA NOT NULL,
  UNIQUE (table_id, version)
);

CREATE TABLE table_bars (
  table_id TEXT NOT NULL,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  reason TEXT NOT NULL,
  party TEXT NOT NULL,
  time_ms BIGINT NOT NULL,
  PRIMARY KEY (table_id, operator, player)
);
CREATE INDEX table_bars_of ON table_bars (operator, player);

CREATE TABLE box_reservations (
  table_id TEXT NOT NULL,
  box BIGINT NOT NULL CHECK (box >= 1),
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  last_no BIGINT NOT NULL, -- the round of the table after which it lapses; 0: never
  PRIMARY KEY (table_id, box)
);
CREATE INDEX box_reservations_of ON box_reservations (operator, player);

CREATE TABLE chat (
  message_id TEXT COLLATE "C" PRIMARY KEY,
  table_id TEXT NOT NULL,
  time_ms BIGINT NOT NULL,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  nickname TEXT NOT NULL,
  text TEXT NOT NULL,
  code TEXT NOT NULL -- of the dealer's lines; empty for a player's
);
CREATE INDEX chat_of_table ON chat (table_id, message_id);
CREATE INDEX chat_of_player ON chat (operator, player, message_id);
CREATE INDEX chat_by_time ON chat (time_ms);
