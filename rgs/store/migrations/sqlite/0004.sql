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
