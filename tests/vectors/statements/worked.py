"""The worked examples of docs/formats.md, made from fixed inputs that name no ruleset of ours, so that they stay."""

from __future__ import annotations

import hashlib

from rgs.core.cards import format_cards
from rgs.core.statements import (
    KINDS,
    Ed25519Signer,
    ExportLine,
    commitment_of,
    first_actions_hash,
    format_canonical,
    format_line,
    leaf_hash,
    next_actions_hash,
    parse_envelope,
    private_hash,
    seal_envelope,
)
from rgs.core.statements.envelope import pre_authentication_encoding
from rgs.core.tables.tree import SeatTree, padding_leaf
from rgs.core.tlog.merkle import inclusion_path, root_of
from rgs.core.tlog.merkle import leaf_hash as merkle_leaf
from rng.shuffle import PROCEDURE, transcript_to_deck
from tests.support.seeded import Bytes

ROUND = "01K4ZQ7M2J8T5V9X3B6C1D0EFG"
SESSION = "01K4ZQ6A0B1C2D3E4F5G6H7J8K"


def worked() -> dict[str, dict[str, str]]:
    """Section -> name -> value. Bytes are in hex, texts as they are."""
    return {
        "envelope": _envelope(),
        "transcript": _transcript(),
        "commitment": _commitment(),
        "actions": _actions(),
        "private": _private(),
        "seats": _seats(),
        "table_seats": _table_seats(),
        "revocation": _revocation(),
        "draw_window": _draw_window(),
    }


def _envelope() -> dict[str, str]:
    signer = Ed25519Signer.from_seed(bytes(range(32)))
    kind = KINDS["instance_end"]
    payload = format_canonical(
        {
            "instance": "node-1-b1-w0",
            "kind": "instance_end",
            "last_draw_no": "41",
            "reason": "SHUTDOWN",
            "statement_no": "97",
            "time": "2026-11-21T22:30:00.123Z",
        }
    )
    envelope = seal_envelope(kind.payload_type, payload, signer)
    return {
        "payload": payload.decode(),
        "payload_type": kind.payload_type,
        "seed": bytes(range(32)).hex(),
        "public_key": signer.public_key.hex(),
        "keyid": signer.keyid,
        "signed_bytes": pre_authentication_encoding(kind.payload_type, payload).decode(),
        "signature": parse_envelope(envelope).signature.hex(),
        "envelope": envelope.decode(),
        "hash": leaf_hash(envelope).hex(),
        "line": format_line(ExportLine(envelope, None)).decode(),
    }


def _revocation() -> dict[str, str]:
    root = Ed25519Signer.from_seed(bytes(range(32)))
    kind = KINDS["revocation"]
    body = {
        "key": "44" * 32,
        "kind": "revocation",
        "origin": "rgs.example/rounds/2026h2",
        "reason": "STOLEN",
        "size": "70000",
        "time": "2026-11-21T22:30:00.123Z",
    }
    payload = format_canonical(body)
    envelope = seal_envelope(kind.payload_type, payload, root)
    return {"payload": payload.decode(), "envelope": envelope.decode(), "hash": leaf_hash(envelope).hex()}


def _draw_window() -> dict[str, str]:
    signer = Ed25519Signer.from_seed(bytes(range(32)))
    kind = KINDS["draw_window"]
    body = {
        "draws_in_flight_max": "32",
        "instance": "node-1-b1-w0",
        "kind": "draw_window",
        "statement_no": "42",
        "time": "2026-11-21T22:30:00.123Z",
    }
    payload = format_canonical(body)
    envelope = seal_envelope(kind.payload_type, payload, signer)
    return {"payload": payload.decode(), "envelope": envelope.decode(), "hash": leaf_hash(envelope).hex()}


def _drawn() -> bytes:
    return Bytes("docs/formats.md").transcript()


def _transcript() -> dict[str, str]:
    transcript = _drawn()
    return {"transcript": transcript.hex(), "deck": " ".join(format_cards(transcript_to_deck(transcript)))}


def _commitment() -> dict[str, str]:
    deal_core = format_canonical(
        {
            "draw_no": "42",
            "game_code": "#22:30:00",
            "instance": "node-1-b1-w0",
            "reseed_counter": "42",
            "round_id": ROUND,
            "ruleset": {"id": "uth-solo", "sha256": "11" * 32, "version": "1"},
            "seats": "1",
            "seats_root": "22" * 32,
            "shuffle": PROCEDURE,
            "start_time": "2026-11-21T22:30:00.123Z",
            "table": "",
        }
    )
    salt, transcript = bytes(range(0x40, 0x60)), _drawn()
    preimage = (
        b"rgs/commitment/v1\x00"
        + hashlib.sha256(deal_core).digest()
        + salt
        + len(transcript).to_bytes(2, "big")
        + transcript
    )
    return {
        "deal_core": deal_core.decode(),
        "deal_core_sha256": hashlib.sha256(deal_core).hexdigest(),
        "salt": salt.hex(),
        "length": len(transcript).to_bytes(2, "big").hex(),
        "preimage": preimage.hex(),
        "commitment": commitment_of(deal_core, salt, transcript).hex(),
    }


def _actions() -> dict[str, str]:
    commitment = bytes.fromhex(_commitment()["commitment"])
    action = {
        "action": "play_4x",
        "amount_minor": "400",
        "by": "player",
        "party": "operator-1",
        "phase": "preflop",
        "request_digest": "33" * 32,
        "time": "2026-11-21T22:30:07.500Z",
    }
    first = first_actions_hash(commitment)
    return {
        "first": first.hex(),
        "action": format_canonical(action).decode(),
        "next": next_actions_hash(first, action).hex(),
    }


def _private() -> dict[str, str]:
    block = {"player": "p-7f3a", "regulator": "adm", "regulator_session_id": "M0123456789ABCDE"}
    salt = bytes(range(0x60, 0x80))
    return {
        "block": format_canonical(block).decode(),
        "salt": salt.hex(),
        "hash": private_hash(salt, block).hex(),
    }


def _seats() -> dict[str, str]:
    seats = [
        format_canonical(
            {
                "bets": [{"amount_minor": str(ante), "bet": "ante"}, {"amount_minor": str(ante), "bet": "blind"}],
                "seat_no": str(number),
                "session_id": SESSION[:-1] + str(number),
            }
        )
        for number, ante in ((1, 100), (2, 50), (3, 20))
    ]
    leaves = [merkle_leaf(seat) for seat in seats]
    found = {"root": root_of(leaves).hex()}
    for number, (seat, leaf) in enumerate(zip(seats, leaves, strict=True), 1):
        found[f"seat_{number}"] = seat.decode()
        found[f"leaf_{number}"] = leaf.hex()
        found[f"path_{number}"] = " ".join(node.hex() for node in inclusion_path(leaves, number - 1))
    return found


def _table_seats() -> dict[str, str]:
    """The tree over the three seats of `_seats`, at a table: padded to 64 leaves."""
    leaves = [bytes.fromhex(_seats()[f"leaf_{number}"]) for number in (1, 2, 3)]
    salt = bytes(range(0x60, 0x80))
    tree = SeatTree(leaves, salt)
    return {
        "salt": salt.hex(),
        "padding_4": padding_leaf(salt, 4).hex(),
        "padding_64": padding_leaf(salt, 64).hex(),
        "root": tree.root.hex(),
        "path_3": " ".join(node.hex() for node in tree.path(3)),
    }
