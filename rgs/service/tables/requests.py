"""The mutating requests of players at tables, as the service reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rgs.core.games.types import Action
from rgs.service.play.requests import Digested


@dataclass(frozen=True, slots=True)
class Join(Digested):
    """Take a seat. `box` 0 is any; `nickname` is what other players see."""

    session_id: str
    box: int
    nickname: str


@dataclass(frozen=True, slots=True)
class Leave(Digested):
    """Give the seat back."""

    session_id: str
    device_no: int


@dataclass(frozen=True, slots=True)
class PlaceBets(Digested):
    """The whole bet: bet -> minor units; none takes it back. `round_id` is empty to begin at an idle table."""

    session_id: str
    device_no: int
    round_id: str
    seat_version: int
    bets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Decide(Digested):
    """A decision on the seat's round at `round_version`."""

    session_id: str
    device_no: int
    round_id: str
    round_version: int
    action: Action


@dataclass(frozen=True, slots=True)
class Say(Digested):
    """A line of chat."""

    session_id: str
    text: str
