"""What striping gave: throughput over the number of stripes, repeated, warm-up apart, with the verdicts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import altair as alt
import pyarrow as pa
import vl_convert

from pinchpoint.base import units

_COLUMNS = (
    "stripes",
    "writes in a burst",
    "lowest to highest",
    "of one stripe's",
    "while new",
    "of one's then",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run.

    Attributes:
        stripes: how many.
        repetition: which, from 1.
        new_per_s: acknowledged writes per second in the first burst, while the disk was new.
        used_per_s: in the bursts after it.
        verdict: the run's, in words.
        run: its directory's name.
    """

    stripes: int
    repetition: int
    new_per_s: float
    used_per_s: float
    verdict: str
    run: str


@dataclass(frozen=True, slots=True)
class Row:
    """All runs of one number of stripes; rates are means over repetitions.

    Attributes:
        stripes: how many.
        used_per_s: writes per second once the disk was used.
        lowest_per_s: of the repetition with the fewest.
        highest_per_s: of the one with the most.
        gain_ratio: that of one stripe is 1; None where one stripe did nothing.
        new_per_s: writes per second while the disk was new.
        new_gain_ratio: likewise, against one stripe while it was new.
        verdicts: each run's, in words.
    """

    stripes: int
    used_per_s: float
    lowest_per_s: float
    highest_per_s: float
    gain_ratio: float | None
    new_per_s: float
    new_gain_ratio: float | None
    verdicts: tuple[str, ...]


def rate_per_s(operations: pa.Table, scenario: str, from_s: float, to_s: float) -> float:
    """Operations that succeeded per second, over the whole seconds between two UTC times."""
    done: dict[int, int] = {}
    for row in operations.select(["time_s", "scenario", "operation", "outcome", "count"]).to_pylist():
        if row["scenario"] == scenario and row["outcome"] == "ok" and "/" not in row["operation"]:
            done[row["time_s"]] = done.get(row["time_s"], 0) + row["count"]
    whole = [
        second for second in range(int(from_s), int(to_s) + 1) if from_s <= second and second + 1 <= to_s
    ]
    return sum(done.get(second, 0) for second in whole) / len(whole) if whole else 0.0


def summary(found: Sequence[Measured]) -> list[Row]:
    """One row per number of stripes, the fewest first."""
    numbers = sorted({one.stripes for one in found})
    by_number = {number: [one for one in found if one.stripes == number] for number in numbers}
    first = by_number[numbers[0]]
    base, base_new = mean(one.used_per_s for one in first), mean(one.new_per_s for one in first)
    rows = []
    for number, runs in by_number.items():
        used, new = mean(one.used_per_s for one in runs), mean(one.new_per_s for one in runs)
        rows.append(
            Row(
                stripes=number,
                used_per_s=used,
                lowest_per_s=min(one.used_per_s for one in runs),
                highest_per_s=max(one.used_per_s for one in runs),
                gain_ratio=used / base if base else None,
                new_per_s=new,
                new_gain_ratio=new / base_new if base_new else None,
                verdicts=tuple(one.verdict for one in runs),
            )
        )
    return rows


def text(rows: Sequence[Row]) -> str:
    """The table for the terminal, and the verdicts below it."""
    cells = [_COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(_COLUMNS))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    for row in rows:
        lines += [f"{row.stripes}: {verdict}" for verdict in row.verdicts]
    return "\n".join(lines)


def page(found: Sequence[Measured], rows: Sequence[Row]) -> str:
    """Table, chart and verdicts as one page that needs no network."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in _COLUMNS)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in rows
    )
    said = "".join(
        f"<li>{one.stripes} stripes, repetition {one.repetition} ({html.escape(one.run)}): "
        f"{html.escape(one.verdict)}</li>"
        for one in found
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Stripes</title>'
        "<style>body{font:15px system-ui,sans-serif;margin:2em;max-width:60em}td,th{padding:.3em .8em;"
        "text-align:right;border-bottom:1px solid #ddd}</style><h1>The same burst on more stripes</h1>"
        f"<table><tr>{head}</tr>{body}</table>{chart(found)}"
        "<p>Each point is a run: the bursts after the first one. The first burst, while the disk was new, "
        "stands apart; what striping gave is told from used disks alone.</p>"
        f"<h2>Verdicts</h2><ul>{said}</ul></html>\n"
    )


def chart(found: Sequence[Measured]) -> str:
    """Throughput over stripes as SVG: a point per run and state of the disk, a line through the means."""
    rows: list[dict[str, Any]] = [
        {"stripes": one.stripes, "per_s": value, "disk": state}
        for one in found
        for state, value in (("used", one.used_per_s), ("new", one.new_per_s))
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("stripes:O", axis=alt.Axis(title="stripes", labelAngle=0)),
        color=alt.Color("disk:N", legend=alt.Legend(title="disk")),
    )
    title = "acknowledged writes per second in a burst"
    points = base.mark_point(filled=True, size=50).encode(y=alt.Y("per_s:Q", axis=alt.Axis(title=title)))
    lines = base.mark_line().encode(y=alt.Y("mean(per_s):Q"))
    spec = (lines + points).properties(width=520, height=260).to_dict()
    drawn: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return drawn


def _cells(row: Row) -> tuple[str, ...]:
    def gain(ratio: float | None) -> str:
        return "not measured" if ratio is None else f"{ratio:.2f} x"

    return (
        str(row.stripes),
        units.per_second(row.used_per_s),
        f"{units.per_second(row.lowest_per_s)} to {units.per_second(row.highest_per_s)}",
        gain(row.gain_ratio),
        units.per_second(row.new_per_s),
        gain(row.new_gain_ratio),
    )
