"""An evening of two operators at one table, for those who read its records; and a home for the commands over it."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.tables.machine import State
from rgs.node.config import CONFIG_FILE
from rgs.node.files import PUBLIC_MODE, SECRET_MODE, write_new
from rgs.node.keyring import BUNDLE, format_private_key, node_key_file
from rgs.service.callers import Caller, Role
from rgs.store.interface import StatementRow
from tests.support.service.harness import NODE, NODE_KEY, OPERATOR, ServiceHarness, key_bundle
from tests.support.service.oracles import stored_statements
from tests.support.service.tables import ALWAYS, Evening, Sitter

OTHER = Caller("op-2", Role.OPERATOR, "demo")
STRANGER = Caller("op-3", Role.OPERATOR, "demo")
"""An operator whose players may not play at the table."""
AUDITOR, REGULATOR = Caller("auditor-1", Role.AUDITOR, ""), Caller("regulator-1", Role.REGULATOR, "")
NODE_SEED = b"the node of a test server: 32 by"
"""Of NODE_KEY."""


class SharedEvening(Evening):
    """A table that two operators share: two players of OPERATOR, two of OTHER."""

    def __init__(self, harness: ServiceHarness, table_id: str = "uth-online") -> None:
        super().__init__(harness, table_id, operators=[OPERATOR.party, OTHER.party], hours=ALWAYS)
        self.own: list[Sitter] = []
        self.others: list[Sitter] = []

    async def gather(self) -> SharedEvening:
        """Set the table up, and let all sit down. The same pseudonyms at both operators are different players."""
        await self.open()
        self.own = await self.seated("player-1", "player-2")
        self.others = await self.seated("player-1", "player-3", caller=OTHER)
        return self

    @property
    def everybody(self) -> list[Sitter]:
        return [*self.own, *self.others]

    async def bet(self, *sitters: Sitter) -> None:
        """These bet in the next round, by default all."""
        await self.until(State.IDLE, State.BETTING)
        for sitter in sitters or self.everybody:
            await sitter.look()
            await sitter.bet(ante=1_000, trips=500)

    async def play(self, *sitters: Sitter) -> str:
        """A whole round, in which the first raises, the second checks, the others are silent; its id."""
        await self.bet(*sitters)
        await self.until(State.DECIDING)
        first, *more = sitters or self.everybody
        await first.decide("play_4x")
        for sitter in more[:1]:
            await sitter.decide("check")
        await self.until(State.RESULT)
        return (await self.row()).table.round_id

    async def break_up(self) -> None:
        """All leave, and everything is paid out."""
        for sitter in self.everybody:
            await sitter.look()
            await sitter.leave()
            await sitter.end()
        await self.harness.settle()

    def statements(self, *kinds: str) -> list[StatementRow]:
        """Those of some kinds, as they stand in the store."""
        return [row for row in stored_statements(self.harness.folder) if row.kind in kinds]


def kind_and_body(envelope: bytes) -> tuple[str, dict[str, object]]:
    kind, body = parse_statement(parse_envelope(envelope))
    return kind.name, body


def make_home(home: Path) -> Path:
    """A home whose store lies in `store`, as a harness has made it there, with the harness's keys."""
    assert Ed25519PrivateKey.from_private_bytes(NODE_SEED).public_key().public_bytes_raw() == NODE_KEY.public_key
    (home / "keys").mkdir()
    write_new(home / CONFIG_FILE, f'node = "{NODE}"\n'.encode(), PUBLIC_MODE)
    write_new(home / "keys" / BUNDLE, key_bundle(), PUBLIC_MODE)
    key = format_private_key(Ed25519PrivateKey.from_private_bytes(NODE_SEED))
    write_new(home / "keys" / node_key_file(NODE, NODE), key, SECRET_MODE)
    return home
