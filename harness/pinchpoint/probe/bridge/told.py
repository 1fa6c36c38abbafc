"""A forecast as people read it: what was asked of the disks, the answer, the arithmetic, what it rests on."""

from __future__ import annotations

from collections.abc import Iterable

from pinchpoint.base import units
from pinchpoint.base.text import wrapped
from pinchpoint.forecast.text import prediction_text
from pinchpoint.probe.bridge.forecast import Forecast
from pinchpoint.probe.bridge.mix import DiskMix
from pinchpoint.probe.text import drawn
from pinchpoint.report.tables import Column, Table, duration, number


def forecast_text(forecast: Forecast) -> str:
    """One page."""
    table = _table(forecast.mix.values())
    mixed = f"{table.title}:\n" + drawn(table, tuple(column.key for column in table.columns))
    arithmetic = "\n".join(["The arithmetic:", *(wrapped(line, "  - ") for line in forecast.arithmetic)])
    return "\n\n".join([_answer(forecast), mixed, arithmetic, prediction_text(forecast.found)])


def _answer(forecast: Forecast) -> str:
    names = ", ".join(one.scenario for one in forecast.found.scenarios)
    disks = ", ".join(disk.label for disk in forecast.disks.values())
    ratio = forecast.per_s / forecast.measured_per_s
    return wrapped(
        f"On {disks}, {names} would get {units.per_second(forecast.per_s)} done, between "
        f"{units.per_second(forecast.low_per_s)} and {units.per_second(forecast.high_per_s)}; measured in "
        f"{forecast.found.run}: {units.per_second(forecast.measured_per_s)} ({units.times(ratio)})."
    )


def _table(mix: Iterable[DiskMix]) -> Table:
    return Table(
        name="mix",
        title="What one operation asks of each disk",
        columns=(
            Column("disk", "disk"),
            number("reads", "reads", lambda value: f"{value:.3g}"),
            number("writes", "writes", lambda value: f"{value:.3g}"),
            number("bytes", "bytes", units.bytes_),
            duration("read_s", "each read"),
            duration("write_s", "each write"),
            number("waits_s", "waits for it", units.seconds, absent="not told"),
        ),
        rows=[
            {
                "disk": one.disk,
                "reads": one.reads,
                "writes": one.writes,
                "bytes": one.bytes,
                "read_s": one.read_s,
                "write_s": one.write_s,
                "waits_s": one.waits_s,
            }
            for one in mix
        ],
    )
