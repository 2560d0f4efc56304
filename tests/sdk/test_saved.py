"""A receipt made of a server's answers, as a page saves it, verifies in TypeScript with the free bet of its round."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

from rgs.core.statements import leaf_hash
from rgs.v1 import audit_pb2, common_pb2, history_pb2
from rgs.v1.audit_pb2_grpc import AuditServiceStub
from rgs.v1.free_bet_pb2_grpc import FreeBetServiceStub
from tests.integration.test_api_free_bets import granting
from tests.sdk.test_verifier import NODE, PACKAGE, built, pytestmark
from tests.support.api.client import ApiClient
from tests.support.api.harness import serving

__all__ = ["built", "pytestmark"]
Receipt = dict[str, Any]


async def receipts(folder: Path) -> tuple[Receipt, Receipt]:
    """Of a round that a free bet paid for, and of one of the player's own."""
    async with serving(folder) as harness:
        player = ApiClient(harness.channel())
        grants: Any = FreeBetServiceStub(player.channel)
        await player.open()
        await player.buy()
        (grant, _) = (await grants.GrantFreeBets(granting())).free_bets
        found = []
        for number, named in enumerate(({"free_bet": grant.grant_id}, {}), 1):
            player.seen(await player.play.StartRound(player.start_request(round_no=number, **named)))
            for _ in range(2):
                await player.act(common_pb2.ACTION_CHECK)
            await player.act(common_pb2.ACTION_FOLD)
            found.append(await receipt(player))
        return found[0], found[1]


async def receipt(player: ApiClient) -> Receipt:
    audit: Any = AuditServiceStub(player.channel)
    request = history_pb2.GetRoundRecordRequest(round_id=player.round_id)
    (record,) = (await player.history.GetRoundRecord(request)).records
    keys = await audit.ListKeyStatements(audit_pb2.ListKeyStatementsRequest())
    instances = {}
    for envelope in (record.opening, record.final, *record.free_bets):
        signed = await audit.GetStatement(audit_pb2.GetStatementRequest(hash=leaf_hash(envelope)))
        name = signed.statement.instance
        first = await audit.GetStatement(audit_pb2.GetStatementRequest(instance=name, statement_no=1))
        instances[name] = base64.b64encode(first.statement.envelope).decode()
    return {
        "format": "rgs/page-receipt/v1",
        "record": MessageToDict(record, preserving_proto_field_name=True),
        "keys": [base64.b64encode(one).decode() for one in keys.envelopes],
        "instances": instances,
        "log_proofs": {},
    }


def verified(saved: Receipt, folder: Path) -> tuple[int, str]:
    assert NODE is not None
    file = folder / "receipt.json"
    file.write_text(json.dumps(saved))
    command = [NODE, str(PACKAGE / "bin/rgs-verify.mjs"), "saved", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


async def test_what_the_server_answers_verifies_as_a_saved_receipt(built: None, tmp_path: Path) -> None:
    free, own = await receipts(tmp_path)
    status, said = verified(free, tmp_path)
    assert status == 0, said
    assert "ok       free_bet\n" in said
    assert "campaign spring" in said
    assert "skipped  log: no proof is given that the log holds the statements" in said
    status, said = verified(own, tmp_path)
    assert status == 0, said
    assert "free_bet\n" not in said
    del free["record"]["free_bets"][0]
    status, said = verified(free, tmp_path)
    assert status == 0, said
    assert "skipped  free_bet: what the campaign paid is not shown" in said
    mixed = {**free, "record": {**free["record"], "final": own["record"]["final"]}}
    status, said = verified(mixed, tmp_path)
    assert status == 2
    assert said.startswith("rgs-verify: record.")
