"""The metrics of a whole server: who may read them, what they say after a few rounds, and what they never say."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import ssl
import threading
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rgs.core.errors import InvalidFieldError
from rgs.core.tlog.errors import VerificationError
from rgs.node.clock import SystemClock
from rgs.node.config import load_config
from rgs.node.expiries import DAY_MS, certificates_of
from rgs.node.metrics import workers
from rgs.node.metrics.samples import READ_S, Samples, Scraped
from rgs.node.metrics.workers import answering, scrape_workers
from rgs.node.pki import issue_client, make_development_ca
from rgs.observe.catalogue import BY_NAME, LABELS, METRICS
from rgs.service.callers import Role
from rgs.store.address import PostgresAddress
from rgs.store.interface import PartyRow
from rgs.store.opening import open_parties
from tests.support.api.client import ANTE_MINOR, ApiClient, refused
from tests.support.api.harness import ApiHarness, entropy, serving

TOKEN = "t" * 40
PLAYER = "player-whom-no-metric-names"


def token_file(folder: Path) -> Path:
    path = folder / "token"
    path.write_text(f"{TOKEN}\n", "ascii")
    path.chmod(0o600)
    return path


async def get(
    port: int, path: str = "/metrics", token: str = TOKEN, tls: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        if tls is None:
            connection = HTTPConnection("localhost", port, timeout=10)
        else:
            connection = HTTPSConnection("localhost", port, timeout=10, context=tls)
        given = {"Authorization": f"Bearer {token}"} if token else {}
        with closing(connection):
            connection.request("GET", path, headers={**given, **headers})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    return await asyncio.to_thread(ask)


def values(text: str) -> dict[tuple[str, ...], float]:
    """(sample, labels in the order of their names) -> value."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_what_they_say_after_two_rounds(tmp_path: Path) -> None:
    async with serving(tmp_path, metrics_listen="127.0.0.1:0", metrics_token=token_file(tmp_path)) as harness:
        player = ApiClient(harness.channel(), PLAYER)
        await player.seated()
        await player.round_to_the_end()
        await player.round_to_the_end()
        await player.start()
        await refused(player.play.StartRound(player.start_request(round_no=9)))
        status, text = await get(harness.server.metrics_port)
        assert status == 200
        found = values(text)
        assert found["rgs_calls_total", "PlayService/StartRound", "OK", "0"] == 3
        assert found["rgs_calls_total", "PlayService/Act", "OK", "0"] == 6
        assert (
            sum(value for name, value in found.items() if name[:2] == ("rgs_calls_total", "PlayService/StartRound"))
            == 4
        )
        assert found["rgs_call_seconds_count", "PlayService/StartRound", "0"] == 4
        assert found["rgs_call_seconds_bucket", "+Inf", "PlayService/Act", "0"] == 6
        # two folds lose ante and blind
        assert found["rgs_rounds_total", "EUR", "uth-solo"] == 2
        assert found["rgs_staked_minor_total", "EUR", "uth-solo"] == 2 * 2 * ANTE_MINOR
        assert found["rgs_returned_minor_total", "EUR", "uth-solo"] == 0
        assert found["rgs_rounds_open", "uth-solo"] == 1
        assert found["rgs_sessions_open",] == 1
        assert found["rgs_store_up",] == found["rgs_new_rounds", "0"] == found["rgs_worker_up", "0"] == 1
        assert found["rgs_guard_closed", "rng", "0"] == 0
        assert found["rgs_commit_group_changes_count", "0"] >= 10
        assert found["rgs_certificate_days_left", "server"] > 0
        assert found["rgs_party_certificate_days_left", "demo-operator", "operator"] > 0
        assert found["rgs_instances_alive",] == 1
        assert found["rgs_lease_age_seconds", "0"] < 15
        for secret in (PLAYER, player.session_id, player.round_id):
            assert secret not in text
        harness.server.services.availability.close_guard("rules", "SOFTWARE_CHANGED", harness.clock.now_ms())
        found = values((await get(harness.server.metrics_port))[1])
        assert (found["rgs_guard_closed", "rules", "0"], found["rgs_new_rounds", "0"]) == (1, 0)


async def test_totals_stay_when_a_day_ends_and_the_server_starts_again(tmp_path: Path) -> None:
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:
        player = await ApiClient(harness.channel()).seated()
        await player.round_to_the_end()
        for _ in range(3):
            found = values((await get(harness.server.metrics_port, token=""))[1])
            assert found["rgs_rounds_total", "EUR", "uth-solo"] == 1
            harness.clock.ahead_ms += 86_400_000
        await harness.restart()
        found = values((await get(harness.server.metrics_port, token=""))[1])
        assert found["rgs_rounds_total", "EUR", "uth-solo"] == 1


async def test_what_a_database_and_the_disks_say(tmp_path: Path, database: PostgresAddress) -> None:
    async with serving(tmp_path, database, metrics_listen="127.0.0.1:0") as harness:
        found = values((await get(harness.server.metrics_port, token=""))[1])
        assert found["rgs_database_standbys_sync",] == found["rgs_database_waits_for_standby",] == 0
        assert 2 <= found["rgs_database_connections",] <= found["rgs_database_connections_max",]
        assert found["rgs_database_bytes",] > 1_000_000
        assert found["rgs_database_archive_failing",] == found["rgs_database_archives",] == 0
        assert {name[1] for name in found if name[0] == "rgs_disk_free_bytes"} == {"translog", "log", "reconciliation"}
        assert found["rgs_disk_free_bytes", "log"] == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.1)


async def test_a_store_that_is_a_file_has_a_disk_and_no_database(tmp_path: Path) -> None:
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:
        found = values((await get(harness.server.metrics_port, token=""))[1])
        assert not [name for name in found if name[0].startswith("rgs_database_")]
        assert ("rgs_disk_free_bytes", "store") in found


async def test_who_may_read_them(tmp_path: Path) -> None:
    async with serving(tmp_path, metrics_listen="127.0.0.1:0", metrics_token=token_file(tmp_path)) as harness:
        port = harness.server.metrics_port
        for token in ("", "x", TOKEN[:-1], f"{TOKEN}t", "ü" * 40):
            status, text = await get(port, token=token)
            assert (status, text) == (401, "")
        assert (await get(port, "/"))[0] == 404
        assert (await get(port, "/metrics?x=1"))[0] == 200
        status, text = await get(port, Accept="application/openmetrics-text; version=1.0.0")
        assert status == 200
        assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    "sent", [b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 20_000, b"POST /metrics HTTP/1.1\r\n\r\n"]
)
async def test_what_is_no_request_does_no_harm(tmp_path: Path, sent: bytes) -> None:
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:
        reader, writer = await asyncio.open_connection("127.0.0.1", harness.server.metrics_port)
        writer.write(sent)
        writer.write_eof()
        assert b"200 OK" not in await reader.read()
        writer.close()
        assert (await get(harness.server.metrics_port, token=""))[0] == 200


async def test_mutual_tls(tmp_path: Path) -> None:
    now_ms = SystemClock().now_ms()
    scrapers, strangers = (make_development_ca(entropy().read, now_ms) for _ in range(2))
    (tmp_path / "scrapers.pem").write_bytes(scrapers.certificate_pem)
    async with serving(tmp_path, metrics_listen="localhost:0", metrics_ca=tmp_path / "scrapers.pem") as harness:

        def shown(authority: Any) -> ssl.SSLContext:
            context = ssl.create_default_context(cadata=harness.authority.certificate_pem.decode())
            if authority is not None:
                issued = issue_client(authority, Role.AUDITOR, "prometheus", entropy().read, now_ms)
                (tmp_path / "client.pem").write_bytes(issued.certificate_pem + issued.key_pem)
                context.load_cert_chain(tmp_path / "client.pem")
            return context

        assert (await get(harness.server.metrics_port, tls=shown(scrapers)))[0] == 200
        for stranger in (None, strangers):
            with pytest.raises(OSError):  # noqa: PT011 - in the handshake or after it, as TLS 1.3 has it
                await get(harness.server.metrics_port, tls=shown(stranger))


def test_a_foreign_address_needs_authentication(tmp_path: Path) -> None:
    ApiHarness(tmp_path / "home")
    for address in ("0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464", "metrics.example:9464"):
        with pytest.raises(InvalidFieldError, match="metrics_token or"):
            load_config(tmp_path / "home", {"metrics_listen": address})
        config = load_config(tmp_path / "home", {"metrics_listen": address, "metrics_token": token_file(tmp_path)})
        assert config.metrics_listen == address
    for address in ("127.0.0.1:9464", "[::1]:9464", "localhost:9464", ""):
        load_config(tmp_path / "home", {"metrics_listen": address})


@pytest.mark.parametrize("token", ["", "short", "two words " * 8, "t" * 513])
async def test_a_bad_token_is_refused_and_not_shown(tmp_path: Path, token: str) -> None:
    path = token_file(tmp_path)
    path.write_text(token)
    harness = ApiHarness(tmp_path / "home", metrics_listen="127.0.0.1:0", metrics_token=path)
    with pytest.raises(InvalidFieldError) as error:
        await harness.start()
    assert not token or token not in str(error.value)


async def test_off_by_default(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        assert harness.server.metrics_port == 0


async def test_workers_are_one_target(tmp_path: Path) -> None:
    """Two processes' samples under one roof; one of them goes, and is counted as down."""
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:
        await (await ApiClient(harness.channel()).seated()).round_to_the_end()

        def reads(up: int) -> Any:
            async def read(of_store: bool) -> Scraped:
                found = Samples()
                if of_store:
                    found.add("rgs_sessions_open", 7)
                else:
                    found.add("rgs_streams_open", up)
                return Scraped((), found.found) if of_store else Scraped(found.found)

            return read

        async with answering(harness.config.home, 0, reads(3)):
            async with answering(harness.config.home, 1, reads(4)):
                whole = await scrape_workers(harness.config.home, 2)
                assert whole["rgs_streams_open"] == [(("0",), 3.0), (("1",), 4.0)]
                assert whole["rgs_sessions_open"] == [((), 7.0)]
                assert whole["rgs_worker_up"] == [(("0",), 1.0), (("1",), 1.0)]
            whole = await scrape_workers(harness.config.home, 2)
            assert whole["rgs_worker_up"] == [(("0",), 1.0), (("1",), 0.0)]
        assert (await scrape_workers(harness.config.home, 1))["rgs_worker_up"] == [(("0",), 0.0)]


async def test_a_scrape_ends_in_time_whatever_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four workers: one hangs, and the others hang as soon as they are asked for the store."""
    assert (workers.PROCESS_S + READ_S, workers.STORE_S > READ_S, workers.SCRAPE_S) == (7.0, True, 8.0)
    for name, limit_s in (("SCRAPE_S", 4.0), ("PROCESS_S", 1.5), ("STORE_S", 2.25)):
        monkeypatch.setattr(workers, name, limit_s)

    def reads(number: int) -> Any:
        async def read(of_store: bool) -> Scraped:
            if of_store or number == 0:
                await asyncio.sleep(60)
            found = Samples()
            found.add("rgs_streams_open", number)
            return Scraped(found.found)

        return read

    async with contextlib.AsyncExitStack() as opened:
        for number in range(4):
            await opened.enter_async_context(answering(tmp_path, number, reads(number)))
        begun_s = time.monotonic()
        whole = await scrape_workers(tmp_path, 4)
        assert time.monotonic() - begun_s < 7
    assert [value for _, value in whole["rgs_worker_up"]] == [0, 1, 1, 1]
    assert [value for _, value in whole["rgs_streams_open"]] == [1, 2, 3]


async def test_a_store_that_does_not_answer_is_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:

        async def never() -> int:
            await asyncio.sleep(60)
            return 0

        monkeypatch.setattr("rgs.node.metrics.store_samples.READ_S", 0.1)
        monkeypatch.setattr(harness.server._observed._store, "count_open_sessions", never)
        found = values((await get(harness.server.metrics_port, token=""))[1])
        assert found["rgs_store_up",] == 0
        assert ("rgs_sessions_open",) not in found
        assert found["rgs_certificate_days_left", "server"] > 0


async def test_a_folder_that_hangs_stops_neither_the_process_nor_the_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its samples are missing, and no second thread waits for it."""
    answers, begun = threading.Event(), []

    def hangs(*_: object) -> dict[str, int]:
        begun.append(threading.current_thread())
        answers.wait(30)
        return {"log": 7}

    monkeypatch.setattr("rgs.node.observed.free_bytes", hangs)
    monkeypatch.setattr("rgs.node.metrics.store_samples.READ_S", 1.0)
    monkeypatch.setattr("rgs.node.metrics.store_samples.KEEP_MS", 0)
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:
        try:
            for _ in range(2):
                begun_s = time.monotonic()
                found = values((await get(harness.server.metrics_port, token=""))[1])
                assert time.monotonic() - begun_s < 10
                assert ("rgs_disk_free_bytes", "log") not in found
                assert found["rgs_store_up",] == 1
                assert found["rgs_certificate_days_left", "server"] > 0
            assert len(begun) == 1
            assert begun[0] is not threading.main_thread()
        finally:
            answers.set()
        monkeypatch.setattr("rgs.node.metrics.store_samples.READ_S", READ_S)
        found = values((await get(harness.server.metrics_port, token=""))[1])
        assert found["rgs_disk_free_bytes", "log"] == 7


@pytest.mark.parametrize(
    ("read", "error", "missing"),
    [
        ("node_key_in_force", VerificationError("revoked"), "rgs_node_key_days"),
        ("free_bytes", OSError("gone"), "rgs_disk_free_bytes"),
        ("newest_entries", OSError("gone"), "rgs_log_entries"),
    ],
)
async def test_what_cannot_be_read_is_one_sample_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, error: Exception, missing: str
) -> None:
    """A scrape that failed would hide the guard that says why."""
    files = {"rgs_node_key_days", "rgs_disk_free_bytes", "rgs_log_entries"}

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"rgs.node.observed.{read}", fails)
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:
        harness.server.services.availability.close_guard("keys", "NODE_KEY_REVOKED", harness.clock.now_ms())
        status, text = await get(harness.server.metrics_port, token="")
        found = values(text)
        assert (status, found["rgs_guard_closed", "keys", "0"]) == (200, 1)
        assert {name[0] for name in found} & files == files - {missing}


async def test_a_party_that_renews_its_certificate_is_one_series(tmp_path: Path) -> None:
    """The certificate that ends last counts, whichever was added first; one that was removed does not count."""
    async with serving(tmp_path, metrics_listen="127.0.0.1:0") as harness:
        now_ms = harness.clock.now_ms()
        async with contextlib.AsyncExitStack() as opened:
            parties = await open_parties(harness.config.store)
            opened.push_async_callback(parties.close)
            for number, days in enumerate((20, 380, 10, 900)):
                row = PartyRow(f"{number:064x}", "anna", Role.ADMIN, "", now_ms, None, now_ms + days * DAY_MS)
                await parties.add(row)
            await parties.remove(f"{3:064x}", now_ms)
        text = (await get(harness.server.metrics_port, token=""))[1]
        assert text.count('party="anna"') == 1
        assert values(text)["rgs_party_certificate_days_left", "anna", "admin"] == pytest.approx(380, abs=0.01)


def test_the_catalogue_explains_every_label_and_no_other() -> None:
    assert {label for metric in METRICS for label in metric.all_labels} == set(LABELS)
    assert len(BY_NAME) == len(METRICS)
    for metric in METRICS:
        assert metric.name.startswith("rgs_")
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
    assert {"player", "nickname", "session", "round", "card", "token", "key"} & set(LABELS) == set()


def test_the_label_certificate_says_which_names_there_are() -> None:
    peer: Any = SimpleNamespace(certificate=b"", ca=b"")
    peers: Any = SimpleNamespace(operators={"": SimpleNamespace(wallet=peer)}, regulator=peer)
    names = {name.removeprefix("ca of ") for name in certificates_of(b"", b"", peers)}
    said = set(re.findall("`([^`]*)`", LABELS["certificate"]))
    assert said == {*names, "ca of "} == {"server", "ca", "regulator", "wallet of ", "ca of "}


async def test_every_metric_of_the_catalogue_is_read_from_somewhere() -> None:
    read = "".join(
        path.read_text("utf-8") for path in (Path(__file__).parents[2] / "rgs/node/metrics").glob("*_samples.py")
    )
    made = {f"rgs_{name}_total" for name in ("rounds", "staked_minor", "returned_minor", "void_rounds", "void_minor")}
    for name in BY_NAME.keys() - made - {"rgs_worker_up"}:
        assert f'"{name}"' in read, name
