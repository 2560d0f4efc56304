-- Free bets (docs/money.md, section 7): one row a grant.

CREATE TABLE free_bets (
  grant_id TEXT COLLATE "C" PRIMARY KEY,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  ruleset_id TEXT NOT NULL,
  currency TEXT NOT NULL,
  campaign TEXT NOT NULL,
  stake_minor BIGINT NOT NULL CHECK (stake_minor > 0),
  granted_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'used', 'cancelled')),
  round_id TEXT NOT NULL, -- the round that has used it
  request_id TEXT NOT NULL, -- GrantFreeBets, for good: no late repeat grants again; empty: in the place of another
  nth BIGINT NOT NULL,
  CHECK ((round_id <> '') = (status = 'used'))
);
CREATE INDEX free_bets_open_of ON free_bets (operator, player, grant_id) WHERE status = 'open';
CREATE UNIQUE INDEX free_bets_of_request ON free_bets (request_id, operator, nth) WHERE request_id <> '';
CREATE UNIQUE INDEX free_bets_of_round ON free_bets (round_id) WHERE round_id <> '';

-- `campaign:grant_id` of the free bet that pays ante and blind; empty where the player does.
ALTER TABLE rounds ADD COLUMN free_bet TEXT NOT NULL DEFAULT '';
-- What operators search and report by (docs/store.md, Reports).

-- No two sessions of an operator have the same reference: the slot is 0. Sessions that were opened before have a slot
-- each. NULL frees the reference: the session was never opened.
ALTER TABLE sessions ADD COLUMN reference_slot BIGINT DEFAULT 0;
UPDATE sessions SET reference_slot = NULL WHERE status = 'closed' AND link_no = 0;
UPDATE sessions SET reference_slot = earlier.slot FROM (
  SELECT id AS at_id, row_number() OVER (PARTITION BY operator, operator_reference ORDER BY id) - 1 AS slot
  FROM sessions WHERE operator_reference <> '' AND reference_slot = 0
) AS earlier WHERE earlier.at_id = sessions.id AND earlier.slot > 0;
CREATE UNIQUE INDEX sessions_by_reference ON sessions (operator, operator_reference, reference_slot)
WHERE operator_reference <> '';

CREATE INDEX rounds_by_player_game_end ON rounds (operator, player, ruleset_id, end_ms, id) WHERE end_ms > 0;
CREATE INDEX rounds_by_code_end ON rounds (operator, game_code, end_ms, id) WHERE end_ms > 0;

-- Totals without their players, kept in the commit that ends a round. Each worker adds to rows of its own, so that no two
-- processes wait for each other.
CREATE TABLE day_totals (
  operator TEXT NOT NULL,
  day TEXT NOT NULL,
  game TEXT NOT NULL,
  currency TEXT NOT NULL,
  worker TEXT NOT NULL,
  rounds BIGINT NOT NULL,
  staked_minor BIGINT NOT NULL,
  returned_minor BIGINT NOT NULL,
  void_rounds BIGINT NOT NULL,
  void_minor BIGINT NOT NULL,
  PRIMARY KEY (operator, day, game, currency, worker)
) WITH (fillfactor = 80);
INSERT INTO day_totals
SELECT operator, day, game, currency, '', sum(rounds), sum(staked_minor), sum(returned_minor), sum(void_rounds),
sum(void_minor) FROM totals GROUP BY operator, day, game, currency;

-- The finals of each operator in one order without gaps, and how far the statements of each instance are listed there.
CREATE TABLE finals (
  operator TEXT NOT NULL,
  final_no BIGINT NOT NULL,
  instance TEXT NOT NULL,
  statement_no BIGINT NOT NULL,
  mark TEXT NOT NULL, -- a hash over this final and all before it
  PRIMARY KEY (operator, final_no)
);

CREATE TABLE finals_read (
  instance TEXT NOT NULL PRIMARY KEY,
  statement_no BIGINT NOT NULL,
  before_no BIGINT NOT NULL
);
