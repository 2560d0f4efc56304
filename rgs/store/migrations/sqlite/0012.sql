-- expand: software of schema 11 runs beside it.
-- What support staff looks up (docs/support.md), and which software an instance runs (docs/upgrades.md).

-- Whose players a party of the role support may look up; empty: all, and for every other role. SQLite changes no check
-- in place: the table is written anew.
CREATE TABLE parties_anew (
  party TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL CHECK (
    role IN ('operator', 'auditor', 'regulator', 'lab', 'admin', 'support') AND (operator = '' OR role = 'support')
  ),
  jurisdiction TEXT NOT NULL DEFAULT '',
  added_ms INTEGER NOT NULL,
  operator TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
INSERT INTO parties_anew (party, role, jurisdiction, added_ms) SELECT party, role, jurisdiction, added_ms FROM parties;
DROP TABLE parties;
ALTER TABLE parties_anew RENAME TO parties;

-- The newest schema that the instance's software knows; 0: software from before this column, of schema 11.
ALTER TABLE instances ADD COLUMN schema_no INTEGER NOT NULL DEFAULT 0;

-- concurrently
CREATE INDEX sessions_by_regulator_session ON sessions (regulator_session_id, id) WHERE regulator_session_id <> '';
CREATE INDEX sessions_by_regulator_participation ON sessions (regulator_participation_id, id)
WHERE regulator_participation_id <> '';
CREATE INDEX operations_payouts ON operations (detail) WHERE kind = 'end' AND detail <> '';
