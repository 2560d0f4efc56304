"""Requests of every method as hypothesis makes them: nearly right, wrong in a field, absurd, mutated, or no message.

What depends on the server (ids, numbers, fingerprints) is drawn as a `Known` and put in when it is sent, so that an
example means the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from rgs.api.auth import ROLES
from tests.support.api.wired import PARTIES, REQUESTS, STRANGER

INT64, INT32 = 1 << 63, 1 << 31
HUGE = 3_000
"""Elements of a list that nobody needs; the message stays below the endpoint's limit."""


@dataclass(frozen=True)
class Known:
    """The nth value that the server knows for a field of this name; 0 is the right one."""

    field: str
    nth: int = 0


@dataclass(frozen=True)
class Step:
    """One call: the fields of a message and what is done to its bytes, or bytes that never were one."""

    party: str
    method: str
    fields: dict[str, Any] | bytes
    mutation: tuple[str, int, bytes] = ("none", 0, b"")


@dataclass(frozen=True)
class Repeat:
    """An accepted call once more, byte for byte."""

    nth: int


_NOBODY = {"operator": None, "game": None, "player": None}
SUBJECTS: list[dict[str, Any]] = [
    {**_NOBODY, "scope": 1},
    {**_NOBODY, "scope": 2, "operator": Known("operator")},
    {**_NOBODY, "scope": 3, "game": Known("game")},
    {**_NOBODY, "scope": 4, "operator": Known("operator"), "player": Known("player")},
]
"""What a switch of each scope has to name."""
_LISTED = dict.fromkeys(("player", "game", "session_id", "game_code", "operator_reference", "first_day", "last_day"))
ROUNDS: list[dict[str, Any]] = [
    {**_LISTED, "player": Known("player"), "game": Known("game", 1), "last_day": Known("last_day", 1)},
    {**_LISTED, "session_id": Known("session_id", 1)},
    {**_LISTED, "operator_reference": Known("operator_reference", 1)},
    {**_LISTED, "game_code": "#10:00:00", "first_day": Known("first_day", 1), "last_day": Known("last_day", 1)},
]
"""What a list of rounds may be of."""

extremes = st.sampled_from(
    [0, 1, -1, 2, 99, 100, 101, 5_000, 10**15, 10**15 + 1, INT64 - 1, -INT64, INT64 >> 1, 1 << 53]
)
small_extremes = st.sampled_from([0, 1, -1, 200, 201, INT32 - 1, -INT32])
texts = st.sampled_from(
    ["", " ", "anna", "uth-solo", "uth-online", "EUR", "CHF", "#10:00:00", "2026-11-21", "0001-01-01", "9999-12-31",
     "MALFUNCTION", "DECK_UNRECOVERABLE", "rng", "clock", "store", "ante", "blind", "trips", "play", "demo", "it-adm",
     "../../x", "a/b", "' OR 1=1 --", "\x00", "\u202e", "0" * 64, "Z" * 26, "7" + "Z" * 25, "x" * 5_000, "\U0010ffff"]
) | st.text(max_size=12)  # fmt: skip
blobs = st.binary(max_size=64) | st.just(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


def _single(field: Any) -> st.SearchStrategy[Any]:
    known = st.builds(Known, st.just(field.name.replace("round_ids", "round_id")), st.integers(0, 5))
    match field.type:
        case FieldDescriptor.TYPE_MESSAGE:
            return message(field.message_type)
        case FieldDescriptor.TYPE_STRING:
            return known | texts
        case FieldDescriptor.TYPE_BYTES:
            return known | blobs
        case FieldDescriptor.TYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.TYPE_ENUM | FieldDescriptor.TYPE_INT32:
            return known | small_extremes | st.integers(-2, 9)
        case FieldDescriptor.TYPE_INT64:
            return known | extremes | st.integers(1, 3_000)
    raise AssertionError(f"a type of field that the contract did not have: {field.type}")


def _field(field: Any) -> st.SearchStrategy[Any]:
    one = _single(field)
    if field.is_repeated:
        few = st.lists(one, max_size=4)
        # A row of many fields, so often, would be no more than a message that is too long.
        is_row = field.message_type is not None and len(field.message_type.fields) > 2
        return few if is_row else few | st.builds(lambda item: [item] * HUGE, one)
    return one


def right(descriptor: Any) -> dict[str, Any]:
    """A message of this kind in which every field is right, as far as one field can be without the others."""
    for oneof in descriptor.oneofs:
        if len(oneof.fields) > 1:
            return {oneof.fields[0].name: right(oneof.fields[0].message_type)}
    return {field.name: Known(field.name) for field in descriptor.fields}


def message(descriptor: Any) -> st.SearchStrategy[dict[str, Any]]:
    """The fields of a message of this kind: most of them right, some wrong, some left out (None)."""
    choices = [oneof for oneof in descriptor.oneofs if len(oneof.fields) > 1]  # of one field: it is optional
    if choices:
        return st.sampled_from(list(choices[0].fields)).flatmap(
            lambda field: message(field.message_type).map(lambda inner: {field.name: inner})
        )

    def drawn(field: Any) -> st.SearchStrategy[Any]:
        right = st.just(Known(field.name))
        return st.integers(0, 9).flatmap(lambda n: right if n < 8 else _field(field) if n < 9 else st.none())

    return st.fixed_dictionaries({field.name: drawn(field) for field in descriptor.fields})


mutations = st.tuples(
    st.sampled_from(["none"] * 12 + ["flip", "cut", "append", "insert"]), st.integers(0, 200), st.binary(max_size=9)
)


@st.composite
def steps(draw: Any) -> Step | Repeat:
    """One call of anybody to any method; the acting methods come more often than the reading ones."""
    if draw(st.integers(0, 9)) == 0:
        return Repeat(draw(st.integers(0, 20)))
    names = sorted(REQUESTS)
    method = draw(st.sampled_from(names) | st.sampled_from([name for name in names if "/List" not in name]))
    allowed = sorted(party for party, role in PARTIES.items() if role in ROLES[method])
    party = draw(st.sampled_from(allowed) | st.sampled_from(allowed) | st.sampled_from([*PARTIES, STRANGER]))
    if draw(st.integers(0, 19)) == 0:
        return Step(party, method, draw(st.binary(max_size=300)))
    fields = draw(message(REQUESTS[method]))
    if method.endswith("/SetSwitch") and draw(st.booleans()):
        fields = {**fields, **draw(st.sampled_from(SUBJECTS))}
    if method.endswith("/ListRounds") and draw(st.booleans()):
        fields = {**fields, **draw(st.sampled_from(ROUNDS))}
    return Step(party, method, fields, draw(mutations))


def bytes_of(step: Step, known: Callable[[str, str, int], Any]) -> bytes:
    """What is sent. `known` gives the values of this server by method, field and number."""
    if isinstance(step.fields, bytes):
        return step.fields
    descriptor = REQUESTS[step.method]
    data: bytes = GetMessageClass(descriptor)(
        **_resolved(step.method, step.fields, descriptor, known)
    ).SerializeToString()
    kind, place, extra = step.mutation
    place = min(place, len(data))
    match kind:
        case "flip" if data:
            place %= len(data)
            return data[:place] + bytes([data[place] ^ (extra[0] if extra else 1) or 1]) + data[place + 1 :]
        case "cut":
            return data[:place]
        case "append":
            return data + extra
        case "insert":
            return data[:place] + extra + data[place:]
    return data


def _resolved(
    method: str, fields: dict[str, Any], descriptor: Any, known: Callable[[str, str, int], Any]
) -> dict[str, Any]:
    def value_of(value: Any, field: Any) -> Any:
        if isinstance(value, Known):
            found = known(method, value.field, value.nth)
            return 1 if field.enum_type is not None and isinstance(found, str) else found
        if isinstance(value, dict):
            return _resolved(method, value, field.message_type, known)
        if isinstance(value, list):
            return [found for item in value if (found := value_of(item, field)) is not None]
        return value

    found = {name: value_of(value, descriptor.fields_by_name[name]) for name, value in fields.items()}
    return {name: value for name, value in found.items() if value is not None}
