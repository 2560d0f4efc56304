"""Houses that lie: builders for the faults that `tests.planted` names."""

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
from tests.factory import Body, House, Lie, Player, Worker, join
from tests.houses import small_house
from tests.lies import EARLY, Change, lie_at, put

NOBODY = Ed25519Signer.from_seed(bytes(32))
"""A key that no root knows."""


# --- houses ---


def begun(
    ruleset: str = "uth-solo",
    *,
    jurisdiction: str = "demo",
    table: str = "",
    bought: int = 10_000,
    lie: Lie | None = None,
    bend: Callable[[bytes], bytes] = bytes,
) -> tuple[House, Worker, Player]:
    house = House("planted", lie=lie, bend=bend)
    one = house.start("rgs-1")
    player = house.open(one, ruleset, jurisdiction=jurisdiction, table=table)
    house.buy(one, player, bought)
    return house, one, player


def ended(house: House, one: Worker, *players: Player) -> House:
    for player in players:
        house.end_participation(one, player)
        house.close(one, player)
    house.end(one)
    return house


def played(ruleset: str = "uth-solo", actions: str = "play_4x", jurisdiction: str = "demo", **more: object) -> House:
    house, one, player = begun(ruleset, jurisdiction=jurisdiction, **more)  # type: ignore[arg-type]
    house.play(one, player, {"ante": 100}, actions.split())
    return ended(house, one, player)


def two_rounds(lie: Lie | None = None, jurisdiction: str = "demo", passed_ms: int = 5000) -> House:
    house, one, player = begun(lie=lie, jurisdiction=jurisdiction)
    for passed in (5000, passed_ms):
        house.deal(one, [player], {"ante": 100}, passed_ms=passed)
        house.act(player, ["play_4x"])
        house.settle(one, player)
    return ended(house, one, player)


def limits(**told: str) -> Lie:
    """A session_open that says it has these limits, whatever is played in it."""
    return lie_at("session_open", 1, put("limits", value=told))


def two_folds(lie: Lie | None = None) -> House:
    """Two rounds that lose their ante and blind of 100 each."""
    house, one, player = begun(lie=lie)
    for _ in range(2):
        house.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    return ended(house, one, player)


def void_and_round(lie: Lie | None = None) -> House:
    """A void round of 200, then one that folds for 200."""
    house, one, player = begun(lie=lie)
    house.deal(one, [player], {"ante": 100})
    house.void(one, player)
    house.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    return ended(house, one, player)


def table_of_three(lie: Lie | None = None, opened: int = 3) -> House:
    house = House("table", lie=lie)
    one = house.start("rgs-1")
    players = [house.open(one, "uth-seven-box", table="box") for _ in range(3)]
    for player in players:
        house.buy(one, player, 10_000)
    house.deal(one, players, {"ante": 100}, opened=opened)
    for player in players[:opened]:
        house.act(player, ["play_4x"])
        house.settle(one, player)
    return ended(house, one, *players)


def two_instances(lie: Lie | None = None, ends: str = "lost") -> House:
    """An instance that another declares lost, and the node's next boot, which names it."""
    house = House("instances", lie=lie)
    one, two = house.start("rgs-1", "node-1"), house.start("rgs-2", "node-2")
    player = house.open(one)
    house.buy(one, player, 10_000)
    house.play(one, player, {"ante": 100}, ["play_4x"])
    if ends == "both":
        house.end(one)
    if ends != "neither":
        house.lose(two, one)
    if ends == "twice":
        house.lose(two, one)
    three = house.start("rgs-3", "node-1", 2, previous_boot=house.boot(one))
    house.end_participation(two, player)
    house.close(three, player)
    house.end(two)
    house.end(three)
    return house


def widen(house: House, worker: Worker, most: int) -> None:
    """From here on the worker has a draw window of so many."""
    house.numbered(worker, "draw_window", {"draws_in_flight_max": str(most)})


def windowed(*steps: int) -> House:
    """Draw windows of these sizes one after the other, the start's of 8 before them; 0 stands for sixteen draws in
    flight at once, of which the last is the first to be accounted for. The instance is lost.
    """
    house = House("windows")
    one, two = house.start("rgs-1", "node-1"), house.start("rgs-2", "node-2")
    player = house.open(one)
    house.buy(one, player, 10_000)
    house.play(one, player, {"ante": 100}, ["play_4x"])
    for step in steps:
        if step:
            widen(house, one, step)
            continue
        *before, last = [house.draw(one) for _ in range(16)]
        for draw in (last, *before):
            house.discard(one, draw)
    house.lose(two, one)
    house.end_participation(two, player)
    house.close(two, player)
    house.end(two)
    return house


def void_house(lie: Lie | None = None, reason: str = "MALFUNCTION") -> House:
    """A round that two admins made void after its first decision."""
    house, one, player = begun(lie=lie)
    house.deal(one, [player], {"ante": 100, "trips": 50})
    house.act(player, ["check"])
    house.void(one, player, reason)
    return ended(house, one, player)


def key_twice() -> House:
    """Every instance names the key of the first."""
    keys: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "instance_start":
            keys.append(body["public_key"])
            body["public_key"] = keys[0]

    return two_instances(lie)


# --- what takes more than one changed field ---


def other_deck() -> House:
    """The whole final tells of another deck and is right in itself; the commitment is the old one."""
    house, one, player = begun()
    house.deal(one, [player], {"ante": 100})
    house.act(player, ["check", "check", "fold"])
    house.settle(one, player, transcript=house.random.transcript())
    return ended(house, one, player)


def stakes(change: Change, ruleset: str = "uth-solo") -> House:
    """Bets that are not the game's; leaf and root are made for them, so that nothing else is wrong with the seat."""

    def lie(body: Body) -> None:
        change(body["seat"])
        body["deal"]["seats_root"] = leaf_hash(format_canonical(body["seat"])).hex()

    return played(ruleset, "call" if ruleset == "casino-holdem" else "play_4x", lie=lie_at("round_opening", 1, lie))


def uncovered() -> House:
    """A play bet that the balance does not cover (RULEBOOK U-11)."""
    change: Change = lambda body: body["actions"][0].update(action="play_4x", amount_minor="400")  # noqa: E731
    return played(actions="check check fold", bought=250, lie=lie_at("round_final", 1, change))


def second_purchase(change: Change | None = None, amounts: tuple[int, int] = (10_000, 100)) -> House:
    house, one, player = begun(bought=amounts[0], lie=change and lie_at("purchase", 2, change))
    house.buy(one, player, amounts[1])
    house.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(house, one, player)


def same_code() -> House:
    """Two rounds that started in one second, both with the plain code."""
    first: Body = {}

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            first.update({} if first else {name: body["deal"][name] for name in ("start_time", "game_code")})
            body["deal"].update(first)

    return two_rounds(lie)


def start_goes_back() -> House:
    changed = {"game_code": "#00:00:00", "start_time": EARLY}
    return two_rounds(lie_at("round_opening", 2, lambda body: body["deal"].update(changed)))


def round_id_twice() -> House:
    rounds: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            rounds.append(body["deal"]["round_id"])
            body["deal"]["round_id"] = rounds[0]

    return two_rounds(lie)


def order(steps: str) -> House:
    """Links in an order that a session does not have."""
    house = House("order")
    one = house.start("rgs-1")
    player = house.open(one)
    other = house.open(one)
    house.buy(one, other, 10_000)
    house.play(one, other, {"ante": 100}, ["play_4x"])
    take: dict[str, Callable[[], object]] = {
        "buy": lambda: house.buy(one, player, 10_000),
        "deal": lambda: house.deal(one, [player], {"ante": 100}),
        "act": lambda: house.act(player, ["play_4x"]),
        "settle": lambda: house.settle(one, player),
        "end": lambda: house.end_participation(one, player),
        "close": lambda: house.close(one, player),
        "open": lambda: house.open(one, player=player),
        "credit": lambda: vars(player).update(bought=20_000, paid_out=0),  # nothing is signed for it
        "leg": lambda: house.link(one, player, "money_leg", leg),
    }
    leg = {"amount_minor": "1", "direction": "debit", "round_id": house.ulid(), "transaction_id": house.ulid()}
    for step in steps.split():
        take[step]()
    return ended(house, one, other)


def signed_by(kind: str, other: Ed25519Signer | None) -> House:
    """A kind signed by a key of nobody, or (None) by the first key that signed anything: the root."""
    first: list[Ed25519Signer] = []

    def sealing(payload_type: str, payload: bytes, signer: Ed25519Signer) -> bytes:
        first.append(signer)
        is_told = payload_type == KINDS[kind].payload_type
        return seal_envelope(payload_type, payload, (other or first[0]) if is_told else signer)

    return small_house(sealing=sealing)


def sealed(kind: str, change: Callable[[str, bytes], tuple[str, bytes]]) -> House:
    """A kind whose payload type or bytes are changed before they are signed."""

    def sealing(payload_type: str, payload: bytes, signer: Ed25519Signer) -> bytes:
        if payload_type == KINDS[kind].payload_type:
            payload_type, payload = change(payload_type, payload)
        return seal_envelope(payload_type, payload, signer)

    return small_house(sealing=sealing)


def spaced(payload_type: str, payload: bytes) -> tuple[str, bytes]:
    return payload_type, json.dumps(json.loads(payload), sort_keys=True).encode()


def unsorted(payload_type: str, payload: bytes) -> tuple[str, bytes]:
    fields = json.loads(payload)
    return payload_type, json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode()


def repeated_key(payload_type: str, payload: bytes) -> tuple[str, bytes]:
    return payload_type, payload[:-1] + b"," + payload[1:]


# --- files that are not what the house signed ---


def lines_but(house: House, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    return join(change(list(house.lines)))


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


def statement_after_the_end() -> House:
    house, one, player = begun()
    house.play(one, player, {"ante": 100}, ["play_4x"])
    ended(house, one, player)
    house.event(one)
    return house


def settled_early() -> House:
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

    return small_house(lie)


def round_id_thrice() -> House:
    rounds: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            rounds.append(body["deal"]["round_id"])
            body["deal"]["round_id"] = rounds[0]
        if kind == "round_final":
            body["round_id"] = rounds[0]

    house, one, player = begun(lie=lie)
    for _ in range(3):
        house.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(house, one, player)


def round_id_of_a_failed_round() -> House:
    rounds: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            rounds.append(body["deal"]["round_id"])
            body["deal"]["round_id"] = rounds[0]
        if kind == "round_final" and count == 1:
            body["outcome"]["outcome"] = "tie"

    return two_rounds(lie)


def key_gone(kind: str, of: str, **more: str) -> House:
    """The small house, and a key of it ended or revoked by the root."""
    house = small_house()
    instance = house.lines[1].split(b'"keyid":"')[1][:64].decode()
    key = {"root": house.root.keyid, "node": house.nodes["node-1"].keyid, "instance": instance}[of]
    house.key_statement(house.root, kind, {"key": key, "reason": "GONE", **more})
    return house
