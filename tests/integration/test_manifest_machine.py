"""Files of the machine that bring other code into a process: looked at before OpenSSL is, refused by name, recorded."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rgs.integrity import manifest_machine, manifest_verify
from rgs.integrity.manifest_verify import ABSENT, machine_of
from tests.support.process.installed import Installation, checkout

pytestmark = pytest.mark.slow

HONEST = """
HOME = .
openssl_conf = openssl_init   # as Debian has it
[openssl_init]
providers = provider_sect
ssl_conf = ssl_sect
[provider_sect]
default = default_sect
[default_sect]
activate = 1
[ssl_sect]
system_default = system_default_sect
[system_default_sect]
MinProtocol = TLSv1.2
[ tsa_config1 ]
dir = ./demoCA
certs = $dir/certs
path = pkix/
crypto_device = builtin
"""


def _refused(folder: Path, text: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "openssl.cnf").write_text(text)
    return [reported.removeprefix(f"{folder}/openssl.cnf: ") for reported in manifest_machine.examine([str(folder)])[1]]


def test_an_ordinary_configuration_is_taken(tmp_path: Path) -> None:
    for text in ("", HONEST, "openssl_conf = nowhere\n", "\ufeff[a]\nx = \"y\" 'z'\n"):
        assert _refused(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("openssl_conf = i\n[i]\nengines = e\n[e]\nx = y\n[y]\ndynamic_path = /x.so\n", "it loads engines"),
        ("openssl_conf = i\n[i]\nanything = m\n[m]\npath = /x.so\n", "it loads anything"),
        ("openssl_conf = i\n[i]\nproviders.2 = p\n", "it loads providers.2"),
        ("openssl_conf = i\n[i]\nproviders = p\n[p]\nlegacy = l\n[l]\nactivate = 1\n", "it loads the provider legacy"),
        ("openssl_conf = i\n[i]\nproviders = p\n[p]\n1.default = l\n", "it loads the provider 1.default"),
        (
            "openssl_conf = i\n[i]\nproviders = p\n[p]\ndefault = l\n[l]\nmodule = /x.so\n",
            "it changes the provider default: module",
        ),
        (
            "openssl_conf = i\n[i]\nproviders = p\n[p]\ndefault = l\n[l]\nidentity = x\n",
            "it changes the provider default: identity",
        ),
        ("[default]\nopenssl_conf = i\n[i]\nengines = e\n", "it loads engines"),
        ("[x]\ndefault::openssl_conf = i\ni::engines = e\n", "it loads engines"),
        ("openssl_conf = i\n[ i ]\n[j]\n[i]\nengines = e\n", "it loads engines"),
        ("# a comment \\\nopenssl_conf = a\nopenssl_conf = i\n[i]\neng\\\nines = e\n", "it loads engines"),
        ("x = i\nopenssl_conf = $x\n[i]\nengines = e\n", "not read with certainty: $x"),
        ("openssl_conf = i\n[i]\nproviders = 'p'\n", "not read with certainty: providers = 'p'"),
        ("openssl_conf = i\n[$i]\nengines = e\n", "not read with certainty: [$i]"),
        (".pragma dollarid:on\n", "not read with certainty: .pragma dollarid:on"),
        (".include relative.cnf\n", "not read with certainty: .include relative.cnf"),
        ("x = y\\\\\n", "a line ends in two backslashes: x = y\\\\"),
        ("x = \\", "its last line goes on"),
        ("x = \0", "it is no text"),
    ],
)
def test_a_configuration_that_loads_code_is_refused_by_name(text: str, reported: str, tmp_path: Path) -> None:
    assert _refused(tmp_path, text) == [reported]


def test_what_is_included_is_read_and_recorded(tmp_path: Path) -> None:
    below = tmp_path / "openssl.d"
    below.mkdir()
    (below / "a.CNF").write_text("engines = e\n")
    (below / "b.txt").write_text("[")
    text = f"openssl_conf = i\n.include {tmp_path}/none.cnf\n[i]\n.include = {below}\n"
    assert _refused(tmp_path, text) == ["it loads engines"]
    places, _ = manifest_machine.examine([str(tmp_path)])
    assert places == {
        *("/etc/ld.so.preload", f"{tmp_path}/openssl.cnf", f"{tmp_path}/none.cnf", f"{below}/", f"{below}/a.CNF")
    }
    first = machine_of(places)
    assert first[f"{tmp_path}/none.cnf"] == ABSENT
    assert first[f"{below}/a.CNF"] == hashlib.sha256(b"engines = e\n").hexdigest()
    (below / "c.conf").write_text("")
    again = machine_of(places)
    assert [path for path in places if first[path] != again[path]] == [f"{below}/"]
    (below / "a.CNF").write_text(f".include {below}\n")
    assert _refused(tmp_path, text) == ["files are included more than 8 deep"]


def test_a_preload_that_is_not_empty_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_machine, "PRELOAD", tmp_path / "ld.so.preload")
    assert manifest_machine.examine([]) == ({str(tmp_path / "ld.so.preload")}, [])
    (tmp_path / "ld.so.preload").write_text(" \n")
    assert manifest_machine.examine([])[1] == []
    (tmp_path / "ld.so.preload").write_text("/x.so\n")
    assert manifest_machine.examine([])[1] == [f"{tmp_path}/ld.so.preload: it puts other code into every process"]


def test_every_openssl_says_where_it_looks(tmp_path: Path) -> None:
    found: set[str] = set()
    (tmp_path / "x.so").write_bytes(b'..OPENSSLDIR: "/a b"..OPENSSLDIR: "/c"..OPENSSLDIR: "')
    content = (tmp_path / "x.so").read_bytes()
    assert manifest_verify.digest_object(tmp_path / "x.so", found) == hashlib.sha256(content).hexdigest()
    assert found - {""} == {"/a b", "/c"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_looking_at_the_machine_does_not_start_openssl(tmp_path: Path) -> None:
    """The planted configuration loads a provider into whoever starts OpenSSL; the launcher looks first."""
    (tmp_path / "openssl.cnf").write_text(
        "openssl_conf = i\n[i]\nproviders = p\n[p]\ndefault = d\nlegacy = d\n[d]\nactivate = 1\n"
    )
    code = f"""
import sys
sys.path.insert(0, {str(Path(manifest_verify.__file__).parents[1])!r})
from rgs.integrity.isolation import verify_machine
verify_machine()
first = 'legacy' in open('/proc/self/maps').read()
import hashlib
print(first, 'legacy' in open('/proc/self/maps').read())
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"OPENSSL_CONF": str(tmp_path / "openssl.cnf")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout in ("False True\n", "False False\n")  # the second where this OpenSSL has no such module


def _planted(here: Installation, old: str, new: str) -> None:
    path = here.root / "rgs/integrity/manifest_machine.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_server_refuses_and_the_manifest_names_what_the_machine_has(tmp_path: Path) -> None:
    """In a checkout the files are the server, so a place of the machine can be another one."""
    here = checkout(tmp_path)
    preload, settings = tmp_path / "ld.so.preload", tmp_path / "ssl"
    settings.mkdir()
    _planted(here, 'Path("/etc/ld.so.preload")', f"Path({str(preload)!r})")
    _planted(here, "return [str(Path(_ssl.get_default", f"return [{str(settings)!r}, str(Path(_ssl.get_default")
    manifest = [here.python, "-B", "-m", "certification", "manifest", "--json"]
    made = here.run(manifest, cwd=here.root)
    assert made.returncode == 0, made.stderr
    machine = json.loads(made.stdout)["surroundings"]["machine"]
    assert machine[str(preload)] == machine[f"{settings}/openssl.cnf"] == ABSENT
    assert any(sha256 != ABSENT or path.startswith("/opt") for path, sha256 in machine.items())
    (tmp_path / "manifest.json").write_text(made.stdout)
    verify = [sys.executable, "-I", "-S", "-B", manifest_verify.__file__, str(tmp_path / "manifest.json")]
    verify += ["--root", str(here.root), "--venv", str(here.venv)]
    assert here.run(verify).returncode == 0
    assert here.refusal() == ""
    for path, text, reported in (
        (preload, "/x.so\n", f"{preload}: it puts other code into every process"),
        (
            settings / "openssl.cnf",
            "openssl_conf = i\n[i]\nengines = e\n",
            f"{settings}/openssl.cnf: it loads engines",
        ),
    ):
        path.write_text(text)
        assert here.refusal() == reported
        assert reported in here.run(manifest, cwd=here.root).stderr
        done = here.run(verify)
        assert (done.returncode, done.stdout.splitlines()[0]) == (1, f"changed   {path}")
        path.unlink()
    # A harmless one is no reason to refuse; a manifest that does not know it is.
    (settings / "openssl.cnf").write_text(HONEST)
    assert here.refusal() == ""
    home = tmp_path / "home"
    home.mkdir()
    (home / "certified.json").write_text(made.stdout)
    done = here.launch("serve", "--home", str(home))
    assert done.stderr.endswith(f"1 differences: changed {settings}/openssl.cnf\n")
