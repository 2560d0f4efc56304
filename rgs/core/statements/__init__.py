"""What is signed: kinds, canonical encoding, DSSE envelope and hashes. Formats: docs/formats.md."""

from rgs.core.statements.canonical import PAYLOAD_BYTES_MAX, digest, format_canonical, parse_canonical
from rgs.core.statements.envelope import (
    Ed25519Signer,
    Envelope,
    Signer,
    format_envelope,
    key_fingerprint,
    leaf_hash,
    parse_envelope,
    seal_envelope,
    verify_signature,
)
from rgs.core.statements.hashes import (
    SALT_BYTES,
    commitment_of,
    first_actions_hash,
    hash_with_action,
    next_actions_hash,
    private_hash,
    request_digest,
)
from rgs.core.statements.kinds import (
    KINDS,
    LINK_ZERO,
    SESSION_OPEN_2,
    KeyRole,
    Kind,
    UnhandledKindError,
    kind_of,
    parse_statement,
)
from rgs.core.statements.lines import ExportLine, format_line, parse_line

__all__ = [
    "KINDS",
    "LINK_ZERO",
    "PAYLOAD_BYTES_MAX",
    "SALT_BYTES",
    "SESSION_OPEN_2",
    "Ed25519Signer",
    "Envelope",
    "ExportLine",
    "KeyRole",
    "Kind",
    "Signer",
    "UnhandledKindError",
    "commitment_of",
    "digest",
    "first_actions_hash",
    "format_canonical",
    "format_envelope",
    "format_line",
    "hash_with_action",
    "key_fingerprint",
    "kind_of",
    "leaf_hash",
    "next_actions_hash",
    "parse_canonical",
    "parse_envelope",
    "parse_line",
    "parse_statement",
    "private_hash",
    "request_digest",
    "seal_envelope",
    "verify_signature",
]
