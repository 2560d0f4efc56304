"""The key path: bundles, rotation, ends, revocations."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from rgs.core.errors import VerificationError
from rgs.core.replay import KeyBook
from rgs.core.replay.reading import read_statement
from rgs.core.statements import Ed25519Signer, seal_envelope
from rgs.core.statements.lines import format_key_bundle
from tests.support.records.factory import Body, RecordFactory
from tests.support.records.lies import EARLY, KEYED, LATE, lie_at, put
from tests.support.records.ready_made import small_factory
from tests.support.records.replaying import replay_lines

NEW_ROOT = Ed25519Signer.from_seed(bytes(31) + b"\x01")
OTHER = Ed25519Signer.from_seed(bytes(31) + b"\x02")


def rotated() -> RecordFactory:
    """A second root, and a node under it."""
    factory = RecordFactory("rotated")
    factory.node("node-0")
    factory.key_statement(
        factory.root, "root_key", {"previous": factory.root.keyid, "public_key": NEW_ROOT.public_key.hex()}
    )
    factory.root = NEW_ROOT
    one = factory.start("rgs-1")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    return factory


def test_a_rotated_root_stands_under_the_first() -> None:
    factory = rotated()
    assert replay_lines(factory).failures == []
    keys = KeyBook(factory.keys())
    assert keys.root != NEW_ROOT.keyid


def key_end(factory: RecordFactory, key: str, **more: str) -> None:
    factory.key_statement(factory.root, "key_end", {"key": key, "reason": "RETIRED", **more})


def instance_key(factory: RecordFactory) -> str:
    return factory.lines[1].split(b'"keyid":"')[1][:64].decode()


def test_a_key_that_ended_orderly_signed_what_it_signed() -> None:
    factory = small_factory()
    key_end(factory, factory.nodes["node-1"].keyid)
    key_end(factory, instance_key(factory), instance="rgs-1", last_statement_no="8")
    assert replay_lines(factory).failures == []


def test_an_ended_node_key_signs_nothing_later() -> None:
    factory = small_factory()
    key_end(factory, factory.nodes["node-1"].keyid, time=KEYED)
    assert replay_lines(factory).checks == ["3 key"] * 8  # without its start the instance's key has no path


def test_an_ended_instance_key_signs_no_further_number() -> None:
    factory = small_factory()
    key_end(factory, instance_key(factory), instance="rgs-1", last_statement_no="6")
    verdict = replay_lines(factory)
    assert verdict.checks[:2] == ["3 key", "3 key"]
    assert verdict.rounds == (1, 0, 0)


def two_boots() -> RecordFactory:
    """Two boots under one node key, the second with a session of its own; a scope under that key comes first."""
    factory = RecordFactory("boots")
    one = factory.start("rgs-1")
    factory.end(one)
    two = factory.start("rgs-2", boot_no=2, previous_boot=factory.boot(one))
    player = factory.open(two)
    factory.close(two, player)
    factory.end(two)
    return factory


def test_an_ended_node_key_that_names_its_last_instance_keeps_all_that_was_signed_under_it() -> None:
    factory = two_boots()
    key_end(factory, factory.nodes["node-1"].keyid, instance="rgs-2", last_statement_no="4")
    key_end(factory, factory.root.keyid)
    assert replay_lines(factory).failures == []


def test_nothing_of_its_last_instance_counts_behind_the_end_of_a_node_key() -> None:
    factory = two_boots()
    key_end(factory, factory.nodes["node-1"].keyid, instance="rgs-2", last_statement_no="2")
    verdict = replay_lines(factory)
    behind = [failure for failure in verdict.failures if failure.metadata["check"] == "3 key"]
    assert [failure.metadata["statement_no"] for failure in behind] == ["3", "4"]
    assert all("ended with statement 2 of rgs-2" in failure.message for failure in behind)
    assert verdict.checks[2:] == ["22 scope", "22 scope"]  # instance and session now have no end


def test_an_ended_node_key_starts_no_further_instance() -> None:
    """Planted: the key starts another boot after its end, although the end names a later number."""
    factory = two_boots()
    key_end(factory, factory.nodes["node-1"].keyid, instance="rgs-2", last_statement_no="9")
    assert replay_lines(factory).failures == []
    three = factory.start("rgs-3", boot_no=3)
    factory.end(three)
    verdict = replay_lines(factory)
    assert [failure.metadata["check"] for failure in verdict.failures] == ["3 key", "3 key"]
    assert "ended at" in verdict.failures[0].message
    assert verdict.summary.instances == 2


def test_an_ended_root_signs_no_further_key() -> None:
    """Planted: the bundle goes on under a root that a later root has ended, and under one that ended itself."""
    factory = rotated()
    assert replay_lines(factory).failures == []
    first = KeyBook(factory.keys()).root
    key_end(factory, first)
    assert replay_lines(factory).failures == []
    key_end(factory, NEW_ROOT.keyid)
    assert replay_lines(factory).failures == []
    factory.key_statement(factory.root, "node_key", {"development": True, "node": "x", "public_key": "11" * 32})
    with pytest.raises(VerificationError, match=f"key {NEW_ROOT.keyid} ended at"):
        KeyBook(factory.keys())


def test_an_end_that_names_another_instance_leaves_nothing() -> None:
    factory = small_factory()
    key_end(factory, instance_key(factory), instance="rgs-2", last_statement_no="8")
    assert set(replay_lines(factory).checks) == {"3 key", "22 scope"}


@pytest.mark.parametrize("of", ["root", "node", "instance"])
def test_nothing_is_accepted_under_a_revoked_key_whenever_it_was_signed(of: str) -> None:
    factory = small_factory()
    key = {"root": factory.root.keyid, "node": factory.nodes["node-1"].keyid, "instance": instance_key(factory)}[of]
    factory.key_statement(factory.root, "revocation", {"key": key, "reason": "STOLEN", "time": LATE})
    verdict = replay_lines(factory)
    assert verdict.checks.count("3 key") == (7 if of == "instance" else 8)
    assert verdict.rounds == (0, 0, 0)


def test_another_keys_revocation_changes_nothing() -> None:
    factory = small_factory()
    factory.key_statement(factory.root, "revocation", {"key": OTHER.keyid, "reason": "STOLEN"})
    assert replay_lines(factory).failures == []


def old_root_signs_on(factory: RecordFactory) -> None:
    factory.key_statement(
        factory.root, "root_key", {"previous": factory.root.keyid, "public_key": NEW_ROOT.public_key.hex()}
    )
    key_end(factory, "0" * 64)


def ended_root_signs_on(factory: RecordFactory) -> None:
    key_end(factory, factory.root.keyid)
    factory.key_statement(factory.root, "revocation", {"key": "0" * 64, "reason": "X"})


Change = Callable[[RecordFactory], object]
BAD_BUNDLES: dict[str, tuple[Change, str]] = {
    "no root first": (lambda factory: factory.bundle.pop(0), "begins with a root_key"),
    "root that is not its own": (
        lambda factory: factory.bundle.__setitem__(0, forged_root()),
        "not signed by itself",
    ),
    "signed by nobody": (
        lambda factory: factory.key_statement(OTHER, "revocation", {"key": "0" * 64, "reason": "X"}),
        "newest root",
    ),
    "signed by the node": (
        lambda factory: factory.key_statement(factory.nodes["node-1"], "revocation", {"key": "0" * 64, "reason": "X"}),
        "newest root",
    ),
    "revoked at half a position": (
        lambda factory: factory.key_statement(
            factory.root, "revocation", {"key": "0" * 64, "reason": "X", "size": "7"}
        ),
        "origin and size together",
    ),
    "revoked in no log": (
        lambda factory: factory.key_statement(
            factory.root, "revocation", {"key": "0" * 64, "origin": "x//2026h1", "reason": "X", "size": "7"}
        ),
        "an origin is",
    ),
    "kind of another place": (
        lambda factory: factory.key_statement(factory.root, "report", {"name": "x", "sha256": "0" * 64}),
        "does not belong",
    ),
    "second root without previous": (
        lambda factory: factory.key_statement(factory.root, "root_key", {"public_key": OTHER.public_key.hex()}),
        "previous",
    ),
    "second root with another previous": (
        lambda factory: factory.key_statement(
            factory.root, "root_key", {"previous": OTHER.keyid, "public_key": OTHER.public_key.hex()}
        ),
        "previous",
    ),
    "node key twice": (
        lambda factory: factory.key_statement(
            factory.root,
            "node_key",
            {"development": False, "node": "node-2", "public_key": factory.nodes["node-1"].public_key.hex()},
        ),
        "named twice",
    ),
    "root as node": (
        lambda factory: factory.key_statement(
            factory.root,
            "node_key",
            {"development": False, "node": "node-2", "public_key": factory.root.public_key.hex()},
        ),
        "named twice",
    ),
    "half an end": (lambda factory: key_end(factory, "0" * 64, instance="rgs-1"), "together"),
    "other half of an end": (lambda factory: key_end(factory, "0" * 64, last_statement_no="1"), "together"),
    "time that does not exist": (
        lambda factory: key_end(factory, "0" * 64, time="2026-02-30T00:00:00.000Z"),
        "does not exist",
    ),
    "old root signs on": (
        old_root_signs_on,
        "newest root",
    ),
    "ended root signs on": (ended_root_signs_on, "ended at"),
    "dated before its root": (
        lambda factory: key_end(factory, "0" * 64, time=EARLY),
        f"dated {EARLY}, before its key",
    ),
    "envelope cut": (lambda factory: factory.bundle.append(factory.bundle[0][:-1]), "one form"),
    "first root with a previous": (
        lambda factory: factory.bundle.__setitem__(0, forged_root(previous=True)),
        "begins with a root_key",
    ),
    "signature changed": (
        lambda factory: factory.bundle.__setitem__(
            0, factory.bundle[0].replace(b'"sig":"', b'"sig":"A', 1)[:-5] + b'=="}]}'
        ),
        "",
    ),
}


def forged_root(*, previous: bool = False) -> bytes:
    """A root_key of one key, signed by another."""
    body: Body = {"public_key": NEW_ROOT.public_key.hex()}
    if previous:
        body["previous"] = OTHER.keyid
    return RecordFactory("forged").seal(OTHER, "root_key", body)


@pytest.mark.parametrize("name", BAD_BUNDLES)
def test_one_bad_statement_makes_the_whole_bundle_bad(name: str) -> None:
    change, why = BAD_BUNDLES[name]
    factory = small_factory()
    change(factory)
    with pytest.raises(VerificationError, match=f"key bundle, statement .*{why}") as refused:
        KeyBook(format_key_bundle(factory.bundle))
    assert refused.value.metadata["check"] == "3 key"


def test_every_byte_of_a_bundle_counts() -> None:
    factory = small_factory()
    bundle = factory.keys()
    assert KeyBook(bundle, root=factory.root.keyid).anchored
    for place in range(0, len(bundle), 7):
        changed = bundle[:place] + bytes([bundle[place] ^ 1]) + bundle[place + 1 :]
        with pytest.raises(VerificationError, match="key bundle"):
            KeyBook(changed, root=factory.root.keyid)


def test_a_start_whose_key_is_known_has_no_key_of_its_own() -> None:
    node: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "node_key":
            node.append(body["public_key"])
        if kind == "instance_start":
            body["public_key"] = node[0]

    assert replay_lines(small_factory(lie)).checks[0] == "3 key"


def test_one_line_can_be_read_by_itself() -> None:
    factory = small_factory()
    keys = KeyBook(factory.keys())
    start = read_statement(factory.lines[0], keys)
    assert (start.kind.name, start.hash, start.round_id) == ("instance_start", factory.hashes[0], "")
    keys.add_instance(start.body, start.keyid)
    assert read_statement(factory.lines[3], keys).round_id
    with pytest.raises(VerificationError) as refused:
        read_statement(factory.lines[1].replace(b'"p-1"', b'"p-2"'), keys)
    assert refused.value.metadata["check"] == "5 private"


def test_a_statement_of_the_right_role_and_another_instance_is_refused() -> None:
    factory = small_factory(lie_at("session_close", 1, put("instance", value="rgs-2")))
    failure = replay_lines(factory).failures[0]
    assert (failure.metadata["check"], failure.metadata["instance"]) == ("3 key", "rgs-2")


def test_an_envelope_under_a_key_that_is_no_point_is_refused() -> None:
    factory = RecordFactory("weak")
    weak = "00" * 32
    factory.key_statement(factory.root, "node_key", {"development": False, "node": "weak", "public_key": weak})
    keys = KeyBook(factory.keys())
    envelope = seal_envelope("application/vnd.rgs.report.v1+json", b"{}", OTHER)
    forged = envelope.replace(OTHER.keyid.encode(), hashlib.sha256(bytes(32)).hexdigest().encode())
    with pytest.raises(VerificationError, match="does not verify"):
        read_statement(b'{"envelope":' + forged + b',"private":null}', keys)
