"""deploy/image.sh and deploy/compose.yaml, really run: an image built over Debian's packages, containers started from
it, a round played against them over mutual TLS, and a second build with the same bytes.

For root, where Debian's packages buildah, mmdebstrap, podman and runc are installed, and Debian's and Python's packages
can be reached. Nothing is kept: the images lie in a folder of the test's own.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from rgs.devkit.processes.server import free_address

ROOT = Path(__file__).parents[2]
PROGRAMS = ("buildah", "mmdebstrap", "podman", "runc")
MISSING = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None]
BUILD_S, START_S = 900, 120
SIZE_MAX = 400_000_000
RESTRICTED = ("--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges")
LOOK = r"""
id -u; id -g; id -gn
for name in cc gcc g++ c++ clang tcc as ld make go rustc cargo pip pip3; do command -v $name && echo "found $name"; done
/opt/rgs/bin/python -c 'import pip' 2>/dev/null && echo "found pip"
find / -xdev -type f -perm /6000 2>/dev/null
find /opt/rgs ! -user 0 -o ! -group 0 -o ! -type l -perm /022
find / -xdev -name __pycache__ 2>/dev/null
touch /opt/rgs/new /usr/new /tmp/new 2>/dev/null
grep CapEff /proc/self/status
"""
PODS = yaml.safe_load_all((ROOT / "deploy/kubernetes/rgs.yaml").read_text("utf-8"))
(SERVER,) = next(one for one in PODS if one["kind"] == "StatefulSet")["spec"]["template"]["spec"]["containers"]
PROBE = SERVER["readinessProbe"]["exec"]["command"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * BUILD_S),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can build an image of Debian's packages"),
    pytest.mark.skipif(bool(MISSING), reason=f"no image can be built here: missing {', '.join(MISSING)}"),
]


@dataclass(frozen=True)
class Image:
    """An image that was built, in a folder of images of its own."""

    folder: Path
    digest: str
    archive: Path
    environment: dict[str, str]

    def podman(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run podman over the folder, with the limits of this process: who may not raise them cannot start others."""
        command = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs", "--events-backend=none", *arguments]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=START_S, check=False, cwd=self.folder
        )
        assert done.returncode == 0 or not check, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done

    def options(self) -> tuple[str, ...]:
        """What a container needs on this machine, whatever runs in it."""
        files = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        return ("--network", "host", "--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=4096:4096")

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a container to its end; the arguments are options of podman, then `localhost/rgs`, then the command."""
        return self.podman("run", "--rm", *self.options(), *RESTRICTED, *arguments, check=check)

    def volume(self, name: str) -> Path:
        """The folder of a volume."""
        return Path(self.podman("volume", "inspect", "--format", "{{.Mountpoint}}", name).stdout.strip())

    @contextmanager
    def started(self, name: str, *arguments: str) -> Iterator[None]:
        """A container until the end of the block, then SIGTERM, upon which it has to end by itself with status 0."""
        self.podman("run", "--detach", "--name", name, *self.options(), *arguments)
        try:
            yield
            self.podman("stop", "--time", "60", name)
            ended = self.podman("inspect", "--format", "{{.State.ExitCode}}", name).stdout.strip()
            assert ended == "0", self.said(name)
        finally:
            self.podman("rm", "--force", name, check=False)

    def said(self, name: str) -> str:
        """What a container has printed."""
        done = self.podman("logs", name, check=False)
        return done.stdout + done.stderr

    def await_said(self, name: str, words: str) -> None:
        """Wait until a container has printed this."""
        last = time.monotonic() + START_S
        while words not in self.said(name):
            running = self.podman("inspect", "--format", "{{.State.Running}}", name).stdout.strip()
            assert running == "true", self.said(name)
            assert time.monotonic() < last, self.said(name)
            time.sleep(0.2)


def build(archive: Path, environment: dict[str, str]) -> str:
    """Run the script; the digest that it says."""
    done = subprocess.run(
        [ROOT / "deploy" / "image.sh", archive],
        env=environment, capture_output=True, text=True, timeout=BUILD_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    name, digest = done.stdout.split()
    assert name == "localhost/rgs"
    return digest


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    folder = Path(tempfile.mkdtemp(prefix="rgs-image-", dir="/var/tmp"))
    storage = folder / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/images"\nrunroot = "{folder}/run"\n', "utf-8")
    environment = {
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "CONTAINERS_STORAGE_CONF": str(storage),
    }
    archive = folder / "rgs.tar"
    try:
        yield Image(folder, build(archive, environment), archive, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def play(address: str, tls: Path) -> str:
    """A whole session of one round by the example, over mutual TLS."""
    clients = tls / "clients"
    files = (tls / "ca.pem", clients / "demo-operator.pem", clients / "demo-operator.key")
    done = subprocess.run(
        [sys.executable, ROOT / "examples/minimal_client.py", address, *files, "1"],
        capture_output=True, text=True, timeout=START_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_image_is_small_and_nothing_in_it_can_be_compiled_or_changed(image: Image) -> None:
    said = image.run("--entrypoint", json.dumps(["/bin/sh", "-c", LOOK]), "localhost/rgs", check=False).stdout
    assert said.split() == ["10001", "10001", "rgs", "CapEff:", "0" * 16], said
    (found,) = json.loads(image.podman("image", "inspect", "localhost/rgs").stdout)
    assert found["User"] == "10001:10001"
    assert found["Size"] < SIZE_MAX
    with tarfile.open(image.archive) as archive:
        (one,) = json.load(archive.extractfile("index.json"))["manifests"]  # type: ignore[arg-type]
    assert one["digest"] == image.digest


def test_it_serves_measured_and_refuses_a_file_that_was_changed(image: Image) -> None:
    """The entry point is the launcher: it compares the image with the manifest that was certified, then serves."""
    address = free_address()
    volume = ("--volume", "served:/var/lib/rgs")
    served = (*RESTRICTED, *volume, "localhost/rgs", "serve")
    image.run("--entrypoint", "/opt/rgs/bin/rgs", *volume, "localhost/rgs", "init")
    settings = image.volume("served") / "home" / "rgs.toml"
    settings.write_text(re.sub('(?m)^listen = ".*"$', f'listen = "{address}"', settings.read_text("utf-8")), "utf-8")
    with image.started("first", *served):
        image.await_said("first", "listening")
        tls = image.volume("served") / "home" / "tls"
        assert "closed, " in play(address, tls)
    certify = ("--entrypoint", json.dumps(["/opt/rgs/bin/certify", "manifest", "--json"]))
    certified = image.volume("served") / "home" / "certified.json"
    certified.write_text(image.run(*certify, *volume, "localhost/rgs").stdout, "utf-8")
    os.chown(certified, 10001, 10001)
    with image.started("second", *served):
        image.await_said("second", "listening")
        assert "closed, " in play(address, tls)
        image.podman("exec", "second", *PROBE)

    inside = "/opt/rgs/lib/python3.11/site-packages/rgs/core/money.py"
    changed = image.folder / "money.py"
    changed.write_bytes((ROOT / "rgs/core/money.py").read_bytes() + b"\n")
    changed.chmod(0o644)
    refused = image.run("--volume", f"{changed}:{inside}:ro", *served[len(RESTRICTED) :], check=False)
    assert refused.returncode in range(1, 125), refused.stderr
    assert "money.py" in refused.stdout + refused.stderr


def test_the_sandbox_of_compose_runs_and_plays(image: Image) -> None:
    """Each key of the service becomes the option of podman that means the same."""
    service = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text("utf-8"))["services"]["sandbox"]
    (port,) = {entry.split(":")[1] for entry in service["ports"]}
    wallet, server = free_address(), free_address()
    command = [
        {f"0.0.0.0:{port}": f"0.0.0.0:{server.rpartition(':')[2]}", "127.0.0.1:50661": wallet}.get(part, part)
        for part in service["command"]
    ]  # the ports of a machine that others use, too
    options = ["--entrypoint", json.dumps(service["entrypoint"])]
    options += [f"--volume={volume}" for volume in service["volumes"]]
    options += [f"--tmpfs={folder}" for folder in service["tmpfs"]]
    options += [f"--cap-drop={name}" for name in service["cap_drop"]]
    options += [f"--security-opt={name.replace(':true', '')}" for name in service["security_opt"]]
    options += ["--read-only"] * service["read_only"]
    with image.started("sandbox", *options, "localhost/rgs", *command):
        image.await_said("sandbox", "The sandbox is ready.")
        assert "closed, " in play(f"localhost:{server.rpartition(':')[2]}", image.volume("home") / "home" / "tls")


def test_a_second_build_has_the_same_bytes(image: Image) -> None:
    again = image.folder / "again.tar"
    assert build(again, image.environment | {"BASE": "localhost/rgs-base"}) == image.digest
    blobs = []
    for path in (image.archive, again):
        with tarfile.open(path) as archive:
            blobs.append({entry.name for entry in archive if entry.name.startswith("blobs/")})
    assert blobs[0] == blobs[1]
    assert len(blobs[0]) >= 4, "two layers, the settings and the manifest"
