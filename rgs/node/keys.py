"""The node's keys while it serves (ARCHITECTURE 2.13): looks at the key bundle every second, and goes on under what it
says.

A bundle that has grown is verified whole, served to auditors from then on, and told by a signed event; a newer key of
this node ends the running instance and starts the next one (`Instance.turn`), without a stop. Refuses a bundle that
does not continue the one in service: what was said of keys is never taken back but by a start with another bundle.
Starts no new rounds while the node has no key in force: dealt rounds are settled.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
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
from rgs.service.events import EventCode, event_draft
from rgs.service.instance import Instance
from rgs.service.permits import Permits
from rgs.store.changes import Change, Draft
from rgs.store.interface import Store

KEYS_GUARD = "keys"
NOT_IN_FORCE = "NODE_KEY_NOT_IN_FORCE"


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """What the node has on disk. `read` returns the bundle as it is; `signer_of` finds the private key of the node's
    newest key in a bundle: VerificationError if that key is not in force.
    """

    read: Callable[[], bytes]
    signer_of: Callable[[bytes], Signer]


def key_files(config: Config, clock: Clock) -> KeyFiles:
    """Those of the home; a key that is dated later than the clock's now is not in force."""

    def signer_of(bundle: bytes) -> Signer:
        return load_node_signer(config, bundle, now_ms=clock.now_ms())

    return KeyFiles(partial(read_whole, config.bundle, "key bundle"), signer_of)


class NodeKeys:
    """Takes up what changes; one look at a time."""

    def __init__(
        self,
        *,
        node: str,
        bundle: bytes,
        keyid: str,
        files: KeyFiles,
        store: Store,
        clock: Clock,
        instance: Instance,
        audit: StatementReader,
        permits: Permits,
    ) -> None:
        """`bundle` is in service, and the instance was started by the node key `keyid`."""
        self._node = node
        self._bundle = bundle
        self._keyid = keyid
        self._files = files
        self._store = store
        self._clock = clock
        self._instance = instance
        self._audit = audit
        self._permits = permits
        self._settled = True
        """Whether the node signs by the newest key that the bundle in service names."""
        self._untold: list[Draft] = []

    async def look(self) -> None:
        """See whether the bundle has changed, and follow it. FileRefusedError, VerificationError, StoreError,
        RngUnavailableError: the keys in service stay, and the next look tries again.
        """
        content = await asyncio.to_thread(self._files.read)
        if content != self._bundle:
            self._take(content)
        if not self._settled:
            await self._follow()
        if self._untold:
            drafts = tuple(self._untold)
            await self._store.commit(Change(drafts=drafts))
            del self._untold[: len(drafts)]

    def _take(self, content: bytes) -> None:
        """Serve the bundle from now on: before anything is signed under a key that only it names."""
        KeyBook(content)
        before, after = parse_key_bundle(self._bundle), parse_key_bundle(content)
        if after[: len(before)] != before:
            raise VerificationError("the key bundle does not continue the one in service: start the server again")
        self._note("bundle", hashlib.sha256(self._bundle).hexdigest(), hashlib.sha256(content).hexdigest())
        structlog.get_logger().info("key_bundle_taken", statements=len(after))
        self._bundle, self._settled = content, False
        self._audit.take_key_statements(after)

    async def _follow(self) -> None:
        try:
            signer = await asyncio.to_thread(self._files.signer_of, self._bundle)
        except VerificationError:
            self._close()
            return
        if signer.keyid != self._keyid:
            before = self._instance.name
            drafts = (*self._untold, self._changed(self._node, self._keyid, signer.keyid))
            await self._instance.turn(signer, drafts)
            self._keyid = signer.keyid
            self._untold.clear()
            structlog.get_logger().info("node_key_taken", before=before, instance=self._instance.name)
        self._settled = True
        if self._permits.open_guard(KEYS_GUARD):
            self._untold.append(self._guard_event(EventCode.GUARD_OPENED, "CLOSED", "OPEN"))

    def _close(self) -> None:
        if self._permits.close_guard(KEYS_GUARD, NOT_IN_FORCE, self._clock.now_ms()):
            structlog.get_logger().error("guard_closed", guard=KEYS_GUARD, code=NOT_IN_FORCE, latched=False)
            self._untold.append(self._guard_event(EventCode.GUARD_CLOSED, "OPEN", "CLOSED"))

    # --- what is told ---------------------------------------------------------------------------------------------

    def _note(self, subject: str, before: str, after: str) -> None:
        self._untold.append(self._changed(subject, before, after))

    def _changed(self, subject: str, before: str, after: str) -> Draft:
        """Subject is `bundle` with two hashes of it, or the node with two keyids."""
        now_ms = self._clock.now_ms()
        return event_draft(EventCode.KEYS_CHANGED, now_ms, subject=subject, before=before, after=after)

    def _guard_event(self, code: EventCode, before: str, after: str) -> Draft:
        now_ms = self._clock.now_ms()
        return event_draft(code, now_ms, subject=KEYS_GUARD, before=before, after=after, reason=NOT_IN_FORCE)
