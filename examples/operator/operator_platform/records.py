"""What a player may read: lists and records of the own rounds, statements and what verifies them, free bets."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from rgs.v1 import audit_pb2, history_pb2

from . import fields
from .config import Config
from .errors import PlatformError, invalid
from .free_bets import FreeBets
from .history import History
from .rgs_client import Rgs, as_json
from .sessions import Sessions
from .store.accounts import Account

Answer = Callable[[Account, web.Request], Awaitable[object]]


class Records:
    """The answers of the JSON API."""

    def __init__(self, config: Config, rgs: Rgs, history: History, sessions: Sessions, free_bets: FreeBets) -> None:
        self._config = config
        self._rgs = rgs
        self._history = history
        self._sessions = sessions
        self._free_bets = free_bets

    def answers(self) -> tuple[tuple[str, Answer], ...]:
        """Path and answer."""
        return (
            ("/api/free-bets", self._playable),
            ("/api/rounds", self._rounds),
            ("/api/rounds/{round_id}", self._round),
            ("/api/keys", self._keys),
            ("/api/proofs/{hash}", self._proof),
            ("/api/instances/{instance}", self._instance),
            ("/api/receipts/{round_id}", self._receipt),
        )

    async def _playable(self, account: Account, _request: web.Request) -> object:
        return {"free_bets": [as_json(one) for one in await self._free_bets.playable(account.player)]}

    async def _rounds(self, account: Account, request: web.Request) -> object:
        return await self._history.of_player(account, dict(request.query))

    async def _record(self, account: Account, request: web.Request) -> Any:
        """The player's own record of a round."""
        query = dict(request.query)
        fields.check_known(query, "session_id")
        session_id = fields.text(query, "session_id", 1, 64)
        await self._sessions.own(account, session_id)
        wanted = history_pb2.GetRoundRecordRequest(round_id=request.match_info["round_id"], session_id=session_id)
        records = (await self._rgs.call(self._rgs.history.GetRoundRecord, wanted)).records
        if not records:
            raise PlatformError("ROUND_UNKNOWN", "there is no such round of yours", 404)
        return records[0]

    async def _round(self, account: Account, request: web.Request) -> object:
        return as_json(await self._record(account, request))

    async def _keys(self, _account: Account, _request: web.Request) -> object:
        found = await self._rgs.call(self._rgs.audit.ListKeyStatements, audit_pb2.ListKeyStatementsRequest())
        return {**as_json(found), "root_fingerprint": self._config.root_fingerprint}

    async def _proof(self, account: Account, request: web.Request) -> object:
        try:
            digest = bytes.fromhex(request.match_info["hash"])
        except ValueError:
            raise invalid("hash", "hash must be 64 hexadecimal digits") from None
        found = await self._rgs.call(self._rgs.audit.GetRecord, audit_pb2.GetRecordRequest(hash=digest))
        if found.statement.session_id:
            await self._sessions.own(account, found.statement.session_id)
        checkpoint = await self._rgs.call(self._rgs.audit.GetCheckpoint, audit_pb2.GetCheckpointRequest())
        return {
            "kind": found.statement.kind,
            "envelope": _text64(found.statement.envelope),
            "path": [_text64(one) for one in found.statement.path],
            "log_proof": found.log_proof.decode("utf-8"),
            "checkpoint": checkpoint.note.decode("utf-8"),
            "vkey": checkpoint.vkey,
        }

    async def _instance(self, _account: Account, request: web.Request) -> object:
        """The first statement of an instance, which names its key."""
        wanted = audit_pb2.GetStatementRequest(instance=request.match_info["instance"], statement_no=1)
        found = await self._rgs.call(self._rgs.audit.GetStatement, wanted)
        return {"kind": found.statement.kind, "envelope": _text64(found.statement.envelope)}

    async def _receipt(self, account: Account, request: web.Request) -> object:
        record = await self._record(account, request)
        return await receipt_of(self._rgs, record)


def _text64(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def receipt_of(rgs: Rgs, record: Any) -> dict[str, Any]:
    """All that an outsider needs to verify a round offline: the record, the keys, the proofs of the log."""
    names = ("opening", "final", "table_round", "table_deal", "table_final")
    envelopes = {name: getattr(record, name) for name in names if getattr(record, name)}
    envelopes |= {f"free_bet_{number}": envelope for number, envelope in enumerate(record.free_bets, 1)}
    keys = await rgs.call(rgs.audit.ListKeyStatements, audit_pb2.ListKeyStatementsRequest())
    proofs: dict[str, str] = {}
    instances: dict[str, str] = {}
    for name, envelope in envelopes.items():
        digest = leaf_hash(envelope)
        found = await rgs.call(rgs.audit.GetStatement, audit_pb2.GetStatementRequest(hash=digest))
        instance = found.statement.instance
        if instance and instance not in instances:
            first = audit_pb2.GetStatementRequest(instance=instance, statement_no=1)
            instances[instance] = _text64((await rgs.call(rgs.audit.GetStatement, first)).statement.envelope)
        try:
            logged = await rgs.call(rgs.audit.GetRecord, audit_pb2.GetRecordRequest(hash=digest))
            proofs[name] = logged.log_proof.decode("utf-8")
        except PlatformError as error:
            if error.reason != "NOT_LOGGED_YET":
                raise
    return {
        "format": "rgs/page-receipt/v1",
        "record": as_json(record),
        "keys": [_text64(one) for one in keys.envelopes],
        "instances": instances,
        "log_proofs": proofs,
    }


def leaf_hash(envelope: bytes) -> bytes:
    """The name of a statement: RFC 6962's hash of a leaf."""
    return hashlib.sha256(b"\x00" + envelope).digest()
