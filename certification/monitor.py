"""`certify monitor PLACE… [--decisions] [--json]`: compares measured returns of an export or a log with the exact ones.

PLACE is an export (docs/formats.md, 12), or a log as a folder or an http(s) address. Counts what the server counts, in
the order of start, by the same functions (`rgs.core.returns`); a round of a table counts once, with all its seats.
Judges after each thousand rounds, as the server does, and names the round count at which a figure first alarmed.
`--decisions` values every decision by best play and compares what was won with what these players could expect
(docs/monitoring.md).

Exit 0: nothing alarms; 1: something does; 2: usage, or nothing that could be judged. Nothing is verified here: run
`certify replay` or `certify log` first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from certification.decided import Adjusted, Decided
from certification.overlap import SeenRounds
from certification.replay import read_lines, refused
from certification.rtp.strategy import Strategy
from certification.sources import SourceError, open_source
from certification.table_rounds import KINDS_OF_TABLES, TableDeal, TableRounds
from certification.tree import read_bundle, read_checkpoint
from rgs.core.amounts import format_money
from rgs.core.errors import RgsError, UnknownRulesetError
from rgs.core.returns.distributions import MAIN, Laws, load_laws
from rgs.core.returns.figures import Pair, Played, keys_of, played, played_at_table
from rgs.core.returns.tally import LIFE, NO_CURRENCY, Reading, ReturnTally
from rgs.core.rulesets import Ruleset, load_ruleset
from rgs.core.statements import leaf_hash, parse_envelope, parse_line, parse_statement
from rgs.core.times import parse_time
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.tiles import TILE_WIDTH

PATIENCE_MS: Final = 900_000
"""As the server's: so long is an open round waited for."""
JUDGED_EVERY: Final = 1_000


class PlaceError(ValueError):
    """A place that cannot be read, or a line in it that is not a statement."""


@dataclass(slots=True)
class _Waiting:
    """A round in the order of start: the opening of a seat, or the deal of a table. `final` is None while a seat is
    open.
    """

    instance: str
    time_ms: int
    opening: Mapping[str, Any] | None = None
    final: Mapping[str, Any] | None = None
    table: TableDeal | None = None
    is_passed_over: bool = False

    @property
    def has_ended(self) -> bool:
        return self.final is not None if self.table is None else self.table.has_ended


@dataclass(slots=True)
class MonitoredRuleset:
    """One ruleset: counts, and at which count of rounds each figure first alarmed."""

    ruleset: Ruleset
    laws: Laws
    tally: ReturnTally = field(default_factory=ReturnTally)
    first: dict[str, int] = field(default_factory=dict)
    decided: Decided | None = None

    def add(self, opening: Mapping[str, Any], final: Mapping[str, Any], currency: str) -> None:
        """Count a round, and judge after each thousand."""
        self._count(played(self.ruleset, opening, final), [(opening, final)], currency)

    def add_table(self, seats: Sequence[Pair], currency: str, *, is_counted: bool) -> None:
        """Count a round of a table with all its seats; once, unless its deal was counted before."""
        self._count(played_at_table(self.ruleset, seats, is_counted=is_counted), seats, currency)

    def _count(self, one: Played, seats: Sequence[Pair], currency: str) -> None:
        self.tally.add(one, currency)
        if not one.keys:
            return
        if self.decided is not None:
            each = [(final, keys_of(self.ruleset, opening, final)) for opening, final in seats]
            self.decided.add([(final, Fraction(keys[MAIN][0])) for final, keys in each if keys])
        if not self.tally.life.rounds % JUDGED_EVERY:
            self.judge()

    def judge(self) -> None:
        """Note what alarms."""
        for alarm in self.tally.alarms(self.laws):
            self.first.setdefault(f"{alarm.figure} {alarm.series}", self.tally.life.rounds)


class ReturnMonitor:
    """Takes statements in the order of a log or export."""

    def __init__(self, *, decisions: bool = False) -> None:
        self.rulesets: dict[str, MonitoredRuleset] = {}
        self.unread: Counter[str] = Counter()
        self._decisions = decisions
        self._currencies: dict[str, str] = {}
        self._play_money: set[str] = set()
        """Sessions whose rounds are counted nowhere."""
        self._lines: dict[str, deque[_Waiting]] = {}
        self._open: dict[str, _Waiting] = {}
        self._seen = SeenRounds()
        self._tables = TableRounds(self._seen, self.unread)
        self._now_ms = 0

    def take(self, envelope: bytes) -> None:
        """Take in one statement. FormatError."""
        kind, body = parse_statement(parse_envelope(envelope))
        if kind.name == "session_open":
            self._currencies[body["session_id"]] = body["currency"]
            if body.get("mode") == "demo":
                self._play_money.add(body["session_id"])
        elif body.get("session_id") in self._play_money:
            if kind.name == "session_close":
                self._play_money.discard(body["session_id"])
        elif kind.name == "round_opening":
            name = leaf_hash(envelope).hex()
            if name not in self._open and not self._seen.is_again(name, body):
                self._wait(name, _Waiting(body["instance"], parse_time(body["time"]), body))
        elif kind.name == "round_final":
            self._now_ms = max(self._now_ms, parse_time(body["time"]))
            waiting = self._open.pop(body["opening"], None)
            if waiting is None:
                self.unread[self._seen.why_unopened(body["opening"])] += 1
                return
            waiting.final = body
            self._end(waiting)
        elif kind.name in KINDS_OF_TABLES:
            self._take_table(kind.name, leaf_hash(envelope).hex(), body)

    def _take_table(self, kind: str, name: str, body: Mapping[str, Any]) -> None:
        deal = self._tables.take(kind, name, body)
        if deal is None:
            return
        self._now_ms = max(self._now_ms, parse_time(body["time"]))
        if kind == "table_deal":
            self._wait(deal.name, _Waiting(body["instance"], parse_time(body["time"]), table=deal))
        elif deal.has_ended:
            self._end(self._open.pop(deal.name))

    def _wait(self, name: str, waiting: _Waiting) -> None:
        self._open[name] = waiting
        self._lines.setdefault(waiting.instance, deque()).append(waiting)
        self._now_ms = max(self._now_ms, waiting.time_ms)

    def finish(self) -> int:
        """Judge; how many rounds are open, or wait behind one that is."""
        for watched in self.rulesets.values():
            watched.judge()
        late = sum(one.is_passed_over for one in self._open.values())
        return late + sum(len(line) for line in self._lines.values())

    def _end(self, waiting: _Waiting) -> None:
        if waiting.is_passed_over:
            self._count(waiting)
        line = self._lines[waiting.instance]
        while line and (line[0].has_ended or self._now_ms - line[0].time_ms >= PATIENCE_MS):
            head = line.popleft()
            if head.has_ended:
                self._count(head)
            else:
                head.is_passed_over = True

    def _count(self, round_: _Waiting) -> None:
        table = round_.table
        if table is not None:
            seats = table.seats
        else:
            seats = [(round_.opening, round_.final)] if round_.opening and round_.final else []
        if not seats:
            return
        rules = seats[0][0]["deal"]["ruleset"]
        watched = self.rulesets.get(rules["sha256"]) or self._known(rules["id"], rules["sha256"])
        if watched is None:
            self.unread[f"rounds of {rules['id']}, which has no certificate here"] += 1
            return
        named = (self._currencies.get(one["session_id"]) for one, _ in seats)
        currency = next((one for one in named if one), NO_CURRENCY)
        if table is None:
            watched.add(*seats[0], currency)
        else:
            watched.add_table(seats, currency, is_counted=table.is_again)

    def _known(self, ruleset_id: str, sha256: str) -> MonitoredRuleset | None:
        try:
            ruleset = load_ruleset(ruleset_id)
        except UnknownRulesetError:
            return None
        laws = load_laws(ruleset)
        if ruleset.sha256 != sha256 or laws is None:
            return None
        decided = Decided(_strategy(ruleset), laws) if self._decisions else None
        return self.rulesets.setdefault(sha256, MonitoredRuleset(ruleset, laws, decided=decided))


@cache
def _strategy(ruleset: Ruleset) -> Strategy:
    return Strategy(ruleset)


# --- places -----------------------------------------------------------------------------------------------------------


def envelopes(place: str) -> Iterator[bytes]:
    """The statements of an export or a log. PlaceError."""
    if "://" in place or Path(place).is_dir():
        yield from _of_log(place)
        return
    try:
        with Path(place).open("rb") as file:
            for number, line in enumerate(read_lines(file), 1):
                try:
                    yield parse_line(line.rstrip(b"\n")).envelope
                except RgsError as error:
                    raise PlaceError(f"{place}, line {number}: {error.message}") from error
    except OSError as error:
        raise PlaceError(f"{place}: {error.strerror}") from error


def _of_log(place: str) -> Iterator[bytes]:
    try:
        source = open_source(place)
        size = parse_checkpoint(read_checkpoint(source).text).size
        for index in range(-(-size // TILE_WIDTH)):
            _, entries = read_bundle(source, index, size)
            # The first entry of a shard may name the one before it.
            yield from (entry for entry in entries if entry.startswith(b"{"))
    except (RgsError, SourceError) as error:
        raise PlaceError(f"{place}: {error}") from error


# --- told -------------------------------------------------------------------------------------------------------------


def emit(watched: MonitoredRuleset) -> Iterator[str]:
    """Give the lines of one ruleset."""
    tally = watched.tally
    yield f"{watched.ruleset.id}: {tally.life.rounds:,} rounds ({tally.voids} void, {tally.unseen} seats not counted)"
    for currency, bets in sorted(tally.money.items()):
        for bet, (staked, returned) in sorted(bets.items()):
            share = f"{100 * returned / staked:.3f} %"
            paid = format_money(returned, currency)
            yield f"  {bet:<6} staked {format_money(staked, currency):>18} returned {paid:>18}: {share}"
    yield f"  {'figure':<10}{'series':<7}{'rounds':>11}{'exact':>11}{'measured':>11}{'band':>25}{'ln E':>9}{'limit':>8}"
    # The first block is the life so far.
    yield from (_line(one) for one in tally.readings(watched.laws) if one.series == LIFE or tally.block.number > 1)
    for figure, rounds in watched.first.items():
        yield f"  {figure}: alarmed, first seen at {rounds:,} rounds"
    adjusted = watched.decided and watched.decided.adjusted()
    if adjusted:
        yield from _reported_decisions(adjusted)


def _reported_decisions(adjusted: Adjusted) -> Iterator[str]:
    word = "ALARM" if adjusted.is_alarming else "ok"
    yield f"  decisions of {adjusted.rounds:,} rounds cost {adjusted.cost:.6f} antes a round against best play:"
    yield f"    expected of these players {adjusted.expected:.6f}, measured {adjusted.measured:.6f} per ante"
    yield f"    ln E {adjusted.evidence:.2f}, limit {adjusted.limit:.2f}: {word}"


def _line(reading: Reading) -> str:
    exact, measured = ("-" if value is None else f"{value:.6f}" for value in (reading.exact, reading.measured))
    low = "" if reading.low is None else f"{reading.low:.6f}"
    band = "-" if reading.high is None else f"{low}..{reading.high:.6f}"
    word = "  ALARM" if reading.is_alarming else ""
    return (
        f"  {reading.figure:<10}{reading.series:<7}{reading.rounds:>11,}{exact:>11}{measured:>11}{band:>25}"
        f"{reading.evidence:>9.2f}{reading.limit:>8.2f}{word}"
    )


def document(watched: MonitoredRuleset) -> dict[str, Any]:
    """Return one ruleset as plain values; evidence without end is a text, for JSON has no number for it."""
    adjusted = watched.decided and watched.decided.adjusted()
    readings = [asdict(reading) for reading in watched.tally.readings(watched.laws)]
    for reading in readings:
        reading["evidence"] = f"{reading['evidence']:.6f}"
    return {
        "ruleset": watched.ruleset.id,
        "ruleset_sha256": watched.ruleset.sha256,
        "rounds": watched.tally.life.rounds,
        "voids": watched.tally.voids,
        "unseen": watched.tally.unseen,
        "money": watched.tally.money,
        "readings": readings,
        "first_alarms": watched.first,
        "decisions": None if not adjusted else asdict(adjusted),
    }


def is_alarming(watched: MonitoredRuleset) -> bool:
    """Whether a figure has ever alarmed, or the decisions do now."""
    adjusted = watched.decided and watched.decided.adjusted()
    return bool(watched.first or (adjusted and adjusted.is_alarming))


def run(places: Iterable[str], *, decisions: bool = False) -> ReturnMonitor:
    """Watch places, one after the other as one. PlaceError."""
    watch = ReturnMonitor(decisions=decisions)
    for place in places:
        for number, envelope in enumerate(envelopes(place), 1):
            try:
                watch.take(envelope)
            except RgsError as error:
                raise PlaceError(f"{place}, statement {number}: {error.message}") from error
    return watch


def main(argv: Sequence[str] | None = None) -> int:
    """Count, judge and tell; the exit status."""
    parser = argparse.ArgumentParser(prog="certify monitor", description="Measured returns against the exact ones.")
    parser.add_argument("places", nargs="+", metavar="PLACE", help="an export, or a log: a folder or an address")
    parser.add_argument("--decisions", action="store_true", help="value every decision by best play")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    try:
        watch = run(arguments.places, decisions=arguments.decisions)
    except PlaceError as error:
        return refused("monitor", error)
    waiting = watch.finish()
    rulesets = sorted(watch.rulesets.values(), key=lambda one: one.ruleset.id)
    alarming = any(map(is_alarming, rulesets))
    verdict = "alarm" if alarming else "within the bands" if rulesets else "nothing to judge"
    if arguments.json:
        result = {
            "verdict": verdict,
            "rulesets": [*map(document, rulesets)],
            "waiting": waiting,
            "unread": watch.unread,
        }
        sys.stdout.write(json.dumps(result, indent=1, sort_keys=True) + "\n")
    else:
        for watched in rulesets:
            sys.stdout.writelines(f"{line}\n" for line in emit(watched))
        sys.stdout.writelines(f"not counted: {count} {what}\n" for what, count in watch.unread.items())
        sys.stdout.write(f"{waiting} rounds are open, or wait for one that began before them\n{verdict}\n")
    return 1 if alarming else 0 if rulesets else 2
