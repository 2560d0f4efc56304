"""The platform's own file: its schema, and who opens it. The wallet's book is another file (`wallet.py`).

Amounts are kept by currency. What has none, the time of play, is kept under the empty one. Of a stored request the file
has a hash of its content, for a repeat to be compared with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .database import Database

APPLICATION_ID: Final = 0x4F505031
VERSION: Final = 2

SCHEMA: Final = """
CREATE TABLE accounts (
    account_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    player TEXT NOT NULL UNIQUE,
    nickname TEXT NOT NULL UNIQUE COLLATE NOCASE,
    currency TEXT NOT NULL,
    language TEXT NOT NULL,
    password TEXT NOT NULL,
    settings TEXT NOT NULL DEFAULT '{}',
    created_ms INTEGER NOT NULL,
    excluded_until_ms INTEGER NOT NULL DEFAULT 0,
    closing INTEGER NOT NULL DEFAULT 0,
    muted_until_ms INTEGER NOT NULL DEFAULT 0,
    played_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE sign_ins (
    token_sha256 BLOB PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_ins_by_account ON sign_ins (account_id);
CREATE TABLE limits (
    account_id INTEGER NOT NULL REFERENCES accounts,
    currency TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (account_id, currency, name)
) STRICT;
CREATE TABLE pending_limits (
    account_id INTEGER NOT NULL REFERENCES accounts,
    currency TEXT NOT NULL,
    name TEXT NOT NULL,
    value INTEGER,
    due_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, currency, name)
) STRICT;
CREATE TABLE day_figures (
    account_id INTEGER NOT NULL REFERENCES accounts,
    day TEXT NOT NULL,
    currency TEXT NOT NULL,
    staked_minor INTEGER NOT NULL DEFAULT 0,
    returned_minor INTEGER NOT NULL DEFAULT 0,
    played_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, day, currency)
) STRICT;
CREATE TABLE play_sessions (
    session_id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts,
    game TEXT NOT NULL,
    game_table TEXT NOT NULL,
    language TEXT NOT NULL,
    mode TEXT NOT NULL,
    currency TEXT NOT NULL,
    staked_minor INTEGER NOT NULL DEFAULT 0,
    returned_minor INTEGER NOT NULL DEFAULT 0,
    checked_ms INTEGER NOT NULL DEFAULT 0,
    opened_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX play_sessions_by_account ON play_sessions (account_id, opened_ms);
CREATE TABLE requests (
    account_id INTEGER NOT NULL REFERENCES accounts,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX requests_by_time ON requests (time_ms);
CREATE TABLE launches (
    account_id INTEGER NOT NULL REFERENCES accounts,
    request_id TEXT NOT NULL,
    content TEXT NOT NULL,
    limits TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, request_id)
) STRICT;
CREATE TABLE play_tokens (
    token_sha256 BLOB PRIMARY KEY,
    player TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE seats (
    session_id TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts,
    connection TEXT NOT NULL,
    game_table TEXT NOT NULL,
    device_no INTEGER NOT NULL
) STRICT;
CREATE TABLE hidden_lines (
    message_id TEXT PRIMARY KEY,
    staff TEXT NOT NULL,
    time_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE staff (
    name TEXT PRIMARY KEY COLLATE NOCASE,
    password TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('support', 'manager'))
) STRICT;
CREATE TABLE staff_sign_ins (
    token_sha256 BLOB PRIMARY KEY,
    name TEXT NOT NULL REFERENCES staff ON DELETE CASCADE,
    form_token TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE office_actions (
    action_no INTEGER PRIMARY KEY,
    time_ms INTEGER NOT NULL,
    staff TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL
) STRICT;
"""


def open_platform(path: Path) -> Database:
    """Open the file, or make it."""
    return Database(path, APPLICATION_ID, VERSION, SCHEMA)
