"""Planted faults of voids: in the final, and in the events on which it stands."""

from __future__ import annotations

from functools import partial

from tests.support.records.factory import Body, Lie, RecordFactory, join
from tests.support.records.lies import LATE, OTHER_ULID, Change, Planted, Z, add, drop, lie_at, put
from tests.support.records.lying import begun, ended, void_factory

MALFUNCTION, PROPOSED = 3, 4
"""The events of `void_factory` behind the certificates of the two admins."""


def event(nth: int, change: Change) -> Lie:
    return lie_at("event", nth, change)


def add_ms(body: Body) -> None:
    """A millisecond later."""
    body["time"] = f"{body['time'][:-2]}1Z"


def proposed_at(time: str) -> Lie:
    """Proposal and first approval bear this time."""

    def lie(kind: str, number: int, body: Body) -> None:
        if (kind, number) == ("event", PROPOSED):
            body["time"] = time
        if kind == "round_final":
            body["void"]["approvals"][0]["time"] = time

    return lie


def approved_backwards() -> Lie:
    """The second approval bears the time of the malfunction, before the first one's."""
    times: list[str] = []

    def lie(kind: str, number: int, body: Body) -> None:
        if (kind, number) == ("event", MALFUNCTION):
            times.append(body["time"])
        if kind == "round_final":
            body["void"]["approvals"][1]["time"] = times[0]

    return lie


def resumed() -> RecordFactory:
    """The round went on, and is made void for the malfunction that was over."""
    factory, one, player = begun()
    factory.deal(one, [player], {"ante": 100})
    malfunction = factory.pause(one, player)
    factory.event(one, "ROUND_RESUMED", actor="admin-1", **player.named())
    factory.void(one, player, malfunction=malfunction)
    return ended(factory, one, player)


def foreseen() -> RecordFactory:
    """The malfunction is dated before the opening, and nothing was decided."""
    factory, one, player = begun(lie=event(MALFUNCTION, put("time", value="2026-11-18T11:06:44.000Z")))
    factory.deal(one, [player], {"ante": 100})
    factory.void(one, player)
    return ended(factory, one, player)


def decided_while_paused() -> RecordFactory:
    factory, one, player = begun()
    factory.deal(one, [player], {"ante": 100})
    factory.act(player, ["check"])
    malfunction = factory.pause(one, player)
    factory.act(player, ["check"])
    factory.void(one, player, malfunction=malfunction)
    return ended(factory, one, player)


def another_rounds() -> RecordFactory:
    """A round made void for the malfunction of the round before it."""
    factory, one, player = begun()
    factory.deal(one, [player], {"ante": 100})
    malfunction = factory.pause(one, player)
    factory.void(one, player, malfunction=malfunction)
    factory.deal(one, [player], {"ante": 100})
    factory.void(one, player, malfunction=malfunction)
    return ended(factory, one, player)


def removed_later() -> RecordFactory:
    """Honest: the first admin's certificate was removed behind the void."""
    return removed_admin(is_removed_first=False)


def removed_admin(*, is_removed_first: bool = True) -> RecordFactory:
    """The second admin's certificate was removed before he approved, or the first one's behind the void."""
    factory, one, player = begun()
    factory.deal(one, [player], {"ante": 100})
    factory.admins(one)
    if is_removed_first:
        factory.event(one, "CERTIFICATE_REMOVED", subject=f"admin admin-2 {2:064x}", before="allowed", after="denied")
    factory.void(one, player)
    if not is_removed_first:
        factory.event(one, "CERTIFICATE_REMOVED", subject=f"admin admin-1 {1:064x}", before="allowed", after="denied")
    return ended(factory, one, player)


def removed_in_disorder(*, is_removed_first: bool) -> RecordFactory:
    """The second admin's certificate was removed before he approved. The removal stands before the addition, or behind
    the void.
    """
    factory, one, player = begun()
    removed = factory.now()
    remove = partial(factory.event, one, "CERTIFICATE_REMOVED", subject=f"admin admin-2 {2:064x}", time=removed)
    if is_removed_first:
        remove()
    factory.deal(one, [player], {"ante": 100})
    factory.void(one, player)
    if not is_removed_first:
        remove()
    return ended(factory, one, player)


def reported_by_another() -> RecordFactory:
    """Another instance tells the malfunction; `events_last` puts what it signs behind the void."""
    factory, one, player = begun()
    factory.deal(one, [player], {"ante": 100})
    two = factory.start("rgs-2", worker=1)
    factory.void(one, player, paused_by=two)
    factory.end(two)
    return ended(factory, one, player)


def events_last(factory: RecordFactory) -> bytes:
    moved = [line for line in factory.lines if b"vnd.rgs.event" in line]
    end = [line for line in factory.lines if b"vnd.rgs.instance-end" in line]
    kept = [line for line in factory.lines if line not in (*moved, end[0])]
    return join([*kept, *moved, end[0]])


VOIDS = (
    Planted("one approval", "19 void", partial(void_factory, lie_at("round_final", 1, drop("void", "approvals", 1)))),
    Planted(
        "approved twice by one",
        "19 void",
        partial(void_factory, lie_at("round_final", 1, put("void", "approvals", 1, "party", value="admin-1"))),
    ),
    Planted(
        "approved at hour 24",
        "4 schema",
        partial(
            void_factory,
            lie_at("round_final", 1, put("void", "approvals", 1, "time", value="2026-11-20T24:00:00.000Z")),
        ),
    ),
    Planted(
        "void keeps a stake",
        "19 void",
        partial(void_factory, lie_at("round_final", 1, add("settlement", 0, "returned_minor", by=-1))),
    ),
    Planted(
        "void returns less", "18 balance", partial(void_factory, lie_at("round_final", 1, add("returned_minor", by=-1)))
    ),
    Planted(
        "what would have been is missing",
        "19 void",
        partial(void_factory, lie_at("round_final", 1, drop("void", "would_have_been"))),
    ),
    Planted(
        "what would have been is prettier",
        "17 settlement",
        partial(void_factory, lie_at("round_final", 1, put("void", "would_have_been", 0, "result", value="win"))),
    ),
    Planted(
        "who would have won",
        "16 hands",
        partial(void_factory, lie_at("round_final", 1, put("void", "would_have_outcome", "outcome", value="player"))),
    ),
    Planted(
        "outcome of a void",
        "11 opening",
        partial(
            void_factory, lie_at("round_final", 1, lambda body: body.update(outcome=body["void"]["would_have_outcome"]))
        ),
    ),
    Planted("void that hides its deck", "11 opening", partial(void_factory, lie_at("round_final", 1, drop("deck")))),
    Planted(
        "unrecoverable deck that is there",
        "11 opening",
        partial(void_factory, lie_at("round_final", 1, put("void", "reason", value="DECK_UNRECOVERABLE"))),
    ),
    Planted(
        "unrecoverable, and yet would have been",
        "19 void",
        partial(void_factory, lie_at("round_final", 1, put("void", "would_have_been", value=[])), "DECK_UNRECOVERABLE"),
    ),
    Planted(
        "unrecoverable, and returns less",
        "18 balance",
        partial(void_factory, lie_at("round_final", 1, add("returned_minor", by=-1)), "DECK_UNRECOVERABLE"),
    ),
    Planted(
        "malfunction of nothing",
        "19 void",
        partial(void_factory, lie_at("round_final", 1, put("void", "malfunction", value=Z))),
    ),
    *(
        Planted(name, "19 void", partial(void_factory, lie))
        for name, lie in (
            ("malfunction that is another event", event(MALFUNCTION, put("code", value="GUARD_CLOSED"))),
            ("malfunction of a round that nobody knows", event(MALFUNCTION, put("round_id", value=OTHER_ULID))),
            ("malfunction of no round", event(MALFUNCTION, drop("round_id"))),
            ("malfunction of another session", event(MALFUNCTION, put("session_id", value=OTHER_ULID))),
            ("malfunction dated behind the approvals", event(MALFUNCTION, put("time", value=LATE))),
            ("malfunction dated before a decision", event(MALFUNCTION, put("time", value="2026-11-18T11:06:45.000Z"))),
            ("approved before the malfunction", proposed_at("2026-11-18T11:06:45.000Z")),
            ("approved after the void", lie_at("round_final", 1, put("void", "approvals", 1, "time", value=LATE))),
            ("approved backwards", approved_backwards()),
            ("nobody proposed the void", event(PROPOSED, put("code", value="LARGE_WIN"))),
            ("proposed by another", event(PROPOSED, put("actor", value="admin-3"))),
            ("proposed for another reason", event(PROPOSED, put("reason", value="OTHER"))),
            ("proposed for another round", event(PROPOSED, put("round_id", value=OTHER_ULID))),
            ("proposed for another session", event(PROPOSED, put("session_id", value=OTHER_ULID))),
            ("proposed at another time", event(PROPOSED, add_ms)),
            ("malfunction dated before the opening", event(MALFUNCTION, put("time", value="2026-11-18T11:06:44.000Z"))),
            ("two admins of one certificate", event(2, put("subject", value=f"admin admin-2 {1:064x}"))),
            ("approved by one who is no admin", event(2, put("subject", value=f"auditor admin-2 {2:064x}"))),
            ("approved by an admin of another name", event(2, put("subject", value=f"admin admin-3 {2:064x}"))),
            ("approved by an admin of whom nothing tells", event(1, put("code", value="LARGE_WIN"))),
            ("approved by an admin to come", event(2, put("time", value=LATE))),
            ("an admin whose certificate is not told whole", event(2, put("subject", value="admin admin-2"))),
        )
    ),
    Planted("a malfunction before the round began, and no decision", "19 void", foreseen),
    Planted("void of a round that was resumed", "19 void", resumed),
    Planted("decided while the round was paused", "19 void", decided_while_paused),
    Planted("malfunction of the round before", "19 void", another_rounds),
    Planted("approved by an admin who was removed", "19 void", removed_admin),
    Planted("removal told before the addition", "19 void", partial(removed_in_disorder, is_removed_first=True)),
    Planted("removal told behind the void", "19 void", partial(removed_in_disorder, is_removed_first=False)),
    Planted("malfunction told behind the void", "19 void", reported_by_another, events_last),
)
"""Faults of voids."""
