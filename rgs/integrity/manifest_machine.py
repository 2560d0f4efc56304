"""Files of the machine that bring other code into a process: `/etc/ld.so.preload`, and OpenSSL's configuration.

The files are read as text, before OpenSSL reads them. Refused are a preload that is not empty, a configuration that
loads an engine, a provider or a module, and one that cannot be read with certainty (variables, quotes, escapes) where
it decides what is loaded. All other files are recorded with their hashes, and missing ones as missing. Variables with
the same effect are refused by `rgs.integrity.isolation`.

Imports the standard library only, and never `hashlib`: that starts OpenSSL, which reads its configuration then. Whoever
is root on the machine can change the linker itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

PRELOAD: Final = Path("/etc/ld.so.preload")
"""The linker maps what it names into every process."""
CONFIGURATION: Final = "openssl.cnf"
BUILT_IN: Final = frozenset({"default", "base", "null"})
"""Providers that are a part of the library."""
HARMLESS: Final = frozenset({"alg_section", "oid_section", "random", "ssl_conf"})
"""Of what an OpenSSL is told at its start: what loads nothing. Beside it `providers`, looked at by itself; any other
name loads a shared object.
"""
_DEPTH_MAX: Final = 8
_UNCERTAIN: Final = re.compile(r"""[\\"'`$]""")


def folder_of_python() -> list[str]:
    """That of the OpenSSL behind `ssl` and `hashlib`; none for a Python without one. It is not started by this."""
    try:
        import _ssl  # noqa: PLC0415
    except ImportError:
        return []
    return [str(Path(_ssl.get_default_verify_paths()[1]).parent)]


def examine(folders: Iterable[str]) -> tuple[set[str], list[str]]:
    """Every place that was looked at, there or not, and what is refused. OSError for what cannot be read.

    A folder of which OpenSSL takes several files is named with a slash.
    """
    found = {str(PRELOAD)}
    refused = [f"{PRELOAD}: it puts other code into every process"] if _read(PRELOAD).strip() else []
    for folder in sorted(set(folders)):
        path = Path(folder) / CONFIGURATION
        found.add(str(path))
        try:
            _verify_loads_nothing(_sections(_lines(_read(path), found)))
        except ValueError as error:
            refused.append(f"{path}: {error}")
    return found, refused


def mapped_objects(besides: Iterable[Path]) -> list[str]:
    """The files that are in this process as code, but for those below `besides`; on Linux, elsewhere none are known."""
    folders = list(besides)
    found = set()
    try:
        with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                parts = line.rstrip("\n").split(maxsplit=5)
                if len(parts) == 6 and "x" in parts[1] and parts[5].startswith("/"):
                    found.add(parts[5])
    except OSError:
        pass
    return sorted(path for path in found if not any(Path(path).is_relative_to(folder) for folder in folders))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""


# --- OpenSSL's configuration, as far as it decides what is loaded (config(5)) -----------------------------------------


def _lines(content: bytes, found: set[str], depth: int = 0) -> Iterator[str]:
    """The lines of a file, with those of the files that it includes in their places; ValueError."""
    if depth > _DEPTH_MAX:
        raise ValueError(f"files are included more than {_DEPTH_MAX} deep")
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    if "\0" in text:
        raise ValueError("it is no text")
    whole = ""
    for line in text.replace("\r", "").split("\n"):
        whole += line
        if whole.endswith("\\\\"):
            raise ValueError(f"a line ends in two backslashes: {whole[:60]}")
        if whole.endswith("\\"):  # goes on, also in a comment
            whole = whole[:-1]
            continue
        said, whole = _uncommented(whole).strip(), ""
        if not said.startswith("."):
            yield said
            continue
        included = re.fullmatch(r"\.include(?:\s*=\s*|\s+)(/[^\\\"'`$]*)", said)
        if included is None:
            raise ValueError(f"not read with certainty: {said[:60]}")
        for below in _included(Path(included[1].strip()), found):
            found.add(str(below))
            yield from _lines(_read(below), found, depth + 1)
    if whole:
        raise ValueError("its last line goes on")


def _included(path: Path, found: set[str]) -> list[Path]:
    """The file, or what OpenSSL takes of a folder."""
    if not path.is_dir():
        return [path]
    found.add(f"{path}/")
    return sorted(entry for entry in path.iterdir() if entry.name.lower().endswith((".cnf", ".conf")))


def _uncommented(line: str) -> str:
    """Without a comment. A line with quotes or escapes stays whole: where it matters it is refused for them."""
    return line if _UNCERTAIN.search(line.partition("#")[0]) else line.partition("#")[0]


def _sections(lines: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Section -> its lines, name and value; ValueError."""
    found: dict[str, list[tuple[str, str]]] = {}
    section = "default"
    for line in lines:
        if line.startswith("["):
            header = re.fullmatch(r"\[\s*([^\\\"'`$\[\]]*?)\s*\]", line)
            if header is None:
                raise ValueError(f"not read with certainty: {line[:60]}")
            section = header[1]
            found.setdefault(section, [])
        elif line:
            name, _, value = line.partition("=")
            within, apart, rest = name.strip().partition("::")
            found.setdefault(within.strip() if apart else section, []).append(
                ((rest if apart else name).strip(), value.strip())
            )
    return found


def _verify_loads_nothing(sections: dict[str, list[tuple[str, str]]]) -> None:
    """ValueError naming what would be loaded."""
    for name, value in sections.get("default", []):
        if name != "openssl_conf":
            continue
        for module, of_module in _plain(sections, value):
            if module == "providers":
                for provider, of_provider in _plain(sections, of_module):
                    if provider not in BUILT_IN:
                        raise ValueError(f"it loads the provider {provider}")
                    for key, _ in _plain(sections, of_provider):
                        if key != "activate":
                            raise ValueError(f"it changes the provider {provider}: {key}")
            elif module not in HARMLESS:
                raise ValueError(f"it loads {module}")


def _plain(sections: dict[str, list[tuple[str, str]]], name: str) -> list[tuple[str, str]]:
    """The lines of a section of which it can be said what they say; ValueError."""
    if _UNCERTAIN.search(name):
        raise ValueError(f"not read with certainty: {name[:60]}")
    lines = sections.get(name, [])
    for key, value in lines:
        if _UNCERTAIN.search(key) or _UNCERTAIN.search(value):
            raise ValueError(f"not read with certainty: {key} = {value}"[:80])
    return lines
