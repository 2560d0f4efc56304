"""The official known answers pass, and a file that is not exactly in the format is refused."""

import copy
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rng.errors import VectorFileError
from rng.kat import parse, run_files
from tests.unit.rng.reference import ReferenceHashDrbg

VECTORS = Path(__file__).parents[2] / "vectors" / "drbg" / "hash_drbg_sha256_sha512.json"
DOCUMENT: dict[str, Any] = json.loads(VECTORS.read_text())

Document = dict[str, Any]


def run(*paths: object) -> tuple[int, list[str], str]:
    out, err = io.StringIO(), io.StringIO()
    status = run_files([str(path) for path in paths], out, err)
    return status, out.getvalue().splitlines(), err.getvalue()


def small() -> Document:
    """One group with prediction resistance, one with an explicit reseed, one without either; a test each."""
    groups = []
    for resistant, op in ((True, "generate"), (False, "reseed"), (False, "generate")):
        group = next(
            g
            for g in DOCUMENT["groups"]
            if g["predResistance"] is resistant and g["tests"][0]["steps"][0]["op"] == op and g["mode"] == "SHA2-512"
        )
        groups.append({**group, "tests": group["tests"][:1]})
    return copy.deepcopy({"description": "three", "groups": groups})


def test_all_504_official_cases_pass() -> None:
    assert run(VECTORS) == (0, ["504 passed, 0 failed"], "")


def test_the_second_implementation_of_the_tests_gives_them_too() -> None:
    cases = parse(VECTORS.read_bytes())
    assert len({case.name for case in cases}) == 504
    for case in cases:
        drbg = ReferenceHashDrbg(case.hash_name, case.entropy_input, case.nonce, case.personalization)
        outputs = []
        for step in case.steps:
            additional_input = step.additional_input
            if step.op == "reseed" or case.prediction_resistance:
                drbg.reseed(step.entropy_input, additional_input)
                additional_input = b""
            if step.op == "generate":
                outputs.append(drbg.generate(len(case.returned), additional_input))
        assert outputs[-1] == case.returned


def test_every_case_can_fail(tmp_path: Path) -> None:
    document = copy.deepcopy(DOCUMENT)
    for group in document["groups"]:
        for test in group["tests"]:
            last = test["returnedBits"][-1]
            test["returnedBits"] = test["returnedBits"][:-1] + ("1" if last == "0" else "0")
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(document))
    status, lines, _ = run(path)
    assert (status, lines[-1]) == (1, "0 passed, 504 failed")
    assert len(lines) == 505
    assert all(line.startswith("FAILED ") and line.endswith(": another output") for line in lines[:-1])


def test_files_add_up_and_one_failure_is_enough(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    document = small()
    good.write_text(json.dumps(document))
    test = document["groups"][0]["tests"][0]
    test["nonce"] = test["nonce"][:-2] + "00"
    bad.write_text(json.dumps(document))
    assert run(good, good)[:2] == (0, ["6 passed, 0 failed"])
    status, lines, _ = run(good, bad)
    assert (status, lines[-1]) == (1, "5 passed, 1 failed")
    assert lines[0] == f"FAILED {document['groups'][0]['id']}/{test['id']}: another output"


def test_a_case_that_the_mechanism_refuses_is_a_failure(tmp_path: Path) -> None:
    document, path = small(), tmp_path / "short.json"
    document["groups"][2]["tests"][0]["entropyInput"] = "00" * 31
    path.write_text(json.dumps(document))
    status, lines, _ = run(path)
    assert (status, lines[-1]) == (1, "2 passed, 1 failed")
    assert "refused, INPUT_LENGTH" in lines[0]


@pytest.mark.parametrize("document", [{"description": "", "groups": []}])
def test_no_case_is_no_success(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps(document))
    assert run(path) == (1, ["0 passed, 0 failed"], "")


def test_an_unreadable_or_malformed_file_is_a_clear_error_and_a_failure(tmp_path: Path) -> None:
    malformed = tmp_path / "malformed.json"
    malformed.write_text('{"description"')
    status, lines, err = run(tmp_path / "absent.json", tmp_path, malformed, VECTORS)
    assert (status, lines) == (1, ["504 passed, 3 failed"])
    assert len(err.splitlines()) == 3
    assert "absent.json" in err
    assert "NOT_JSON" in err


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b'{"a": 1, "a": 1}', b"NaNN"], ids=lambda c: repr(c[:12])
)
def test_what_is_no_json_is_refused(content: bytes) -> None:
    with pytest.raises(VectorFileError) as caught:
        parse(content)
    assert caught.value.reason == "NOT_JSON"


def _group(number: int, **changes: object) -> Callable[[Document], None]:
    return lambda document: document["groups"][number].update(changes)


def _test(number: int, **changes: object) -> Callable[[Document], None]:
    return lambda document: document["groups"][number]["tests"][0].update(changes)


def _step(number: int, **changes: object) -> Callable[[Document], None]:
    return lambda document: document["groups"][number]["tests"][0]["steps"][0].update(changes)


def _without(change: Callable[[Document], Document], key: str) -> Callable[[Document], None]:
    def remove(document: Document) -> None:
        del change(document)[key]

    return remove


FAULTS: list[tuple[Callable[[Document], object], str]] = [
    (lambda d: d.update(more=1), r"KEYS: file: missing \[\], unknown \['more'\]"),
    (lambda d: d.pop("groups"), r"KEYS: file: missing \['groups'\]"),
    (lambda d: d.update(description=1), "description: a string"),
    (lambda d: d.update(groups={}), "groups: a list"),
    (lambda d: d.update(groups=[1]), "group: an object"),
    (_group(0, more=1), r"KEYS: group.*unknown \['more'\]"),
    (_without(lambda d: d["groups"][0], "mode"), r"KEYS: group: missing \['mode'\]"),
    (_group(0, id=7), "id: a string"),
    (_group(0, source=7), "source: a string"),
    (_group(0, algorithm="HMAC_DRBG"), "UNKNOWN_ALGORITHM"),
    (_group(0, mode="SHA-1"), "UNKNOWN_ALGORITHM"),
    (_group(0, mode=[]), "UNKNOWN_ALGORITHM"),
    (_group(0, predResistance="true"), "predResistance"),
    (_group(0, returnedBitsLen=True), "returnedBitsLen is a positive"),
    (_group(0, returnedBitsLen=0), "returnedBitsLen is a positive"),
    (_group(0, returnedBitsLen=7), "returnedBitsLen is a positive multiple of 8"),
    (_group(0, returnedBitsLen=8), "returnedBits has not"),
    (_group(0, tests=None), "tests: a list"),
    (_test(0, more="00"), r"KEYS: .* test: missing \[\], unknown \['more'\]"),
    (_without(lambda d: d["groups"][0]["tests"][0], "returnedBits"), r"KEYS: .*missing \['returnedBits'\]"),
    (_test(0, id=1), "id: a string"),
    (_test(0, entropyInput="0"), "NOT_HEX"),
    (_test(0, entropyInput="zz"), "NOT_HEX"),
    (_test(0, nonce="00 " * 16), "NOT_HEX"),
    (_test(0, nonce=0), "a string"),
    (_test(0, steps="generate"), "steps: a list"),
    (_test(0, steps=[]), "last step is a generate"),
    (_test(0, steps=["generate"]), "op is generate or reseed"),
    (_test(0, steps=[{"op": "reseed", "entropyInput": "00" * 32}]), "last step is a generate"),
    (_step(0, op="instantiate"), "op is generate or reseed"),
    (_step(0, more="00"), r"KEYS: .* generate: missing \[\], unknown \['more'\]"),
    (_step(2, entropyInput="00" * 32), r"KEYS: .* generate: missing \[\], unknown \['entropyInput'\]"),
    (_without(lambda d: d["groups"][0]["tests"][0]["steps"][0], "entropyInput"), r"KEYS: .*missing \['entropyInput'\]"),
    (_without(lambda d: d["groups"][1]["tests"][0]["steps"][0], "entropyInput"), r"KEYS: .*missing \['entropyInput'\]"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=range(len(FAULTS)))
def test_what_is_not_in_the_format_is_refused(fault: Callable[[Document], object], message: str) -> None:
    document = small()
    assert len(parse(json.dumps(document).encode())) == 3
    fault(document)
    with pytest.raises(VectorFileError, match=message) as caught:
        parse(json.dumps(document).encode())
    named = ("KEYS", "UNKNOWN_ALGORITHM", "NOT_HEX")
    assert caught.value.reason == next((reason for reason in named if message.startswith(reason)), "BAD_VALUE")


def test_what_is_read_is_not_changed_any_more() -> None:
    case = parse(json.dumps(small()).encode())[0]
    for frozen, field in ((case, "returned"), (case.steps[0], "entropy_input")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frozen, field, b"")


def test_absent_optional_fields_are_empty() -> None:
    document = small()
    test = document["groups"][2]["tests"][0]
    test.pop("persoString", None)
    test["steps"] = [{"op": "generate"}]
    del document["description"]
    del document["groups"][2]["source"]
    case = parse(json.dumps(document).encode())[2]
    assert (case.personalization, case.steps[0].additional_input) == (b"", b"")
    del test["nonce"]
    assert parse(json.dumps(document).encode())[2].nonce == b""
