-- expand: software of schema 11 runs beside it.
-- What support staff looks up (docs/support.md), and which software an instance runs (docs/upgrades.md).

-- Whose players a party of the role support may look up; empty: all, and for every other role.
ALTER TABLE parties ADD COLUMN operator TEXT NOT NULL DEFAULT '';
ALTER TABLE parties DROP CONSTRAINT parties_role_check;
ALTER TABLE parties ADD CONSTRAINT parties_role_check CHECK (
  role IN ('operator', 'auditor', 'regulator', 'lab', 'admin', 'support') AND (operator = '' OR role = 'support')
);

-- The newest schema that the instance's software knows; 0: software from before this column, of schema 11.
ALTER TABLE instances ADD COLUMN schema_no BIGINT NOT NULL DEFAULT 0;

-- concurrently
CREATE INDEX sessions_by_regulator_session ON sessions (regulator_session_id, id) WHERE regulator_session_id <> '';
CREATE INDEX sessions_by_regulator_participation ON sessions (regulator_participation_id, id)
WHERE regulator_participation_id <> '';
CREATE INDEX operations_payouts ON operations (detail) WHERE kind = 'end' AND detail <> '';
