"""Settings: one table, every value checked, errors that name field, limit and value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError, UnknownFieldError
from rgs.node.config import SETTINGS, load_config
from rgs.node.server import schedule


def _file(home: Path, text: str) -> Path:
    (home / "rgs.toml").write_text(text)
    return home


def test_the_defaults_hold_without_a_file(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert config.listen == "127.0.0.1:50551"
    assert config.store == tmp_path / "store" / "rgs.db"
    assert config.bundle == tmp_path / "keys" / "keys.json"
    assert config.ca == tmp_path / "tls" / "ca.pem"
    assert (config.node, config.reflection, config.draws_in_flight_max) == ("node1", True, 1024)


def test_options_go_before_the_file_and_the_file_before_the_defaults(tmp_path: Path) -> None:
    _file(tmp_path, 'node = "n2"\nlisten = "0.0.0.0:1"\nstore = "/elsewhere/rgs.db"\nreflection = false\n')
    config = load_config(tmp_path, {"listen": "[::1]:0", "node": None})
    assert (config.node, config.listen, config.reflection) == ("n2", "[::1]:0", False)
    assert config.store == Path("/elsewhere/rgs.db")
    assert load_config(tmp_path, {"reflection": True}).reflection


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownFieldError, match="unknown setting lissten; known settings: node") as caught:
        load_config(_file(tmp_path, 'lissten = "127.0.0.1:1"'))
    assert caught.value.field == "lissten"


def test_what_is_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match=r"rgs\.toml is not TOML"):
        load_config(_file(tmp_path, "node = "))


WRONG = [
    ("node", '"Node"', "Node"),
    ("node", "1", "1"),
    ("listen", '"127.0.0.1"', "127.0.0.1"),
    ("log_origin", '"Log.example"', "Log.example"),
    ("log_origin", '"log.example/"', "log.example/"),
    ("log_origin", '"log example"', "log example"),
    ("log_origin", "7", "7"),
    ("log_delay_s", "0", "0"),
    ("translog", '""', ""),
    ("listen", '"127.0.0.1:65536"', "127.0.0.1:65536"),
    ("listen", '"127.0.0.1:050"', "127.0.0.1:050"),
    ("listen", '":50551"', ":50551"),
    ("listen", '"[::1:50551"', "[::1:50551"),
    ("listen", '"[127.0.0.1]:1"', "[127.0.0.1]:1"),
    ("listen", "50551", "50551"),
    ("generator", '"process"', "process"),
    ("generator", '"unix:"', "unix:"),
    ("generator", '"/run/g.sock"', "/run/g.sock"),
    ("generator", '"tcp:/run/g.sock"', "tcp:/run/g.sock"),
    ("generator", '""', ""),
    ("generator", "true", "True"),
    ("store", '""', ""),
    ("kek", "true", "True"),
    ("logging_level", '"loud"', "loud"),
    ("draws_in_flight_max", "0", "0"),
    ("draws_in_flight_max", "1000001", "1000001"),
    ("draws_in_flight_max", "true", "True"),
    ("draws_in_flight_max", "1.0", "1.0"),
    ("reflection", "1", "1"),
    ("drain_s", "-1", "-1"),
    ("party_calls_max", "0", "0"),
    ("party_messages_per_s", "1000001", "1000001"),
    ("party_streams_max", '"many"', "many"),
    ("stream_stall_s", "0", "0"),
    ("stream_idle_s", "86401", "86401"),
]


@pytest.mark.parametrize(("field", "text", "value"), WRONG)
def test_a_wrong_value_is_named_with_its_field_and_limit(tmp_path: Path, field: str, text: str, value: str) -> None:
    with pytest.raises(InvalidFieldError, match=field) as caught:
        load_config(_file(tmp_path, f"{field} = {text}"))
    assert caught.value.field == field
    assert caught.value.metadata["value"] == value
    assert caught.value.metadata["limit"]


@pytest.mark.parametrize(("field", "most"), [("draws_in_flight_max", 1_000_000), ("drain_s", 3600)])
def test_the_bounds_themselves_are_taken(tmp_path: Path, field: str, most: int) -> None:
    assert getattr(load_config(_file(tmp_path, f"{field} = {most}")), field) == most


@pytest.mark.parametrize("field", ["kek", "keys", "translog"])
@pytest.mark.parametrize("path", ["store/inside", "log/../store/inside", "link/inside"])
def test_no_key_lies_where_a_copy_of_the_store_takes_it_along(tmp_path: Path, field: str, path: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    with pytest.raises(InvalidFieldError, match="a copy of the store") as caught:
        load_config(_file(tmp_path, f'{field} = "{path}"'))
    assert caught.value.field == field


def test_the_generator_is_embedded_or_behind_a_socket(tmp_path: Path) -> None:
    embedded = load_config(tmp_path)
    assert embedded.generator is None
    assert load_config(_file(tmp_path, 'generator = "embedded"')) == embedded
    for text, path in (("unix:/run/g.sock", Path("/run/g.sock")), ("unix:run/g.sock", tmp_path / "run/g.sock")):
        served = load_config(_file(tmp_path, f'generator = "{text}"'))
        assert served.generator == path
        assert served.sha256 != embedded.sha256


def test_every_default_passes_its_own_check() -> None:
    for name, setting in SETTINGS.items():
        setting.check(name, setting.default)


def test_a_file_has_one_process(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        load_config(tmp_path, {"workers": 2})
    assert (caught.value.field, caught.value.metadata["limit"], caught.value.metadata["value"]) == ("workers", "1", "2")
    assert load_config(tmp_path, {"workers": 2, "store": "postgresql://rgs@db/rgs"}).workers == 2


# --- how the process is scheduled -------------------------------------------------------------------------------------


def test_batch_scheduling_is_asked_for_only_where_it_was_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[int] = []
    monkeypatch.setattr(os, "sched_setscheduler", lambda _pid, policy, _how: requested.append(policy))
    schedule(load_config(tmp_path))
    assert requested == []
    schedule(load_config(tmp_path, {"sched_batch": True}))
    assert requested == [os.SCHED_BATCH]


def test_batch_scheduling_that_is_refused_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    config = load_config(tmp_path, {"sched_batch": True})
    with pytest.raises(InvalidFieldError, match=r"sched_batch .* refuses it \(Operation not permitted\)") as caught:
        schedule(config)
    assert caught.value.field == "sched_batch"
    monkeypatch.delattr(os, "sched_setscheduler")
    with pytest.raises(InvalidFieldError, match="only Linux"):
        schedule(config)
