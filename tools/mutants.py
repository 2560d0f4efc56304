"""`make mutants`: plants each small defect of `tools/mutations.py` in our code, and lists those that no test sees.

`tools/mutants.toml` names the groups of targets with the tests that judge them. It also lists the mutants that no test
can kill, each with the reason. There are two parts. `certified` is the generator and the rules. It writes
`certification/mutants.json` for the dossier: per target which mutants were killed, ran out of CPU time or survived, the
hash of every target and of every file that the tests read, and the targets that were not run. `rooms` is the rest. It
writes a line to `tools/mutants.jsonl` when a mutant ends, and can resume from there. Exit 0: every survivor has a
reason. Exit 1: a survivor has none, or a reason is wrong.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tools.forks import KILLED, SURVIVED, TIMEOUT, Tests, Verdict
from tools.journal import Journal, Line, key_of
from tools.mutations import Mutant, mutants_of
from tools.planting import judge, judge_known

VERSION: Final = "2"
CONFIG: Final = "tools/mutants.toml"
OUTPUT: Final = "certification/mutants.json"
JOURNAL: Final = "tools/mutants.jsonl"
CERTIFIED: Final = "certified"
ROOMS: Final = "rooms"
OTHERS_MAX: Final = 20
"""The number of tests that a known mutant is run against, after the one that killed it before."""
SAME: Final = ("line", "function", "before", "after")


@dataclass(frozen=True)
class Group:
    """Targets, the tests that judge them, what else these tests read, the part it is of, a word in the names of tests
    that are left out, and whether its tests leave threads behind (`tools.planting.Tests`).
    """

    name: str
    targets: list[str]
    tests: list[str]
    inputs: list[str]
    part: str = CERTIFIED
    without: str = ""
    apart: bool = False

    def read(self, root: Path) -> list[str]:
        """The files that its tests read, themselves among them."""
        return matched(root, [*self.tests, *self.inputs])


def matched(root: Path, patterns: Sequence[str]) -> list[str]:
    """The files that the patterns name, in order, each once. A pattern with `!` before it leaves its files out."""
    left_out = {path for pattern in patterns if pattern[0] == "!" for path in root.glob(pattern[1:])}
    found = [path for pattern in patterns if pattern[0] != "!" for path in sorted(root.glob(pattern)) if path.is_file()]
    return list(dict.fromkeys(path.relative_to(root).as_posix() for path in found if path not in left_out))


def sha256(path: Path) -> str:
    """The hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reason(mutant: Mutant | Line, equivalents: Sequence[dict[str, str]]) -> str:
    """The stated reason why no test can kill this mutant, or ""."""
    reported = [each["why"] for each in equivalents if excuses(each, mutant)]
    return reported[0] if reported else ""


def excuses(entry: dict[str, str], mutant: Mutant | Line) -> bool:
    """Whether an entry means this mutant: same file, same function, same change of the same line; by its number, too,
    where the function has that line more than once. Pythons differ in the quotes that they write in an f-string.
    """
    keys = ("path", "function", "before", "after")
    is_same = all(entry[key].replace("'", '"') == getattr(mutant, key).replace("'", '"') for key in keys)
    return is_same and entry.get("line", str(mutant.line)) == str(mutant.line)


def read_config(root: Path) -> tuple[list[Group], list[dict[str, str]]]:
    """The groups, and the list of equivalent mutants."""
    document = tomllib.loads((root / CONFIG).read_text("utf-8"))
    return [Group(**each) for each in document["group"]], document.get("equivalent", [])


def drawn(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw `count` mutants, in order of place. Each draws its own lot, so a changed source moves few of the others."""

    def lot(mutant: Mutant) -> bytes:
        words = (str(seed), mutant.path, mutant.function, mutant.before, mutant.after)
        return hashlib.sha256("|".join(words).encode()).digest()

    chosen = set(sorted(mutants, key=lot)[:count])
    return [each for each in mutants if each in chosen]


def entries(judged: Sequence[tuple[Line, str]], earlier: Mapping[str, Any], root: Path) -> Iterator[Any]:
    """The result of each target. For a target of an earlier run, its survivors that were run again are added."""
    for path in dict.fromkeys(line.path for line, _ in judged):
        rows = [row for row in judged if row[0].path == path]
        outcomes = [line.outcome for line, _ in rows]
        before = earlier.get(path, {"killed": 0, "timeout": 0})
        yield {
            "path": path,
            "sha256": sha256(root / path),
            "mutants": before["killed"] + before["timeout"] + len(rows),
            "killed": before["killed"] + outcomes.count(KILLED),
            "timeout": before["timeout"] + outcomes.count(TIMEOUT),
            "survived": [
                {key: getattr(line, key) for key in SAME} | {"why": why}
                for line, why in rows
                if line.outcome == SURVIVED
            ],
        }


def read_earlier(files: Iterable[Path], root: Path) -> tuple[list[Any], dict[str, Any]]:
    """Read the earlier runs, and their targets by path. SystemExit if a target has changed since."""
    runs = [json.loads(file.read_text("utf-8")) for file in files]
    targets = {target["path"]: target for run in runs for target in run["targets"]}
    if any(run["sample"] for run in runs):
        raise SystemExit("a run of a sample cannot be continued")
    if changed := [path for path, target in targets.items() if target["sha256"] != sha256(root / path)]:
        raise SystemExit(f"these targets have changed since that run; run all of their mutants: {' '.join(changed)}")
    reported = [{"commit": run["commit"], "targets": [each["path"] for each in run["targets"]]} for run in runs]
    return [*(each for run in runs for each in run["earlier"]), *reported], targets


Excuses = Sequence[dict[str, str]]
Plan = list[tuple[Group, list[Mutant]]]


def planned(groups: Sequence[Group], requested: argparse.Namespace, root: Path) -> tuple[Plan, list[str]]:
    """The requested mutants of each group (of the sample, if any), and the targets that are not requested."""
    paths = [path for group in groups for path in matched(root, group.targets)]
    chosen = {path for path in paths if any(fnmatch.fnmatch(path, like) for like in requested.target or ["*"])}
    whole = [
        (
            group,
            [each for path in matched(root, group.targets) for each in mutants_of(path, (root / path).read_bytes())],
        )
        for group in groups
    ]
    kept = {mutant for _, mutants in whole for mutant in mutants}
    if requested.sample is not None:
        kept = set(drawn([mutant for _, mutants in whole for mutant in mutants], requested.sample, requested.seed))
    plan = [(group, [each for each in mutants if each.path in chosen and each in kept]) for group, mutants in whole]
    return plan, [path for path in paths if path not in chosen]


def judged(plan: Plan, journal: Journal, root: Path, workers: int, first: Sequence[str] = ()) -> list[Line]:
    """Run the mutants that the journal does not know yet. Returns how each mutant ended, in order.

    With `first` only the tests of files that fit one of these patterns are run. What they kill is killed; the others
    have no verdict yet.
    """
    for group, mutants in plan:
        read, known = group.read(root), journal.lines()
        new = [each for each in mutants if not (key_of(each) in known and journal.stands(known[key_of(each)], read))]
        files = [
            path for path in matched(root, group.tests) if any(fnmatch.fnmatch(path, like) for like in first or "*")
        ]
        if new and files:
            tests = Tests(files, group.without, group.apart)
            enter = write_killed if first else write
            judge(group.name, new, tests, root, workers, partial(enter, journal, new, read))
    known = journal.lines()
    return [known[key_of(mutant)] for _, mutants in plan for mutant in mutants if key_of(mutant) in known]


def write(journal: Journal, mutants: Sequence[Mutant], read: Sequence[str], index: int, verdict: Verdict) -> None:
    """Enter in the journal how one of these mutants ended."""
    journal.write(mutants[index], verdict, read)


def write_killed(
    journal: Journal, mutants: Sequence[Mutant], read: Sequence[str], index: int, verdict: Verdict, file: str = ""
) -> None:
    """Enter it only if it is killed: by the file of the tests, if it was at the import of these."""
    if verdict.outcome == KILLED:
        write(journal, mutants, read, index, Verdict(KILLED, verdict.test or file))


def run_certified(groups: Sequence[Group], excused: Excuses, requested: argparse.Namespace, root: Path) -> int:
    """Run the part for the dossier and write its result. Returns the exit status."""
    runs, earlier = read_earlier(requested.again, root)
    alive = {(path, *(each[key] for key in SAME)) for path, run in earlier.items() for each in run["survived"]}
    plan, not_run = planned(groups, requested, root)
    plan = [
        (group, [m for m in mutants if m.path not in earlier or (m.path, *(getattr(m, key) for key in SAME)) in alive])
        for group, mutants in plan
    ]
    with tempfile.TemporaryDirectory() as folder:
        lines = judged(plan, Journal(Path(folder, "journal"), root), root, requested.workers)
    targets = list(entries([(line, reason(line, excused)) for line in lines], earlier, root))
    tests = dict.fromkeys(path for group in groups for path in group.read(root))
    git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607
    result = {
        "tool": "tools/mutants.py",
        "version": VERSION,
        "python": platform.python_version(),
        "commit": git.stdout.strip(),
        "sample": {"mutants": requested.sample, "seed": requested.seed} if requested.sample is not None else None,
        "not_run": not_run,
        "earlier": runs,
        "targets": targets,
        "tests": [{"path": path, "sha256": sha256(root / path)} for path in tests],
    }
    targets += [target for path, target in earlier.items() if path not in {each["path"] for each in targets}]
    file = requested.output or root / OUTPUT
    file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return reported(targets, lines, excused)


def run_rooms(groups: Sequence[Group], excused: Excuses, requested: argparse.Namespace, root: Path) -> int:
    """Run the other part, whose result is the journal. Returns the exit status."""
    journal = Journal(requested.output or root / JOURNAL, root)
    read = {path: group.read(root) for group in groups for path in matched(root, group.targets)}
    plan, _ = planned(groups, requested, root)
    known = list(journal.lines().values()) if requested.resume else []
    standing = [line for line in known if line.path in read and journal.stands(line, read[line.path])]
    journal.keep(standing)
    confirm([line for line in known if line not in standing], plan, journal, root, requested.workers)
    lines = judged(plan, journal, root, requested.workers, requested.first)
    journal.keep(journal.lines().values())
    status = reported(list(entries([(line, reason(line, excused)) for line in lines], {}, root)), lines, excused)
    left = sum(len(mutants) for _, mutants in plan) - len(lines)
    if left:
        print(f"{left} survived the tests that were run first, and have no verdict yet: run them without --first")
    return 1 if left else status


def confirm(old: Iterable[Line], plan: Plan, journal: Journal, root: Path, workers: int) -> None:
    """Enter old mutants again that the same test still kills, although source or tests have changed since.

    This is quick, because it makes no map: only one that acts at import is run under the whole file of its test. The
    other mutants stay to be judged; all stay whose tests fail without a mutant.
    """
    placed = [(mutant, group.without) for group, mutants in plan for mutant in mutants]
    often = Counter(same(mutant) for mutant, _ in placed)
    by_words = {same(mutant): (mutant, without) for mutant, without in placed if often[same(mutant)] == 1}
    by_line = {key_of(mutant): (mutant, without) for mutant, without in placed}
    killers: dict[Mutant, list[str]] = {}
    files: dict[tuple[str, str], list[Mutant]] = {}
    for line in old:
        mutant, without = by_line.get(line.key) or by_words.get(same(line)) or (None, "")
        if mutant is not None and line.outcome == KILLED and line.test:
            killers |= {mutant: [line.test]} if mutant.within else {}
            file = line.test.partition("::")[0]
            if not mutant.within and (root / file).is_file():
                files.setdefault((file, without), []).append(mutant)
    if killers:
        with suppress(SystemExit):
            judge_known(killers, root, workers, partial(write_killed, journal, list(killers), []))
    for (file, without), mutants in files.items():
        with suppress(SystemExit):
            tests = Tests([file], without, apart=True)
            judge(file, mutants, tests, root, workers, partial(write_killed, journal, mutants, [], file=file))


def recheck(groups: Sequence[Group], excused: Excuses, requested: argparse.Namespace, root: Path) -> int:
    """Run mutants of the rooms that a test had killed, against that test and others that killed in the same function.

    This is quick, because it makes no map. It writes nothing. Returns the exit status: 1 if one survives unexplained.
    """
    plan, _ = planned(groups, requested, root)
    everyone = [mutant for _, mutants in plan for mutant in mutants]
    often = Counter(map(same, everyone))
    here = {same(each): each for each in everyone if each.within and often[same(each)] == 1}
    lines = [
        line for line in Journal(requested.output or root / JOURNAL, root).lines().values() if line.outcome == KILLED
    ]
    killers: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        killers.setdefault((line.path, line.function), []).append(line.test)
    killed = {here[same(line)]: line.test for line in lines if same(line) in here}
    mutants = drawn(list(killed), requested.known, requested.seed)
    chosen = {each: [killed[each], *killers[each.path, each.function][:OTHERS_MAX]] for each in mutants}
    survived: list[Mutant] = []
    with tempfile.NamedTemporaryFile() as ends:

        def record(index: int, verdict: Verdict) -> None:
            if verdict.outcome == SURVIVED:
                os.write(ends.fileno(), b"%d\n" % index)

        judge_known(chosen, root, requested.workers, record)
        survived = [mutants[int(index)] for index in Path(ends.name).read_text("ascii").split()]
    for each in survived:
        print(f"{each.path}:{each.line}: survived {killed[each]}: {each.before}  ->  {each.after}")
    unexplained = [each for each in survived if not reason(each, excused)]
    print(f"{len(mutants)} of {len(killed)} mutants that a test had killed, {len(unexplained)} of them survived")
    return 1 if unexplained else 0


def same(mutant: Mutant | Line) -> tuple[str, str, str, str]:
    """What identifies a mutant, whatever its line number."""
    return mutant.path, mutant.function, mutant.before, mutant.after


def reported(targets: Sequence[Any], lines: Iterable[Line], excused: Excuses) -> int:
    """Print the survivors, and the listed equivalents that a test sees. Returns 1 if a reason is missing or wrong."""
    unexplained = [(target["path"], each) for target in targets for each in target["survived"] if not each["why"]]
    for path, each in unexplained:
        print(f"{path}:{each['line']}: survived: {each['before']}  ->  {each['after']}")
    wrong = [line for line in lines if line.outcome != SURVIVED and reason(line, excused)]
    for line in wrong:
        print(f"{line.path}:{line.line}: listed as equivalent, but a test kills it: {line.after}")
    for name in ("mutants", "killed", "timeout"):
        print(f"{sum(target[name] for target in targets)} {name}", end=", ")
    print(f"{sum(len(target['survived']) for target in targets)} survived, {len(unexplained)} of them without a reason")
    return 1 if unexplained or wrong else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the requested mutants, write the results and print the survivors. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="mutants", description="Mutation tests of the project's code.")
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--part", choices=tuple(PARTS), help="only this part")
    parser.add_argument("--target", action="append", default=[], metavar="GLOB", help="only these targets")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants of each part, drawn with --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--again",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="certified: run only the survivors of FILE again",
    )
    parser.add_argument(
        "--first",
        action="append",
        default=[],
        metavar="GLOB",
        help="rooms: only the tests of these files, to find kills",
    )
    parser.add_argument("--resume", action="store_true", help="rooms: run only what the journal does not know")
    parser.add_argument("--known", type=int, metavar="N", help="rooms: run N mutants again that a test had killed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, help=f"where to write one part; default: {OUTPUT}, {JOURNAL}")
    requested = parser.parse_args(argv)
    if requested.output:
        requested.output = requested.output.resolve()
    requested.again = [file.resolve() for file in requested.again]
    root = requested.root.resolve()
    os.chdir(root)
    sys.path.insert(0, str(root))
    groups, excused = read_config(root)
    if requested.known is not None:
        return recheck([group for group in groups if group.part == ROOMS], excused, requested, root)
    status = 0
    for part in [requested.part] if requested.part else PARTS:
        its = [group for group in groups if group.part == part]
        if any(mutants for _, mutants in planned(its, requested, root)[0]):
            status |= PARTS[part](its, excused, requested, root)
    return status


PARTS: Final[dict[str, Callable[[Sequence[Group], Excuses, argparse.Namespace, Path], int]]] = {
    CERTIFIED: run_certified,
    ROOMS: run_rooms,
}

if __name__ == "__main__":
    sys.exit(main())
