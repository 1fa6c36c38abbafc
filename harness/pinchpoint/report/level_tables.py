"""A load in steps as people read it: its levels, its knee, the load up to which the objectives held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.wording import capitalised
from pinchpoint.report.tables import Column, Row, Table, duration, number, rate, share

_OBJECTIVES = {True: "met", False: "missed", None: None}


def of_load(level: Mapping[str, Any]) -> str:
    """One level as a plan travels with it."""
    return next(units.load_level(float(amount), unit) for unit, amount in level.items() if amount is not None)


def levels(verdict: Row) -> Table:
    """What each level brought; where throughput stops following; up to where the objectives held."""
    rows = [
        {
            **row,
            "level": units.load_level(row["level"], row["unit"]),
            "p95_s": row["response_p95_s"] if row["response_p95_s"] is not None else row["service_p95_s"],
            "objectives": _OBJECTIVES[row["objectives_met"]],
        }
        for row in verdict.get("levels") or ()
    ]
    return Table(
        "levels",
        "Load levels",
        (
            Column("scenario", "scenario"),
            number("level", "load"),
            rate("throughput_per_s", "throughput"),
            duration("service_p50_s", "service p50"),
            duration("p95_s", "p95"),
            share("error_ratio", "errors"),
            number("dropped", "dropped", absent="-"),
            Column("objectives", "objectives", absent="-"),
        ),
        rows,
        note=" ".join(sentences(verdict)) + " All else in this report is of the last level.",
        empty="",  # most loads are not in steps
    )


def sentences(verdict: Row) -> Iterator[str]:
    """The knee, and the highest load at which the objectives hold."""
    if not verdict.get("levels"):
        return
    knee = verdict.get("knee") or {}
    yield f"{capitalised(str(knee.get('why', '')))}."
    for scenario, held in (verdict.get("objectives_held") or {}).items():
        if held["level"] is None:
            yield f"The objectives of {scenario} held at no level."
            continue
        up_to = units.load_level(held["level"], held["unit"])
        more = "the highest there was" if held["all_held"] else "missed above"
        done = units.per_second(held["throughput_per_s"])
        never = held.get("never_per_s")  # a throughput that is wanted
        but = f"; no level reached the {units.per_second(never)} that are wanted" if never else ""
        yield f"The objectives of {scenario} held up to {up_to} ({done} done; {more}{but})."
