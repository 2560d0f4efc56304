"""`make mutants`: plants each small defect of `tools/mutations.py` in the certified code, and says which no test sees.

`tools/mutants.toml` names the groups of targets with the tests that judge them, and the mutants that no test can kill,
each with the reason. Writes `certification/mutants.json`: per target what was killed, ran out of CPU time or survived,
with the hash of every target and of every file the tests read, and the targets that were not run. Exit 0: every
survivor has its reason; 1: one has none, or a reason is wrong.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.mutations import Mutant, mutants_of
from tools.planting import KILLED, SURVIVED, TIMEOUT, judge

VERSION: Final = "1"
CONFIG: Final = "tools/mutants.toml"
OUTPUT: Final = "certification/mutants.json"
SAME: Final = ("line", "function", "before", "after")


@dataclass(frozen=True)
class Group:
    """Targets, the tests that judge them, and what else these tests read."""

    name: str
    targets: list[str]
    tests: list[str]
    inputs: list[str]


def matched(root: Path, patterns: Iterable[str]) -> list[str]:
    """Files that patterns name, in order, each once."""
    found = [path for pattern in patterns for path in sorted(root.glob(pattern)) if path.is_file()]
    return list(dict.fromkeys(path.relative_to(root).as_posix() for path in found))


def sha256(path: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reason(mutant: Mutant, equivalents: Sequence[dict[str, str]]) -> str:
    """Why no test can kill this mutant, "" if nobody says so."""
    told = [each["why"] for each in equivalents if excuses(each, mutant)]
    return told[0] if told else ""


def excuses(entry: dict[str, str], mutant: Mutant) -> bool:
    """Whether an entry means this mutant: same file, same function, same change of the same line; by its number, too,
    where the function has that line more than once.
    """
    same = all(entry[key] == getattr(mutant, key) for key in ("path", "function", "before", "after"))
    return same and entry.get("line", str(mutant.line)) == str(mutant.line)


def read_config(root: Path) -> tuple[list[Group], list[dict[str, str]]]:
    """Return the groups and the equivalent mutants."""
    document = tomllib.loads((root / CONFIG).read_text("utf-8"))
    return [Group(**each) for each in document["group"]], document.get("equivalent", [])


def entries(judged: Sequence[tuple[Mutant, str, str]], earlier: Mapping[str, Any], root: Path) -> Iterator[Any]:
    """The result, target by target; to what ended in an earlier run, what survived there and was run again is added."""
    for path in dict.fromkeys(mutant.path for mutant, _, _ in judged):
        rows = [row for row in judged if row[0].path == path]
        verdicts = [verdict for _, verdict, _ in rows]
        before = earlier.get(path, {"killed": 0, "timeout": 0})
        yield {
            "path": path,
            "sha256": sha256(root / path),
            "mutants": before["killed"] + before["timeout"] + len(rows),
            "killed": before["killed"] + verdicts.count(KILLED),
            "timeout": before["timeout"] + verdicts.count(TIMEOUT),
            "survived": [
                {key: getattr(mutant, key) for key in SAME} | {"why": why}
                for mutant, verdict, why in rows
                if verdict == SURVIVED
            ],
        }


def read_earlier(files: Iterable[Path], root: Path) -> tuple[list[Any], dict[str, Any]]:
    """Runs to go on from, and their targets by path; SystemExit if a target has changed since."""
    runs = [json.loads(file.read_text("utf-8")) for file in files]
    targets = {target["path"]: target for run in runs for target in run["targets"]}
    if any(run["sample"] for run in runs):
        raise SystemExit("a sample is no run to go on from")
    if changed := [path for path, target in targets.items() if target["sha256"] != sha256(root / path)]:
        raise SystemExit(f"changed since that run, so run it whole: {' '.join(changed)}")
    told = [{"commit": run["commit"], "targets": [each["path"] for each in run["targets"]]} for run in runs]
    return [*(each for run in runs for each in run["earlier"]), *told], targets


def main(argv: Sequence[str] | None = None) -> int:
    """Run the mutants asked for, write the result and say what survived; the exit status."""
    parser = argparse.ArgumentParser(prog="mutants", description="Mutation tests of the certified code.")
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--target", action="append", default=[], metavar="GLOB", help="only targets like this")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--again",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="of its targets, only what survived in FILE",
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, help=f"default: {OUTPUT}")
    asked = parser.parse_args(argv)
    root, output = asked.root.resolve(), (asked.output or asked.root / OUTPUT).resolve()
    runs, earlier = read_earlier(asked.again, root)
    os.chdir(root)
    sys.path.insert(0, str(root))
    groups, equivalents = read_config(root)
    alive = {(path, *(each[key] for key in SAME)) for path, run in earlier.items() for each in run["survived"]}
    targets: list[Any] = []
    not_run: list[str] = []
    wrong: list[Mutant] = []
    for group in groups:
        paths = matched(root, group.targets)
        chosen = [path for path in paths if any(fnmatch.fnmatch(path, like) for like in asked.target or ["*"])]
        not_run += [path for path in paths if path not in chosen]
        mutants = [mutant for path in chosen for mutant in mutants_of(path, (root / path).read_bytes())]
        mutants = [
            each
            for each in mutants
            if each.path not in earlier or (each.path, *(getattr(each, key) for key in SAME)) in alive
        ]
        if asked.sample is not None and asked.sample < len(mutants):
            drawn = random.Random(asked.seed).sample(range(len(mutants)), asked.sample)  # noqa: S311 - to be repeated
            mutants = [mutants[index] for index in sorted(drawn)]
        if not mutants:
            continue
        whys = [reason(mutant, equivalents) for mutant in mutants]
        with tempfile.TemporaryDirectory() as scratch:
            verdicts = judge(group.name, mutants, matched(root, group.tests), root, asked.workers, Path(scratch))
        targets += entries(list(zip(mutants, verdicts, whys, strict=True)), earlier, root)
        wrong += [m for m, verdict, why in zip(mutants, verdicts, whys, strict=True) if why and verdict != SURVIVED]
    tests = matched(root, [pattern for group in groups for pattern in (*group.tests, *group.inputs)])
    git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607
    result = {
        "tool": "tools/mutants.py",
        "version": VERSION,
        "python": platform.python_version(),
        "commit": git.stdout.strip(),
        "sample": {"mutants": asked.sample, "seed": asked.seed} if asked.sample is not None else None,
        "not_run": not_run,
        "earlier": runs,
        "targets": targets,
        "tests": [{"path": path, "sha256": sha256(root / path)} for path in tests],
    }
    targets += [target for path, target in earlier.items() if path not in {each["path"] for each in targets}]
    output.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    unexplained = [(target["path"], each) for target in targets for each in target["survived"] if not each["why"]]
    for path, each in unexplained:
        print(f"{path}:{each['line']}: survived: {each['before']}  ->  {each['after']}")
    for mutant in wrong:
        print(f"{mutant.path}:{mutant.line}: listed as equivalent, but a test sees it: {mutant.after}")
    for name in ("mutants", "killed", "timeout"):
        print(f"{sum(target[name] for target in targets)} {name}", end=", ")
    print(f"{sum(len(target['survived']) for target in targets)} survived, {len(unexplained)} of them without a reason")
    return 1 if unexplained or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
