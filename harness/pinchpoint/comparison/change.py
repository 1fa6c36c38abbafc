"""One figure of both sides, and what may be said of it: the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pinchpoint.base.figures import About, Better
from pinchpoint.comparison.courses import Key
from pinchpoint.comparison.hosts import Place
from pinchpoint.comparison.statistics import Call
from pinchpoint.comparison.values import Pair


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be said of a figure's ratio.

    Attributes:
        ci95: its 95 % interval; None: not known.
        interval: what it covers: how runs differ from one another (``between_runs``), or only chance within
            the runs there are (``within_run``); None without one.
        why_no_interval: why there is none, one sentence.
        declared: whether it is one of the figures that were to be judged.
        margin_ratio: from 1/margin to margin the sides count as the same; None: not judged.
        floor_ratio: how many times as much the same farm differed from itself; None: not known.
        p: of the ratio lying within the margin, corrected for the number of declared figures.
        call: what may be said; None where the figure was not declared.
        confidence: of a change that is called: ``high`` between runs, else ``medium``.
    """

    ci95: tuple[float, float] | None = None
    interval: Literal["between_runs", "within_run"] | None = None
    why_no_interval: str | None = None
    declared: bool = False
    margin_ratio: float | None = None
    floor_ratio: float | None = None
    p: float | None = None
    call: Call | None = None
    confidence: Literal["high", "medium"] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one thing, on both sides.

    Attributes:
        about: what kind of thing it is.
        metric: the figure; its ending is its unit.
        name: what ``--metric`` names it: ``scenario.crawl.throughput_per_s``.
        pair: its values.
        source: the crawl source, where it is one.
        scenario: the scenario, where it is one.
        tier: the tier, of a disk or CPU.
        place: the host, likewise.
        role: the disk's role.
        per: of what it is one: ``document``, ``commit``, ``burst``; ``100 EUR a month`` of a cost.
        better: which way is better; None: neither (more I/O is not better by itself).
        judged: what may be said of it.
    """

    about: About
    metric: str
    name: str
    pair: Pair
    source: str | None = None
    scenario: str | None = None
    tier: str | None = None
    place: Place | None = None
    role: str | None = None
    per: str | None = None
    better: Better | None = None
    judged: Judgement = Judgement()

    def key(self, side: str) -> Key:
        """Whose figure it is in the runs of a side (``base`` or ``other``)."""
        if self.about == "cost":  # a farm costs the same all along
            return "scenario", self.scenario, None, None, "throughput_per_s"
        if self.about == "effort":
            return self.about, f"{self.scenario}.{self.tier}", None, None, self.metric
        host = getattr(self.place, side) if self.place else None
        return self.about, self.source or self.scenario or self.tier, host, self.role, self.metric
