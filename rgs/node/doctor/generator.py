"""The generator process of a home, if its settings name one: whether it answers this user, and runs this software."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Final

from rgs.integrity.manifest import make_manifest
from rgs.node.doctor.findings import Finding, Home, fine, found
from rgs.node.generator.client import begin_served
from rgs.node.generator.wire import rng_sha256
from rng.errors import RngError

GENERATOR: Final = "generator"


async def check_generator(home: Home) -> AsyncIterator[Finding]:
    """Begin a generator as the server does, under a name of this process, and draw nothing."""
    path = home.config.generator
    if path is None:
        return
    try:
        generator = await begin_served(path, rng_sha256(make_manifest()), f"doctor-{os.getpid()}")
    except RngError as error:
        yield found(GENERATOR, "GENERATOR_REFUSED", str(error), value=path)
        return
    await generator.close()
    yield fine(GENERATOR, f"the generator process at {path} answers, and runs this software")
