-- Money that leaves the house: how a session is funded, how far an affair has moved money, reports that were refused.

ALTER TABLE sessions ADD COLUMN funding TEXT NOT NULL DEFAULT 'participation'
  CHECK (funding IN ('participation', 'seamless'));

ALTER TABLE affairs DROP CONSTRAINT affairs_kind_check, DROP CONSTRAINT affairs_status_check;
ALTER TABLE affairs
  ADD CONSTRAINT affairs_kind_check
    CHECK (kind IN ('open', 'purchase', 'end', 'close', 'start', 'act', 'return')),
  ADD CONSTRAINT affairs_status_check CHECK (status IN ('pending', 'done', 'failed', 'undone')),
  ADD COLUMN detail TEXT NOT NULL DEFAULT '', -- canonical JSON of what the request asked, where columns do not say it
  ADD COLUMN stage INTEGER NOT NULL DEFAULT 0, -- how far money is known to have moved (rgs.store.changes.AffairStage)
  ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN next_ms BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN reason TEXT NOT NULL DEFAULT '';
DROP INDEX affairs_pending;
-- One affair at a time in a session; what it owes the player waits beside it.
CREATE UNIQUE INDEX affairs_pending ON affairs (session_id) WHERE status = 'pending' AND kind <> 'return';
CREATE INDEX affairs_returns ON affairs (session_id, affair_id) WHERE status = 'pending' AND kind = 'return';
CREATE INDEX affairs_owed ON affairs (affair_id) WHERE status = 'pending' AND kind IN ('end', 'return');

-- What the central system has refused: set aside until an admin releases it. kind stages: of a session; kind alignment: of
-- `operator:currency:day`.
CREATE TABLE held_reports (
  kind TEXT NOT NULL CHECK (kind IN ('stages', 'alignment')),
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms BIGINT NOT NULL,
  PRIMARY KEY (kind, subject)
);

-- What the central system is told of one operator's day in one currency, by the time of each event, kept in the commits
-- that bring it about; `aligned` is the sums as they were told last.
CREATE TABLE register_days (
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
CREATE INDEX register_days_by_day ON register_days (day);
