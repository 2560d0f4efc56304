"""What a revocation leaves standing (ARCHITECTURE 2.13): of a stolen key only what an outside witness saw before.

A thief can write any time into a statement, but cannot put it into a tree that a witness has cosigned before. So a
revocation names a position of the log. At or above it nothing of the key counts. Below it a statement counts if a
checkpoint that an outside witness cosigned before the revocation covers it. Shards of one log follow one another by
half-year.

Nothing of the key counts if the revocation names no position, if the place of a statement is not known (an export has
none), or if the position is of another log. Times of statements are not used: they may be the thief's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rgs.core.errors import VerificationError
from rgs.core.replay.checks import KEY
from rgs.core.shards import parse_origin
from rgs.core.times import format_time
from rgs.core.tlog.note import parse_note
from rgs.core.tlog.policies import Policy, verify_checkpoint


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a statement in a log: entry `index` of the shard `origin`."""

    origin: str
    index: int


@dataclass(frozen=True, slots=True)
class Witnessed:
    """An outside witness saw the first `size` entries of a shard; `time` is in the form of statements."""

    origin: str
    size: int
    time: str


def read_witnessed(note: bytes, policy: Policy, own: Collection[str] = ()) -> Witnessed:
    """The earliest time at which an outside witness of the policy saw the checkpoint; `own` are the operator's
    witnesses.

    FormatError or VerificationError for a bad checkpoint, also if no outside witness has cosigned it.
    """
    accepted = verify_checkpoint(parse_note(note), policy)
    times = [time_s for name, time_s in accepted.witnessed.items() if name not in own]
    if not times:
        raise VerificationError("no outside witness has cosigned this checkpoint", field="witness")
    return Witnessed(accepted.checkpoint.origin, accepted.checkpoint.size, format_time(min(times) * 1000))


class Revocations:
    """The revocations of a bundle, and the cosigned checkpoints that the verifier brought."""

    def __init__(self, witnessed: Iterable[Witnessed] = ()) -> None:
        self._witnessed = tuple(witnessed)
        self._of: dict[str, list[Mapping[str, Any]]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, body: Mapping[str, Any]) -> None:
        """Add a revocation; VerificationError for half a position, FormatError for a malformed origin."""
        if ("origin" in body) != ("size" in body):
            raise KEY.failure("revocation names origin and size together or not at all")
        if "origin" in body:
            parse_origin(body["origin"])
        self._of.setdefault(body["key"], []).append(body)

    def of(self, keyid: str) -> Sequence[Mapping[str, Any]]:
        """The revocations of a key, in the order of the bundle."""
        return self._of.get(keyid, ())

    def verify(self, keyid: str, place: Place | None) -> None:
        """VerificationError if one of the key's revocations covers what it signed at that place."""
        for body in self.of(keyid):
            revoked = f"key {keyid} of the key path is revoked"
            if place is None or "origin" not in body:
                raise KEY.failure(revoked)
            position = f"{body['size']} of {body['origin']}"
            if not _is_below(place, body["origin"], int(body["size"])):
                raise KEY.failure(f"{revoked} from entry {position} on, and this is {place.index} of {place.origin}")
            if not any(
                one.origin == place.origin and place.index < one.size and one.time <= body["time"]
                for one in self._witnessed
            ):
                raise KEY.failure(f"{revoked}, and no outside witness had seen entry {place.index} before")


def _is_below(place: Place, origin: str, size: int) -> bool:
    if place.origin == origin:
        return place.index < size
    (prefix, half_year), (of, until) = parse_origin(place.origin), parse_origin(origin)
    return prefix == of and half_year < until
