"""The how-tos name the files that there are, and all of them: three are done in a copy, three looked up in the code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from rgs.core.rulesets import load_ruleset
from rgs.core.statements import KINDS
from tests.unit.api.test_auth import METHODS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto.md").read_text("utf-8")
NAMES = ("ruleset", "jurisdiction", "RPC", "statement kind", "bet", "language")
PRODUCT = ("rgs", "certification", "protos")
TEXTS = {".py", ".toml", ".proto", ".json", ".sql", ".j2", ".md"}
RESULTS = {"certified.json", "mutants.json"}
"""Hashes and counts of runs over the tree: nobody edits them to add something."""
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")

STEP = re.compile(r"^(\d+)\. (`[^:]+?`):((?:.|\n(?! *\d+\. |\n))*)", re.MULTILINE)


def section(name: str) -> str:
    (found,) = re.findall(rf"^## An? {name}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def steps(name: str) -> list[tuple[list[str], str]]:
    """The files of each step, and what the step says of them."""
    return [(re.findall(r"`([^`]+)`", files), says) for _, files, says in STEP.findall(section(name))]


def listed(name: str) -> list[str]:
    return [file for files, _ in steps(name) for file in files]


def is_listed(path: str, name: str) -> bool:
    return any(re.fullmatch(pattern_of(file), path) for file in listed(name))


def pattern_of(file: str) -> str:
    """`<...>` is one name."""
    return re.sub(r"<[^>]+>", r"[^/]+", re.escape(file).replace(r"\<", "<").replace(r"\>", ">"))


@cache
def product() -> dict[str, str]:
    """The texts of the product by path, without what is generated from the contract."""
    return {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for room in PRODUCT
        for path in sorted((ROOT / room).rglob("*"))
        if path.suffix in TEXTS and path.name not in RESULTS and not GENERATED.search(path.name)
    }


def mentions(pattern: str, texts: dict[str, str]) -> set[str]:
    return {path for path, text in texts.items() if re.search(pattern, text)}


# --- the page ---


def test_the_page_has_a_list_for_each_and_the_steps_are_counted() -> None:
    assert re.findall(r"^## An? (.+)$", PAGE, re.MULTILINE) == list(NAMES)
    for name in NAMES:
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section(name), re.MULTILINE)]
        assert numbers == list(range(1, len(steps(name)) + 1)), name
        assert listed(name)[-1] == "CHANGELOG.md"
        assert len(set(listed(name))) == len(listed(name)), name


@pytest.mark.parametrize("name", NAMES)
def test_every_file_named_exists(name: str) -> None:
    files = [*listed(name), *re.findall(r"`((?:\w+/)+\w+\.\w+)`", section(name))]
    assert [file for file in files if not list(ROOT.glob(re.sub("<[^>]+>", "*", file)))] == []


def test_the_table_counts_the_files() -> None:
    rows = re.findall(r"^\| an? (.+?) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    written = {name: sum(len(files) for files, says in steps(name) if " write" in says) for name in NAMES}
    assert rows == [(name, str(len(listed(name))), str(written[name])) for name in NAMES]


# --- looked up ---

EXAMPLES = {
    "ruleset": ("uth-online", r"uth-online"),
    "jurisdiction": ("gb-ukgc", r"gb-ukgc"),
    "RPC": ("ResumeRound", r"\b(ResumeRound(Request|Response)?|resume_round)\b"),
    "statement kind": ("participation_end", r"""["']participation_end["']|^transfer = .*\bparticipation_end ="""),
    "bet": ("aa", r"(?<![A-Za-z0-9])aa(?![A-Za-z0-9])"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_place_of_the_example_is_listed_and_no_other(name: str) -> None:
    example, pattern = EXAMPLES[name]
    assert f"`{example}`" in section(name)
    found = mentions(f"(?m){pattern}", product())
    if name in {"ruleset", "jurisdiction"}:
        found |= {path for path in product() if Path(path).stem == example}
    if name == "ruleset":
        found |= {f"rgs/core/certificate_data/{load_ruleset(example).sha256}.json"}
    assert found
    assert sorted(path for path in found if not is_listed(path, name)) == []
    ours = [file for file in listed(name) if file.startswith(PRODUCT) and not GENERATED.search(file)]
    surplus = [file for file in ours if not any(re.fullmatch(pattern_of(file), path) for path in found)]
    assert surplus == (["rgs/core/games/published.py"] if name == "ruleset" else [])


def test_the_examples_are_still_there() -> None:
    assert "participation_end" in KINDS
    assert any(method.endswith("/ResumeRound") for method, _ in METHODS)
    assert "aa" in load_ruleset("casino-holdem").rules.placed_bets


@pytest.mark.parametrize("name", ["ruleset", "jurisdiction"])
def test_every_page_with_the_hash_of_the_example_is_listed(name: str) -> None:
    example, _ = EXAMPLES[name]
    pages = {f"docs/{path.name}": path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
    verifier = "tests/verifier/independent_verifier.py"
    found = mentions(rf"`{example}` (1 )?\|", pages) | mentions(
        example, {verifier: (ROOT / verifier).read_text("utf-8")}
    )
    assert len(found) >= 3
    assert sorted(path for path in found if not is_listed(path, name)) == []


def test_every_place_that_names_the_languages_is_listed() -> None:
    pages = {
        str(path.relative_to(ROOT)): path.read_text("utf-8") for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md"]
    }
    del pages["docs/howto.md"]
    found = mentions(r"Italian(,| and| or) German", {**product(), **pages})
    assert {"rgs/cli/play.py", "README.md"} <= found
    assert sorted(path for path in found if not is_listed(path, "language")) == []


# --- done in a copy ---


class Copy:
    """The product in a folder of its own; `touched` are the files that were changed or added there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.touched: list[str] = []
        for room in ("rgs", "rng", "certification"):
            shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, path: str, text: str) -> None:
        assert text
        self.touched.append(path)
        (self.folder / path).write_text(text, "utf-8")

    def read(self, path: str) -> str:
        return (self.folder / path).read_text("utf-8")

    def replace(self, path: str, before: str, after: str) -> None:
        text = self.read(path)
        assert text.count(before) == 1, (path, before)
        self.write(path, text.replace(before, after))

    def run(self, code: str) -> str:
        """What the code prints, run over the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        requested = "import rgs, sys\nassert rgs.__file__.startswith(sys.argv[1]), rgs.__file__\n"
        done = subprocess.run(
            [sys.executable, "-c", requested + code, str(self.folder)],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


@pytest.fixture
def copied(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "copy")


OFFERED = """
from rgs.core import games
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.replay import Rulebook
from rgs.core.returns.certified import verify_offered
from rgs.core.rounds import rules_object
from rgs.core.rulesets import load_ruleset
small = load_ruleset("uth-small")
assert Rulebook().ruleset(rules_object(small)) is not None
verify_offered(small, load_jurisdiction("demo"))
print(small.limits["ante"].max_minor, *games.check_stakes(small, {"ante": 1000}))
"""
HASH = "from rgs.core.rulesets import load_ruleset\nprint(load_ruleset('uth-small').sha256)"


def test_a_ruleset_is_added_by_its_list(copied: Copy) -> None:
    folder = "rgs/core/games/rulesets"
    text = copied.read(f"{folder}/uth-solo.toml")
    for before, after in (('id = "uth-solo"', 'id = "uth-small"'), ("max_minor = 100000", "max_minor = 1000")):
        assert text.count(before) == 1
        text = text.replace(before, after)
    copied.write(f"{folder}/uth-small.toml", text)
    assert "UnknownRulesetError" in copied.run(OFFERED)

    copied.replace("rgs/core/rulesets.py", '"uth-solo", "casino-holdem")', '"uth-solo", "uth-small", "casino-holdem")')
    assert "GameNotOfferedError" in copied.run(OFFERED)

    # Limits do not move returns: those of uth-solo, under the new ruleset's hash.
    sha256 = copied.run(HASH)
    model = copied.read(f"rgs/core/certificate_data/{load_ruleset('uth-solo').sha256}.json")
    certificate = {**json.loads(model), "ruleset": "uth-small", "ruleset_sha256": sha256}
    copied.write(f"rgs/core/certificate_data/{sha256}.json", json.dumps(certificate))
    assert copied.run(OFFERED) == "1000 ('ante', 1000) ('blind', 1000)"
    assert [path for path in copied.touched if not is_listed(path, "ruleset")] == []


LAW = """
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.replay import Rulebook
from rgs.core.rounds import rules_object
law = load_jurisdiction("xx-test")
assert Rulebook().jurisdiction(rules_object(law)) is not None
print(*law.currencies, law.finish_after_s)
"""


def test_a_jurisdiction_is_added_by_its_list(copied: Copy) -> None:
    folder = "rgs/core/jurisdiction_data"
    text = copied.read(f"{folder}/gb-ukgc.toml")
    assert text.count('id = "gb-ukgc"') == 1
    copied.write(f"{folder}/xx-test.toml", text.replace('id = "gb-ukgc"', 'id = "xx-test"').replace('"GBP"', '"SEK"'))
    assert "JurisdictionError" in copied.run(LAW)

    copied.replace("rgs/core/jurisdictions.py", '"gb-ukgc", "demo", ', '"gb-ukgc", "xx-test", "demo", ')
    assert copied.run(LAW).startswith("SEK ")
    assert [path for path in copied.touched if not is_listed(path, "jurisdiction")] == []


SPOKEN = """
from certification.dispute_page import languages
from rgs.devkit.terminal.i18n import language_of, load_words
print(load_words(language_of({"LANG": "fr_FR.UTF-8"})).language, languages()["fr"]["name"])
"""


def test_a_language_is_added_by_its_list(copied: Copy) -> None:
    folders = "rgs/core/text_data", "rgs/devkit/terminal/i18n"
    for folder in folders:
        copied.write(f"{folder}/fr.toml", copied.read(f"{folder}/en.toml"))
    copied.replace("rgs/core/texts.py", '("en", "it", "de")', '("en", "it", "de", "fr")')
    assert copied.run(SPOKEN) == "KeyError: 'fr'"

    spoken = copied.read("certification/dispute_words.toml")
    (english,) = re.findall(r"^\[en\]\n.*?(?=^\[it\])", spoken, re.MULTILINE | re.DOTALL)
    french = english.replace("[en]", "[fr]").replace('"English"', '"Français"')
    copied.write("certification/dispute_words.toml", f"{spoken}\n{french}")
    assert copied.run(SPOKEN) == "fr Français"
    assert [path for path in copied.touched if not is_listed(path, "language")] == []

    for folder in folders:
        words = copied.read(f"{folder}/en.toml")
        copied.write(f"{folder}/fr.toml", words.rstrip().rpartition("\n")[0])
        assert "FormatError" in copied.run(SPOKEN)
        copied.write(f"{folder}/fr.toml", words)
