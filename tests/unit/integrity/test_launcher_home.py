"""Where the launcher looks for a manifest, before anything that reads settings has been imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.integrity import isolation
from rgs.node.config import CONFIG_FILE, DEFAULT_HOME, SETTINGS


def test_the_launcher_knows_the_places_of_the_settings() -> None:
    home, settings, certified = isolation.HOME
    assert (Path(home), settings, certified) == (DEFAULT_HOME, CONFIG_FILE, SETTINGS["certified"].default)


@pytest.mark.parametrize(
    ("arguments", "environment", "reported"),
    [
        (["serve"], {}, "var/rgs/certified.json"),
        (["serve"], {"RGS_HOME": "a"}, "a/certified.json"),
        (["serve", "--home", "b", "--listen", "x"], {"RGS_HOME": "a"}, "b/certified.json"),
        (["serve", "--home=b", "--home", "c"], {}, "c/certified.json"),
        (["serve", "--home", "named"], {}, "named/below/it.json"),
    ],
)
def test_where_the_launcher_looks_for_a_manifest(
    arguments: list[str],
    environment: dict[str, str],
    reported: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "rgs.toml").write_text('certified = "below/it.json"\n')
    assert isolation.certified_of(arguments, environment) == tmp_path / reported
    (tmp_path / "named" / "rgs.toml").write_text("certified =")
    with pytest.raises(isolation.SurroundingsError, match=r"rgs\.toml cannot be read"):
        isolation.certified_of(["serve", "--home", "named"], {})
