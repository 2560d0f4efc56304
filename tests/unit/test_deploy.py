"""The files of deploy/: read strictly, checked by the tools that are there, and in agreement with the server's code."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rgs.integrity.isolation import FLAGS
from rgs.node.clock import now_ms
from rgs.node.config import SETTINGS, load_config
from rgs.node.doctor.findings import Home
from rgs.node.doctor.keys import START_S
from rgs.node.doctor.permissions import check_permissions
from rgs.node.home import ensure_home
from rgs.node.metrics.endpoint import read_token
from tests.support.process.installed import copy_sources
from tests.support.waiting import until
from tools.wheel import build

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = (DEPLOY / "kubernetes" / "rgs.yaml").read_text("utf-8")
UNITS = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.suffix != ".conf")
GENERATOR_CONF = DEPLOY / "systemd" / "rgs-generator.conf"
DOCTOR_CONF = DEPLOY / "systemd" / "rgs-generator-doctor.conf"
MEASURED = " ".join(FLAGS)
LAUNCHER = "/opt/rgs/lib/python3.11/site-packages/rgs/integrity/launcher.py"


class Strict(yaml.SafeLoader):
    """YAML without a key twice: the ordinary loader takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"{sorted(twice)} twice in line {node.start_mark.line + 1}")
        return super().construct_mapping(node, deep)


def documents(text: str = KUBERNETES) -> list[dict[str, Any]]:
    return list(yaml.load_all(text, Strict))


def kind(name: str) -> dict[str, Any]:
    (found,) = [one for one in documents() if one["kind"] == name]
    return found


# --- Kubernetes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(8))
def test_every_manifest_fits_the_schema_of_kubernetes(place: int) -> None:
    kubernetes_validate.validate(documents()[place], "1.32", strict=True)


def test_a_manifest_with_an_unknown_field_is_refused() -> None:
    wrong = documents(KUBERNETES.replace("terminationGracePeriodSeconds", "terminationGracePeriodSecond"))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong[-1], "1.32", strict=True)
    with pytest.raises(yaml.YAMLError, match="twice"):
        documents("a: 1\nb: 2\na: 3\n")


def test_the_pods_are_single_drained_and_restricted() -> None:
    assert len(documents()) == 8
    spec = kind("StatefulSet")["spec"]
    pod = spec["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    for one in ("PodDisruptionBudget", "NetworkPolicy", "Service"):
        selector = kind(one)["spec"].get("selector") or kind(one)["spec"].get("podSelector")
        assert selector.get("matchLabels", selector) == labels
    assert kind("PodDisruptionBudget")["spec"]["maxUnavailable"] < spec["replicas"]
    settings = kind("ConfigMap")["data"]["rgs.toml"]
    (drain_s,) = re.findall(r"^drain_s = (\d+)$", settings, re.MULTILINE)
    assert pod["terminationGracePeriodSeconds"] > int(drain_s) + 5
    assert set(re.findall(r"^(\w+) = ", settings, re.MULTILINE)) <= set(SETTINGS)
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in (*pod["initContainers"], *pod["containers"]):
        limits = container["securityContext"]
        assert limits["readOnlyRootFilesystem"], container["name"]
        assert not limits["allowPrivilegeEscalation"]
        assert limits["capabilities"] == {"drop": ["ALL"]}
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        own = {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
        assert mounted <= own | {volume["name"] for volume in pod["volumes"]}
    shared = [volume["name"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    assert shared == ["translog"], "the log is the only shared volume"
    (server,) = pod["containers"]
    assert server["args"] == ["serve", "--home", "/var/lib/rgs/home"]
    assert "command" not in server, "the image's entry point is the launcher"


def test_prometheus_reaches_the_metrics_and_only_prometheus() -> None:
    (server,) = kind("StatefulSet")["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in server["ports"]}
    settings = pod_settings()
    assert settings["metrics_listen"] == f"0.0.0.0:{ports['metrics']}"
    assert settings["metrics_token"] == "metrics.token"  # noqa: S105 - a file
    assert {port["targetPort"] for port in kind("Service")["spec"]["ports"]} == set(ports)
    admitted = {rule["ports"][0]["port"]: "from" in rule for rule in kind("NetworkPolicy")["spec"]["ingress"]}
    assert admitted == {ports["grpc"]: False, ports["metrics"]: True}


def pod_settings() -> dict[str, Any]:
    return tomllib.loads(kind("ConfigMap")["data"]["rgs.toml"])


def pod_script(name: str, at: Path) -> str:
    """The script of an init container, with the places of the pod below a folder."""
    containers = kind("StatefulSet")["spec"]["template"]["spec"]["initContainers"]
    ((script,),) = [one["args"] for one in containers if one["name"] == name]
    return re.sub(
        r"(?<=[ \"])/(?=(var/lib/rgs|data|translog|settings|bundle|keys|tls|database|metrics)/)", f"{at}/", script
    )


def test_the_home_of_a_pod_is_its_own_where_its_volumes_are_the_groups(tmp_path: Path) -> None:
    """Kubernetes gives a volume to the pod's group: mode 2777 in memory, 2775 on a disk. The doctor refuses that."""
    made = tmp_path / "made"
    ensure_home(made, None, os.urandom, now_ms())
    for name in ("var/lib/rgs", "data", "translog"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name).chmod(0o2777)
    secrets = {
        "settings": {"rgs.toml": kind("ConfigMap")["data"]["rgs.toml"].encode()},
        "bundle": {
            "keys.json": (made / "keys/keys.json").read_bytes(),
            **dict.fromkeys(("peers.toml", "policy.txt", "certified.json"), b""),
        },
        "keys": {
            "node-rgs-0.key": (made / "keys/node.key").read_bytes(),
            "log.key": (made / "keys/log.key").read_bytes(),
            "kek.json": (made / "kek/kek.json").read_bytes(),
        },
        "tls": {name: (made / "tls" / name).read_bytes() for name in ("server.pem", "server.key", "ca.pem")},
        "database": {"pgpass": b"x"},
        "metrics": {"token": b"t" * 40},
    }
    for folder, files in secrets.items():
        (tmp_path / folder).mkdir()
        for name, content in files.items():
            (tmp_path / folder / name).write_bytes(content)
            (tmp_path / folder / name).chmod(0o444)
    script = pod_script("home", tmp_path)
    for _ in range(2):  # a pod that starts anew finds its disk as it was
        subprocess.run(["/bin/sh", "-euc", script], check=True, env={"NODE": "rgs-0", "PATH": "/usr/bin:/bin"})
    config = load_config(tmp_path / "var/lib/rgs/home")
    assert config.node == "rgs-0"
    assert {config.log, config.reconciliation, config.translog} == {
        Path("/data/log/rgs.log"), Path("/data/reconciliation"), Path("/translog/log"),
    }  # fmt: skip
    here = {name: tmp_path / str(getattr(config, name))[1:] for name in ("log", "reconciliation", "translog")}
    findings = list(check_permissions(Home(replace(config, **here), now_ms())))  # type: ignore[arg-type]
    assert [one.code for one in findings] == ["OK"], findings
    assert all(path.stat().st_mode & 0o077 == 0 for path in (here["log"].parent, *list(here.values())[1:]))
    assert read_token(config) == b"t" * 40


async def test_the_sidecar_passes_the_log_on_and_keeps_it_small(tmp_path: Path) -> None:
    (tmp_path / "data/log").mkdir(parents=True)
    script = pod_script("log", tmp_path)
    quick = script.replace("sleep 10", "sleep 0.1").replace("134217728", "5000")
    log = tmp_path / "data/log/rgs.log"
    with (tmp_path / "seen").open("wb") as seen:
        shell = await asyncio.create_subprocess_exec(
            "/bin/sh", "-euc", quick, stdout=seen, stderr=subprocess.DEVNULL, start_new_session=True
        )
    try:
        await until(log.is_file)
        await asyncio.sleep(0.5)  # `tail` begins at the end
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)  # as the server has it open
        for number in range(600):
            os.write(descriptor, f"line {number}\n".encode())
            await asyncio.sleep(0.002)
        await until((tmp_path / "data/log/rgs.log.1").is_file)
        await until(lambda: log.stat().st_size < 5000)
        os.write(descriptor, b"the last one\n")
        os.close(descriptor)
        await until(lambda: (tmp_path / "seen").read_text().endswith("the last one\n"))
    finally:
        os.killpg(shell.pid, signal.SIGTERM)
        assert await shell.wait() == 0
    lines = (tmp_path / "seen").read_text().splitlines()
    assert len(lines) > 400, "what is written while it copies may be missing, no more"


# --- the image and the sandbox ----------------------------------------------------------------------------------------


def test_the_image_is_small_measured_and_nobodys_but_roots() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    result = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    entry = next(line for line in result if line.startswith("ENTRYPOINT "))
    assert [part.strip('"') for part in re.findall(r'"[^"]*"', entry)] == ["/opt/rgs/bin/python", *FLAGS, LAUNCHER]
    assert "USER 10001:10001" in result
    assert not [line for line in result if re.search(r"gcc|build-essential|python3-dev|pip install|COPY \.", line)]
    assert "--require-hashes" in text
    assert "--only-binary :all:" in text


def test_the_folder_of_the_volume_is_the_servers() -> None:
    """A named volume begins with owner and mode of the image's folder: without one it is root's."""
    text = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    (volume,) = re.findall(r"^VOLUME (\S+)$", text, re.MULTILINE)
    (user,) = re.findall(r"^USER (\d+):\1$", text, re.MULTILINE)
    made = f"install --directory --owner={user} --group={user} --mode=0700 {volume}"
    assert f"--uid {user} " in text
    assert 0 < text.find(made) < text.find(f"USER {user}") < text.find("VOLUME ")


def taken(folder: Path) -> list[str]:
    """The files that `COPY .` takes, by .dockerignore: the last line that matches a file or a folder above it."""
    lines = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if not line.startswith("#")]
    rules = [(line.startswith("!"), line.removeprefix("!")) for line in lines if line]

    def is_taken(path: str) -> bool:
        above = [path, *map(str, PurePosixPath(path).parents)][:-1]
        kept = True
        for keeps, pattern in rules:
            name = pattern.removeprefix("**/")
            found = any(fnmatch(PurePosixPath(one).name if name != pattern else one, name) for one in above)
            kept = keeps if found else kept
        return kept

    paths = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if is_taken(path))


def test_the_build_sees_what_a_wheel_is_made_of_and_no_key(tmp_path: Path) -> None:
    whole = copy_sources(tmp_path / "whole")
    unwanted = (".git/config", ".venv/bin/python", "var/rgs/keys/root.key", "rgs/__pycache__/x.pyc", "docs/x.md")
    for name in (*unwanted, "LICENSE", "examples/health_probe.py", "examples/minimal_client.py"):
        (whole / name).parent.mkdir(parents=True, exist_ok=True)
        (whole / name).write_bytes(b"x" if name in unwanted else (ROOT / name).read_bytes())
    seen = taken(whole)
    assert {name.partition("/")[0] for name in seen} == {
        *("pyproject.toml", "LICENSE", "requirements", "rgs", "rng", "certification", "examples"),
    }
    assert not set(seen) & set(unwanted)
    copied = re.findall(r"^COPY --chown=0:0 (\S+) ", (DEPLOY / "Containerfile").read_text("utf-8"), re.MULTILINE)
    assert copied == [name for name in seen if name.startswith("examples/")]
    for name in seen:
        (tmp_path / "seen" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(whole / name, tmp_path / "seen" / name)
    wheels = [build(folder, tmp_path / f"{folder.name}-wheel") for folder in (whole, tmp_path / "seen")]
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_the_sandbox_of_compose_runs_as_the_image_does() -> None:
    (document,) = documents((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert set(document) == {"name", "services", "volumes"}
    service = document["services"]["sandbox"]
    known = {"build", "entrypoint", "command", "ports", "volumes", "read_only", "tmpfs", "cap_drop"}
    assert set(service) <= known | {"security_opt", "stop_grace_period", "init"}
    assert service["command"][0] == "sandbox"
    options = subprocess.run(
        [sys.executable, "-m", "rgs", "sandbox", "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert all(option in options for option in service["command"] if option.startswith("--"))
    assert all(volume.partition(":")[0] in document["volumes"] for volume in service["volumes"])
    assert service["ports"] == ["127.0.0.1:50651:50651"], "nobody else reaches a server with development keys"


# --- systemd ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("with_generator", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.name))
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path, with_generator: bool) -> None:
    for path in UNITS:  # programs that exist: `verify` looks for them
        text = re.sub(r"/opt/rgs/bin/\w+", "/bin/true", path.read_text("utf-8"))
        (tmp_path / path.name).write_text(text, "utf-8")
    if with_generator:
        for unit_name, conf in (("rgs@", GENERATOR_CONF), ("rgs-doctor@", DOCTOR_CONF)):
            (tmp_path / f"{unit_name}.service.d").mkdir()
            shutil.copy(conf, tmp_path / f"{unit_name}.service.d")
    done = subprocess.run(
        [shutil.which("systemd-analyze") or "", "verify", "--man=no", str(tmp_path / unit.name)],
        capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "rgs" in line]
    assert ours == [], done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_a_wrong_unit_is_refused(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "rgs@.service").read_text("utf-8").replace("ProtectHome=yes", "ProtectHoem=yes")
    (tmp_path / "rgs@.service").write_text(re.sub(r"/opt/rgs/bin/\w+", "/bin/true", unit), "utf-8")
    command = [shutil.which("systemd-analyze") or "", "verify", "--man=no", str(tmp_path / "rgs@.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ProtectHoem" in done.stderr


def test_the_unit_starts_measured_and_gives_up_where_the_server_does() -> None:
    unit = (DEPLOY / "systemd" / "rgs@.service").read_text("utf-8")
    assert f"ExecStart=/opt/rgs/bin/python {MEASURED} {LAUNCHER} serve --home /var/lib/rgs/%i\n" in unit
    assert "RestartPreventExitStatus=2 3\n" in unit
    assert "ExecStartPre=/opt/rgs/bin/rgs doctor --before-start --home /var/lib/rgs/%i\n" in unit
    assert "StartLimitIntervalSec=0\n" in unit.partition("[Service]")[0], "it tries for ever"
    assert int(re.findall(r"^TimeoutStartSec=(\d+)", unit, re.MULTILINE)[0]) > 2 * START_S
    assert int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]) > int(str(SETTINGS["drain_s"].default))
    for path in UNITS:
        if path.suffix == ".service":
            text = path.read_text("utf-8")
            assert {"NoNewPrivileges=yes", "ProtectSystem=strict", "UMask=0077"} <= set(text.splitlines()), path.name
            assert "not started by systemd in this project's tests" in text.replace("\n# ", " ")


def test_a_call_that_a_unit_does_not_allow_is_refused_and_the_doctor_may_read_the_clock() -> None:
    """Without an error number systemd kills the process at such a call."""
    for path in UNITS:
        lines = path.read_text("utf-8").splitlines()
        if any(line.startswith("SystemCallFilter=") for line in lines):
            assert "SystemCallErrorNumber=EPERM" in lines, path.name
    doctor = (DEPLOY / "systemd" / "rgs-doctor@.service").read_text("utf-8").splitlines()
    assert "SystemCallFilter=adjtimex clock_adjtime clock_adjtime64" in doctor
    assert "CapabilityBoundingSet=" in doctor, "it cannot set the clock"
    assert not [line for line in doctor if line.startswith("ProtectClock")]


def test_the_generator_process_starts_measured_without_a_network_and_for_its_servers_user_alone() -> None:
    unit = (DEPLOY / "systemd" / "rgs-generator.service").read_text("utf-8")
    server = (DEPLOY / "systemd" / "rgs@.service").read_text("utf-8")
    lines = unit.splitlines()
    (user,) = re.findall(r"^User=(\S+)$", server, re.MULTILINE)
    (own,) = re.findall(r"^User=(\S+)$", unit, re.MULTILINE)
    (socket,) = re.findall(r"--socket (\S+)", unit)
    launched = f"ExecStart=/opt/rgs/bin/python {MEASURED} {LAUNCHER} generator serve --socket {socket} --user {user}"
    assert launched in lines
    assert own != user, "a user of its own"
    assert socket == f"/run/{own}/generator.sock"
    assert f"RuntimeDirectory={own}" in lines
    assert {
        *("PrivateNetwork=yes", "RestrictAddressFamilies=AF_UNIX", "SystemCallFilter=@system-service", "LimitCORE=0"),
        *("CapabilityBoundingSet=", "MemoryDenyWriteExecute=yes", "RestartPreventExitStatus=2 3"),
    } <= set(lines)
    assert not [line for line in lines if line.startswith(("PrivateUsers", "ReadWritePaths", "Environment"))]
    conf = GENERATOR_CONF.read_text("utf-8").splitlines()
    assert {"Requires=rgs-generator.service", "After=rgs-generator.service", f"SupplementaryGroups={own}"} <= set(conf)
    assert f"SupplementaryGroups={own}" in DOCTOR_CONF.read_text("utf-8").splitlines()
    assert f"{DOCTOR_CONF.relative_to(ROOT)} /etc/systemd/system/rgs-doctor@.service.d/" in (
        ROOT / "docs" / "generator.md"
    ).read_text("utf-8")
    for text in (unit, (ROOT / "docs" / "generator.md").read_text("utf-8")):
        assert f'generator = "unix:{socket}"' in text


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="logrotate is not installed")
def test_logrotate_keeps_what_the_server_has_open(tmp_path: Path) -> None:
    """The server writes on into the same file, and nothing that was written before is lost."""
    log = tmp_path / "node1/log/rgs.log"
    log.parent.mkdir(parents=True)
    text = (DEPLOY / "logrotate.conf").read_text("utf-8").replace("/var/lib/rgs", str(tmp_path))
    assert "    su rgs rgs\n" in text
    (tmp_path / "conf").write_text(text.replace("    su rgs rgs\n", "").replace("    delaycompress\n", ""), "utf-8")
    (tmp_path / "conf").chmod(0o600)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, b"before\n")
    command = [shutil.which("logrotate") or "", "--force", "--state", str(tmp_path / "state"), str(tmp_path / "conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    os.write(descriptor, b"after\n")
    os.close(descriptor)
    (kept,) = log.parent.glob("rgs.log-*.gz")
    assert (gzip.decompress(kept.read_bytes()), log.read_bytes()) == (b"before\n", b"after\n")
    assert kept.stat().st_mode & 0o077 == 0


# --- the log, published -----------------------------------------------------------------------------------------------


def test_the_log_is_published_by_names_that_a_log_has() -> None:
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    found = [re.compile(pattern) for pattern in re.findall(r'location ~ "([^"]+)"', text)]
    caddy = [re.compile(one) for one in re.findall(r"path_regexp (\S+)", (DEPLOY / "Caddyfile").read_text("utf-8"))]
    published = (
        *("/2026h2/checkpoint", "/2026h2/checkpoint.cosigned", "/2026h2/tile/0/000", "/2026h2/tile/0/x001/234"),
        *("/2026h2/tile/1/000.p/17", "/2026h2/tile/entries/x001/000.p/1", f"/2026h2/artifact/{'a' * 64}"),
    )
    hidden = (
        "/checkpoints.db",
        "/2026h2/order.db",
        "/privates.db",
        "/2026h2/.x.1.unfinished",
        "/2026h2/tile/../x",
        "/",
    )
    for server in (found, caddy):
        assert [path for path in published if not any(one.match(path) for one in server)] == []
        assert [path for path in hidden if any(one.match(path) for one in server)] == []


def of_the_folder(name: str, folder: Path) -> str:
    """A file of deploy/ with certificates of the folder, which are made."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=x", "-days", "1"]
    subprocess.run(
        [*command, "-keyout", folder / "log.key", "-out", folder / "log.pem"], check=True, capture_output=True
    )
    shutil.copy(folder / "log.pem", folder / "auditors.pem")
    return re.sub(r"/var/lib/rgs/ca/", f"{folder}/", (DEPLOY / name).read_text("utf-8"))


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_caddy_accepts_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "Caddyfile").write_text(of_the_folder("Caddyfile", tmp_path), "utf-8")
    done = subprocess.run(
        [shutil.which("caddy") or "", "validate", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"],
        capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_accepts_the_configuration(tmp_path: Path) -> None:
    server = of_the_folder("nginx.conf", tmp_path)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{one}_temp_path {tmp_path}/{one};\n" for one in kinds)
    whole = f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}{server}\n}}\n"
    (tmp_path / "nginx.conf").write_text(whole, "utf-8")
    program = shutil.which("nginx") or ""
    done = subprocess.run(
        [program, "-t", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_file_is_named_with_how_it_was_checked() -> None:
    text = (DEPLOY / "README.md").read_text("utf-8")
    named = set(re.findall(r"^\| `([\w./-]+)`", text, re.MULTILINE)) | {"nginx.conf", "Caddyfile"}
    there = {path.name + ("/" if path.is_dir() else "") for path in DEPLOY.iterdir()} - {"README.md"}
    assert named == there
