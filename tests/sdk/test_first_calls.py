"""The first calls of docs/sandbox.md stand on the page as the sandbox prints them, and each works as it stands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.sdk import test_go
from tests.support.process.sandbox import ROOT, Running, sandbox
from tests.support.sdk import missing

PAGE: Final = (ROOT / "docs" / "sandbox.md").read_text("utf-8")
SETTING: Final = re.findall(r"^```sh\n(set -- \S+ var/sandbox.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS: Final = dict(re.findall(r"^```sh (\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
BUILDS: Final = {"Node": "make sdk", "Go": "examples/go/build.sh var/first-round-go"}
WHY_NOT: Final = {
    "Python": "",
    "Node": missing("client", "dist/src/index.js"),
    "Go": test_go.WHY_NOT,
    "grpcurl": "" if shutil.which("grpcurl") else "skipped, there is no grpcurl here",
}
SAYS: Final = {
    "Python": "6 signed statements kept",
    "Node": "ante: 1.00 EUR staked",
    "Go": "staked 3.00 EUR, back ",
    "grpcurl": '"casino-holdem"',
}
CALL_S: Final = 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * test_go.BUILD_S)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with sandbox(tmp_path_factory.mktemp("calls") / "sandbox") as found:
        yield found


def here(text: str, running: Running) -> str:
    """A text of the page with the address and the folder of this sandbox."""
    address = re.search(r"^server +(\S+)", running.printed, re.MULTILINE)
    assert address
    return text.replace("localhost:50651", address[1]).replace("var/sandbox", str(running.folder))


def steps(language: str) -> tuple[str, str]:
    """What builds the client, which may be nothing, and the call."""
    *build, call = BLOCKS[language].splitlines()
    return "\n".join(build), call


def expanded(call: str, arguments: list[str]) -> list[str]:
    """The words of the call, with the arguments of `set --`."""
    call = call.replace('"$@"', shlex.join(arguments))
    for number, argument in enumerate(arguments, 1):
        call = call.replace(f'"${number}"', shlex.quote(argument))
    return shlex.split(call)


def test_the_page_has_what_the_sandbox_prints(running: Running) -> None:
    assert list(BLOCKS) == list(WHY_NOT)
    (setting,) = SETTING
    arguments = shlex.split(here(setting, running).replace("\\\n", ""))[2:]
    for language in BLOCKS:
        build, call = steps(language)
        assert expanded(call, arguments) == running.call_of(language)
        assert build == BUILDS.get(language, "")
        assert not build or f"# {language} (build it once: {build})" in running.printed


@pytest.mark.parametrize("language", BLOCKS)
def test_a_first_call_works(language: str, running: Running, tmp_path: Path) -> None:
    if WHY_NOT[language]:
        pytest.skip(WHY_NOT[language])
    build, call = steps(language)
    if language == "Go":  # the packages of Node are built already, or the test is skipped
        call = call.replace("var/", f"{tmp_path}/")
        subprocess.run(build.replace("var/", f"{tmp_path}/").split(), cwd=ROOT, check=True, timeout=test_go.BUILD_S)
    script = f"{here(SETTING[0], running)}\n{call}"
    done = subprocess.run(
        ["/bin/sh", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=CALL_S
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[language] in done.stdout
