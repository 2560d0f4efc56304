-- Play money, limits on bets, launches (docs/integration.md, section 3).

ALTER TABLE sessions ADD COLUMN mode TEXT NOT NULL DEFAULT 'real' CHECK (mode IN ('real', 'demo'));
-- Limits on bets inside the ruleset's, as JSON: bet, least, most.
ALTER TABLE sessions ADD COLUMN bet_limits TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sessions ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN return_url TEXT NOT NULL DEFAULT '';

-- What an operator has prepared for a player. Of its one-use token only the SHA-256 is here.
CREATE TABLE launches (
  launch_id TEXT NOT NULL PRIMARY KEY,
  operator TEXT NOT NULL,
  player TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest BLOB NOT NULL,
  token_hash BLOB NOT NULL UNIQUE,
  content TEXT NOT NULL,
  sealed BLOB NOT NULL, -- the operator's own token of the player's session; empty without one, and after the opening
  created_ms INTEGER NOT NULL,
  expire_ms INTEGER NOT NULL,
  session_id TEXT NOT NULL, -- the session that it has opened
  UNIQUE (operator, request_id)
) WITHOUT ROWID;
CREATE INDEX launches_by_time ON launches (created_ms);
CREATE INDEX launches_of_player ON launches (operator, player);
