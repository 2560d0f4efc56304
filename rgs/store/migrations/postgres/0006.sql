-- Refusals that answer their request for ever, the balance that a wallet told last, session tokens.

ALTER TABLE operations ADD COLUMN refusal TEXT NOT NULL DEFAULT ''; -- of one that came to nothing (rgs.service.money.refusals)

-- Of a session that is funded bet by bet: what its wallet told last, when, and what had been credited to it by then.
-- Written beside the session's version, for it decides nothing; time 0: nothing was told yet.
ALTER TABLE sessions ADD COLUMN wallet_balance_minor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN wallet_credited_minor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN wallet_balance_ms BIGINT NOT NULL DEFAULT 0;

-- The operators' own tokens of sessions that are not closed, sealed (rgs.service.sealing).
CREATE TABLE session_tokens (
  session_id TEXT NOT NULL PRIMARY KEY,
  sealed BYTEA NOT NULL
);
