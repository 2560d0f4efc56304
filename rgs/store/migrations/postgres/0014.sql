-- expand: software of schema 13 runs beside it.
-- A report to the regulator continues the trace of the call that made it (docs/metrics.md, section 2).

-- The W3C `traceparent` of that call; null: it was not traced, or older software has queued the report.
ALTER TABLE stage_reports ADD COLUMN traceparent TEXT;
-- The same of the player's last decision at a table, whose rounds are ended by the table and not by a call.
ALTER TABLE rounds ADD COLUMN traceparent TEXT;
