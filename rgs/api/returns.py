"""The part of rgs.v1.AdminService over `rgs.service.admin.monitoring`: measured returns."""

from __future__ import annotations

from collections.abc import Iterable

from rgs.api.calls import Methods, Unary
from rgs.core.returns.tally import Reading
from rgs.service.admin.monitoring import Measured, Monitoring
from rgs.service.callers import Caller
from rgs.v1 import admin_pb2 as pb


def returns_methods(monitoring: Monitoring) -> Methods:
    """The method GetReturns."""

    async def get_returns(_caller: Caller, _message: pb.GetReturnsRequest) -> bytes:
        measured, passed_over = await monitoring.measured()
        return pb.GetReturnsResponse(rulesets=map(_ruleset, measured), passed_over=passed_over).SerializeToString()

    return {"GetReturns": Unary(pb.GetReturnsRequest, get_returns)}


def _ruleset(measured: Measured) -> pb.MeasuredRuleset:
    tally = measured.tally
    return pb.MeasuredRuleset(
        ruleset_id=measured.ruleset_id,
        ruleset_sha256=measured.ruleset_sha256,
        rounds=tally.life.rounds,
        void_rounds=tally.voids,
        unseen_rounds=tally.unseen,
        figures=_figures(measured.readings),
        bets=[
            pb.MeasuredBet(bet=bet, currency=currency, staked_minor=staked, returned_minor=returned)
            for currency, bets in sorted(tally.money.items())
            for bet, (staked, returned) in sorted(bets.items())
        ],
    )


def _figures(readings: Iterable[Reading]) -> list[pb.MeasuredFigure]:
    return [
        pb.MeasuredFigure(
            name=reading.figure,
            series=reading.series,
            rounds=reading.rounds,
            **{name: _decimal(getattr(reading, name)) for name in ("exact", "measured", "low", "high")},
            evidence=f"{reading.evidence:.3f}",
            limit=f"{reading.limit:.3f}",
            alarming=reading.is_alarming,
        )
        for reading in readings
    ]


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
