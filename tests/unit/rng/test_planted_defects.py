"""Each control is shown to fail: one defect is planted in a copy of the unit, and the copy's own controls see it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rng

ROOT = Path(rng.__file__).parent
VECTORS = Path(__file__).parents[2] / "vectors" / "drbg" / "hash_drbg_sha256_sha512.json"

DRBG_DEFECTS = [
    ("no counter in the sum", " + self._reseed_counter) & mask", ") & mask"),
    ("counter from zero", "self._reseed_counter = 1", "self._reseed_counter = 0"),
    ("counter counted down", "self._c, \"big\") + self._reseed_counter", "self._c, \"big\") - self._reseed_counter"),
    ("no constant in the sum", ' + int.from_bytes(self._c, "big")', ""),
    ("no hash in the sum", ' + int.from_bytes(h, "big")', ""),
    ("wrong prefix of the step hash", 'hash_(b"\\x03"', 'hash_(b"\\x04"'),
    ("wrong prefix of the additional input", 'hash_(b"\\x02" + self._v', 'hash_(b"\\x01" + self._v'),
    ("additional input ignored", "if additional_input:", "if not additional_input:"),
    ("Hashgen begins at V + 1", "((v + i) & mask)", "((v + i + 1) & mask)"),
    ("Hashgen never counts", "((v + i) & mask)", "(v & mask)"),
    ("constant without its prefix", 'b"\\x00" + seed', "seed"),
    ("reseed forgets V", 'b"\\x01" + self._v + entropy_input', 'b"\\x01" + entropy_input'),
    ("reseed ignores the additional input", "entropy_input + additional_input)", "entropy_input)"),
    ("nonce ignored", "entropy_input + nonce + personalization", "entropy_input + personalization"),
    ("personalization ignored", "entropy_input + nonce + personalization", "entropy_input + nonce"),
    ("derivation in the wrong order", 'b"\\x01" + bits, b"\\x02" + bits', 'b"\\x02" + bits, b"\\x01" + bits'),
    ("seed of another length", "(hashlib.sha512, 111)", "(hashlib.sha512, 112)"),
    ("prediction resistance uses the input twice", 'additional_input = b""\n', "additional_input = additional_input\n"),
]  # fmt: skip

SELF_TEST_DEFECTS = [
    ("drbg.py", "counter never counted", "self._reseed_counter += 1", "self._reseed_counter += 0"),
    ("drbg.py", "interval not enforced", "if self._reseed_counter > self._reseed_interval:", "if False:"),
    ("drbg.py", "interval one too long", "> self._reseed_interval", "> self._reseed_interval + 1"),
    ("drbg.py", "use after the end", "self._working = False", "self._working = True"),
    ("drbg.py", "requests unlimited", "1 <= n_bytes <= MAX_REQUEST_BYTES", "1 <= n_bytes"),
    ("drbg.py", "inputs unlimited", "minimum_bytes <= len(value) <= MAX_INPUT_BYTES", "minimum_bytes <= len(value)"),
    ("drbg.py", "short entropy taken", "minimum_bytes <= len(value)", "0 <= len(value)"),
    ("health.py", "repetition cut-off 7", "REPETITION_CUTOFF: Final = 6", "REPETITION_CUTOFF: Final = 7"),
    ("health.py", "repetition cut-off 5", "REPETITION_CUTOFF: Final = 6", "REPETITION_CUTOFF: Final = 5"),
    ("health.py", "run forgotten", "samples = self._run + block", "samples = block"),
    ("health.py", "proportion cut-off 20", "PROPORTION_CUTOFF: Final = 19", "PROPORTION_CUTOFF: Final = 20"),
    ("health.py", "proportion cut-off 18", "PROPORTION_CUTOFF: Final = 19", "PROPORTION_CUTOFF: Final = 18"),
    ("health.py", "window never renewed", "self._seen = self._count = 0", "self._seen = 0"),
    ("health.py", "last block forgotten", "self._last = digest", "self._last = block"),
    ("health.py", "one test left out", "AdaptiveProportion(), SameBlock())", "AdaptiveProportion())"),
    ("scaling.py", "no rejection", "while byte >= limit:", "while False:"),
    ("scaling.py", "one byte too many", "while byte >= limit:", "while byte > limit:"),
    ("scaling.py", "one byte too few", "while byte >= limit:", "while byte >= limit - 1:"),
    ("scaling.py", "a byte for nothing", "if n == 1:", "if n == 0:"),
    ("shuffle.py", "Sattolo", "below(i + 1, next_byte)", "below(i, next_byte)"),
    ("shuffle.py", "naive partner", "below(i + 1, next_byte)", "below(n, next_byte)"),
    ("shuffle.py", "one step early", "range(n - 1, 0, -1)", "range(n - 1, 1, -1)"),
    ("shuffle.py", "other way round", "range(n - 1, 0, -1)", "range(1, n)"),
    ("shuffle.py", "surplus taken", "if surplus:", "if False:"),
]  # fmt: skip


def run_with_defect(tmp_path: Path, file: str, right: str, wrong: str, *arguments: str) -> tuple[int, str]:
    shutil.copytree(ROOT, tmp_path / "rng", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "rng" / file
    text = path.read_text()
    assert right in text, "the defect has lost its place"
    path.write_text(text.replace(right, wrong))
    command = [sys.executable, "-B", "-m", "rng", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(("right", "wrong"), [pytest.param(*d[1:], id=d[0]) for d in DRBG_DEFECTS])
def test_a_defective_drbg_fails_the_known_answers(right: str, wrong: str, tmp_path: Path) -> None:
    status, out = run_with_defect(tmp_path, "drbg.py", right, wrong, "kat", str(VECTORS))
    assert status == 1
    assert not out.endswith(" 0 failed\n")


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [pytest.param("drbg.py", *d[1:], id=d[0]) for d in DRBG_DEFECTS]
    + [pytest.param(d[0], *d[2:], id=d[1]) for d in SELF_TEST_DEFECTS],
)
def test_a_defective_unit_fails_its_self_test(file: str, right: str, wrong: str, tmp_path: Path) -> None:
    assert run_with_defect(tmp_path, file, right, wrong, "selftest")[0] == 1


def test_the_unharmed_copy_passes_both(tmp_path: Path) -> None:
    assert run_with_defect(tmp_path, "drbg.py", "sha512", "sha512", "selftest")[0] == 0
    shutil.rmtree(tmp_path / "rng")
    kat = run_with_defect(tmp_path, "drbg.py", "sha512", "sha512", "kat", str(VECTORS))
    assert kat == (0, "504 passed, 0 failed\n")
