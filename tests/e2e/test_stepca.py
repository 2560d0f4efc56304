"""The recipe of docs/production.md for step-ca: its server, over the template of the page, issues a certificate that a
server of ours admits. A template with the wrong use is refused by `rgs party add`.

Where Debian's golang-go and golang-github-smallstep-certificates-dev are installed. The first build takes minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.processes.server import ServerProcess
from rgs.node.config import load_config
from rgs.v1.catalog_pb2 import ListGamesRequest
from tests.support.ports import free_ports
from tests.support.process.served import PARTY, rgs_here

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests/support/stepca/main.go"
GOPATH = Path("/usr/share/gocode")
PACKAGE = GOPATH / "src/github.com/smallstep/certificates/ca"
BUILD_S, RUN_S = 900, 120
URI = "rgs://party/operator/operator-1"
(TEMPLATE,) = re.findall(
    r"^```json step\n(.*?)^```$", (ROOT / "docs/production.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
AUTHORITIES = """
set -eu
curve="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc"
use="keyUsage=critical,keyCertSign,cRLSign"
openssl req -x509 $curve -days 3650 -subj "/O=Example Gaming/CN=root" -keyout root.key -out root.pem \
  -addext basicConstraints=critical,CA:TRUE,pathlen:1 -addext $use
openssl req $curve -subj "/O=Example Gaming/CN=clients" -keyout inter.key -out inter.csr \
  -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext $use
openssl x509 -req -in inter.csr -CA root.pem -CAkey root.key -days 3650 -copy_extensions copy -out inter.pem
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_S + 3 * RUN_S),
    pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here (Debian: golang-go)"),
    pytest.mark.skipif(
        not PACKAGE.is_dir(), reason="step-ca is not here (Debian: golang-github-smallstep-certificates-dev)"
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stepca")
    settings = {"GO111MODULE": "off", "GOPATH": str(GOPATH), "GOFLAGS": "", "GOCACHE": str(folder / "cache")}
    command: list[str | Path] = [shutil.which("go") or "go", "build", "-o", folder / "stepca", SOURCE]
    subprocess.run(command, env=os.environ | settings, check=True, timeout=BUILD_S)
    return folder / "stepca"


def issue(program: Path, folder: Path, template: str, *sans: str) -> Path:
    """A certificate of a new authority in the folder, by step-ca over the template."""
    folder.mkdir()
    subprocess.run(["/bin/sh", "-c", AUTHORITIES], cwd=folder, check=True, capture_output=True)
    (folder / "clients.tpl").write_text(template, "utf-8")
    (port,) = free_ports(1)
    done = subprocess.run(
        [program, folder, folder / "clients.tpl", f"localhost:{port}", "operator-1", *sans],
        check=False, capture_output=True, text=True, timeout=RUN_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "issued.pem"


def add(home: Path, chain: Path) -> tuple[int, str]:
    """`rgs party add` of the first certificate of a chain, as the page says."""
    own = chain.with_name("own.pem")
    subprocess.run(["/usr/bin/openssl", "x509", "-in", chain, "-out", own], check=True)
    role = ("--role", "operator", "--party", "operator-1", "--jurisdiction", "demo")
    done = rgs_here("party", "add", "--home", str(home), *role, "--cert", str(own))
    return done.returncode, done.stderr


def test_server_and_client_meet_with_certificates_of_step_ca(program: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert rgs_here("init", "--home", str(home)).returncode == 0
    config = load_config(home)
    called = issue(
        program, tmp_path / "servers", TEMPLATE.replace("clientAuth", "serverAuth"), "localhost", "127.0.0.1"
    )
    caller = issue(program, tmp_path / "clients", TEMPLATE, URI)
    for suffix in (".pem", ".key"):
        (config.tls / "server").with_suffix(suffix).write_bytes(called.with_suffix(suffix).read_bytes())
    # The authority of the servers is here for the development party, which asks for health and trusts this file.
    added = [tmp_path / place for place in ("clients/root.pem", "clients/inter.pem", "servers/root.pem")]
    config.ca.write_bytes(b"".join(path.read_bytes() for path in (config.ca, *added)))
    status, said = add(home, caller)
    assert status == 0, said
    with ServerProcess(home, tmp_path / "server.txt", PARTY) as server:
        server.await_serving()
        identity = ClientIdentity(tmp_path / "servers/root.pem", caller, caller.with_suffix(".key"))
        with Client(server.address, identity) as client:
            assert client.call(client.catalog.ListGames, ListGamesRequest()).games
        server.stop()


def test_a_certificate_for_servers_and_one_of_two_names_are_refused(program: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert rgs_here("init", "--home", str(home)).returncode == 0
    for_servers = issue(program, tmp_path / "servers", TEMPLATE.replace("clientAuth", "serverAuth"), URI)
    status, said = add(home, for_servers)
    assert status != 0
    assert "is not for TLS clients" in said
    status, said = add(home, issue(program, tmp_path / "two", TEMPLATE, URI, "rgs://party/operator/operator-2"))
    assert status != 0
    assert "has 2 URIs" in said
