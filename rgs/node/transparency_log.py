"""A server's part in the transparency log: sequencer, witness client, and the signed events about them (docs/log.md).

A start fails if the policy is not evidence (`check_evidence`), or if one of its witnesses has no usable URL.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.tlog.policies import POLICY_BYTES_MAX, Policy, parse_policy, self_witnesses
from rgs.node.config import Config
from rgs.node.files import read_whole
from rgs.node.keyring import load_kek, load_log_signer
from rgs.node.log_folder import log_prefix, newest_cosigned
from rgs.service.cosigned import CosignedNews
from rgs.service.events import EventCode, Events
from rgs.service.sealing import Sealer
from rgs.store.interface import Store
from rgs.tlog.cosigning import Cosigner, Refusal, check_evidence
from rgs.tlog.sequencer import Sequencer
from rgs.tlog.witnesses import Witnesses, check_url

LOG_S: Final = 0.2
"""Seconds between two runs of the sequencer, and of the witness client."""
POLICY: Final = "log_policy"

Run = Callable[[str, Callable[[], Awaitable[object]], float | None], None]
"""Runs background work: its name, the work, the pause."""


class LogKeeping:
    """The log work of one process; made by `open`, running from `begin` to `end`."""

    def __init__(self, config: Config, clock: Clock, sequencer: Sequencer, policy: Policy | None) -> None:
        self._config = config
        self._clock = clock
        self._sequencer = sequencer
        self._policy = policy
        self.vkey_of = sequencer.vkey_of
        self.known = partial(newest_cosigned, config)
        """Returns the newest checkpoint of the log with a quorum of cosignatures."""
        self._tls = None if policy is None else trusted_by_witnesses(config.witness_ca)
        self._cosigner: Cosigner | None = None

    @classmethod
    async def open(cls, config: Config, clock: Clock, store: Store, keys: Callable[[], Sequence[bytes]]) -> LogKeeping:
        """`keys` returns the statements of the key bundle in service. InvalidFieldError for a bad policy,
        FileRefusedError.
        """
        sequencer = Sequencer(
            store=store,
            clock=clock,
            folder=config.translog,
            prefix=await log_prefix(config, store),
            signer=load_log_signer(config.keys),
            delay_ms=config.log_delay_s * 1000,
            keys=keys,
            seal=Sealer(load_kek(config)).seal_private,
        )
        policy = None if config.log_policy is None else read_policy(config.log_policy)
        return cls(config, clock, sequencer, policy)

    def code(self) -> str:
        """What is wrong with the log, a code; empty if nothing is."""
        return self._sequencer.code

    def progress(self) -> tuple[bool, int]:
        """Whether this process writes the log, and how long the oldest statement waits for it, in milliseconds."""
        return self._sequencer.leads, self._sequencer.lag_ms

    async def begin(self, events: Events, run: Run) -> None:
        """Log the statements that are waiting, then continue in the background."""
        sequencer = self._sequencer
        if self._policy is not None:
            parties = {name: party for name, party in self._policy.witnesses.items() if party.url}
            self._cosigner = Cosigner(
                witnesses=Witnesses(parties, self._clock, self._tls),
                policy=self._policy,
                sequencer=sequencer,
                folder=self._config.translog,
                clock=self._clock,
                emit=partial(_emit, events),
            )

        async def log() -> None:
            await sequencer.work()
            await events.report_log_key(sequencer.vkey)

        with contextlib.suppress(Exception):  # after an error, `code` closes the guard before the first call
            await sequencer.work()
        run("log", log, LOG_S)
        if self._cosigner is not None:
            run("witnesses", self._cosigner.work, LOG_S)
        run("cosigned", CosignedNews(known=self.known, events=events, clock=self._clock).poll, None)

    async def end(self) -> None:
        """Log the last statements, have them cosigned if that is quick, and close."""
        try:
            if self._cosigner is not None:
                await self._sequencer.finish()
                await self._cosigner.finish()
        except Exception as error:  # noqa: BLE001 - the next start asks the witnesses again
            structlog.get_logger().warning("log_not_cosigned", exc_info=error)
        finally:
            await self._sequencer.close()


def read_policy(path: Path) -> Policy:
    """The policy whose witnesses cosign the log. FileRefusedError, InvalidFieldError."""
    policy, own = load_policy(path)
    if not policy.is_met_by(policy.witnesses.keys() - own):
        structlog.get_logger().warning("log_self_witnessed", witnesses=sorted(own))
    return policy


def load_policy(path: Path) -> tuple[Policy, frozenset[str]]:
    """The policy of a file, and the names of its self-witnesses. FileRefusedError, InvalidFieldError."""
    data = read_whole(path, "log policy")
    try:
        policy, own = parse_policy(data), self_witnesses(data)
    except FormatError as error:
        limit = f"a C2SP tlog-policy of at most {POLICY_BYTES_MAX} bytes"
        raise InvalidFieldError(f"{path}: {error}", field=POLICY, limit=limit, value=path) from None
    check_evidence(policy, POLICY)
    for party in policy.witnesses.values():
        if party.url:
            check_url(party.url, POLICY)
    return policy, frozenset(own)


def trusted_by_witnesses(ca: Path | None) -> ssl.SSLContext | None:
    """The TLS context for witnesses with these CAs; None: the system's CAs. InvalidFieldError."""
    if ca is None:
        return None
    try:
        return ssl.create_default_context(cadata=read_whole(ca, "authorities of witnesses").decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise InvalidFieldError(
            f"{ca} holds no certificates", field="witness_ca", limit="PEM certificates", value=ca
        ) from None


async def _emit(events: Events, refusal: Refusal) -> None:
    seen, requested = refusal.seen, refusal.requested
    await events.emit(
        EventCode.WITNESS_REFUSED,
        subject=f"{refusal.witness} {requested.origin}",
        before="" if seen is None else f"{seen.size} {seen.root.hex()}",
        after=f"{requested.size} {requested.root.hex()}",
        reason=refusal.code,
    )
