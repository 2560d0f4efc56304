-- Money that leaves the server: how a session is funded, how far an operation has moved money, reports that were refused.

ALTER TABLE sessions ADD COLUMN funding TEXT NOT NULL DEFAULT 'participation'
  CHECK (funding IN ('participation', 'seamless'));

ALTER TABLE operations DROP CONSTRAINT operations_kind_check, DROP CONSTRAINT operations_status_check;
ALTER TABLE operations
  ADD CONSTRAINT operations_kind_check
    CHECK (kind IN ('open', 'purchase', 'end', 'close', 'start', 'act', 'credit')),
  ADD CONSTRAINT operations_status_check CHECK (status IN ('pending', 'done', 'failed', 'undone')),
  ADD COLUMN detail TEXT NOT NULL DEFAULT '', -- canonical JSON of what the request asked, where columns do not say it
  ADD COLUMN progress INTEGER NOT NULL DEFAULT 0, -- how far money is known to have moved (rgs.store.changes.OperationProgress)
  ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN next_ms BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN reason TEXT NOT NULL DEFAULT '';
DROP INDEX operations_pending;
-- One operation at a time in a session; what it owes the player waits beside it.
CREATE UNIQUE INDEX operations_pending ON operations (session_id) WHERE status = 'pending' AND kind <> 'credit';
CREATE INDEX operations_credits ON operations (session_id, operation_id) WHERE status = 'pending' AND kind = 'credit';
CREATE INDEX pending_credits ON operations (operation_id) WHERE status = 'pending' AND kind IN ('end', 'credit');

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
