"""All checks of a home, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from rgs.core.errors import RgsError
from rgs.node.clock import now_ms
from rgs.node.config import CONFIG_FILE, load_config
from rgs.node.doctor.certificates import CERTIFICATES, check_certificates
from rgs.node.doctor.findings import OUTSIDE, REAL_MONEY, Finding, Home, Level, found
from rgs.node.doctor.generator import GENERATOR, check_generator
from rgs.node.doctor.keys import KEYS, SETTINGS, check_keys, check_settings
from rgs.node.doctor.parties import PEERS, check_parties, check_witnesses
from rgs.node.doctor.permissions import DISK, PERMISSIONS, check_disks, check_permissions
from rgs.node.doctor.store import CLOCK, STORE, check_clock, check_store
from rgs.node.doctor.watching import WATCHING, check_watching

Check = Callable[[Home], Iterator[Finding]]
AsyncCheck = Callable[[Home], AsyncIterator[Finding]]

CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    (SETTINGS, check_settings),
    (PERMISSIONS, check_permissions),
    (DISK, check_disks),
    (KEYS, check_keys),
    (CERTIFICATES, check_certificates),
    (CLOCK, check_clock),
    (PEERS, check_witnesses),
    (WATCHING, check_watching),
)
ASYNC_CHECKS: Final[tuple[tuple[str, AsyncCheck], ...]] = (
    (GENERATOR, check_generator),
    (STORE, check_store),
    (PEERS, check_parties),
)


async def check_home(
    path: Path, *, development: bool = False, before_start: bool = False, backups: Path | None = None
) -> list[Finding]:
    """All findings of a home, those that are fine with them. An error in a check is a finding, never an exception.

    `before_start`: what only others can put right is a warning. `backups`: their folder, to look at the newest one.
    """
    if not (path / CONFIG_FILE).is_file():
        what = f"{path} is not the home of a node: there is no {CONFIG_FILE}"
        return [found(SETTINGS, "SETTINGS_REFUSED", what, value=path)]
    try:
        home = Home(load_config(path), now_ms(), backups)
    except RgsError as error:
        return [found(SETTINGS, "SETTINGS_REFUSED", error.message, value=path / CONFIG_FILE)]
    findings: list[Finding] = []
    for name, check in CHECKS:
        findings += _run(name, partial(check, home))
    for name, async_check in ASYNC_CHECKS:
        findings += await _run_async(name, async_check, home)
    counted = [one for one in findings if not (development and one.code in REAL_MONEY)]
    if before_start:
        return [replace(one, level=Level.WARNING) if one.code in OUTSIDE else one for one in counted]
    return counted


def _run(name: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    findings: list[Finding] = []
    try:
        findings.extend(check())
    except Exception as error:  # noqa: BLE001 - what cannot be checked is not fine
        findings.append(_failed(name, error))
    return findings


async def _run_async(name: str, check: AsyncCheck, home: Home) -> list[Finding]:
    findings: list[Finding] = []
    try:
        findings.extend([one async for one in check(home)])
    except Exception as error:  # noqa: BLE001 - as above
        findings.append(_failed(name, error))
    return findings


def _failed(name: str, error: Exception) -> Finding:
    """Name the exception alone: its text may hold a password."""
    return found(
        name, "CHECK_FAILED", f"the check of {name} failed: {type(error).__name__}", value=type(error).__name__
    )


def worst(findings: list[Finding]) -> Level:
    """The worst level of all findings."""
    order = list(Level)
    return max((one.level for one in findings), key=order.index, default=Level.OK)
