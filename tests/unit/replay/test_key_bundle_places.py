"""What the key book tells of its bundle, for those who look for its statements in a log."""

from __future__ import annotations

from rgs.core.replay import KeyBook
from rgs.core.statements.envelope import leaf_hash
from rgs.core.statements.lines import parse_key_bundle
from tests.factory import House


def test_each_statement_of_the_bundle_has_its_place_from_one() -> None:
    house = House("places")
    house.start("node-1-b1-w0")
    bundle = house.keys()
    hashes = [leaf_hash(envelope) for envelope in parse_key_bundle(bundle)]
    assert len(hashes) > 1
    assert KeyBook(bundle).statements == {hash_: place for place, hash_ in enumerate(hashes, start=1)}
