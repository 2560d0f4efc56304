-- Money that leaves the house: how a session is funded, how far an affair has moved money, reports that were refused.

ALTER TABLE sessions ADD COLUMN funding TEXT NOT NULL DEFAULT 'participation'
  CHECK (funding IN ('participation', 'seamless'));

ALTER TABLE affairs RENAME TO affairs_before;
CREATE TABLE affairs (
  affair_id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('open', 'purchase', 'end', 'close', 'start', 'act', 'return')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'done', 'failed', 'undone')),
  party TEXT NOT NULL,
  method TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest BLOB NOT NULL,
  amount_minor INTEGER NOT NULL,
  purchase_no INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  detail TEXT NOT NULL, -- canonical JSON of what the request asked, where columns do not say it
  stage INTEGER NOT NULL, -- how far money is known to have moved (rgs.store.changes.AffairStage)
  attempts INTEGER NOT NULL,
  next_ms INTEGER NOT NULL,
  reason TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO affairs SELECT *, '', 0, 0, 0, '' FROM affairs_before;
DROP TABLE affairs_before;
-- One affair at a time in a session; what it owes the player waits beside it.
CREATE UNIQUE INDEX affairs_pending ON affairs (session_id) WHERE status = 'pending' AND kind <> 'return';
CREATE INDEX affairs_in_order ON affairs (affair_id) WHERE status = 'pending';
CREATE INDEX affairs_returns ON affairs (session_id, affair_id) WHERE status = 'pending' AND kind = 'return';
CREATE INDEX affairs_owed ON affairs (affair_id) WHERE status = 'pending' AND kind IN ('end', 'return');
CREATE UNIQUE INDEX affairs_by_request ON affairs (request_id, method, party) WHERE status IN ('pending', 'undone');

-- What the central system has refused: set aside until an admin releases it. kind stages: of a session; kind alignment: of
-- `operator:currency:day`.
CREATE TABLE held_reports (
  kind TEXT NOT NULL CHECK (kind IN ('stages', 'alignment')),
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  PRIMARY KEY (kind, subject)
) WITHOUT ROWID;

-- What the central system is told of one operator's day in one currency, by the time of each event, kept in the commits
-- that bring it about; `aligned` is the sums as they were told last.
CREATE TABLE register_days (
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
CREATE INDEX register_days_by_day ON register_days (day);
