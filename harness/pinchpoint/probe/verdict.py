"""Holds the records of a probe's verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pinchpoint.base.wording import Summary
from pinchpoint.data.inputs import Limits
from pinchpoint.probe.caps import MatchingType, MeasuredCaps
from pinchpoint.probe.figures import figures
from pinchpoint.probe.over_time import Outliers, RateChange
from pinchpoint.probe.record import Probe


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The verdict on one cell.

    Attributes:
        cell: the name of the cell.
        outstanding: the requested outstanding I/Os; None if the tool does not report them.
        kind: how the disk limits the cell; None if the cell does not show it.
        limit: the limit that the cell was compared with: ``declared``, ``found``, ``both`` or ``burst``; None
            without one.
        used_ratio: the rate of the cell ÷ the limit; None without a limit.
        exact: whether the rate matches the limit.
        really_outstanding: the outstanding I/Os by Little's law; None if they match the requested ones.
        why: the calculation, in words.
    """

    cell: str
    outstanding: int | None
    kind: str | None
    limit: str | None
    used_ratio: float | None
    exact: bool
    really_outstanding: float | None
    why: str


@dataclass(frozen=True, slots=True)
class WorkloadVerdict:
    """The verdict on a workload: cells that differ only in the queue depth.

    Attributes:
        workload: the name of the workload.
        kind: how the disk limits the workload at its highest queue depth.
        varied: the varied quantity, in words.
        line_holds_to: the highest queue depth with a mean latency below the line; None if there is none, or
            no latency was measured.
        line_crossed_at: the lowest queue depth with a mean latency above the line; None if there is none.
        load_class: the name of a load of ``line_holds_to`` outstanding I/Os.
        course: the change of the rate over time.
        outliers: steps with a latency far above the median.
    """

    workload: str
    kind: str | None
    varied: str
    cells: tuple[CellVerdict, ...]
    line_holds_to: int | None
    line_crossed_at: int | None
    load_class: str | None
    course: RateChange | None
    outliers: Outliers | None


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """The verdict on a probe.

    Attributes:
        kinds: kind of limit -> the workloads that it limits.
        caps: the measured caps.
        limits: the limits that cells were compared with; None if there are none.
        limits_are: ``declared``, ``found``, or ``both`` if one of the two figures comes from each; None
            without limits.
        contradicted: why the declared limits are wrong; None if they may be right.
        over_time: kind (``disk_burst_exhausted``, ``disk_warm_up``) -> the workloads that showed it.
        host_cache: why reads may have come from a cache on the host; empty without a sign of a cache.
        declared_used: name of the limit -> highest measured rate ÷ declared limit.
        behaves_like: the catalogue types with the same caps.
        answer: the result in a few sentences.
    """

    kinds: Mapping[str, tuple[str, ...]]
    caps: MeasuredCaps
    limits: Limits | None
    limits_are: str | None
    contradicted: str | None
    over_time: Mapping[str, tuple[str, ...]]
    host_cache: tuple[str, ...]
    declared_used: Mapping[str, float]
    behaves_like: tuple[MatchingType, ...]
    workloads: tuple[WorkloadVerdict, ...]
    answer: Summary = field(default=Summary(""))

    @property
    def summary(self) -> str:
        """The result as one text."""
        return str(self.answer)

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain JSON types, with cells by name."""
        content = {"summary": self.summary, **asdict(self)}
        for name, cap in self.caps:
            content["caps"][name]["cells"] = [cell.name for cell in cap.cells]
        return content


def probe_content(probe: Probe, verdict: ProbeVerdict) -> dict[str, Any]:
    """The content of probe.json: the probe, each cell's figures over its repetitions, and the verdict."""
    made = probe.to_json()
    for row, one in zip(made["cells"], figures(probe).values(), strict=True):
        row["figures"] = asdict(one)
    return {**made, "verdict": verdict.to_json()}
