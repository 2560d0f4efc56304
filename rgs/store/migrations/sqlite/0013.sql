-- expand: software of schema 12 runs beside it.
-- Recovery continues the trace of the call that began an operation (docs/metrics.md, section 2).

-- The W3C `traceparent` of that call; empty: it was not traced, or older software has begun the operation.
ALTER TABLE operations ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
