"""A prediction as people read it: the answer, the arithmetic, what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pinchpoint.probe.bridge.forecast import Prediction
from pinchpoint.probe.bridge.mix import Mix
from pinchpoint.probe.bridge.model import Parts
from pinchpoint.probe.text import drawn
from pinchpoint.report import units
from pinchpoint.report.tables import Column, Table, duration, number
from pinchpoint.report.terminal import wrapped

_NEAR = 10.0
"""What would end at more than ten times the throughput is not worth a line."""
_LIMITED = {
    "flush": "commits, which wait for flushes of its log",
    "reads": "waiting for its reads",
    "cpu": "the CPU, not this disk",
    "rest": "what has nothing to do with this disk",
    "cap": "its cap",
    "load": "the load that is offered, which it carries",
}


def prediction_text(found: Prediction) -> str:
    """One page."""
    mix = found.mix
    names = ", ".join(mix.scenarios)
    answer = (
        f"On {found.disk}, {names} would get {units.per_second(found.per_s)} done, between "
        f"{units.per_second(found.low)} and {units.per_second(found.high)}; measured on {mix.disk.disk} of "
        f"{mix.run}: {units.per_second(mix.per_s)} ({units.times(found.ratio)}). An operation would take "
        f"{units.seconds(found.response_s)}. What holds it there: "
        f"{_LIMITED.get(found.limited_by, found.limited_by)}."
    )
    arithmetic = "\n".join(["The arithmetic:", *(wrapped(line, "  - ") for line in _arithmetic(found))])
    assumes = "\n".join(["It holds where", *(wrapped(line, "  - ") for line in found.assumes)])
    table = _table(mix)
    mixed = "What one operation asks of each disk:\n" + drawn(
        table, tuple(column.key for column in table.columns)
    )
    return "\n\n".join([wrapped(answer), mixed, arithmetic, assumes])


def _arithmetic(found: Prediction) -> Iterator[str]:
    mix, work = found.mix, found.circle.work
    yield f"{_load(mix)}, {units.per_second(mix.per_s)}: {_each(mix)} each, of which {_parts(found.before)}"
    if found.flush_io:
        yield (
            f"{work.commits:.3g} commits an operation; a flush is {work.ios_per_flush:.2f} "
            f"I/Os of {units.seconds(mix.disk.write_s)} there, {units.seconds(found.flush_io.mean_s)} here "
            f"({', '.join(found.flush_io.cells)})"
        )
    if found.curve:
        yield (
            f"{work.reads:.3g} reads an operation, of {units.seconds(mix.disk.read_s)} each there; here as "
            f"{found.curve.workload}: {units.seconds(found.curve.points[0][2])} one at a time, "
            f"{units.per_second(found.curve.most_per_s)} at most"
        )
    if found.most_per_s is not None:
        ios = work.reads + work.background
        yield f"at {ios:.3g} I/Os an operation its caps allow {units.per_second(found.most_per_s)}"
    for name, at in mix.others:
        if at <= _NEAR * max(found.per_s, mix.per_s):
            yield f"{name} would be used up at {units.per_second(at)}"
    yield f"so here: {_parts(found.after)}; {_law(found)}"


def _load(mix: Mix) -> str:
    if not math.isfinite(mix.users):
        return "an open load"
    think = f", {units.seconds(mix.think_s)} of thinking between operations" if mix.think_s else ""
    return f"{mix.users:g} users{think}"


def _each(mix: Mix) -> str:
    if not math.isfinite(mix.users):
        return units.seconds(mix.response_s)
    return units.seconds(mix.users / mix.per_s - mix.think_s)


def _parts(parts: Parts) -> str:
    named = (
        (parts.flush_s, "for flushes"),
        (parts.read_s, "for reads"),
        (parts.cpu_s, "for the CPU"),
        (parts.rest_s, "for all else"),
    )
    return ", ".join(f"{units.seconds(value)} {name}" for value, name in named if value) or "nothing known"


def _law(found: Prediction) -> str:
    mix = found.mix
    if not math.isfinite(mix.users):
        return f"{units.per_second(found.per_s)} of {units.per_second(mix.per_s)} offered"
    think = f" + {units.seconds(mix.think_s)}" if mix.think_s else ""
    return (
        f"{mix.users:g} users ÷ ({units.seconds(found.response_s)}{think}) = {units.per_second(found.per_s)}"
    )


def _table(mix: Mix) -> Table:
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
            for one in mix.disks
        ],
    )
