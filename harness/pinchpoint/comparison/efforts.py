"""CPU time that each tier takes for each unit of work: a document, a commit, a burst (METHOD 4.3).

Of a plan with several scenarios it is computed for tiers at which one of them alone works: of several it is
    not
knows whose CPU time it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.bursts import burst_steps
from pinchpoint.analysis.flows import READS_ONLY
from pinchpoint.analysis.resources.cpu import cores_used
from pinchpoint.analysis.stations import CRAWL_TIERS, ENDPOINT, SOURCE_TIER, find_stations
from pinchpoint.base import wording
from pinchpoint.comparison.courses import FigureCourse, Key, RatioOfSums, joined
from pinchpoint.data.inputs import Host, Inputs, Load
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Floats

_SQL_ONLY = ("sql-script", "sql-replay")
"""Scenarios whose operations all go to the SQL tier, beside those of which ``stations`` knows it."""
_REPORTED = frozenset({*ENDPOINT.values(), *SOURCE_TIER.values(), *CRAWL_TIERS})
"""Tiers of which it is known who works there; at one of another name everybody may."""
LEAST_SEEN = 0.5
"""Of the measured time this much must have been seen: else it is that of some other stretch."""


@dataclass(frozen=True, slots=True, eq=False)
class Effort:
    """What one tier takes for one unit of a scenario's work, in one run.

    Attributes:
        scenario: whose work it is.
        tier: whose processes take it, all hosts of it together.
        metric: ``cpu_s``; ``burst_cpu_s`` where the unit is a burst.
        per: the unit: ``document``, ``commit``, ``operation``, ``burst``.
        value: CPU seconds; None: not known.
        why: why it is not, one clause.
        course: step by step; None where it has none.
    """

    scenario: str
    tier: str
    metric: str
    per: str
    value: float | None
    why: str | None = None
    course: RatioOfSums | None = None

    @property
    def thing(self) -> tuple[str, str, str]:
        """What it is of, the same on both sides."""
        return self.scenario, self.tier, self.metric


def efforts_of(inputs: Inputs) -> tuple[Effort, ...]:
    """Of every scenario and every tier it works at; without operations there are none."""
    if inputs.window.steps == 0:
        return ()
    return tuple(_efforts(inputs))


def _efforts(inputs: Inputs) -> Iterator[Effort]:
    tiers = list(dict.fromkeys(host.tier for host in inputs.hosts))
    at = {load.scenario: _tiers(inputs, load, tiers) for load in inputs.loads}
    used = {tier: _cores(inputs, tier) for tier in tiers}
    for load in inputs.loads:
        work = inputs.traffic.of(load.scenario).whole().ok()
        if not work.count:
            continue
        for tier in at[load.scenario]:
            others = [name for name, there in at.items() if tier in there]
            yield from _of_tier(inputs, load, work, tier, used[tier], others)


def _tiers(inputs: Inputs, load: Load, tiers: Sequence[str]) -> tuple[str, ...]:
    """The tiers at which a scenario works; all where that is not known."""
    known = {"sql"} if load.use in _SQL_ONLY else {one.tier for one in find_stations(inputs, load)}
    return tuple(tier for tier in tiers if not known or tier in known or tier not in _REPORTED)


def _of_tier(
    inputs: Inputs, load: Load, work: Traffic, tier: str, used: Floats | str, there: Sequence[str]
) -> Iterator[Effort]:
    def effort(metric: str, per: str, found: float | str, course: RatioOfSums | None = None) -> Effort:
        value, why = (None, found) if isinstance(found, str) else (found, None)
        return Effort(load.scenario, tier, metric, per, value, why, course)

    per, bursts = _unit(load, work), load.model == "burst"
    if len(there) > 1 and not isinstance(used, str):
        used = f"{wording.listed(list(there))} work there, and which of them is busy is not known"
    if isinstance(used, str):
        yield effort("cpu_s", per, used)
        if bursts:
            yield effort("burst_cpu_s", "burst", used)
        return
    seen = np.isfinite(used)
    step_s = float(inputs.window.step_s)
    done = np.where(seen, work.per_step(inputs.window) * step_s, 0.0)
    spent = np.where(seen, used, 0.0) * step_s
    if not done.sum():
        yield effort("cpu_s", per, "nothing was done while its CPU was watched")
        return
    course = RatioOfSums(joined(spent), joined(done))
    yield effort("cpu_s", per, course.value, course)
    if bursts:
        yield effort("burst_cpu_s", "burst", _of_a_burst(inputs, load, spent, seen))


def _of_a_burst(inputs: Inputs, load: Load, spent: Floats, seen: npt.NDArray[np.bool_]) -> float | str:
    """CPU seconds from a burst's beginning to its end: the mean of those that were seen whole."""
    found = burst_steps(inputs, load)
    whole = [float(spent[start:end].sum()) for start, end in found if seen[start:end].all()]
    return float(np.mean(whole)) if whole else "no burst was seen whole"


def _unit(load: Load, work: Traffic) -> str:
    """A crawl's documents; commits where every operation ends with one; else operations."""
    if load.use == "full-crawl":
        return "document"
    commits = load.use == "sql-mix" and not set(work.operation_names) & set(READS_ONLY)
    return "commit" if commits else "operation"


def _cores(inputs: Inputs, tier: str) -> Floats | str:
    """Cores' worth of CPU that a tier used in each step, NaN where not seen; or why that is not known."""
    total = np.zeros(inputs.window.steps)
    for host in (one for one in inputs.hosts if one.tier == tier):
        found = _of_host(inputs, host)
        if isinstance(found, str):
            return found
        total = total + found
    if np.isfinite(total).mean() < LEAST_SEEN:
        return "its CPU was not measured for most of the time"
    return total


def _of_host(inputs: Inputs, host: Host) -> Floats | str:
    """Of the tier's own processes; of the machine where it has that for itself."""
    own = cores_used(inputs, host)
    if np.isfinite(own).any():
        return own
    if not np.isfinite(inputs.samples.steps(host.name, "cpu.busy_ratio")).any():
        return f"no CPU samples of {host.name}"
    if len(inputs.on_machine(host.machine)) > 1 or _generates(inputs, host):
        return f"its processes on {host.name} were not watched, and it shares that machine"
    if not host.usable:
        return f"how many cores {host.name} has is not known"
    return inputs.samples.steps(host.name, "cpu.busy_ratio") * float(len(host.usable))


def _generates(inputs: Inputs, host: Host) -> bool:
    """Whether load generators run on a host's machine; one that does not say where may."""
    single = len({one.machine for one in inputs.hosts}) == 1
    return any(
        worker.machine == host.machine or (worker.machine is None and single) for worker in inputs.generators
    )


def courses(efforts: Sequence[Effort]) -> dict[Key, FigureCourse]:
    """Those that have one, by the key of their change."""
    return {
        ("effort", f"{one.scenario}.{one.tier}", None, None, one.metric): one.course
        for one in efforts
        if one.course is not None
    }
