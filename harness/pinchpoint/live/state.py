"""Builds the state of a run for the live page from the progress board."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.plan import Farm, Objective, Plan
from pinchpoint.plan.farm import FarmDisk
from pinchpoint.plan.metrics import at_least
from pinchpoint.plan.plan import ServerObjective
from pinchpoint.run.progress import Board, Machine
from pinchpoint_collectors.record import Sample

NEAR_RATIO = 0.8
"""Share of its limit above which a resource counts as near the limit (design value)."""
_COUNTED = ("ok", "failed", "dropped")
_WHOLE = ""


class LiveBoard(Board):
    """A board that also stores totals since the load began and the latest samples of machines and disks."""

    def __init__(self) -> None:
        super().__init__()
        self._counting = Lock()
        self._totals: dict[str, dict[str, int]] = {}
        self._newest: dict[tuple[str, str, str], float] = {}

    def second(self, worker: str, progress: dict[str, dict[str, Any]]) -> None:
        super().second(worker, progress)
        with self._counting:
            for scenario, figures in progress.items():
                totals = self._totals.setdefault(scenario, dict.fromkeys(_COUNTED, 0))
                for name in _COUNTED:
                    totals[name] += figures[name]

    def samples(self, samples: Sequence[Sample]) -> None:  # type: ignore[override]  # it is read twice
        super().samples(samples)
        with self._counting:
            for one in samples:
                if one.value is not None and not one.instance.isdecimal() and ":" not in one.instance:
                    self._newest[one.host, one.metric, one.instance] = one.value

    def totals(self) -> dict[str, dict[str, int]]:
        """Return scenario -> counts since the load began."""
        with self._counting:
            return {name: dict(totals) for name, totals in self._totals.items()}

    def values(self) -> list[tuple[str, str, str, float]]:
        """Return (host, metric, instance, value), without the values of single cores and threads."""
        with self._counting:
            return [(*key, value) for key, value in self._newest.items()]


class Watcher:
    """Builds the state of a run from the board, once a second.

    Args:
        farm: farm with the declared limits of disks.
        plan: plan with the objectives.
        board: the current figures.
    """

    def __init__(self, farm: Farm, plan: Plan, board: LiveBoard) -> None:
        self._farm, self._plan, self._board = farm, plan, board
        self._near_since: dict[str, float] = {}
        self._objectives_now: list[dict[str, Any]] = []
        self.machines: Sequence[Machine] = ()

    def state(self, phase: str, left_s: float | None, note: str = "") -> dict[str, Any]:
        """Return the state as JSON data. A figure that was not measured is null."""
        return {
            "plan": self._plan.name,
            "farm": self._farm.name,
            "time_s": time.time(),
            "phase": phase,
            "left_s": left_s,
            "note": note,
            "scenarios": list(self._scenarios()),
            "objectives": self._judged(left_s is not None),
            "limits": self._limits(),
            "machines": [self._machine(machine) for machine in self.machines],
            "samples": self._board.values(),
            "tiers": self._tiers(),
        }

    def _tiers(self) -> dict[str, str]:
        """Return host -> tier for all measured hosts, including those of an embedded farm."""
        return {host: tier for machine in self.machines for host, tier in machine.hosts.items()}

    def _judged(self, loaded: bool) -> list[dict[str, Any]]:
        """Return the objectives with their results.

        After the load, the results are those of its last complete second.
        """
        if loaded or not self._objectives_now:
            self._objectives_now = list(self._objectives())
        return self._objectives_now

    def _scenarios(self) -> Iterator[dict[str, Any]]:
        totals = self._board.totals()
        for name, figures in self._board.scenarios().items():
            yield {"name": name, **figures, "totals": totals.get(name, dict.fromkeys(_COUNTED, 0))}

    def _objectives(self) -> Iterator[dict[str, Any]]:
        """Yield each objective with the latest figures.

        A percentile that is unknown during the run is null.
        """
        now, totals = self._board.scenarios(), self._board.totals()
        for objective in self._plan.objectives:
            if isinstance(objective, ServerObjective):
                figure = objective.figure
                row = objective.to_json() | {"figure": figure, "target": getattr(objective, figure)}
                lower = row["at_least"] = at_least(objective.metric, figure)
                value = self._of_servers(objective, min if lower else max)
                labels = {"servers": wording.of_servers(row), "objective": f"{figure} {objective.metric}"}
            else:
                metric, target = _target(objective)
                row = {"scenario": objective.scenario, "metric": metric, "target": target}
                lower = metric == "throughput_per_s"
                value = _value(metric, now.get(objective.scenario), totals.get(objective.scenario))
                labels = {"scenario": objective.scenario, "objective": metric}
            target = row["target"]
            yield {
                "of": wording.objective_of(row),
                "objective": wording.objective_name(row),
                "labels": labels,
                "now": None if value is None else units.of_metric(row["metric"], value),
                "met": None if value is None else value >= target if lower else value <= target,
            }

    def _of_servers(
        self, objective: ServerObjective, worst: Callable[[Iterable[float]], float]
    ) -> float | None:
        """Return the worst latest reading of an objective's servers; None before the first reading."""
        values = [value for value in self._readings(objective) if value is not None]
        return worst(values) if values else None

    def _readings(self, objective: ServerObjective) -> Iterator[float | None]:
        metric = objective.metric
        names = [
            name
            for name, tier in self._tiers().items()
            if objective.tier in (None, tier) and objective.host in (None, name)
        ]
        if objective.role is not None:
            for machine in self.machines:
                wanted = {(machine.hosts[name], objective.role) for name in names if name in machine.hosts}
                for (host, device), roles in machine.disks.items():
                    if wanted.intersection(roles):
                        yield self._board.newest(host, metric, device)
        elif metric.startswith(("cpu.", "mem.", "pressure.")):
            for name in names:
                own = self._board.newest(name, metric, f"tier:{objective.tier}") if objective.tier else None
                yield self._board.newest(name, metric, _WHOLE) if own is None else own
        else:
            for host, measured, instance, value in self._board.values():
                if host in names and measured == metric and objective.device in (None, instance):
                    yield value

    def _limits(self) -> list[dict[str, Any]]:
        """Return the utilisation of each limit, the highest first. ``for_s``: seconds near the limit."""
        now = time.monotonic()
        result = []
        for what, of, ratio in self._used():
            near = self._near_since.setdefault(what, now) if ratio >= NEAR_RATIO else None
            if near is None:
                self._near_since.pop(what, None)
            result.append(
                {"what": what, "of": of, "ratio": ratio, "for_s": None if near is None else now - near}
            )
        return sorted(result, key=lambda one: -float(one["ratio"]))

    def _used(self) -> Iterator[tuple[str, str, float]]:
        """Yield resource, limit and utilisation."""
        for machine in self.machines:
            hosts = list(machine.tiers)
            if (busy := self._first(hosts, "cpu.busy_ratio")) is not None:
                yield f"CPU of {machine.name}", "of its cores", busy
            if (free := self._first(hosts, "mem.available_ratio")) is not None:
                yield f"memory of {machine.name}", "in use", 1 - free
            for (host, device), roles in machine.disks.items():
                yield from self._disk(host, device, roles)

    def _disk(
        self, host: str, device: str, roles: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[str, str, float]]:
        """Yield the utilisation of a disk's declared limits; without declared limits, of its busy time."""
        what = _roles_words(roles)
        given = [disk.resolved_limits for disk in self._declared(roles) if disk.resolved_limits]
        most_iops = max((one.iops for one in given if one.iops), default=None)
        most_bytes_per_s = max((one.bytes_per_s for one in given if one.bytes_per_s), default=None)
        iops = self._sum(host, device, "disk.reads_per_s", "disk.writes_per_s")
        moved = self._sum(host, device, "disk.read_bytes_per_s", "disk.write_bytes_per_s")
        if most_iops and iops is not None:
            yield f"{what}: IOPS", f"of {units.per_second(most_iops)}", iops / most_iops
        if most_bytes_per_s and moved is not None:
            yield f"{what}: bandwidth", f"of {units.bytes_(most_bytes_per_s)}/s", moved / most_bytes_per_s
        busy = self._board.newest(host, "disk.busy_ratio", device)
        if not given and busy is not None:
            yield what, "of the time busy, its limit is not known", busy

    def _declared(self, roles: Sequence[tuple[str, str]]) -> Iterator[FarmDisk]:
        for tier, name in roles:
            declared = self._farm.tiers.get(tier)
            yield from (
                host.disks[name]
                for host in (declared.hosts.values() if declared else ())
                if name in host.disks
            )

    def _machine(self, machine: Machine) -> dict[str, Any]:
        hosts = list(machine.tiers)
        return {
            "name": machine.name,
            "cpu": self._first(hosts, "cpu.busy_ratio"),
            "tiers": [
                {
                    "name": f"tier {machine.hosts.get(host, '')} ({host})",
                    "cpu": self._board.newest(host, "cpu.busy_ratio", instance),
                }
                for host, instance in machine.tiers.items()
                if instance
            ],
            "disks": [
                {
                    "name": _roles_words(roles),
                    "write_latency_s": self._board.newest(host, "disk.write_latency_s", device),
                    "iops": self._sum(host, device, "disk.reads_per_s", "disk.writes_per_s"),
                }
                for (host, device), roles in machine.disks.items()
            ],
        }

    def _first(self, hosts: Sequence[str], metric: str) -> float | None:
        return next(
            (v for host in hosts if (v := self._board.newest(host, metric, _WHOLE)) is not None), None
        )

    def _sum(self, host: str, device: str, *metrics: str) -> float | None:
        values = [self._board.newest(host, metric, device) for metric in metrics]
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None


def _roles_words(roles: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{role} disk of {tier}" for tier, role in roles)


def _target(objective: Objective) -> tuple[str, float]:
    given = {name: value for name, value in objective.to_json().items() if name != "scenario"}
    [(name, target)] = given.items()
    return name, float(target)


def _value(metric: str, now: Mapping[str, Any] | None, totals: Mapping[str, int] | None) -> float | None:
    if metric == "errors_ratio":
        count = sum(totals.values()) if totals else 0
        return (totals["failed"] + totals["dropped"]) / count if totals and count else None
    if now is None:
        return None
    value = {"p95_s": now["p95_s"], "throughput_per_s": now["ok"]}.get(metric)
    return None if value is None else float(value)
