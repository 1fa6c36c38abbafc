"""Solves the queueing network of a farm: the throughput and the waits of its users.

Each load is a number of users who wait at stations and then think: the interactive response-time law ``X = N
/ (Z + R)`` (Denning and Buzen, 1978). The wait at a queue follows Schweitzer's approximate mean value
analysis for several classes. A regulator admits I/Os at constant intervals, so half of the service in
progress is subtracted (Reiser's correction for the coefficient of variation), and so is the time slice in
which early I/Os pass at once (``SLICE_S``). A log is a separate type of station (``commit``). The time of an
I/O may depend on the number of outstanding I/Os (``curve``). No station exceeds its capacity: if the
approximation does, throughput is reduced to that bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.model.commit import Sessions
from pinchpoint.data.curve import Curve

Floats = npt.NDArray[np.float64]

OPEN_USERS = 10_000.0
"""An open load is modelled as this number of users with a long think time, so waits do not change its
rate."""
ROUNDS = 500
CLOSE = 1e-7
"""Iterations end when no throughput changes by more than this share."""
STEP = 0.5
"""Share of a correction that one iteration applies: with full corrections, commits and queues oscillate."""
FITTING_ROUNDS = 20
FITTED = 2e-4
LEAST_FELT = 0.02
"""The least share of a change that is applied in one step, so that the iteration does not overshoot."""
SLICE_S = 0.01
"""A regulator counts I/Os per time slice: an I/O that is early by less than this number of seconds passes at
once. The slice of emulated disks is 10 ms, that of the Linux block throttle 20 to 100 ms."""
NEAR_BOUND = 0.999
"""Above this utilisation, the solver checks exactly whether a station limits throughput."""
AT_BOUND = 0.05
"""Relative error of the measured utilisation of a saturated resource."""


@dataclass(frozen=True, slots=True)
class Users:
    """The load of one scenario.

    Attributes:
        scenario: name of the scenario.
        users: number of users; ``OPEN_USERS`` for an open load.
        think_s: seconds between two operations of a user; for an open load, the value that gives its rate.
        rest_s: seconds of an operation that no station explains; constant.
        most_per_s: maximum rate in operations per second; infinite if users begin the next operation at once.
    """

    scenario: str
    users: float
    think_s: float
    rest_s: float = 0.0
    most_per_s: float = math.inf


def is_open(load: Users) -> bool:
    """Whether a load is a rate rather than a number of users."""
    return load.users >= OPEN_USERS


@dataclass(frozen=True, slots=True)
class Queue:
    """A station with a queue: cores, a regulated disk, or the caps of a machine.

    Attributes:
        key: key of the station, unique in the model.
        demand_s: by scenario, seconds of service that one operation needs; utilisation is throughput times
            this value.
        stay_s: by scenario, the part of ``demand_s`` for which operations wait here; they wait elsewhere for
            the rest.
        delay_s: by scenario, seconds that an operation spends here without a queue.
        curve: for a disk, time of an I/O by the number of outstanding I/Os, without the queue of its
            regulator.
        io: by scenario, I/Os per operation; used with a curve.
        waits: by scenario, I/Os per operation that are waited for one after the other; used with a curve.
        servers: number of operations that are served at the same time.
        regulated: whether a limiter admits I/Os at a constant rate, without service time of its own.
        base_ratio: share of the capacity that is used whatever the load.
    """

    key: str
    demand_s: Mapping[str, float]
    stay_s: Mapping[str, float] = field(default_factory=dict)
    delay_s: Mapping[str, float] = field(default_factory=dict)
    curve: Curve | None = None
    io: Mapping[str, float] = field(default_factory=dict)
    waits: Mapping[str, float] = field(default_factory=dict)
    servers: float = 1.0
    regulated: bool = False
    base_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Commit:
    """A log: one flush at a time, which makes all records durable that were written before the flush began.

    Attributes:
        flush_s: seconds per flush while the disk is below its limits.
        commits: by scenario, commits per operation.
        pace_s: seconds between consecutive flushes under the cap of the disk; 0: no cap.
        bursts: whether the cap lets flushes through at full speed for a while, and then none. Such a cap does
            not lengthen a flush, but it limits throughput.
    """

    key: str
    flush_s: float
    commits: Mapping[str, float]
    pace_s: float = 0.0
    bursts: bool = False


Station = Queue | Commit


@dataclass(frozen=True, slots=True)
class Model:
    """The loads and stations of a queueing network."""

    loads: tuple[Users, ...]
    stations: tuple[Station, ...]


@dataclass(frozen=True, slots=True)
class _Settled:
    """The equilibrium of a network, at which the iterations of a network of the same shape may start.

    Attributes:
        per_s: by load, operations per second.
        waiting: operations at each queue, one row per load.
        each_s: seconds per I/O at each queue; 0 without a curve.
        at_log: seconds of an operation at each log, one row per load.
        flush_s: seconds per flush of each log.
    """

    per_s: Floats
    waiting: Floats
    each_s: Floats
    at_log: Floats
    flush_s: Floats


@dataclass(frozen=True, slots=True)
class Solution:
    """The equilibrium of the loads: throughput, times and utilisation.

    Attributes:
        per_s: by scenario, operations per second.
        stays_s: (station, scenario) -> seconds that an operation spends there, including waits.
        use: by queue, its utilisation; for a log with a cap, flushes ÷ the rate that the cap allows.
        at_bound: keys of the stations that limit the throughput of their users.
        settled: the start of iterations for a similar model.
    """

    per_s: Mapping[str, float]
    stays_s: Mapping[tuple[str, str], float]
    use: Mapping[str, float]
    at_bound: frozenset[str]
    settled: _Settled = field(repr=False, compare=False)


def solve(model: Model, near: Solution | None = None, close: float = CLOSE) -> Solution:
    """Solve a model: the equilibrium of its loads.

    Args:
        model: loads and stations.
        near: the equilibrium of a similar model; starting there needs fewer iterations.
        close: iterations end when no throughput changes by more than this share.
    """
    result = _Network(model)
    if near is not None:
        result.begin_at(near.settled)
    result.settle(close)
    return result.solution()


def fitted(model: Model, per_s: Mapping[str, float], time_s: Mapping[str, float]) -> Model:
    """The same model, with the unexplained time of each load fitted to the measured throughput.

    An unexplained time is never below 0: if the stations alone take longer than measured, the model stays
    slower than the run. For a load at a bound, the unexplained time is not changed.

    Args:
        model: the model with a first guess of each unexplained time.
        per_s: by scenario, measured operations per second.
        time_s: by scenario, measured mean seconds of an operation.
    """
    loads, slopes = model.loads, dict.fromkeys(per_s, 1.0)
    before: dict[str, float] = {}
    steps: dict[str, float] = {}
    result: Solution | None = None
    for _ in range(FITTING_ROUNDS):
        result = solve(replace(model, loads=loads), result)
        missing = {one.scenario: _missing_s(one, per_s, time_s, result) for one in loads}
        if all(abs(missing[one.scenario]) < FITTED * time_s[one.scenario] for one in loads):
            break
        # Share of the last correction that affected throughput: hardly any at a saturated log.
        for name, step_s in steps.items():
            if step_s:
                slopes[name] = min(1.0, max(LEAST_FELT, (before[name] - missing[name]) / step_s))
        rests = {
            one.scenario: max(0.0, one.rest_s + missing[one.scenario] / slopes[one.scenario]) for one in loads
        }
        steps = {one.scenario: rests[one.scenario] - one.rest_s for one in loads}
        before = missing
        loads = tuple(replace(one, rest_s=rests[one.scenario]) for one in loads)
    return replace(model, loads=loads)


def _missing_s(
    load: Users, per_s: Mapping[str, float], time_s: Mapping[str, float], value: Solution
) -> float:
    """Seconds that an operation lacks in the model, compared with the run, if other times stay the same."""
    name = load.scenario
    if is_open(load):
        there = sum(stay for (_, whose), stay in value.stays_s.items() if whose == name)
        return time_s[name] - load.rest_s - there
    if value.at_bound and 1 <= value.per_s[name] / per_s[name] <= 1 + AT_BOUND:
        return 0.0
    return load.users / per_s[name] - load.users / value.per_s[name]


class _Network:
    """A model as arrays: one row per load, one column per queue or log."""

    def __init__(self, model: Model) -> None:
        self._names = [one.scenario for one in model.loads]
        self._queues = [one for one in model.stations if isinstance(one, Queue)]
        self._logs = [one for one in model.stations if isinstance(one, Commit)]
        self._users = np.array([one.users for one in model.loads])
        self._most_per_s = np.array([one.most_per_s for one in model.loads])
        self._away_s = np.array([one.think_s + one.rest_s for one in model.loads])
        self._demand = self._table([one.demand_s for one in self._queues])
        self._stay = self._table([one.stay_s for one in self._queues])
        self._delay = self._table([one.delay_s for one in self._queues])
        self._curved = [(place, one.curve) for place, one in enumerate(self._queues) if one.curve]
        self._io = self._table([one.io for one in self._queues])
        self._waits = self._table([one.waits for one in self._queues])
        self._each_s = np.array([one.curve.latency_s(1.0) if one.curve else 0.0 for one in self._queues])
        self._servers = np.array([one.servers for one in self._queues])
        self._regulated = np.array([one.regulated for one in self._queues], dtype=bool)
        self._free = 1 - np.array([min(0.99, one.base_ratio) for one in self._queues])
        self._commits = self._table([one.commits for one in self._logs])
        for place, _ in self._curved:  # starts with one outstanding I/O
            self._delay[:, place] = self._waits[:, place] * self._each_s[place]
        self._at_queue = self._delay + self._stay
        # Start with all users waiting, evenly distributed: with no user waiting, no queue would ever build
        # up.
        self._waiting = np.full_like(self._demand, 1 / max(1, len(self._queues))) * self._users[:, None]
        # Start with the spacing of the cap: a flush without duration would stay at zero.
        self._flush_s = np.array([max(one.flush_s, one.pace_s) for one in self._logs])
        self._at_log = self._commits * self._flush_s
        self._per_s = self._users / np.maximum(1e-12, self._away_s + self._round_s())
        self._flushes: dict[str, float] = {}
        """By log, flushes per second times the spacing of the cap."""
        self._at_bound: set[str] = set()

    def _table(self, of_each: list[Mapping[str, float]]) -> Floats:
        rows = [[one.get(name, 0.0) for one in of_each] for name in self._names]
        return np.array(rows, dtype=float).reshape(len(self._names), len(of_each))

    def _round_s(self) -> Floats:
        """Seconds of an operation at all stations together, for each load."""
        return np.asarray(self._at_queue.sum(axis=1) + self._at_log.sum(axis=1))

    def begin_at(self, settled: _Settled) -> None:
        """Start at the equilibrium of a similar network; an equilibrium of another shape is ignored."""
        if settled.waiting.shape != self._waiting.shape or settled.at_log.shape != self._at_log.shape:
            return
        self._per_s, self._waiting, self._at_log = settled.per_s, settled.waiting, settled.at_log.copy()
        self._each_s = settled.each_s.copy()
        # without a cap, the flush time is given
        paced = np.array([one.pace_s > 0 for one in self._logs], dtype=bool)
        self._flush_s = np.where(paced, settled.flush_s, self._flush_s)

    def settle(self, close: float) -> None:
        """Iterate until throughput is constant; then reduce it to the bounds."""
        for _ in range(ROUNDS):
            before = self._per_s
            self._queue_up()
            self._flush()
            free = self._users / np.maximum(1e-12, self._away_s + self._round_s())
            wanted = np.minimum(free, self._most_per_s)
            self._per_s = before + STEP * (wanted - before)
            if (np.abs(self._per_s - before) <= close * before).all():
                break
        self._settled = _Settled(self._per_s, self._waiting, self._each_s, self._at_log, self._flush_s)
        self._end_at_bounds()

    def _queue_up(self) -> None:
        """One iteration of Schweitzer's algorithm: an arriving operation waits for the queue of others."""
        if not self._queues:
            return
        self._answer()
        share = 1 / self._users[:, None]
        met = self._waiting.sum(axis=0) - self._waiting * share
        service = self._demand / self._servers / self._free
        use = self._per_s[:, None] * service
        used = np.minimum(1.0, use.sum(axis=0) - use * share)
        less = np.where(self._regulated, 0.5 * used, 0.0)
        early = np.where(self._regulated, SLICE_S, 0.0)
        wait = np.maximum(0.0, service * (met - less) - early)
        # In a closed network, at most all users wait.
        self._waiting = np.minimum(self._per_s[:, None] * (service + wait), self._users[:, None])
        # One operation uses at most one core; a limiter only adds waiting time.
        own = np.where(self._regulated, 0.0, self._demand)
        stays = np.divide(self._stay, self._demand, out=np.zeros_like(self._stay), where=self._demand > 0)
        self._at_queue = self._delay + (own + wait) * stays

    def _answer(self) -> None:
        """One iteration of the I/O times that depend on the number of outstanding I/Os."""
        for place, curve in self._curved:
            outstanding = float(self._per_s @ self._io[:, place]) * self._each_s[place]
            self._each_s[place] += STEP * (curve.latency_s(outstanding) - self._each_s[place])
            self._delay[:, place] = self._waits[:, place] * self._each_s[place]

    def _flush(self) -> None:
        for place, log in enumerate(self._logs):
            taken = np.flatnonzero(self._commits[:, place])
            if not len(taken):
                continue
            commits, at_log = self._commits[taken, place], self._at_log[taken, place]
            columns = self._users[taken], self._per_s[taken] * commits, at_log / commits
            here = Sessions(*(column.tolist() for column in columns))
            flush_s = float(self._flush_s[place])
            if log.pace_s:
                occupied = here.occupied_ratio(flush_s)
                # With a flush time of 0, each commit has a flush of its own.
                flushes_per_s = occupied / flush_s if flush_s else here.total_per_s
                self._flushes[log.key] = log.pace_s * flushes_per_s
                stretched_s = log.flush_s if log.bursts else max(log.flush_s, log.pace_s * occupied)
                self._flush_s[place] += STEP * (stretched_s - flush_s)
            found_s = np.array(here.commit_s(float(self._flush_s[place])))
            self._at_log[taken, place] += STEP * (commits * found_s - at_log)

    def _end_at_bounds(self) -> None:
        """Reduce the loads in proportion where they exceed the capacity of a station."""
        of_queues = self._demand / self._servers / self._free
        # Reducing a load never fills another station, so stations below the bound need no check.
        near = np.flatnonzero(self._per_s @ of_queues > NEAR_BOUND)
        ends = [(self._queues[place].key, of_queues[:, place].copy()) for place in near]
        for place, one in enumerate(self._logs):
            commits_per_s = float(self._per_s @ self._commits[:, place])
            if one.bursts and commits_per_s:
                share = self._flushes.get(one.key, 0.0) / commits_per_s
                ends.append((one.key, self._commits[:, place] * share))
        for _ in range(len(self._queues) + len(self._logs) if ends else 0):
            used = [float(self._per_s @ each) for _, each in ends]
            fullest = int(np.argmax(used))
            if used[fullest] <= 1:
                break
            key, each = ends[fullest]
            self._per_s = np.where(each > 0, self._per_s / used[fullest], self._per_s)
            self._at_bound.add(key)
        self._flushes = {key: min(1.0, used) for key, used in self._flushes.items()}

    def solution(self) -> Solution:
        keys = [one.key for one in self._queues], [one.key for one in self._logs]
        stays = {
            (key, name): stay
            for table, of_each in zip((self._at_queue, self._at_log), keys, strict=True)
            for key, column in zip(of_each, table.T.tolist(), strict=True)
            for name, stay in zip(self._names, column, strict=True)
        }
        used = (self._per_s[:, None] * self._demand / self._servers).sum(axis=0)
        return Solution(
            per_s={name: float(self._per_s[row]) for row, name in enumerate(self._names)},
            stays_s=stays,
            use={
                one.key: float(used[place]) + 1 - float(self._free[place])
                for place, one in enumerate(self._queues)
            }
            | self._flushes,
            at_bound=frozenset(self._at_bound),
            settled=self._settled,
        )
