-- Money that leaves the server: how a session is funded, how far an operation has moved money, reports that were refused.

ALTER TABLE sessions ADD COLUMN funding TEXT NOT NULL DEFAULT 'participation'
  CHECK (funding IN ('participation', 'seamless'));

ALTER TABLE operations RENAME TO operations_before;
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
  reason TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO operations SELECT *, '', 0, 0, 0, '' FROM operations_before;
DROP TABLE operations_before;
-- One operation at a time in a session; what it owes the player waits beside it.
CREATE UNIQUE INDEX operations_pending ON operations (session_id) WHERE status = 'pending' AND kind <> 'credit';
CREATE INDEX operations_in_order ON operations (operation_id) WHERE status = 'pending';
CREATE INDEX operations_credits ON operations (session_id, operation_id) WHERE status = 'pending' AND kind = 'credit';
CREATE INDEX pending_credits ON operations (operation_id) WHERE status = 'pending' AND kind IN ('end', 'credit');
CREATE UNIQUE INDEX operations_by_request ON operations (request_id, method, party) WHERE status IN ('pending', 'undone');

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
