"""The logs and witnesses that an auditor trusts (C2SP tlog-policy): groups of witnesses, and the quorum that a
checkpoint needs.

People write these files. Comments, empty lines and any white space between words are allowed, so a file may differ from
what `format_policy` makes of it. Parsing that again gives the same policy. A name must be defined above its use, be a
member of one group at most, and a key must be there once.

The format allows the quorum `none`, which proves nothing; callers that need evidence refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.errors import FormatError, VerificationError
from rgs.core.tlog.note import COSIGNATURE, ED25519, Note, NoteKey, VerifiedLine, format_vkey, parse_vkey, verify_note

NONE: Final = "none"
POLICY_BYTES_MAX: Final = 65_536
ENTRIES_MAX: Final = 128
"""Logs, witnesses and groups of one policy; the standard recommends 32 of each at least."""
_ALLOWED: Final = re.compile(rb"[\t\n\x20-\x7e\x80-\xff]*")
_SELF_WITNESS: Final = re.compile(rb"^[ \t]*#[ \t]*self-witness[ \t]+([!-~]+)[ \t]*$", re.MULTILINE)
_COUNT: Final = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Party:
    """A log or a witness: its key, and its address if the policy names one."""

    key: NoteKey
    url: str = ""


@dataclass(frozen=True, slots=True)
class WitnessGroup:
    """A group has witnessed a checkpoint when at least `count` of its members have."""

    count: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """`quorum` is the name of a witness or group, or NONE. Witnesses and groups stand in the order of the file."""

    logs: tuple[Party, ...]
    witnesses: Mapping[str, Party] = field(default_factory=dict)
    groups: Mapping[str, WitnessGroup] = field(default_factory=dict)
    quorum: str = NONE

    def is_met_by(self, names: AbstractSet[str]) -> bool:
        """Whether cosignatures of these witnesses make the quorum."""
        met = set(names) & set(self.witnesses)
        for name, group in self.groups.items():  # each after its members
            if sum(member in met for member in group.members) >= group.count:
                met.add(name)
        return self.quorum == NONE or self.quorum in met

    def seen_s(self, witnessed: Mapping[str, int]) -> int:
        """The latest of these times that a quorum of the witnesses has reached; 0 for none."""
        times = sorted(witnessed.values(), reverse=True)
        met = (one for one in times if self.is_met_by({name for name, at in witnessed.items() if at >= one}))
        return next(met, 0)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A checkpoint that meets a policy: by which log, and when its witnesses saw it (name -> POSIX seconds)."""

    checkpoint: Checkpoint
    log: Party
    witnessed: Mapping[str, int]
    seen_s: int
    """The time at which the quorum was complete, by its cosignatures: one witness with a wrong clock, or one that lies,
    cannot make it later. 0 where there is no cosignature.
    """


def verify_checkpoint(note: Note, policy: Policy) -> Accepted:
    """The checkpoint, signed by a log of the policy under its own origin, and cosigned as the quorum demands;
    FormatError, VerificationError.
    """
    checkpoint = parse_checkpoint(note.text)
    logs = {party.key: party for party in policy.logs if party.key.name == checkpoint.origin}
    if not logs:
        raise VerificationError(
            f"the policy names no log of the origin {checkpoint.origin}", field="origin", value=checkpoint.origin
        )
    names = {party.key: name for name, party in policy.witnesses.items()}
    verified: Sequence[VerifiedLine] = verify_note(note, [*logs, *names])
    by = next((logs[one.key] for one in verified if one.key in logs), None)
    if by is None:
        raise VerificationError("the log has not signed this checkpoint", field="signature", origin=checkpoint.origin)
    witnessed = {names[one.key]: one.time_s for one in verified if one.key in names}
    if not policy.is_met_by(set(witnessed)):
        raise VerificationError(
            f"cosigned by {', '.join(sorted(witnessed)) or 'nobody'}: not the quorum {policy.quorum}",
            field="quorum",
            limit=policy.quorum,
            value=len(witnessed),
        )
    return Accepted(checkpoint, by, witnessed, policy.seen_s(witnessed))


# --- the file ---------------------------------------------------------------------------------------------------------


def format_policy(policy: Policy) -> str:
    """The policy as a file: logs, witnesses, groups, quorum."""
    lines = [_line("log", format_vkey(log.key), log.url) for log in policy.logs]
    lines += [_line("witness", name, format_vkey(one.key), one.url) for name, one in policy.witnesses.items()]
    lines += [_line("group", name, str(one.count), *one.members) for name, one in policy.groups.items()]
    return "".join(f"{line}\n" for line in (*lines, f"quorum {policy.quorum}"))


def _line(*words: str) -> str:
    return " ".join(word for word in words if word)


def parse_policy(data: bytes) -> Policy:
    """The policy of a file; FormatError names line and fault."""
    if len(data) > POLICY_BYTES_MAX or _ALLOWED.fullmatch(data) is None:
        raise FormatError(f"a policy is at most {POLICY_BYTES_MAX} bytes of text, tabs and line feeds", field="policy")
    reader = _PolicyReader()
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").split("\n"), start=1):
        words = [word for word in re.split(r"[ \t]+", line) if word]
        if not words or words[0].startswith("#"):
            continue
        try:
            reader.read(words)
        except FormatError as error:
            raise FormatError(f"line {number}: {error}", field="policy", value=number) from None
    return reader.policy()


def self_witnesses(data: bytes) -> frozenset[str]:
    """The witnesses that comments of a policy file name as the log operator's own: lines `# self-witness NAME`.

    This is our convention inside comments, which other readers ignore. FormatError for a name that is no witness of the
    policy.
    """
    policy = parse_policy(data)
    named = frozenset(name.decode("ascii") for name in _SELF_WITNESS.findall(data))
    for name in sorted(named - policy.witnesses.keys()):
        raise FormatError(f"self-witness {name} is no witness of the policy", field="witness", value=name[:80])
    return named


class _PolicyReader:
    """The lines of a policy, one after the other."""

    def __init__(self) -> None:
        self._logs: list[Party] = []
        self._witnesses: dict[str, Party] = {}
        self._groups: dict[str, WitnessGroup] = {}
        self._quorum = ""
        self._keys: set[bytes] = set()
        self._members: set[str] = set()

    def read(self, words: list[str]) -> None:
        """Read one line that is neither empty nor a comment."""
        match words:
            case ["log", vkey, *rest] if len(rest) <= 1:
                self._logs.append(self._party(vkey, ED25519, *rest))
            case ["witness", name, vkey, *rest] if len(rest) <= 1:
                self._verify_new(name)
                self._witnesses[name] = self._party(vkey, COSIGNATURE, *rest)
            case ["group", name, count, *members] if members:
                self._verify_new(name)
                self._groups[name] = self._group(count, members)
            case ["quorum", name] if not self._quorum:
                if name != NONE:
                    self._verify_defined(name)
                self._quorum = name
            case _:
                raise FormatError(f"unknown line of a policy, or a second quorum: {words[0][:20]}")
        if len(self._logs) + len(self._witnesses) + len(self._groups) > ENTRIES_MAX:
            raise FormatError(f"more than {ENTRIES_MAX} logs, witnesses and groups", limit=ENTRIES_MAX)

    def policy(self) -> Policy:
        """The whole."""
        if not self._quorum:
            raise FormatError("a policy has one quorum line", field="quorum")
        return Policy(tuple(self._logs), self._witnesses, self._groups, self._quorum)

    def _party(self, vkey: str, kind: int, url: str = "") -> Party:
        key = parse_vkey(vkey)
        if key.kind != kind:
            raise FormatError(f"{key.name}: a key of kind {key.kind} where one of kind {kind} is due", field="vkey")
        if key.public_key in self._keys:
            raise FormatError(f"{key.name}: the same public key comes twice", field="vkey")
        self._keys.add(key.public_key)
        return Party(key, url)

    def _group(self, count: str, members: list[str]) -> WitnessGroup:
        for member in members:
            self._verify_defined(member)
            if member in self._members:
                raise FormatError(f"{member} is a member already", field="group", value=member)
            self._members.add(member)
        if count not in {"all", "any"} and _COUNT.fullmatch(count) is None:
            raise FormatError("a group asks for all, any or a number of its members", field="group", value=count[:20])
        needed = {"all": len(members), "any": 1}.get(count) or int(count)
        if needed > len(members):
            raise FormatError(f"{needed} of {len(members)} members", field="group", limit=len(members), value=needed)
        return WitnessGroup(needed, tuple(members))

    def _verify_new(self, name: str) -> None:
        if name == NONE or name in self._witnesses or name in self._groups:
            raise FormatError(f"{name} has a meaning already", field="name", value=name[:80])

    def _verify_defined(self, name: str) -> None:
        if name not in self._witnesses and name not in self._groups:
            raise FormatError(f"{name} is not defined above", field="name", value=name[:80])
