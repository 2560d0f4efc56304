"""docs/production.md, block by block: from nothing to two nodes over a PostgreSQL pair, with a round played, audited,
backed up and restored, and a doctor who finds nothing.

Skipped where PostgreSQL with TLS (Debian: postgresql-15) is not installed. RGS_TEST_POSTGRES_TLS names another folder
of programs. Root runs it as `nobody`, who may read everything, because the interpreter may lie in root's own folders.
It runs with the block `files`, and with the block `module` in its place where SoftHSM2 is installed. The blocks `nginx`
and `caddy` are left out where that server is not installed.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_ports
from tests.unit.node.test_hsm import MODULE, UTIL, WHOLE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "production.md").read_text("utf-8")
BLOCK = re.compile(r"^```sh ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OF_THE_MACHINE = {"CLOCK_NOT_KEPT", "DISK_LOW", "DISK_NOT_DURABLE"}
"""What a machine of tests may have, and the server's set-up cannot change."""
PORTS = ("NODE1", "NODE2", "DB1", "DB2", "WITNESS", "WALLET", "REGULATOR", "METRICS1", "METRICS2", "PUBLISHED", "CADDY")
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
CADDY = shutil.which("caddy")
PROMTOOL = shutil.which("promtool")
RUN_S = 1800
AS_NOBODY = (
    *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
WAIT = "for i in $(seq 150); do kill -0 $(cat {0}.pid) || break; sleep .1; done"


def programs() -> Path | None:
    """PostgreSQL's folder of programs, where it was built with TLS."""
    named = os.environ.get("RGS_TEST_POSTGRES_TLS")
    folders = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        config = folder / "postgres"
        if config.is_file():
            linked = subprocess.run(["/usr/bin/ldd", str(config)], capture_output=True, text=True, check=False).stdout
            if "libssl" in linked:
                return folder
    return None


@dataclass(frozen=True)
class Site:
    """The folder of the page, and the environment that its commands get."""

    folder: Path
    environment: dict[str, str]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run as the user that serves, who is not root."""
        return subprocess.run(
            [*(AS_NOBODY if os.geteuid() == 0 else ()), "/bin/bash", "-c", script],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=RUN_S, check=False,
        )  # fmt: skip

    def stop(self) -> None:
        """Stop what the page has started: servers first, then what they call, then the databases."""
        names = ("nginx", "caddy", "node1", "node2", "witness", "wallet", "regulator")
        for name in names:
            self.run(f"kill $(cat {name}.pid) && {WAIT.format(name)}; kill -9 $(cat {name}.pid)")
        for name in ("db2", "db1"):
            self.run(f'"$PGBIN/pg_ctl" -D {name}/data -m immediate stop')


@pytest.fixture
def site() -> Iterator[Site]:
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL with TLS is not installed (Debian: postgresql-15)")
    folder = Path(tempfile.mkdtemp(prefix="rgs-site-", dir="/var/tmp"))
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "SITE": str(folder),
        "PGBIN": str(found),
        "BACKUPS": str(folder / "backups"),
        "EXAMPLES": str(ROOT / "examples"),
        "DEPLOY": str(ROOT / "deploy"),
        **({} if NGINX is None else {"NGINXBIN": NGINX}),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True)),
    }
    if WHOLE:
        (folder / "tokens").mkdir(mode=0o777)
        (folder / "tokens").chmod(0o777)
        (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder / 'tokens'}\nlog.level = ERROR\n")
        environment |= {"SOFTHSM2_CONF": str(folder / "softhsm2.conf"), "MODULE": str(MODULE)}
    one = Site(folder, environment)
    try:
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(PAGE)


def test_the_page_has_its_blocks() -> None:
    names = [name for name, _ in blocks()]
    assert all(names.count(name) == 1 for name in ("files", "module", "nginx", "caddy", "doctor"))
    assert names[-1] == "doctor"
    assert len(names) > 12
    assert UTIL is None or WHOLE or MODULE is None


def test_the_page_and_the_units_have_the_same_folders() -> None:
    """Who follows the page and then installs the units serves what the page has made."""
    folders = dict(re.findall(r'"\$\{(\w+):=(/[^}]+)\}"', PAGE))
    units = "".join(path.read_text("utf-8") for path in (ROOT / "deploy/systemd").glob("rgs*@.service"))
    assert set(re.findall(r"--home (\S+)/%i", units)) == {folders["SITE"]}
    assert set(re.findall(r"--(?:to|from|scratch|backups) (\S+)", units)) == {folders["BACKUPS"]}
    assert set(re.findall(r"--pg-bin (\S+)", units)) == {folders["PGBIN"]}
    assert set(re.findall(r"PGPASSFILE=(\S+)/pgpass", units)) == {folders["SITE"]}
    for name in ("nginx.conf", "Caddyfile"):
        text = (ROOT / "deploy" / name).read_text("utf-8")
        assert set(re.findall(r"(/[\w/]+)/(?:ca|translog)\b", text)) == {folders["SITE"]}, name


@pytest.mark.slow
@pytest.mark.timeout(RUN_S)
@pytest.mark.parametrize("keys", ["files", "module"])
def test_the_page_makes_a_server_for_real_money(site: Site, keys: str) -> None:
    if keys == "module" and not WHOLE:
        pytest.skip("SoftHSM2 is not installed (Debian: softhsm2)")
    missing = {name for name, program in (("nginx", NGINX), ("caddy", CADDY)) if program is None}
    left_out = {"doctor", *({"files", "module"} - {keys}), *missing}
    script = "\n".join(text for name, text in blocks() if name not in left_out)
    done = site.run(script)
    texts = {path.name: path.read_text("utf-8", "replace")[-1500:] for path in site.folder.glob("*.log")}
    logs = "".join(f"--- {name}\n{text}" for name, text in texts.items())
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{logs}"
    assert done.stdout.count("closed, ") == 2, done.stdout
    assert "passed in" in done.stdout.splitlines()[-1], done.stdout
    if PROMTOOL is not None:
        site.run(f'"{PROMTOOL}" check config prometheus.yml').check_returncode()

    (doctor,) = [text for name, text in blocks() if name == "doctor"]
    said = site.run("\n".join(f"{line} || [ $? = 1 ]" for line in doctor.splitlines()))
    codes = set(re.findall(r"\[([A-Z_]+)\]$", said.stdout, re.MULTILINE))
    assert codes <= OF_THE_MACHINE, said.stdout
    if not codes:
        assert said.stdout.count("all is well: 0 errors, 0 warnings") == 2

    for name in ("db.password", "metrics.token"):
        secret = (site.folder / name).read_text("ascii").strip()
        assert secret not in done.stdout + done.stderr + said.stdout + logs, name
    assert not list((site.folder / "node1").rglob("root.key"))
    assert not list((site.folder / "backups").rglob("*.key"))
