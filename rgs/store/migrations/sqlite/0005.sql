-- When a certificate of the allow-list ends by itself. NULL: it was added before this step, and nobody has kept it.

ALTER TABLE certificates ADD COLUMN last_ms INTEGER;
