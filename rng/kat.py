"""Runs known-answer files for Hash_DRBG: what a test lab does with `rng kat FILE...`.

The format is documented beside the project's vectors (README.md there); `parse` accepts exactly that. It refuses
unknown, missing or repeated keys, anything that is no hex string, and cases whose steps do not fit their group.
"""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from rng.drbg import HashDrbg
from rng.errors import RngError, VectorFileError

_HASH_NAMES: Final = {"SHA2-256": "sha256", "SHA2-512": "sha512"}


@dataclass(frozen=True, slots=True)
class Step:
    """One call after instantiate; `entropy_input` of a reseed, or of a generate with prediction resistance."""

    op: str
    entropy_input: bytes
    additional_input: bytes


@dataclass(frozen=True, slots=True)
class Case:
    """One known answer: the output of the last generate step, each generate asking for `len(returned)` bytes."""

    name: str
    hash_name: str
    prediction_resistance: bool
    entropy_input: bytes
    nonce: bytes
    personalization: bytes
    steps: tuple[Step, ...]
    returned: bytes


def run_files(paths: Sequence[str], out: TextIO, err: TextIO) -> int:
    """Run each file, name the failures on `out`, and end there with `N passed, N failed`.

    A file that cannot be read or parsed counts as one failure, its error on `err`. Returns the exit status: 0 if
    cases ran and none failed, else 1.
    """
    passed = failed = 0
    for path in paths:
        try:
            cases = parse(Path(path).read_bytes())
        except (OSError, VectorFileError) as error:
            print(f"rng: {path}: {error}", file=err)
            failed += 1
            continue
        for case in cases:
            outcome = _run(case)
            if outcome == "passed":
                passed += 1
            else:
                failed += 1
                print(f"FAILED {case.name}: {outcome}", file=out)
    print(f"{passed} passed, {failed} failed", file=out)
    return 0 if passed and not failed else 1


def parse(content: bytes) -> list[Case]:
    """Return the cases of one file, in its order. Raises VectorFileError naming the place and the fault."""
    try:
        document = json.loads(content, object_pairs_hook=_object)
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise VectorFileError("NOT_JSON", "the file is not JSON in UTF-8") from None
    _keys("file", document, {"groups"}, {"description"})
    _text("description", document.get("description", ""))
    return [case for group in _list("groups", document["groups"]) for case in _group(group)]


def _run(case: Case) -> str:
    try:
        drbg = HashDrbg(
            hash_name=case.hash_name,
            entropy_input=case.entropy_input,
            nonce=case.nonce,
            personalization=case.personalization,
        )
        returned = b""
        for step in case.steps:
            if step.op == "reseed":
                drbg.reseed(step.entropy_input, step.additional_input)
            else:
                fresh = step.entropy_input if case.prediction_resistance else None
                returned = drbg.generate(len(case.returned), step.additional_input, entropy_input=fresh)
    except RngError as error:
        return f"refused, {error}"
    return "passed" if returned == case.returned else "another output"


def _group(group: object) -> list[Case]:
    keys = {"id", "algorithm", "mode", "predResistance", "returnedBitsLen", "tests"}
    fields = _keys("group", group, keys, {"source"})
    where = _text("id", fields["id"])
    _text(f"{where} source", fields.get("source", ""))
    mode, bits, resistant = fields["mode"], fields["returnedBitsLen"], fields["predResistance"]
    if fields["algorithm"] != "Hash_DRBG" or not isinstance(mode, str) or mode not in _HASH_NAMES:
        raise VectorFileError("UNKNOWN_ALGORITHM", f"{where}: Hash_DRBG with SHA2-256 or SHA2-512 only")
    if type(bits) is not int or bits < 8 or bits % 8:
        raise VectorFileError("BAD_VALUE", f"{where}: returnedBitsLen is a positive multiple of 8")
    if not isinstance(resistant, bool):
        raise VectorFileError("BAD_VALUE", f"{where}: predResistance is true or false")
    tests = _list(f"{where} tests", fields["tests"])
    return [_case(where, test, _HASH_NAMES[mode], bits // 8, resistant) for test in tests]


def _case(where: str, test: object, hash_name: str, n_bytes: int, resistant: bool) -> Case:
    fields = _keys(f"{where} test", test, {"id", "entropyInput", "steps", "returnedBits"}, {"nonce", "persoString"})
    where = f"{where}/{_text(f'{where} id', fields['id'])}"
    steps = tuple(_step(where, step, resistant) for step in _list(f"{where} steps", fields["steps"]))
    returned = _hex(where, fields["returnedBits"])
    if len(returned) != n_bytes:
        raise VectorFileError("BAD_VALUE", f"{where}: returnedBits has not returnedBitsLen bits")
    if not steps or steps[-1].op != "generate":
        raise VectorFileError("BAD_VALUE", f"{where}: the last step is a generate")
    return Case(
        name=where,
        hash_name=hash_name,
        prediction_resistance=resistant,
        entropy_input=_hex(where, fields["entropyInput"]),
        nonce=_hex(where, fields.get("nonce", "")),
        personalization=_hex(where, fields.get("persoString", "")),
        steps=steps,
        returned=returned,
    )


def _step(where: str, step: object, resistant: bool) -> Step:
    op = step.get("op") if isinstance(step, dict) else None
    if op not in ("generate", "reseed"):
        raise VectorFileError("BAD_VALUE", f"{where}: a step's op is generate or reseed")
    seeded = op == "reseed" or resistant  # with prediction resistance every generate brings its own entropy
    fields = _keys(f"{where} {op}", step, {"op", "entropyInput"} if seeded else {"op"}, {"additionalInput"})
    return Step(op, _hex(where, fields.get("entropyInput", "")), _hex(where, fields.get("additionalInput", "")))


def _keys(
    where: str, value: object, required: AbstractSet[str], optional: AbstractSet[str] = frozenset()
) -> dict[str, object]:
    if not isinstance(value, dict):
        raise VectorFileError("BAD_VALUE", f"{where}: an object is due")
    missing, unknown = sorted(required - value.keys()), sorted(value.keys() - required - optional)
    if missing or unknown:
        raise VectorFileError("KEYS", f"{where}: missing {missing}, unknown {unknown}")
    return value


def _list(where: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise VectorFileError("BAD_VALUE", f"{where}: a list is due")
    return value


def _text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise VectorFileError("BAD_VALUE", f"{where}: a string is due")
    return value


def _hex(where: str, value: object) -> bytes:
    text = _text(where, value)
    try:
        octets = bytes.fromhex(text)
    except ValueError:
        octets = None
    if octets is None or octets.hex() != text.lower():  # fromhex alone would let spaces pass
        raise VectorFileError("NOT_HEX", f"{where}: a hex string is due")
    return octets


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key is repeated")
    return fields
