"""What is passed round cannot be changed on its way: every dataclass is frozen, but for those named here."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import rgs.adapters
import rgs.api
import rgs.core
import rgs.node
import rgs.ports
import rgs.service
import rgs.store
import rgs.tlog

USE_CASES = {
    "rgs.service.admin.admin.Admin",
    "rgs.service.admin.certificates.Certificates",
    "rgs.service.admin.health_monitor.HealthMonitor",
    "rgs.service.admin.outbox.Outbox",
    "rgs.service.instance.Instance",
    "rgs.service.play.free_bets.FreeBets",
    "rgs.service.play.history.History",
    "rgs.service.play.interruptions.Interruptions",
    "rgs.service.play.launches.Launches",
    "rgs.service.play.opening_rules.OpeningRules",
    "rgs.service.play.operations.Operations",
    "rgs.service.play.play.Play",
    "rgs.service.play.seamless.Seamless",
    "rgs.service.play.sessions.Sessions",
    "rgs.service.regulator.reports.Reporting",
    "rgs.service.tables.admin.TableAdmin",
    "rgs.service.tables.chat.Chat",
    "rgs.service.tables.dealer.Dealer",
    "rgs.service.tables.idle_seats.IdleSeats",
    "rgs.service.tables.places.TableOrders",
    "rgs.service.tables.reservations.Reservations",
    "rgs.service.tables.rounds.TableRounds",
    "rgs.service.tables.seat_rounds.SeatRounds",
    "rgs.service.tables.seats.Seats",
    "rgs.service.tables.views.TableViews",
}
"""Objects that are made once a process. Nobody passes them round as a value."""

CHANGING = USE_CASES | {
    "rgs.adapters.grpc.circuit.CallOutcome",
    "rgs.adapters.grpc.circuit.Circuit",
    "rgs.core.replay.scope.NumberSequence",
    "rgs.core.returns.tally.Series",
    "rgs.core.returns.tally.ReturnTally",
    "rgs.core.reconcile.extract._Seat",
    "rgs.core.reconcile.extract._Session",
    "rgs.core.reconcile.report.BreakFindings",
    "rgs.core.replay.deals.Deal",
    "rgs.core.replay.table_rounds.TableRound",
    "rgs.core.replay.tables.TableState",
    "rgs.core.replay.draws.DrawAccount",
    "rgs.core.replay.instances.ReplayedInstance",
    "rgs.core.replay.instances.Lost",
    "rgs.core.replay.seats.OpenSeat",
    "rgs.core.replay.procedure.Summary",
    "rgs.core.replay.reading.Statement",
    "rgs.core.replay.sessions.Chain",
    "rgs.core.replay.voids.AdminCertificate",
    "rgs.core.replay.voids.Malfunction",
    "rgs.service.tables.feed._Topic",
    "rgs.service.tables.seat_rounds._SeatEnd",
    "rgs.store.changes.Change",
    "rgs.store.group.Known",
    "rgs.store.postgres.link.Link",
    "rgs.store.recovery.Import",
    "rgs.store.recovery.InstanceState",
    "rgs.store.regulator.ParticipationState",
    "rgs.store.regulator.SessionState",
}
"""What one function or one object fills: sums, chains and states that are built up statement by statement."""


VALUES = (rgs.adapters, rgs.core, rgs.ports, rgs.service, rgs.store)


def dataclasses_of_the_rooms(packages: Sequence[ModuleType] = VALUES) -> Iterator[tuple[str, Any]]:
    for package in packages:
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(info.name)).items():
                if isinstance(value, type) and value.__module__ == info.name and dataclasses.is_dataclass(value):
                    yield f"{info.name}.{name}", value


def test_only_what_is_named_can_be_changed() -> None:
    found = {name for name, value in dataclasses_of_the_rooms() if not value.__dataclass_params__.frozen}
    assert found == CHANGING


def test_an_object_with_keys_or_connections_shows_no_part_of_itself() -> None:
    packages = (rgs.adapters, rgs.api, rgs.node, rgs.service, rgs.store, rgs.tlog)
    objects = [(name, kind) for name, kind in dataclasses_of_the_rooms(packages) if not kind.__dataclass_params__.eq]
    assert len(objects) > 15
    assert [name for name, kind in objects if kind.__dataclass_params__.repr] == []


def test_a_use_case_is_made_by_names_and_is_equal_to_itself_alone() -> None:
    kinds = {name: kind for name, kind in dataclasses_of_the_rooms() if name in USE_CASES}
    assert set(kinds) == USE_CASES
    for name, kind in kinds.items():
        parameters = inspect.signature(kind).parameters.values()
        assert {one.kind for one in parameters} == {inspect.Parameter.KEYWORD_ONLY}, name
        assert kind.__eq__ is object.__eq__, name


def test_what_an_object_keeps_for_itself_is_not_given_to_it() -> None:
    packages = (rgs.adapters, rgs.api, rgs.core, rgs.node, rgs.ports, rgs.service, rgs.store, rgs.tlog)
    own = [
        (f"{name}.{one.name}", one.init)
        for name, kind in dataclasses_of_the_rooms(packages)
        for one in dataclasses.fields(kind)
        if one.name.startswith("_")
    ]
    assert len(own) > 10
    assert [name for name, is_given in own if is_given] == []
