"""The deletion of archived rounds from the shared store (rgs.store.archiving)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rgs.store.archiving import DROPS, Gone, verify_dropped
from rgs.store.changes import StoreError
from rgs.store.postgres.link import LOST, Link
from rgs.store.postgres.texts import postgres_text

_TEXTS: Final = {text: postgres_text(text) for text in DROPS}


async def drop(link: Link, gone: Sequence[Gone]) -> None:
    """Delete rows in one transaction. StoreRefusedError: nothing was deleted. StoreError: they may have been."""
    try:
        async with link.connection.transaction():
            for one in gone:
                tags = [await link.connection.execute(_TEXTS[text], value) for text, value in one.steps]
                verify_dropped(one, [int(tag.rpartition(" ")[2]) for tag in tags])
    except LOST as error:
        raise StoreError(f"the store did not answer ({type(error).__name__}): run `rgs archive` again") from None
