"""The records of a probe's verdict."""

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
    """One cell, judged.

    Attributes:
        cell: its name.
        outstanding: what was requested; None if the tool does not say.
        kind: how the disk limits there; None if the cell does not show it.
        limit: which limit it was held against, and of that how much was used.
        used_ratio: likewise.
        exact: it stands at that limit.
        really_outstanding: by Little's law, where it differs from what was requested.
        why: the arithmetic, in words.
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
    """Cells that differ in what is outstanding alone.

    Attributes:
        workload: its name.
        kind: how the disk limits it at the most outstanding.
        varied: what was varied.
        line_holds_to: the most outstanding I/Os up to which the mean latency stays below the line; None: not
            even the fewest, or no latency was measured.
        line_crossed_at: the fewest at which it does not; None: at none.
        load_class: what this many outstanding I/Os are called.
        course: how it went over time.
        outliers: steps far slower than usual.
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
        kinds: kind of limit -> the workloads it limits.
        caps: the caps that were found.
        limits: the limits that cells were compared with; None: none.
        limits_are: whether they were ``declared``, ``found``, or ``both``, each one of the two figures.
        contradicted: why the declared figures are not those of this disk; None if they may be.
        over_time: kind (``disk_burst_exhausted``, ``disk_warm_up``) -> the workloads that showed it.
        host_cache: why reads may have come from a host's memory; empty if nothing says so.
        declared_used: figure -> highest measured ÷ declared.
        behaves_like: types of the catalogue.
        answer: what it shows, in a few sentences.
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
        """The answer as text."""
        return str(self.answer)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; cells by their names."""
        content = {"summary": self.summary, **asdict(self)}
        for name, cap in self.caps:
            content["caps"][name]["cells"] = [cell.name for cell in cap.cells]
        return content


def probe_content(probe: Probe, verdict: ProbeVerdict) -> dict[str, Any]:
    """probe.json: the probe, with each cell's figures over its repetitions, and the verdict."""
    made = probe.to_json()
    for row, one in zip(made["cells"], figures(probe).values(), strict=True):
        row["figures"] = asdict(one)
    return {**made, "verdict": verdict.to_json()}
