"""Factories that lie: builders for the faults that `planted` names."""

from __future__ import annotations

import json
from collections.abc import Callable

from rgs.core.statements import (
    KINDS,
    Ed25519Signer,
    first_actions_hash,
    format_canonical,
    next_actions_hash,
    seal_envelope,
)
from rgs.core.tlog.merkle import leaf_hash
from tests.support.records.factory import Body, Lie, RecordFactory, join
from tests.support.records.lies import EARLY, Change, lie_at, put
from tests.support.records.parts import SessionRecord, Worker
from tests.support.records.ready_made import small_factory

NOBODY = Ed25519Signer.from_seed(bytes(32))
"""A key that no root knows."""


# --- factories ---


def begun(
    ruleset: str = "uth-solo",
    *,
    jurisdiction: str = "demo",
    law_version: int | None = 1,
    table: str = "",
    bought: int = 10_000,
    lie: Lie | None = None,
    bend: Callable[[bytes], bytes] = bytes,
) -> tuple[RecordFactory, Worker, SessionRecord]:
    factory = RecordFactory("planted", lie=lie, bend=bend, law_version=law_version)
    one = factory.start("rgs-1")
    player = factory.open(one, ruleset, jurisdiction=jurisdiction, table=table)
    factory.buy(one, player, bought)
    return factory, one, player


def ended(factory: RecordFactory, one: Worker, *players: SessionRecord) -> RecordFactory:
    for player in players:
        factory.end_participation(one, player)
        factory.close(one, player)
    factory.end(one)
    return factory


def played(
    ruleset: str = "uth-solo", actions: str = "play_4x", jurisdiction: str = "demo", **more: object
) -> RecordFactory:
    factory, one, player = begun(ruleset, jurisdiction=jurisdiction, **more)  # type: ignore[arg-type]
    factory.play(one, player, {"ante": 100}, actions.split())
    return ended(factory, one, player)


def two_rounds(lie: Lie | None = None, jurisdiction: str = "demo", passed_ms: int = 5000) -> RecordFactory:
    factory, one, player = begun(lie=lie, jurisdiction=jurisdiction)
    for passed in (5000, passed_ms):
        factory.deal(one, [player], {"ante": 100}, passed_ms=passed)
        factory.act(player, ["play_4x"])
        factory.settle(one, player)
    return ended(factory, one, player)


def limits(**reported: str) -> Lie:
    """A session_open that says it has these limits, whatever is played in it."""
    return lie_at("session_open", 1, put("limits", value=reported))


def two_folds(lie: Lie | None = None) -> RecordFactory:
    """Two rounds that lose their ante and blind of 100 each."""
    factory, one, player = begun(lie=lie)
    for _ in range(2):
        factory.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    return ended(factory, one, player)


def void_and_round(lie: Lie | None = None) -> RecordFactory:
    """A void round of 200, then one that folds for 200."""
    factory, one, player = begun(lie=lie)
    factory.deal(one, [player], {"ante": 100})
    factory.void(one, player)
    factory.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    return ended(factory, one, player)


def table_of_three(lie: Lie | None = None, opened: int = 3) -> RecordFactory:
    factory = RecordFactory("table", lie=lie)
    one = factory.start("rgs-1")
    players = [factory.open(one, "uth-seven-box", table="box") for _ in range(3)]
    for player in players:
        factory.buy(one, player, 10_000)
    factory.deal(one, players, {"ante": 100}, opened=opened)
    for player in players[:opened]:
        factory.act(player, ["play_4x"])
        factory.settle(one, player)
    return ended(factory, one, *players)


def two_instances(lie: Lie | None = None, ends: str = "lost") -> RecordFactory:
    """An instance that another declares lost, and the node's next boot, which names it."""
    factory = RecordFactory("instances", lie=lie)
    one, two = factory.start("rgs-1", "node-1"), factory.start("rgs-2", "node-2")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    if ends == "both":
        factory.end(one)
    if ends != "neither":
        factory.lose(two, one)
    if ends == "twice":
        factory.lose(two, one)
    three = factory.start("rgs-3", "node-1", 2, previous_boot=factory.boot(one))
    factory.end_participation(two, player)
    factory.close(three, player)
    factory.end(two)
    factory.end(three)
    return factory


def widen(factory: RecordFactory, worker: Worker, most: int) -> None:
    """From here on the worker has a draw window of so many."""
    factory.numbered(worker, "draw_window", {"draws_in_flight_max": str(most)})


def windowed(*steps: int) -> RecordFactory:
    """Draw windows of these sizes one after the other, the start's of 8 before them; 0 stands for sixteen draws in
    flight at once, of which the last is the first to be accounted for. The instance is lost.
    """
    factory = RecordFactory("windows")
    one, two = factory.start("rgs-1", "node-1"), factory.start("rgs-2", "node-2")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    for step in steps:
        if step:
            widen(factory, one, step)
            continue
        *before, last = [factory.draw(one) for _ in range(16)]
        for draw in (last, *before):
            factory.discard(one, draw)
    factory.lose(two, one)
    factory.end_participation(two, player)
    factory.close(two, player)
    factory.end(two)
    return factory


def void_factory(lie: Lie | None = None, reason: str = "MALFUNCTION") -> RecordFactory:
    """A round that two admins made void after its first decision."""
    factory, one, player = begun(lie=lie)
    factory.deal(one, [player], {"ante": 100, "trips": 50})
    factory.act(player, ["check"])
    factory.void(one, player, reason)
    return ended(factory, one, player)


def key_twice() -> RecordFactory:
    """Every instance names the key of the first."""
    keys: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "instance_start":
            keys.append(body["public_key"])
            body["public_key"] = keys[0]

    return two_instances(lie)


# --- what takes more than one changed field ---


def other_deck() -> RecordFactory:
    """The whole final tells of another deck and is right in itself; the commitment is the old one."""
    factory, one, player = begun()
    factory.deal(one, [player], {"ante": 100})
    factory.act(player, ["check", "check", "fold"])
    factory.settle(one, player, transcript=factory.random.transcript())
    return ended(factory, one, player)


def stakes(change: Change, ruleset: str = "uth-solo") -> RecordFactory:
    """Bets that are not the game's; leaf and root are made for them, so that nothing else is wrong with the seat."""

    def lie(body: Body) -> None:
        change(body["seat"])
        body["deal"]["seats_root"] = leaf_hash(format_canonical(body["seat"])).hex()

    return played(ruleset, "call" if ruleset == "casino-holdem" else "play_4x", lie=lie_at("round_opening", 1, lie))


def uncovered() -> RecordFactory:
    """A play bet that the balance does not cover (RULEBOOK U-11)."""
    change: Change = lambda body: body["actions"][0].update(action="play_4x", amount_minor="400")  # noqa: E731
    return played(actions="check check fold", bought=250, lie=lie_at("round_final", 1, change))


def second_purchase(change: Change | None = None, amounts: tuple[int, int] = (10_000, 100)) -> RecordFactory:
    factory, one, player = begun(bought=amounts[0], lie=change and lie_at("purchase", 2, change))
    factory.buy(one, player, amounts[1])
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(factory, one, player)


def same_code() -> RecordFactory:
    """Two rounds that started in one second, both with the plain code."""
    first: Body = {}

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            first.update({} if first else {name: body["deal"][name] for name in ("start_time", "game_code")})
            body["deal"].update(first)

    return two_rounds(lie)


def start_goes_back() -> RecordFactory:
    changed = {"game_code": "#00:00:00", "start_time": EARLY}
    return two_rounds(lie_at("round_opening", 2, lambda body: body["deal"].update(changed)))


def round_id_twice() -> RecordFactory:
    rounds: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            rounds.append(body["deal"]["round_id"])
            body["deal"]["round_id"] = rounds[0]

    return two_rounds(lie)


def order(steps: str) -> RecordFactory:
    """Links in an order that a session does not have."""
    factory = RecordFactory("order")
    one = factory.start("rgs-1")
    player = factory.open(one)
    other = factory.open(one)
    factory.buy(one, other, 10_000)
    factory.play(one, other, {"ante": 100}, ["play_4x"])
    take: dict[str, Callable[[], object]] = {
        "buy": lambda: factory.buy(one, player, 10_000),
        "deal": lambda: factory.deal(one, [player], {"ante": 100}),
        "act": lambda: factory.act(player, ["play_4x"]),
        "settle": lambda: factory.settle(one, player),
        "end": lambda: factory.end_participation(one, player),
        "close": lambda: factory.close(one, player),
        "open": lambda: factory.open(one, player=player),
        "credit": lambda: vars(player).update(bought=20_000, paid_out=0),  # nothing is signed for it
        "transfer": lambda: factory.link(one, player, "transfer", transfer),
    }
    transfer = {"amount_minor": "1", "direction": "debit", "round_id": factory.ulid(), "transaction_id": factory.ulid()}
    for step in steps.split():
        take[step]()
    return ended(factory, one, other)


def signed_by(kind: str, other: Ed25519Signer | None) -> RecordFactory:
    """A kind signed by a key of nobody, or (None) by the first key that signed anything: the root."""
    first: list[Ed25519Signer] = []

    def sealing(payload_type: str, payload: bytes, signer: Ed25519Signer) -> bytes:
        first.append(signer)
        is_reported = payload_type == KINDS[kind].payload_type
        return seal_envelope(payload_type, payload, (other or first[0]) if is_reported else signer)

    return small_factory(sealing=sealing)


def sealed(kind: str, change: Callable[[str, bytes], tuple[str, bytes]]) -> RecordFactory:
    """A kind whose payload type or bytes are changed before they are signed."""

    def sealing(payload_type: str, payload: bytes, signer: Ed25519Signer) -> bytes:
        if payload_type == KINDS[kind].payload_type:
            payload_type, payload = change(payload_type, payload)
        return seal_envelope(payload_type, payload, signer)

    return small_factory(sealing=sealing)


def spaced(payload_type: str, payload: bytes) -> tuple[str, bytes]:
    return payload_type, json.dumps(json.loads(payload), sort_keys=True).encode()


def unsorted(payload_type: str, payload: bytes) -> tuple[str, bytes]:
    fields = json.loads(payload)
    return payload_type, json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode()


def repeated_key(payload_type: str, payload: bytes) -> tuple[str, bytes]:
    return payload_type, payload[:-1] + b"," + payload[1:]


# --- files that are not what the server signed ---


def lines_but(factory: RecordFactory, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    return join(change(list(factory.lines)))


def private_changed(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"player":"p-1"', b'"player":"p-2"') for line in lines]


def private_where_none_is(lines: list[bytes]) -> list[bytes]:
    block = lines[1][lines[1].index(b',"private":') :]
    return [*lines[:-1], lines[-1].replace(b',"private":null}', block)]


def signature_flipped(lines: list[bytes]) -> list[bytes]:
    line = lines[4]
    place = line.index(b'"sig":"') + 10
    return [
        *lines[:4],
        line[:place] + (b"A" if line[place : place + 1] != b"A" else b"B") + line[place + 1 :],
        *lines[5:],
    ]


def both_bets(amount: str) -> Change:
    """Ante and blind of this amount."""

    def change(seat: Body) -> None:
        for bet in seat["bets"][:2]:
            bet["amount_minor"] = amount

    return change


def statement_after_the_end() -> RecordFactory:
    factory, one, player = begun()
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    ended(factory, one, player)
    factory.event(one)
    return factory


def settled_early() -> RecordFactory:
    """The last decision is left out, and the running hash is that of the others."""
    commitments: list[bytes] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            commitments.append(bytes.fromhex(body["commitment"]))
        if kind == "round_final":
            running = first_actions_hash(commitments[0])
            del body["actions"][-1]
            for action in body["actions"]:
                running = next_actions_hash(running, action)
            body["actions_hash"] = running.hex()

    return small_factory(lie)


def round_id_thrice() -> RecordFactory:
    rounds: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            rounds.append(body["deal"]["round_id"])
            body["deal"]["round_id"] = rounds[0]
        if kind == "round_final":
            body["round_id"] = rounds[0]

    factory, one, player = begun(lie=lie)
    for _ in range(3):
        factory.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(factory, one, player)


def round_id_of_a_failed_round() -> RecordFactory:
    rounds: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            rounds.append(body["deal"]["round_id"])
            body["deal"]["round_id"] = rounds[0]
        if kind == "round_final" and count == 1:
            body["outcome"]["outcome"] = "tie"

    return two_rounds(lie)


def key_gone(kind: str, of: str, **more: str) -> RecordFactory:
    """`small_factory`, and a key of it ended or revoked by the root."""
    factory = small_factory()
    instance = factory.lines[1].split(b'"keyid":"')[1][:64].decode()
    key = {"root": factory.root.keyid, "node": factory.nodes["node-1"].keyid, "instance": instance}[of]
    factory.key_statement(factory.root, kind, {"key": key, "reason": "GONE", **more})
    return factory


def ended_twice(of: str, *numbers: str) -> RecordFactory:
    """`small_factory`, and a key of it that ended with each of these statements, if one believes its root."""
    factory = small_factory()
    instance = factory.lines[1].split(b'"keyid":"')[1][:64].decode()
    key = {"node": factory.nodes["node-1"].keyid, "instance": instance}[of]
    for number in numbers:
        body = {"key": key, "reason": "GONE", "instance": "rgs-1", "last_statement_no": number}
        factory.key_statement(factory.root, "key_end", body)
    return factory


def named_by_an_ended_root() -> RecordFactory:
    """`small_factory`, and a further node key that its root names behind its own end."""
    factory = small_factory()
    factory.key_statement(factory.root, "key_end", {"key": factory.root.keyid, "reason": "RETIRED"})
    factory.node("node-2")
    return factory
