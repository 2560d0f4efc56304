"""The tables that the project ships, as an admin sets them up: for the demo, and for the lobby of a new home."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

from rgs.core.tables.config import SHIPPED_TABLES
from rgs.devkit.client import Client
from rgs.v1.table_pb2 import ConfigureTableRequest, TableEntry

__all__ = ["SHIPPED_TABLES", "set_up", "shipped_table"]


def shipped_table(table: str) -> str:
    """The configuration: a TOML document."""
    return (resources.files("rgs.core") / "table_data" / f"{table}.toml").read_text(encoding="utf-8")


def set_up(admin: Client, configs: Iterable[str], reason: str) -> list[TableEntry]:
    """Have an admin configure tables: each is a signed event. CallError."""
    requests = (ConfigureTableRequest(request_id=admin.request_id(), config=one, reason=reason) for one in configs)
    return [admin.call(admin.table_admin.ConfigureTable, request).table for request in requests]
