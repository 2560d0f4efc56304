"""What an auditor remembers between two runs, as a JSON document: the checkpoint that was verified last, the right edge
of its tree, and everything that the replay keeps of what it has read.

The replay's memory is written by walking its objects: those of the classes in CLASSES, and plain values; nothing else
is written, and nothing else is made when it is read. Refuses a document of another version, of another root, and one
whose own hash does not fit: a state that is damaged must not pass as the beginning of a log.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.limits import SessionLimits
from rgs.core.replay import KeyBook, Replay, Rulebook, Summary
from rgs.core.replay.deals import Deal, Deals
from rgs.core.replay.draws import DrawAccount
from rgs.core.replay.identifiers import IdSet
from rgs.core.replay.instances import Instances, Lost, ReplayedInstance
from rgs.core.replay.keys import SigningKey
from rgs.core.replay.reading import Statement
from rgs.core.replay.registered import Registered
from rgs.core.replay.scope import NumberSequence, Scope
from rgs.core.replay.seats import OpenSeat
from rgs.core.replay.sessions import Chain
from rgs.core.replay.voids import AdminCertificate, Malfunction, Voids
from rgs.core.rulesets import Ruleset
from rgs.core.statements import KINDS, KeyRole, Kind

FORMAT: Final = "rgs/audit-state/v1"
CLASSES: Final[Mapping[str, type]] = {
    kind.__name__: kind
    for kind in (
        *(
            AdminCertificate,
            Chain,
            Deal,
            Deals,
            DrawAccount,
            IdSet,
            ReplayedInstance,
            Instances,
            Lost,
            Malfunction,
            OpenSeat,
        ),
        *(Registered, NumberSequence, SessionLimits, SigningKey, Statement, Summary, Voids),
    )
}
_NOT_KEPT: Final = frozenset({"_keys", "_rulebook", "_scope", "statement"})
_MARK: Final = "%"


# --- values -----------------------------------------------------------------------------------------------------------


def format_value(value: Any) -> Any:
    """The value as JSON. Inverse of `parse_value`; FormatError for what is none of ours."""
    match value:
        case KeyRole():
            return {"%role": value.value}
        case None | bool() | int() | str():
            return value
        case bytes() | bytearray():
            mark = "%bytes" if isinstance(value, bytes) else "%array"
            return {mark: base64.b64encode(value).decode("ascii")}
        case list():
            return [format_value(one) for one in value]
        case tuple():
            return {"%tuple": [format_value(one) for one in value]}
        case set() | frozenset():
            return {"%set" if isinstance(value, set) else "%frozen": sorted(value)}
        case dict():
            if not isinstance(value, Counter) and all(isinstance(key, str) and key[:1] != _MARK for key in value):
                return {key: format_value(one) for key, one in value.items()}
            mark = "%counter" if isinstance(value, Counter) else "%pairs"
            return {mark: [[format_value(key), format_value(one)] for key, one in value.items()]}
        case Ruleset():
            return {"%ruleset": {"id": value.id, "sha256": value.sha256, "version": str(value.version)}}
        case Kind():
            return {"%kind": value.name}
        case Scope():
            return {"%scope": ""}
        case VerificationError():
            return {"%error": [value.message, value.metadata]}
        case _ if CLASSES.get(type(value).__name__) is type(value):
            return {"%object": [type(value).__name__, {name: format_value(one) for name, one in _fields(value)}]}
    raise FormatError(f"a {type(value).__name__} is no part of an audit's state")


def parse_value(value: Any, rulebook: Rulebook, scope: Scope) -> Any:
    """The value of a document of `format_value`. KeyError, TypeError, ValueError where it is none."""

    def parse(value: Any) -> Any:
        if isinstance(value, list):
            return [parse(one) for one in value]
        if not isinstance(value, dict):
            return value
        mark = next(iter(value), "")
        if mark[:1] != _MARK:
            return {key: parse(one) for key, one in value.items()}
        return read[mark](value[mark])

    def rebuilt(named: list[Any]) -> Any:
        name, fields = named
        made: Any = object.__new__(CLASSES[name])
        for field, one in fields.items():
            object.__setattr__(made, field, parse(one))
        return made

    read: dict[str, Callable[[Any], Any]] = {
        "%role": KeyRole,
        "%bytes": base64.b64decode,
        "%array": lambda text: bytearray(base64.b64decode(text)),
        "%tuple": lambda held: tuple(map(parse, held)),
        "%set": set,
        "%frozen": frozenset,
        "%counter": lambda pairs: Counter({parse(key): parse(one) for key, one in pairs}),
        "%pairs": lambda pairs: {parse(key): parse(one) for key, one in pairs},
        "%ruleset": rulebook.ruleset,
        "%kind": KINDS.__getitem__,
        "%scope": lambda _: scope,
        "%error": lambda told: VerificationError(told[0], **told[1]),
        "%object": rebuilt,
    }
    return parse(value)


def _fields(value: Any) -> list[tuple[str, Any]]:
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [(name, getattr(value, name)) for name in names] or list(vars(value).items())


# --- the replay -------------------------------------------------------------------------------------------------------


def format_replay(replay: Replay, keys: KeyBook) -> dict[str, Any]:
    """What the replay keeps, and the instance keys that it has learnt."""
    instances = [
        [{"instance": key.name, "public_key": key.public_key.hex()}, key.parent, key.since]
        for key in keys.known.values()
        if key.role is KeyRole.INSTANCE
    ]
    kept = {name: format_value(one) for name, one in vars(replay).items() if name not in _NOT_KEPT}
    return {"instances": instances, "kept": kept}


def parse_replay(document: Mapping[str, Any], keys: KeyBook, rulebook: Rulebook) -> Replay:
    """The replay that goes on from there, under the key bundle of today. FormatError."""
    try:
        for start, parent, since in document["instances"]:
            keys.add_instance(start, parent, since)
        replay = Replay(keys, rulebook, goes_on=True)
        scope = vars(replay)["_scope"]
        kept = {name: parse_value(one, rulebook, scope) for name, one in document["kept"].items()}
        if kept.keys() != vars(replay).keys() - _NOT_KEPT:
            raise FormatError("the state of the replay is of another version")
    except (KeyError, TypeError, ValueError, RgsError) as error:
        raise FormatError(f"the state does not fit these keys and rules, or this version: {error!r}") from None
    vars(replay).update(kept)
    return replay


# --- the file ---------------------------------------------------------------------------------------------------------


def format_state(document: Mapping[str, Any]) -> bytes:
    """The file, with the hash of its content in the first line."""
    content = json.dumps({"format": FORMAT, **document}, separators=(",", ":")).encode("ascii")
    return hashlib.sha256(content).hexdigest().encode("ascii") + b"\n" + content + b"\n"


def parse_state(data: bytes) -> dict[str, Any]:
    """The document of a file; FormatError."""
    digest, _, content = data.partition(b"\n")
    if hashlib.sha256(content.removesuffix(b"\n")).hexdigest().encode("ascii") != digest:
        raise FormatError("the state file is damaged: its hash does not fit")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FormatError(f"the state file is not of format {FORMAT}")
    return document
