"""What one operation of a run asks of each disk role: the I/O mix, measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pinchpoint.analysis.capacity import demands_of
from pinchpoint.analysis.case import Case, build_case
from pinchpoint.analysis.flows import READS_ONLY, Flow
from pinchpoint.analysis.inputs import Inputs, read_inputs
from pinchpoint.analysis.measures import measure_cpu, measure_disk
from pinchpoint.analysis.proof import without_proof
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.series import Floats, mean
from pinchpoint.analysis.slowness import write_and_flush_s
from pinchpoint.errors import InputError
from pinchpoint.store.read import StoredRun

_PARTS = 10
"""The run is cut into so many stretches to say how much its throughput spreads."""


@dataclass(frozen=True, slots=True)
class DiskMix:
    """What one operation asks of one disk role, and what that took there. None: not measured.

    Attributes:
        disk: ``sql.log``.
        reads: reads per operation.
        writes: writes per operation, as the kernel counts them, or data writes where that is verified.
        bytes: bytes per operation, both ways.
        read_s: mean latency of a read.
        write_s: of a write, with its flush where there is one.
        commit_path: whether commits wait for this disk.
        waits_s: how long an operation waits for it, as the database says of its own sessions.
        flushes: flushes of the log per operation, as the database counts them.
        flush_s: how long one takes, as the database waits for it.
    """

    disk: str
    reads: float
    writes: float
    bytes: float | None
    read_s: float | None
    write_s: float | None
    commit_path: bool
    waits_s: float | None
    flushes: float | None
    flush_s: float | None = None

    @property
    def size_bytes(self) -> float | None:
        """Mean size of an I/O."""
        ios = self.reads + self.writes
        return self.bytes / ios if self.bytes is not None and ios else None

    @property
    def reads_ratio(self) -> float:
        """Reads ÷ all I/O."""
        ios = self.reads + self.writes
        return self.reads / ios if ios else 0.0


@dataclass(frozen=True, slots=True)
class Mix:
    """A run's load, per operation.

    Attributes:
        run: the run's directory.
        scenarios: what was driven.
        per_s: operations that succeeded, per second, all scenarios together.
        spread_ratio: standard error of that over ten stretches of the run, as a share.
        users: of a closed load; infinite for an open one.
        think_s: between two operations of a user.
        response_s: mean service time of an operation.
        commits: how many commits an operation makes.
        cpu_s: CPU seconds of the disk's tier; None: not measured.
        cores: how many these are.
        disks: of each role.
        others: (what, throughput at which that is used up): every other resource with a known limit.
    """

    run: str
    scenarios: tuple[str, ...]
    per_s: float
    spread_ratio: float
    users: float
    think_s: float
    response_s: float
    commits: float
    cpu_s: float | None
    cores: int
    disk: DiskMix
    disks: tuple[DiskMix, ...]
    others: tuple[tuple[str, float], ...]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; users of an open load are null."""
        return {**asdict(self), "users": self.users if math.isfinite(self.users) else None}


def mix_of(run: StoredRun, name: str | None) -> Mix:
    """The mix of a run, with one of its disks in view.

    Args:
        run: a run with a measure phase, one scenario or several with closed load.
        name: ``tier.role``; None: the only one.

    Raises:
        InputError: there is no such disk, or the run cannot tell.
    """
    case = build_case(read_inputs(without_proof(run)))
    flows, users, think_s = _circle(case, run)
    chosen = _disk(case, name, run)
    if case.stage is None:
        raise InputError(f"--predict: {run.directory}: nothing was measured in its measure phase")
    window, rows = case.inputs.window, case.stage.rows
    steps = sum(case.inputs.traffic.of(flow.load.scenario).whole().ok().per_step(window) for flow in flows)
    rates = np.asarray(steps)[rows]
    per_s = float(rates.mean()) if len(rates) else 0.0
    if not per_s:
        raise InputError(f"--predict: {run.directory}: no operation succeeded, so it has no mix")
    disks = tuple(_mix(case, resource, per_s) for resource in _roles(case))
    cpu = _cpu(case, chosen)
    key = _name(chosen)
    return Mix(
        run=str(run.directory),
        scenarios=tuple(flow.load.scenario for flow in flows),
        per_s=per_s,
        spread_ratio=_spread(rates),
        users=users,
        think_s=think_s,
        response_s=_response(flows),
        commits=_commits(case.inputs, flows),
        cpu_s=cpu[0] / per_s if cpu else None,
        cores=cpu[1] if cpu else 0,
        disk=next(one for one in disks if one.disk == key),
        disks=disks,
        others=_others(case, chosen, cpu[2] if cpu else "", per_s),
    )


def _circle(case: Case, run: StoredRun) -> tuple[Sequence[Flow], float, float]:
    """(the flows, users, think time). Raises InputError where the load is none that can be carried over."""
    flows = [flow for flow in case.flows if flow.finished]
    models = sorted({flow.load.model for flow in flows})
    if not flows:
        raise InputError(f"--predict: {run.directory}: no operation ended, so it has no mix")
    if models == ["closed"] and not case.climb and not any(flow.load.native for flow in flows):
        total = sum(flow.load.users or 0.0 for flow in flows)
        think_s = sum((flow.load.users or 0.0) * flow.load.think_s for flow in flows) / total
        return flows, total, think_s
    if len(flows) == 1 and models[0] in ("open", "soak"):
        return flows, math.inf, 0.0
    raise InputError(
        f"--predict: {run.directory}: its load is {', '.join(models)} in {len(flows)} scenarios; what is "
        "carried over is one steady load: closed scenarios of fixed users, or one open scenario"
    )


def _disk(case: Case, name: str | None, run: StoredRun) -> Resource:
    roles = {_name(one): one for one in _roles(case)}
    if name is None and len(roles) == 1:
        return next(iter(roles.values()))
    if name in roles:
        return roles[str(name)]
    said = f"no disk {name!r}" if name else "several disks, and none was named"
    raise InputError(
        f"--disk: {run.directory} has {said}; measured there: {', '.join(sorted(roles)) or 'none'}"
    )


def _roles(case: Case) -> Sequence[Resource]:
    return [one for one in case.resources if one.type == "disk" and one.whole is None and one.roles]


def _name(resource: Resource) -> str:
    return f"{resource.roles[0].tier}.{resource.role}"


def _mix(case: Case, resource: Resource, per_s: float) -> DiskMix:
    assert case.stage is not None  # noqa: S101 -- the caller asked
    rows = case.stage.rows
    found = measure_disk(resource, rows)
    reads, writes = (mean(resource.columns[name][rows]) or 0.0 for name in ("reads", "writes"))
    samples = case.inputs.samples
    flushes = [samples.steps(host, "db.fsyncs_per_s", "wal")[rows] for host in resource.hosts]
    waited = [samples.steps(host, "db.fsync_s_per_s", "wal")[rows] for host in resource.hosts]
    counted, lasted = (
        next((value for one in found if (value := mean(one))), None) for found in (flushes, waited)
    )
    return DiskMix(
        disk=_name(resource),
        reads=reads / per_s,
        writes=writes / per_s,
        bytes=found.bytes / per_s if found.bytes is not None else None,
        read_s=found.read_s,
        write_s=write_and_flush_s(resource, found),
        commit_path=resource.commit_path,
        waits_s=found.sessions / per_s if found.sessions is not None else None,
        flushes=counted / per_s if counted and resource.commit_path else None,
        flush_s=lasted / counted if counted and lasted and resource.commit_path else None,
    )


def _cpu(case: Case, disk: Resource) -> tuple[float, int, str] | None:
    """(cores it uses, of how many, the pool's key) where the disk's tier runs; None: not measured.

    Where it is not known which tier uses how much, all use counts as its own.
    """
    assert case.stage is not None  # noqa: S101 -- the caller asked
    for one in case.resources:
        if one.type == "cpu" and one.machine == disk.machine and set(one.tiers) & set(disk.tiers):
            found = measure_cpu(one, case.stage.rows)
            if found.busy is None or not one.cores:
                continue
            own = sum(found.uses.get(tier, 0.0) for tier in disk.tiers) or 1.0
            return found.busy * own * one.cores, one.cores, one.key
    return None


def _response(flows: Sequence[Flow]) -> float:
    """Weighted by how many operations each had."""
    known = [(flow.service.mean_s, flow.finished) for flow in flows if flow.service]
    return sum(each * count for each, count in known) / sum(count for _, count in known) if known else 0.0


def _commits(inputs: Inputs, flows: Sequence[Flow]) -> float:
    """Commits per operation: of a crawl its statements on the crawl database, else what changes anything."""
    made = total = 0
    for flow in flows:
        traffic = inputs.traffic.of(flow.load.scenario).ok()
        crawls = flow.load.use == "full-crawl"
        found = traffic.ending("/crawl_db") if crawls else traffic.whole().without(*READS_ONLY)
        made, total = made + found.count, total + traffic.whole().count
    return made / total if total else 0.0


def _others(case: Case, disk: Resource, pool: str, per_s: float) -> tuple[tuple[str, float], ...]:
    """What else ends, and where, as far as its limit is known; the CPU of the disk's tier is in the model."""
    return tuple(
        (f"{one.resource.type} {one.resource.instance} of {one.resource.hosts[0]}", per_s * one.ceiling_ratio)
        for one in demands_of(case)
        if one.resource.key not in (disk.key, pool) and one.resource.type in ("disk", "network", "cpu")
    )


def _spread(rates: Floats) -> float:
    parts = [float(part.mean()) for part in np.array_split(rates, min(_PARTS, len(rates)))]
    if len(parts) < 2:
        return 0.0
    return float(np.std(parts, ddof=1) / math.sqrt(len(parts)) / np.mean(parts))
