"""For commands that change a store and sign the change: such a command is an instance of the node while it runs.

Opening fails if a server holds the store file. In a database the instance takes no server's place, because no server
has its worker number.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from rgs import __version__
from rgs.integrity.manifest import Manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config
from rgs.node.keyring import load_bundle, load_kek, load_node_signer
from rgs.service.instance import Artifact, Instance
from rgs.service.sealing import Sealer
from rgs.store.address import PostgresAddress
from rgs.store.interface import Store
from rgs.store.opening import open_store

WORKER: Final = 999
"""Above the numbers of servers' workers."""


@asynccontextmanager
async def signing(
    config: Config, manifest: Manifest, reason: str, *, recovers: bool = False
) -> AsyncIterator[tuple[Store, Instance]]:
    """The store, signed by an instance that ends with the block for this reason. `recovers`: it is a restored store."""
    clock = SystemClock()
    node_signer = load_node_signer(config, load_bundle(config), now_ms=clock.now_ms())
    shared = isinstance(config.store, PostgresAddress)
    store = await open_store(config.store)
    try:
        instance = Instance(
            store=store,
            clock=clock,
            sealer=Sealer(load_kek(config)),
            node=config.node,
            worker=WORKER,
            shared=shared,
            draws_in_flight_max=1,
        )
        await instance.start(
            node_signer,
            manifest_sha256=manifest.sha256,
            software_version=__version__,
            artifacts=[Artifact("manifest", manifest.sha256, manifest.content)],
            recovers=recovers,
        )
        try:
            yield store, instance
        finally:
            await instance.end(reason)
    finally:
        await store.close()
