"""The charts of a report, number by number: a bar that is too long or in the wrong place tells of money that is not."""

from __future__ import annotations

from rgs.service.reconciliation.charts import Bar, Chart, Line, sources, stacked


def test_the_parts_of_a_row_stand_side_by_side_and_empty_ones_are_left_out() -> None:
    assert stacked([("first", (1, 0, 3)), ("second", (0, 2, 0))], ("x", "y", "z")) == Chart(
        56,
        (
            Line(
                "first",
                17,
                (Bar(250.0, 4, 85.0, 0, "first, x: 1"), Bar(335.0, 4, 255.0, 2, "first, z: 3")),
                596.0,
                "4",
            ),
            Line("second", 43, (Bar(250.0, 30, 170.0, 1, "second, y: 2"),), 426.0, "2"),
        ),
        ("x", "y", "z"),
    )


def test_a_small_part_can_be_seen_and_moves_nothing() -> None:
    (line,) = stacked([("one", (1, 1699))], ("x", "y")).lines
    assert line.bars == (Bar(250.0, 4, 2.0, 0, "one, x: 1"), Bar(250.2, 4, 339.8, 1, "one, y: 1,699"))
    assert (line.end, line.number) == (596.0, "1,700")


def test_a_chart_of_nothing_has_no_bars() -> None:
    assert stacked([], ()) == Chart(4, (), ())
    assert stacked([("one", (0, 0))], ("x", "y")) == Chart(30, (Line("one", 17, (), 256.0, "0"),), ("x", "y"))


def test_each_currency_has_a_chart_with_a_row_for_each_day_and_source() -> None:
    def total(currency: str, date: str, source: str, bought_minor: int) -> dict[str, object]:
        return {"bought_minor": bought_minor, "currency": currency, "date": date, "game": "uth-solo", "source": source}

    charts = sources(
        [
            total("USD", "2026-11-18", "wallet", 7),
            total("EUR", "2026-11-19", "wallet", 500),
            total("EUR", "2026-11-18", "wallet", 100),
            total("EUR", "2026-11-18", "statements", 300),
            total("EUR", "2026-11-18", "wallet", 150),
        ],
        "bought_minor",
        "bought",
    )
    assert [(currency, [(line.label, line.number) for line in chart.lines]) for currency, chart in charts] == [
        (
            "EUR",
            [
                ("2026-11-18 statements", "3.00 EUR"),
                ("2026-11-18 wallet", "2.50 EUR"),
                ("2026-11-19 wallet", "5.00 EUR"),
            ],
        ),
        ("USD", [("2026-11-18 wallet", "0.07 USD")]),
    ]
    assert charts[1][1].lines[0].bars == (Bar(250.0, 4, 340.0, 0, "2026-11-18 wallet, bought: 0.07 USD"),)
    assert charts[0][1].series == ("bought",)
