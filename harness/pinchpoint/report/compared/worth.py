"""What work takes and what it costs: CPU time for each unit of work, throughput for what a farm costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.base import units
from pinchpoint.report.compared.tables import RATIO, SIDE, Figure
from pinchpoint.report.tables import Column, Row, Table, number

NOT_DECLARED, NOT_KNOWN = "not declared", "not known"
NO_PRICES = (
    "No prices are declared: they are yours (prices: in farm.yaml, or compare --prices FILE), and none is "
    "known to Pinchpoint."
)


@dataclass(frozen=True, slots=True)
class _Money(Figure):
    """An amount of the row's currency."""

    def cell(self, row: Row) -> str:
        """``1,250.00 EUR``, or how many times as much."""
        if row.get(SIDE) == RATIO or row.get(self.key) is None:
            return Figure.cell(self, row)
        return money(row[self.key], row["currency"])


def money(amount: float, currency: str) -> str:
    """``1,250.00 EUR``."""
    return f"{amount:,.2f} {currency}"


def efforts(content: Row) -> Table:
    """CPU time of each tier for a document, a commit, a burst; where it is not known, why."""
    rows = [
        {**row, "unit": f"{row['per']} of {row['scenario']}", "load": _load(content, row["scenario"])}
        for row in content["changes"]
        if row["about"] == "effort"
    ]
    return Table(
        "efforts",
        "CPU time for each unit of work",
        (
            Column("tier", "tier"),
            Column("unit", "for each"),
            *(
                number(side, content[side]["label"], units.seconds, absent=NOT_KNOWN)
                for side in ("base", "other")
            ),
            number("ratio", "ratio", units.times, absent="no ratio"),
            number("ci95", "95 % interval", units.interval, absent="none"),
            Column("load", "offered load"),
            *([Column("why", "why not known", absent="")] if any(row["why"] for row in rows) else []),
        ),
        rows,
        note="CPU time of the tier's processes over the measure phase, divided by what succeeded; of a "
        "burst, from its begin to its end. What a tier uses at rest is in it, so that more throughput alone "
        "makes it less: of unlike loads the ratio is not the software's alone.",
        empty="No CPU time can be told for a unit of work: no operations, or no CPU samples.",
    )


def _load(content: Row, scenario: str) -> str:
    """Whether both sides were given the same to do in the same time: else what each did."""
    done = next(row for row in content["changes"] if row["name"] == f"scenario.{scenario}.throughput_per_s")
    given = next((row for row in content["capacity"] if row["scenario"] == scenario), None)
    if given and given["kept_up"] == [True, True]:
        return "the same" if _same_rate(done) else "not the same"
    each = " and ".join(units.per_second(done[side]) for side in ("base", "other"))
    return f"not the same: {each}"


SAME_LOAD = 1.05
"""Loads within 5 % of each other are the same, as everywhere in a comparison."""


def _same_rate(done: Row) -> bool:
    ratio = done["ratio"]
    return bool(ratio and 1 / SAME_LOAD <= ratio <= SAME_LOAD)


def cost(content: Row) -> Table:
    """What each side costs a month, and what throughput that buys."""
    found = content["cost"]
    bought = [row for row in content["changes"] if row["about"] == "cost"]
    rows = list(_cost_rows(content, bought)) if any(found[name] for name in ("base", "other")) else []
    columns = (
        Column(SIDE, "side"),
        _Money("per_month", "cost a month", absent=NOT_DECLARED, numeric=True),
        *(
            Figure(
                row["scenario"],
                f"{row['scenario']}, for {row['per']}",
                units.per_second,
                absent=NOT_KNOWN,
                numeric=True,
            )
            for row in bought
        ),
        Column("items", "made of"),
    )
    note = "By prices that their user declared. Throughput over the measure phase, medians of the runs."
    reasons = dict.fromkeys(one for one in (found["why"], *(row["why"] for row in bought)) if one)
    why = f" Where there is no ratio: {'; '.join(reasons)}." if reasons else ""
    return Table("cost", "Cost", columns, rows, note=note + why, empty=NO_PRICES)


def _cost_rows(content: Row, bought: list[Row]) -> Iterator[dict[str, Any]]:
    found = content["cost"]
    for name in ("base", "other"):
        side = found[name] or {}
        yield {
            SIDE: content[name]["label"],
            "per_month": side.get("per_month"),
            "currency": side.get("currency"),
            "items": _items(side) if side else "",
            **{row["scenario"]: row[name] for row in bought},
        }
    ratios: dict[str, Any] = {row["scenario"]: row["ratio"] for row in bought}
    ends = {f"{row['scenario']}_ci95": row["ci95"] for row in bought if row["ci95"]}
    yield {SIDE: RATIO, "per_month": found["ratio"], "currency": None, "items": "", **ratios, **ends}


def _items(side: Mapping[str, Any]) -> str:
    """``sql1 250.00, sql.log (azure/p30) 120.00, search1: no price``."""
    return ", ".join(
        f"{one['name']}: no price" if one["per_month"] is None else f"{one['name']} {one['per_month']:,.2f}"
        for one in side["items"]
    )
