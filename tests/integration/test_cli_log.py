"""`rgs log` and `rgs keys log-new`: the verifier key before the first start, the shards after it, a server for them."""

from __future__ import annotations

import http.client
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from rgs.core.shards import parse_origin
from rgs.core.tlog.note import parse_vkey
from rgs.node.config import load_config
from rgs.node.keyring import load_log_signer
from tests.support.log.logs import make_entries, make_log
from tests.support.process.commands import Cli, secrets_of


def origin(cli: Cli) -> str:
    return parse_vkey(cli("log", "show", "--home", str(cli.home)).strip()).name


def test_init_and_show_name_the_key_that_the_log_will_have(cli: Cli) -> None:
    made = cli.out
    vkey = cli("log", "show", "--home", str(cli.home)).strip()
    assert vkey in made
    assert parse_vkey(vkey).public_key == load_log_signer(load_config(cli.home).keys).public_key
    assert parse_origin(parse_vkey(vkey).name)[0].startswith("rgs.example/01")
    assert not any(secret in text for secret in secrets_of(cli.home) for text in cli.said)


def test_a_name_of_the_server_is_the_name_of_its_log(cli: Cli) -> None:
    with (cli.home / "rgs.toml").open("a") as file:
        file.write('log_origin = "log.casino.example/rgs"\n')
    assert parse_origin(origin(cli))[0] == "log.casino.example/rgs"


def test_the_shards_are_listed_oldest_first(cli: Cli) -> None:
    prefix = parse_origin(origin(cli))[0]
    signer = load_log_signer(load_config(cli.home).keys)
    made = [
        make_log(cli.home / "translog" / name, make_entries(size), origin=f"{prefix}/{name}", signer=signer)
        for name, size in (("2026h2", 5), ("2027h1", 3))
    ]
    *rows, coming = [line.split("\t") for line in cli("log", "show", "--home", str(cli.home)).splitlines()]
    assert coming[:2] == ["next", f"{prefix}/2027h2"]
    assert parse_vkey(coming[2]).name == coming[1]
    assert [(row[0], row[1], row[2]) for row in rows] == [(one.origin, str(one.size), one.root.hex()) for one in made]
    assert [parse_vkey(row[3]).name for row in rows] == [row[0] for row in rows]
    (cli.home / "translog" / "2027h1" / "checkpoint").write_bytes(b"nothing")
    cli("log", "show", "--home", str(cli.home), status=1)
    assert "there is no log in" in cli.err


def test_a_home_without_a_log_key_gets_one_and_no_second_one(cli: Cli) -> None:
    key = cli.home / "keys" / "log.key"
    key.unlink()
    assert "rgs keys log-new" in cli.refused("log", "show", "--home", str(cli.home))
    keyid = cli("keys", "log-new", "--home", str(cli.home)).split()[1]
    assert load_log_signer(key.parent).keyid == keyid
    assert "not overwritten" in cli.refused("keys", "log-new", "--home", str(cli.home))
    key.chmod(0o644)
    assert "others may read" in cli.refused("log", "show", "--home", str(cli.home))


def test_a_folder_by_itself_is_served_without_a_home(tmp_path: Path) -> None:
    make_log(tmp_path / "log", make_entries(5))
    where = ["--folder", str(tmp_path / "log"), "--home", str(tmp_path / "none"), "--listen", "127.0.0.1:0"]
    serving = subprocess.Popen(
        [sys.executable, "-m", "rgs", "log", "serve", "--plain", *where], stdout=subprocess.PIPE, text=True
    )
    with serving as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rpartition(":")[2].strip().strip("/"))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/checkpoint")
            assert connection.getresponse().read() == (tmp_path / "log" / "checkpoint").read_bytes()
            connection.close()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130


def test_a_log_is_served_by_the_command(cli: Cli) -> None:
    assert "there is no log in" in cli.refused("log", "serve", "--home", str(cli.home), "--listen", "127.0.0.1:0")
    make_log(cli.home / "translog" / "2026h2", make_entries(5))
    assert "listen must be" in cli.refused("log", "serve", "--home", str(cli.home), "--listen", "nowhere")
    command = [sys.executable, "-m", "rgs", "log", "serve", "--home", str(cli.home), "--listen", "127.0.0.1:0"]
    serving = subprocess.Popen([*command, "--plain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with serving as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rpartition(":")[2].strip().strip("/"))
            bundle = (cli.home / "translog/2026h2/tile/entries/000.p/5").read_bytes()
            for path, status in (("/2026h2/tile/entries/000.p/5", 200), ("/order.db", 404)):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request("GET", path)
                answer = connection.getresponse()
                assert (answer.status, answer.read() == bundle) == (status, status == 200)
                connection.close()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    shutil.rmtree(cli.home / "translog")
