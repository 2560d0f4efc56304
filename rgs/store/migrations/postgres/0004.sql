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
