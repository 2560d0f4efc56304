"""The deletion of archived rounds from the shared store (rgs.store.archiving)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rgs.store.archiving import DROP_ROUNDS, DROP_STATEMENTS, verify_dropped
from rgs.store.changes import StoreError
from rgs.store.postgres.link import LOST, Link
from rgs.store.postgres.texts import postgres_text

_TEXTS: Final = tuple(map(postgres_text, (DROP_STATEMENTS, DROP_ROUNDS)))


async def drop(link: Link, sessions: Sequence[tuple[str, int, int]]) -> None:
    """Delete the rows of (session, statements, rounds) in one transaction. StoreRefusedError: nothing was deleted.
    StoreError: they may have been.
    """
    try:
        async with link.connection.transaction():
            for session_id, statements, rounds in sessions:
                tags = [await link.connection.execute(text, session_id) for text in _TEXTS]
                found = [int(tag.rpartition(" ")[2]) for tag in tags]
                verify_dropped(session_id, (statements, rounds), (found[0], found[1]))
    except LOST as error:
        raise StoreError(f"the store did not answer ({type(error).__name__}): run `rgs archive` again") from None
