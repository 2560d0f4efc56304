"""Instances: numbered statements, one start and one end each, the draws between, and how they agree with one another
(checks 6, 20, 21).

An instance is one worker of one boot of one node. It ends with its own `instance_end`, or with an `instance_lost` of
another instance of the same store epoch, which names the last numbers. Draws beyond these are unknown; the draw window
bounds them: the `draws_in_flight_max` of the `instance_start`, or of the last `draw_window` behind it. What another
instance says of it is compared at the end of the files, because only each instance's own order is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from rgs.core.errors import VerificationError
from rgs.core.replay.checks import DRAWS, INSTANCE, NUMBER, SCOPE
from rgs.core.replay.draws import DrawAccount
from rgs.core.replay.keys import SigningKey
from rgs.core.replay.reading import Statement
from rgs.core.replay.scope import NumberSequence, Scope
from rgs.core.statements import KINDS, format_canonical

KEYS_CHANGED: Final = "KEYS_CHANGED"
"""Reason of the end of an instance whose process continues as the next one."""


@dataclass(slots=True)
class ReplayedInstance:
    """One instance. `last_draw_no` is None until its own end."""

    name: str
    node: str
    worker: str
    boot_no: int
    store_epoch: str
    draws_in_flight_max: int
    """The draw window after the statements read so far."""
    previous: dict[str, str] | None
    numbers: NumberSequence
    start: str
    """Hash of its instance_start."""
    since: str
    """When its process began; empty if that is outside the files."""
    draws: DrawAccount = field(default_factory=DrawAccount)
    is_followed: bool = False
    """Ended for another key: the process continues as the next boot."""
    last_draw_no: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether its own instance_end was read."""
        return self.last_draw_no is not None


@dataclass(slots=True)
class Lost:
    """The last durable numbers of an instance, as another one states them."""

    statement: Statement
    last_statement_no: int
    last_draw_no: int


class Instances:
    """All instances of a replay. They are few and are kept to the end."""

    def __init__(self, scope: Scope, *, goes_on: bool = False) -> None:
        """`goes_on`: an instance without an end may still run."""
        self._scope = scope
        self._goes_on = goes_on
        self._known: dict[str, ReplayedInstance] = {}
        self._lost: dict[str, Lost] = {}
        self.exposure = 0
        """The most draws that may have been made and are unknown; counted by `finish`."""

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[ReplayedInstance]:
        return iter(self._known.values())

    def is_lost(self, instance: ReplayedInstance) -> bool:
        """Whether another instance has declared it lost."""
        return instance.name in self._lost

    def shows(self, name: str, first: int) -> bool:
        """Whether a statement of an instance with this number or a later one was read, besides its start, which stands
        in all files.
        """
        instance = self._known.get(name)
        return instance is not None and instance.numbers.last >= max(first, 2)

    def is_repeated_start(self, statement: Statement) -> bool:
        """Whether this is the same instance_start again, as the parts of a cut export each begin with it."""
        known = self._known.get(statement.body["instance"])
        return not self._scope.is_whole and known is not None and known.start == statement.hash

    def start(self, statement: Statement) -> None:
        """An instance_start: statement 1, and the only one of its name."""
        body = statement.body
        name = body["instance"]
        if name in self._known:
            raise statement.failure(INSTANCE, f"instance {name} was started before")
        self._known[name] = ReplayedInstance(
            name=name,
            node=body["node"],
            worker=body["worker"],
            boot_no=int(body["boot_no"]),
            store_epoch=body["store_epoch"],
            draws_in_flight_max=int(body["draws_in_flight_max"]),
            previous=body.get("previous_boot"),
            numbers=NumberSequence(is_whole=self._scope.is_whole, head=1),
            start=statement.hash,
            since=self._since(body),
        )

    def since(self, body: dict[str, Any]) -> str:
        """The earliest date of what the instance of this instance_start signs: the start of its process. After a change
        of keys the next boot signs what the one before had begun. Its own start is earlier if the clock was set back.
        Empty where a cut may have left out the boot before or a TIME_JUMP.
        """
        return self._known[body["instance"]].since

    def _since(self, body: dict[str, Any]) -> str:
        if not self._scope.shows_beginning(body["instance"]):
            return ""
        if "previous_boot" not in body:
            return str(body["time"])
        former = self._known.get(body["previous_boot"]["instance"])
        if former is None:
            return str(body["time"]) if self._scope.is_whole else ""
        may_follow = former.is_followed or not (self._scope.is_whole or former.has_ended)  # a cut may lack the end
        return min(former.since, str(body["time"])) if may_follow else str(body["time"])

    def verify_number(self, statement: Statement) -> None:
        """Check 6, and that nothing follows an end (21). The instance is known: its key came from its start."""
        body = statement.body
        name, number = body["instance"], int(body["statement_no"])
        instance = self._known[name]
        fault = instance.numbers.advance(number, self._scope.instances.get(name))
        if fault:
            raise statement.failure(NUMBER, f"statement {fault}")
        if instance.has_ended:
            raise statement.failure(INSTANCE, "a statement follows the instance_end")

    def use_draw(self, statement: Statement, draw: dict[str, str]) -> None:
        """Check 20 for one draw of the signing instance: `draw` holds its draw_no and reseed_counter."""
        instance = self._known[statement.body["instance"]]
        draw_no = int(draw["draw_no"])
        try:
            instance.draws.use(draw_no, int(draw["reseed_counter"]))
        except VerificationError as error:
            raise statement.failure(DRAWS, error.message) from None
        outstanding, most = instance.draws.missing, instance.draws_in_flight_max
        if outstanding > most and instance.numbers.is_unbroken:
            raise statement.failure(
                DRAWS, f"{outstanding} draws below {draw_no} are outstanding, at most {most} may be"
            )

    def widen(self, statement: Statement) -> None:
        """A draw_window (20): from here on more draws may be in flight. A window never shrinks."""
        instance = self._known[statement.body["instance"]]
        before, after = instance.draws_in_flight_max, int(statement.body["draws_in_flight_max"])
        if after <= before:
            raise statement.failure(DRAWS, f"a window of {after} draws follows one of {before}: it can only grow")
        instance.draws_in_flight_max = after

    def end(self, statement: Statement) -> None:
        """An instance_end: its own last draw number."""
        instance = self._known[statement.body["instance"]]
        instance.last_draw_no = int(statement.body["last_draw_no"])
        instance.is_followed = statement.body["reason"] == KEYS_CHANGED

    def lose(self, statement: Statement) -> None:
        """An instance_lost: another instance's last numbers, compared by `finish`."""
        lost = statement.body["lost"]
        name = lost["instance"]
        if name == statement.body["instance"]:
            raise statement.failure(INSTANCE, "an instance cannot declare itself lost")
        if name in self._lost:
            raise statement.failure(INSTANCE, f"instance {name} was declared lost before")
        self._lost[name] = Lost(statement, int(lost["last_statement_no"]), int(lost["last_draw_no"]))

    # --- between two runs ---

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON."""
        losses = [lost.statement for lost in self._lost.values()]
        return {
            "known": [asdict(instance) for instance in self._known.values()],
            "lost": [{"body": loss.body, "hash": loss.hash, "keyid": loss.keyid} for loss in losses],
        }

    def restore(self, state: Mapping[str, Any], keys: Mapping[str, SigningKey]) -> None:
        """Go on from a `state`; `keys` by keyid, those of its instances included."""
        for row in state["known"]:
            numbers, draws = NumberSequence(**row["numbers"]), DrawAccount(**row["draws"])
            self._known[row["name"]] = ReplayedInstance(**{**row, "numbers": numbers, "draws": draws})
        for row in state["lost"]:
            body, keyid = row["body"], row["keyid"]
            payload = format_canonical(body)
            kind = KINDS["instance_lost"]
            self.lose(Statement(kind, body, row["hash"], keys[keyid], keyid, None, "", payload=payload))

    # --- at the end of the files ---

    def finish(self) -> Iterator[VerificationError]:
        """The checks at the end of the files, instance by instance."""
        for name in sorted(self._scope.instances.keys() - self._known.keys()):
            yield SCOPE.failure(f"the scope promises instance {name}, of which nothing is here", instance=name)
        for name in sorted(self._known):
            instance = self._known[name]
            yield from self._finish_one(instance, self._lost.get(name))
        for name in sorted(self._lost.keys() - self._known.keys()) if self._scope.is_whole else ():
            yield self._lost[name].statement.failure(INSTANCE, f"instance {name}, declared lost, is not in the files")
        yield from self._finish_boots()

    def _finish_one(self, instance: ReplayedInstance, lost: Lost | None) -> Iterator[VerificationError]:
        name, numbers = instance.name, instance.numbers
        if lost is not None:
            self.exposure += instance.draws_in_flight_max
            yield from self._verify_lost(instance, lost)
        has_ended = instance.has_ended or lost is not None or self._goes_on
        fault = numbers.missing_end(has_ended=has_ended, ranges=self._scope.instances.get(name))
        if fault:
            yield SCOPE.failure(f"instance {name} {fault}", instance=name)
        last_draw_no = instance.last_draw_no if lost is None else lost.last_draw_no
        if last_draw_no is None:
            return
        account = instance.draws
        # Whole instances account for every draw. Of others only the last draw can be checked.
        is_whole = numbers.is_unbroken and (
            instance.has_ended or (lost is not None and lost.last_statement_no == numbers.last)
        )
        if account.highest > last_draw_no or (is_whole and account.first_missing() != last_draw_no + 1):
            missing = account.first_missing()
            yield DRAWS.failure(
                f"instance {name} accounts for draws up to {account.highest}"
                + (f" without draw {missing}" if missing <= account.highest else "")
                + f", and ends with draw {last_draw_no}",
                instance=name,
            )

    def _verify_lost(self, instance: ReplayedInstance, lost: Lost) -> Iterator[VerificationError]:
        statement, shown = lost.statement, instance.numbers.last
        is_cut = not instance.numbers.is_whole or instance.name in self._scope.instances
        if instance.has_ended:
            yield statement.failure(INSTANCE, f"instance {instance.name} ended by itself, and was declared lost")
        elif shown > lost.last_statement_no or (shown < lost.last_statement_no and not is_cut):
            yield statement.failure(
                INSTANCE,
                f"instance {instance.name} shows statement {shown}, and was lost after {lost.last_statement_no}",
            )
        if self._known[statement.body["instance"]].store_epoch != instance.store_epoch:
            yield statement.failure(INSTANCE, f"instance {instance.name} is of another store epoch")

    def _finish_boots(self) -> Iterator[VerificationError]:
        """The boots of a worker are numbered from 1, without a gap unless the files are cut. Each names the end of the
        one before, unless that one was still running and was declared lost.
        """
        before: dict[tuple[str, str], ReplayedInstance] = {}
        for instance in sorted(self._known.values(), key=lambda one: (one.boot_no, one.name)):
            earlier = before.get((instance.node, instance.worker))
            before[instance.node, instance.worker] = instance
            if earlier is not None and earlier.boot_no == instance.boot_no:
                yield self._boot_failure(
                    instance, f"instance {earlier.name} has boot number {instance.boot_no} already"
                )
            elif self._scope.is_whole and instance.boot_no != (earlier.boot_no if earlier else 0) + 1:
                yield self._boot_failure(instance, f"boot {instance.boot_no - 1} of its worker is missing")
            elif instance.previous is not None:
                former = self._known.get(instance.previous["instance"])
                if former is not None:
                    yield from self._verify_previous(instance, former, instance.previous)
                elif self._scope.is_whole:
                    yield self._boot_failure(instance, f"the previous boot {instance.previous['instance']} is missing")
            elif earlier is not None and self._scope.is_whole and self._is_unaccounted(instance, earlier):
                yield self._boot_failure(
                    instance, f"it names no previous boot, and instance {earlier.name} before it was not lost"
                )

    def _is_unaccounted(self, instance: ReplayedInstance, earlier: ReplayedInstance) -> bool:
        """Whether nobody has declared the earlier boot lost. An instance declares who is lost right after its start; in
        a log that goes on this may not be logged yet.
        """
        return earlier.name not in self._lost and not (self._goes_on and self._has_signed_only_losses(instance))

    def _has_signed_only_losses(self, instance: ReplayedInstance) -> bool:
        """Whether the instance has signed nothing but its start and who was lost."""
        losses = sum(lost.statement.body["instance"] == instance.name for lost in self._lost.values())
        return bool(instance.numbers.last == 1 + losses)

    def _verify_previous(
        self, instance: ReplayedInstance, former: ReplayedInstance, previous: dict[str, str]
    ) -> Iterator[VerificationError]:
        of = (former.node, former.worker, former.boot_no + 1)
        if of != (instance.node, instance.worker, instance.boot_no):
            yield self._boot_failure(instance, f"the previous boot {former.name} is not this worker's one before")
        lost = self._lost.get(former.name)
        last_draw_no = former.last_draw_no if lost is None else lost.last_draw_no
        last_statement_no = former.numbers.last if lost is None else lost.last_statement_no
        if last_draw_no is None and self._scope.is_whole and self._is_unaccounted(instance, former):
            yield self._boot_failure(instance, f"the previous boot {former.name} has no end, and was not lost")
            return
        if last_draw_no is None:
            # Its end is not in the files, or not in the log yet: only after what they show.
            is_right = int(previous["last_statement_no"]) >= last_statement_no
        else:
            is_right = (int(previous["last_statement_no"]), int(previous["last_draw_no"])) == (
                last_statement_no,
                last_draw_no,
            )
        if not is_right:
            yield self._boot_failure(instance, f"the previous boot {former.name} did not end with the numbers named")

    @staticmethod
    def _boot_failure(instance: ReplayedInstance, message: str) -> VerificationError:
        return INSTANCE.failure(
            f"instance {instance.name}: {message}", instance=instance.name, statement=instance.start
        )
