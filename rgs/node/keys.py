"""Follows the key bundle while the node serves (ARCHITECTURE 2.13, three keys). It is read every second.

A bundle that has grown is verified as a whole, served to auditors from then on, and reported by a signed event. A newer
key of this node ends the running instance and starts the next one (`Instance.hand_over`) without a stop. A bundle that
does not continue the present one is an error; only a restart takes such a bundle. While the node has no key in force,
no new rounds start; rounds already dealt are settled.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import VerificationError
from rgs.core.replay.keys import KeyBook
from rgs.core.statements import Signer
from rgs.core.statements.lines import parse_key_bundle
from rgs.node.config import Config
from rgs.node.files import read_whole
from rgs.node.keyring import load_node_signer
from rgs.service.audit.audit import StatementReader
from rgs.service.availability import Availability
from rgs.service.events import EventCode, event_draft
from rgs.service.instance import Instance
from rgs.store.changes import Change, Draft
from rgs.store.interface import Store

KEYS_GUARD = "keys"
NOT_IN_FORCE = "NODE_KEY_NOT_IN_FORCE"


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """Access to the node's key files. `read` returns the bundle; `signer_of` the signer of the node's newest key in a
    bundle, or VerificationError if that key is not in force.
    """

    read: Callable[[], bytes]
    signer_of: Callable[[bytes], Signer]


def key_files(config: Config, clock: Clock) -> KeyFiles:
    """The key files of the home. A key that is dated after the clock's time is not in force."""

    def signer_of(bundle: bytes) -> Signer:
        return load_node_signer(config, bundle, now_ms=clock.now_ms())

    return KeyFiles(partial(read_whole, config.bundle, "key bundle"), signer_of)


@dataclass(kw_only=True, eq=False, repr=False)
class NodeKeys:
    """Follows changes of the bundle. At most one `poll` runs at a time.

    `bundle` is the one in service; the node key `keyid` has started the instance.
    """

    node: str
    bundle: bytes
    keyid: str
    files: KeyFiles
    store: Store
    clock: Clock
    instance: Instance
    audit: StatementReader
    availability: Availability
    _settled: bool = field(default=True, init=False)
    """Whether the node signs with its newest key in the bundle in service."""
    _unsigned: list[Draft] = field(default_factory=list, init=False)
    """Events that are not signed yet."""

    async def poll(self) -> None:
        """Follow the bundle if it has changed. After FileRefusedError, VerificationError, StoreError or
        RngUnavailableError the present keys stay, and the next look tries again.
        """
        content = await asyncio.to_thread(self.files.read)
        if content != self.bundle:
            self._take(content)
        if not self._settled:
            await self._follow()
        if self._unsigned:
            drafts = tuple(self._unsigned)
            await self.store.commit(Change(drafts=drafts))
            del self._unsigned[: len(drafts)]

    def _take(self, content: bytes) -> None:
        """Serve the bundle from now on. This comes before anything is signed with a key that only this bundle names."""
        KeyBook(content)
        before, after = parse_key_bundle(self.bundle), parse_key_bundle(content)
        if after[: len(before)] != before:
            raise VerificationError("the key bundle does not continue the one in service: restart the server")
        old, new = (hashlib.sha256(data).hexdigest() for data in (self.bundle, content))
        self._unsigned.append(self._event(EventCode.KEYS_CHANGED, "bundle", old, new))
        structlog.get_logger().info("key_bundle_taken", statements=len(after))
        self.bundle, self._settled = content, False
        self.audit.take_key_statements(after)

    async def _follow(self) -> None:
        try:
            signer = await asyncio.to_thread(self.files.signer_of, self.bundle)
        except VerificationError:
            self._close()
            return
        if signer.keyid != self.keyid:
            before = self.instance.name
            drafts = (*self._unsigned, self._event(EventCode.KEYS_CHANGED, self.node, self.keyid, signer.keyid))
            await self.instance.hand_over(signer, drafts)
            self.keyid = signer.keyid
            self._unsigned.clear()
            structlog.get_logger().info("node_key_taken", before=before, instance=self.instance.name)
        self._settled = True
        if self.availability.open_guard(KEYS_GUARD):
            self._unsigned.append(self._event(EventCode.GUARD_OPENED, KEYS_GUARD, "CLOSED", "OPEN", NOT_IN_FORCE))

    def _close(self) -> None:
        if self.availability.close_guard(KEYS_GUARD, NOT_IN_FORCE, self.clock.now_ms()):
            structlog.get_logger().error("guard_closed", guard=KEYS_GUARD, code=NOT_IN_FORCE, latched=False)
            self._unsigned.append(self._event(EventCode.GUARD_CLOSED, KEYS_GUARD, "OPEN", "CLOSED", NOT_IN_FORCE))

    def _event(self, code: EventCode, subject: str, before: str, after: str, reason: str = "") -> Draft:
        """KEYS_CHANGED is about `bundle`, with two hashes, or about the node, with two keyids."""
        return event_draft(code, self.clock.now_ms(), subject=subject, before=before, after=after, reason=reason)
