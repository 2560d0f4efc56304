"""The scenarios and worked examples, by both verifiers; and that the documents say what the code does."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from certification import replay
from rgs.core.jurisdictions import EARLIER_VERSIONS, SHIPPED_JURISDICTIONS, load_jurisdiction
from rgs.core.replay import CHECKS
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset
from rgs.core.statements.kinds import KIND_OF_PAYLOAD_TYPE
from tests.vectors.statements.generate import FOLDER, scenarios
from tests.vectors.statements.worked import worked
from tests.verifier import independent_verifier

ROOT = Path(__file__).resolve().parents[2]
FORMATS, VERIFY = ((ROOT / "docs" / name).read_text("utf-8") for name in ("formats.md", "verify.md"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
KEYS = {"about", "checks", "expect", "keys", "lines", "root"}


def read(name: str) -> dict[str, Any]:
    scenario: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("ascii"))
    assert set(scenario) == KEYS
    return scenario


def arguments(scenario: dict[str, Any], folder: Path) -> list[str]:
    export, keys = folder / "export.jsonl", folder / "keys.json"
    export.write_text("".join(line + "\n" for line in scenario["lines"]), "ascii")
    keys.write_text(scenario["keys"], "ascii")
    return [str(export), "--keys", str(keys), *(["--root", scenario["root"]] if scenario["root"] else [])]


@pytest.mark.parametrize("name", NAMES)
def test_certify_replay_says_what_the_scenario_expects(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = read(name)
    status = replay.main(arguments(scenario, tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == scenario["expect"]
    checks = {line.split(" ", 1)[1].split(":")[0] for line in lines if line.startswith("FAILED ")}
    assert sorted(checks) == scenario["checks"]
    assert status == bool(scenario["checks"])


@pytest.mark.parametrize("name", NAMES)
def test_the_independent_verifier_says_the_same(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = read(name)
    status = independent_verifier.main(arguments(scenario, tmp_path))
    assert capsys.readouterr().out.splitlines()[-1] == scenario["expect"]
    assert status == bool(scenario["checks"])


def test_the_scenarios_are_those_that_are_generated() -> None:
    made = scenarios()
    assert sorted(made) == NAMES
    for name in NAMES:
        assert made[name] == read(name), "run: python -m tests.vectors.statements.generate"


# --- the documents ---

SECTIONS = worked()


@pytest.mark.parametrize(("section", "name"), [(section, name) for section in SECTIONS for name in SECTIONS[section]])
def test_a_worked_value_stands_in_the_document(section: str, name: str) -> None:
    assert SECTIONS[section][name] in FORMATS


def test_the_worked_values_are_what_a_reader_of_the_document_computes() -> None:
    sha = independent_verifier.sha
    envelope, commitment, actions = SECTIONS["envelope"], SECTIONS["commitment"], SECTIONS["actions"]
    kind, payload, keyid, signature = independent_verifier.open_envelope(envelope["envelope"].encode())
    independent_verifier.check_signature(bytes.fromhex(envelope["public_key"]), kind, payload, signature)
    assert (kind, keyid, signature.hex()) == ("instance_end", envelope["keyid"], envelope["signature"])
    assert sha(bytes.fromhex(envelope["public_key"])).hex() == keyid
    assert sha(b"\x00", envelope["envelope"].encode()).hex() == envelope["hash"]
    transcript = bytes.fromhex(SECTIONS["transcript"]["transcript"])
    assert " ".join(independent_verifier.shuffled(transcript)) == SECTIONS["transcript"]["deck"]
    assert hashlib.sha256(commitment["deal_core"].encode()).hexdigest() == commitment["deal_core_sha256"]
    parts = [commitment["deal_core_sha256"], commitment["salt"], commitment["length"], transcript.hex()]
    preimage = b"rgs/commitment/v1\x00" + bytes.fromhex("".join(parts))
    assert preimage.hex() == commitment["preimage"]
    assert sha(preimage).hex() == commitment["commitment"]
    first = sha(b"rgs/actions/v1\x00", bytes.fromhex(commitment["commitment"]))
    assert (first.hex(), sha(b"rgs/actions/v1\x00", first, actions["action"].encode()).hex()) == (
        actions["first"],
        actions["next"],
    )
    private = SECTIONS["private"]
    block = private["block"].encode()
    assert sha(b"rgs/private/v1\x00", bytes.fromhex(private["salt"]), block).hex() == private["hash"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_worked_seats_lead_to_their_root(number: int) -> None:
    seats = SECTIONS["seats"]
    leaf = independent_verifier.sha(b"\x00", seats[f"seat_{number}"].encode())
    path = [bytes.fromhex(node) for node in seats[f"path_{number}"].split()]
    assert leaf.hex() == seats[f"leaf_{number}"]
    assert independent_verifier.path_root(leaf, number - 1, 3, path).hex() == seats["root"]


def test_every_kind_stands_in_the_table() -> None:
    for kind in KIND_OF_PAYLOAD_TYPE.values():
        (role,) = kind.roles
        flags = " | ".join("yes" if flag else "" for flag in (kind.numbered, kind.linked, kind.private))
        assert f"| `{kind.name}` | {role} | {flags} | `{kind.payload_type}` |" in FORMATS


def test_every_check_is_told_under_its_number_and_name() -> None:
    result = set(re.findall(r"\*\*([0-9]+ [a-z ]+)(?:\.|\*\*)", VERIFY))
    assert result == {check.label for check in CHECKS}
    assert [check.number for check in CHECKS] == list(range(1, len(CHECKS) + 1))


def test_hashes_of_rulesets_and_jurisdictions_are_pinned_in_document_and_verifier() -> None:
    # A version once released is never changed: whoever changes a row gives the ruleset a new version and adds to these.
    rulesets = [load_ruleset(name) for name in SHIPPED_RULESETS]
    jurisdictions = [load_jurisdiction(name) for name in SHIPPED_JURISDICTIONS]
    jurisdictions += [load_jurisdiction(name, version) for name, version in EARLIER_VERSIONS]
    shipped = {(one.id, str(one.version), one.sha256) for one in rulesets}
    laws = {(one.id, str(one.version), one.sha256) for one in jurisdictions}
    for name, version, digest in shipped | laws:
        assert f"| `{name}` | {version} | `{digest}` |" in FORMATS
    assert set(independent_verifier.RULESETS) == shipped
    assert set(independent_verifier.JURISDICTIONS) == laws


def test_the_worked_round_is_that_of_the_small_scenario() -> None:
    scenario = read("small")
    final = json.loads(independent_verifier.open_envelope(_envelope(scenario["lines"][4]))[1])
    assert scenario["root"] in VERIFY
    assert scenario["expect"] in VERIFY
    cards = final["cards"]
    for place in ("hole_cards", "dealer_cards", "board"):
        assert " ".join(cards[place]) in VERIFY
    assert final["transcript"] in VERIFY
    for hand in ("player_hand", "dealer_hand"):
        assert " ".join(final["outcome"][hand]["best5"]) in VERIFY
    for row in final["settlement"]:
        assert f"| {row['bet']} | {row['stake_minor']} | {row['result']} | {row['returned_minor']} |" in VERIFY


def _envelope(line: str) -> bytes:
    return line[len('{"envelope":') : line.index(',"private":')].encode()
