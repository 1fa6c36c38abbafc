"""Decides during a run, from each second's figures, when a phase or the run ends.

Whether the load has settled, how far a load in steps goes, and whether a stop rule ends the run.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pinchpoint.base import units
from pinchpoint.loadgen.load import is_closed, levels
from pinchpoint.loadgen.pool import GeneratorPool
from pinchpoint.loadgen.times import percentiles_s
from pinchpoint.plan import Objective, Plan, SilenceRule, Steps, StopRule
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.record import Sample

_LEAST_KEPT_S = 60.0
LATE_S = 1.5
"""The latest time at which a worker reports a finished second."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What was reported of one scenario over a time.

    Attributes:
        seconds: how long.
        ok: operations that did what they should.
        failed: those that failed.
        dropped: those that could not start.
        p95_s: of the times of those that are ok and of those that could not start, which are infinite; within
            half a percent; None if none is ok.
        p50_s, p99_s: likewise.
        skipped: operations that found nothing to do; no failures.
    """

    seconds: float
    ok: int
    failed: int
    dropped: int
    p95_s: float | None
    p50_s: float | None = None
    p99_s: float | None = None
    skipped: int = 0

    @property
    def ok_per_s(self) -> float:
        """Throughput."""
        return self.ok / self.seconds if self.seconds else 0.0

    @property
    def error_ratio(self) -> float | None:
        """Failed and dropped ÷ all requested operations; None without any."""
        total = self.ok + self.failed + self.skipped + self.dropped
        return (self.failed + self.dropped) / total if total else None


def longest_look_s(plan: Plan) -> float:
    """How far back a plan's steps and rules look."""
    steps = [one.load.each_s for one in plan.scenarios.values() if isinstance(one.load, Steps)]
    return max([_LEAST_KEPT_S, *steps, *(rule.for_s for rule in plan.stop_when)])


class LiveSeconds:
    """Takes every generator's seconds; written by reader threads.

    Args:
        kept_s: how far back anybody will look.
    """

    def __init__(self, kept_s: float = _LEAST_KEPT_S) -> None:
        self._kept_s = kept_s + 2 * LATE_S
        self._lock = threading.Lock()
        self._seconds: dict[str, deque[Mapping[str, Any]]] = defaultdict(deque)

    def second(self, progress: Mapping[str, Mapping[str, Any]]) -> None:
        """Take what one generator reported of its last second."""
        with self._lock:
            for scenario, figures in progress.items():
                kept = self._seconds[scenario]
                kept.append(figures)
                # A clock that is set forward makes even the newest one too old.
                while kept and kept[0]["before_s"] < time.time() - self._kept_s:
                    kept.popleft()

    def between(self, scenarios: Iterable[str], begun: float, ended: float) -> Reported:
        """The reports of scenarios for the seconds that ended between two moments (monotonic).

        All seconds between them, however late each of them was reported.
        """
        utc_s = time.time() - time.monotonic()
        with self._lock:
            result = [
                figures
                for scenario in scenarios
                for figures in self._seconds[scenario]
                if begun + utc_s < figures["before_s"] <= ended + utc_s
            ]
        ok, failed, skipped, dropped = (
            sum(one[name] for one in result) for name in ("ok", "failed", "skipped", "dropped")
        )
        times = percentiles_s((one["times"] for one in result), (50, 95, 99), dropped)
        p50_s, p95_s, p99_s = times or (None,) * 3
        return Reported(ended - begun, ok, failed, dropped, p95_s, p50_s, p99_s, skipped)


STRETCH_S = 5.0
"""So long is compared with as long before (design value)."""
SAME = 0.10
"""Levels within a tenth of each other are one level (design value, as in the analysis)."""
TIMES_SAME = 0.25
"""Percentiles of a few seconds move more than rates do (design value)."""


def settled(before: Reported, after: Reported) -> bool:
    """Whether one scenario's load has become stationary.

    Counts also differ by chance: by twice the square root of their sum no difference is seen.
    """
    counts = before.ok, after.ok
    if not all(counts):
        return False
    apart = abs(counts[1] - counts[0])
    if apart > max(SAME * max(counts), 2 * math.sqrt(sum(counts))):
        return False
    if before.p95_s is None or after.p95_s is None:
        return False
    times = before.p95_s, after.p95_s  # an endless one is like an endless one alone
    return min(times) >= (1 - TIMES_SAME) * max(times)


FOLLOWS = 0.95
"""An open load is served as long as 95 % of what is offered gets through (docs/rules.md)."""
CHANCE = 2.0
"""Independent arrivals are fewer by chance: by two standard deviations in one of forty levels."""
KNEE = 0.10
"""Saturated: a step adds less than a tenth of what the first level brought per unit (docs/rules.md)."""
EXPLODED = 10.0
"""Half of the operations take ten times as long as at the first level (design value)."""
IN_A_ROW = 2
"""One step can be bad by chance, and what comes after a knee must be seen to be one."""


@dataclass(frozen=True, slots=True)
class HeldStep:
    """One level that lasted its full time.

    Attributes:
        level: the rate, or the number of users.
        reported: what the generators reported of it.
    """

    level: float
    reported: Reported


def saturated(steps: Sequence[HeldStep], *, closed: bool) -> str | None:
    """Why the farm no longer follows; None if it does, or that cannot be reported yet."""
    if len(steps) <= IN_A_ROW:
        return None
    judged = range(len(steps) - IN_A_ROW, len(steps))
    last, first = steps[-1], steps[0]
    if not closed and not any(_served(steps[number]) for number in judged):
        return f"{last.reported.ok_per_s:.4g}/s of {last.level:.4g}/s were served"
    slope = first.reported.ok_per_s / first.level
    if closed and slope and all(_gain(steps, number) < KNEE * slope for number in judged):
        return f"the last {IN_A_ROW} steps added less than a tenth of what their users brought at first"
    if not closed and all(_exploded(first, steps[number]) for number in judged):
        return f"half of the operations took {EXPLODED:g} times as long as at the first level"
    return None


def _served(step: HeldStep) -> bool:
    """Whether an open load gets through, or is as near to it as chance makes it."""
    offered = step.level * step.reported.seconds
    return step.reported.ok >= FOLLOWS * offered - CHANCE * math.sqrt(offered)


def _exploded(first: HeldStep, step: HeldStep) -> bool:
    """Only for an open load: in a closed load more users always wait longer."""
    if first.reported.p50_s is None or step.reported.p50_s is None:
        return False
    return step.reported.p50_s > EXPLODED * first.reported.p50_s


def _gain(steps: Sequence[HeldStep], number: int) -> float:
    here, before = steps[number], steps[number - 1]
    return (here.reported.ok_per_s - before.reported.ok_per_s) / (here.level - before.level)


def missed(step: HeldStep, objectives: Sequence[Objective], *, closed: bool = False) -> str | None:
    """Which objective a level does not meet; None if it meets them all.

    Throughput below an objective is not missed if no more was offered, or if the load has users.
    """
    reported = step.reported
    if reported.ok == 0:
        return "nothing got through"
    for objective in objectives:
        for name in ("p50", "p95", "p99"):
            promised, result = getattr(objective, f"{name}_s"), getattr(reported, f"{name}_s")
            if promised is not None and result is not None and result > promised:
                return name
        if objective.errors_ratio is not None and (reported.error_ratio or 0.0) > objective.errors_ratio:
            return "errors"
        wanted = objective.throughput_per_s
        offered = wanted is not None and not closed and step.level >= wanted
        if offered and wanted is not None and not _served(HeldStep(wanted, reported)):
            return "throughput"
    return None


_HEARD_S = 2.0
"""The time by which every generator knows that the steps end; none schedules that far ahead."""


class StepController:
    """One scenario's load in steps: follows it, and says when it has gone far enough.

    Args:
        name: the scenario's.
        load: its load.
        plan: for its objectives.
        store: for events and the manifest.
        live: what the generators report.
        pool: the generators, for when they began.
    """

    def __init__(
        self,
        name: str,
        load: Steps,
        plan: Plan,
        store: RunWriter,
        live: LiveSeconds,
        pool: GeneratorPool,
    ) -> None:
        self._name = name
        self._load = load
        self._objectives = [one for one in plan.scenario_objectives if one.scenario == name]
        self._store = store
        self._live = live
        self._pool = pool
        travelling: Mapping[str, Any] = load.to_json()
        self._closed = is_closed(travelling)
        self._levels = levels(travelling)
        self._begun: float | None = None
        self._begun_ns = 0
        self._steps: list[HeldStep] = []
        self._ended: str | None = None

    def over(self) -> bool:
        """Whether the last step that exists or is needed has ended; call it often."""
        if self._begun is None:
            self._begun_ns = self._pool.begun_ns(self._name)
            self._begun = time.monotonic() + (self._begun_ns - time.time_ns()) / 1e9
            self._announce(0)
        while self._ended is None and time.monotonic() >= self._end_of(len(self._steps)) + LATE_S:
            self._judge()
        return self._ended is not None

    def hold(self) -> None:
        """Keep the load at its present level, or at the one that it is about to reach."""
        if self._begun is None:
            return  # it has not begun yet
        number = int((time.monotonic() + _HEARD_S - self._begun) / self._load.each_s)
        number = min(number, len(self._levels) - 1)
        self._pool.hold({self._name: (number + 0.5) * self._load.each_s})
        self._store.event("steps_held", scenario=self._name, level=self._levels[number])

    def _end_of(self, number: int) -> float:
        assert self._begun is not None  # noqa: S101 -- set by the first call of ``over``
        return self._begun + (number + 1) * self._load.each_s

    def _judge(self) -> None:
        number = len(self._steps)
        ended = self._end_of(number)
        # Not its first second, in which the level before still shows.
        reported = self._live.between([self._name], ended - self._load.each_s + 1.0, ended)
        self._steps.append(HeldStep(self._levels[number], reported))
        self._note(number)
        self._ended = self._why_enough() or (
            "it was the last step" if number + 1 == len(self._levels) else None
        )
        if self._ended is None:
            self._announce(number + 1)
        else:
            self._store.event("steps_ended", scenario=self._name, why=self._ended)

    def _note(self, number: int) -> None:
        """Record a completed level for the analysis."""
        each_ns = round(self._load.each_s * 1e9)
        begin_ns = self._begun_ns + number * each_ns
        self._store.manifest.setdefault("steps", []).append(
            {
                "scenario": self._name,
                "level": self._levels[number],
                "unit": "users" if self._closed else "per_s",
                "from": utc(begin_ns),
                "to": utc(begin_ns + each_ns),
            }
        )
        self._store.save_manifest()

    def _why_enough(self) -> str | None:
        if self._load.until == "objective":
            result = missed(self._steps[-1], self._objectives, closed=self._closed)
            return f"an objective was missed: {result}" if result else None
        return saturated(self._steps, closed=self._closed)

    def _announce(self, number: int) -> None:
        self._store.event("step", scenario=self._name, number=number + 1, level=self._levels[number])


_NONE: Mapping[str, int] = {}
_FIRST_VALUES_S = 30.0
"""A metric that has no value until then is warned of while the run can still be ended."""


class _RuleBreach(NamedTuple):
    """Readings that followed each other and all broke a rule.

    Attributes:
        since: when the first of them came, by the rules' clock (s).
        until: likewise the last: of the time after it nothing is known.
        value: the last one's.
    """

    since: float
    until: float
    value: float


class Silence(NamedTuple):
    """One collector, and since when it has given no reading.

    Attributes:
        kind: of farm.yaml.
        hosts: what it watches.
        for_s: how long.
        why: why its last reading failed; "" if that is not known, as of one that does not end.
    """

    kind: str
    hosts: Sequence[str]
    for_s: float
    why: str


class RuleOutcome(NamedTuple):
    """What became of one stop rule.

    Attributes:
        number: of the rule in the plan's ``stop_when``, from 0.
        why: the sentence.
    """

    number: int
    why: str


class StopRules:
    """Watches every rule; samples come from the collectors' threads.

    Args:
        rules: of the plan.
        hosts: inventory of every host, with the devices of its roles (manifest.json's ``hosts``).
        scenarios: the plan's, by name.
        live: what the generators report.
        clock: seconds of any origin that only go forward.
    """

    def __init__(
        self,
        rules: Sequence[StopRule | SilenceRule],
        hosts: Mapping[str, Mapping[str, Any]],
        scenarios: Sequence[str],
        live: LiveSeconds,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._hosts = hosts
        self._scenarios = scenarios
        self._live = live
        self._clock = clock
        self._begun = clock()
        self._lock = threading.Lock()
        self._beyond: dict[tuple[int, str, str], _RuleBreach] = {}
        self._measured: set[int] = set()

    def samples(self, samples: Iterable[Sample]) -> None:
        """Take one reading of a collector."""
        now = self._clock()
        with self._lock:
            for number, rule in enumerate(self._rules):
                if isinstance(rule, SilenceRule):
                    continue
                for sample in samples:
                    if sample.value is None or not self._speaks_of(rule, sample):
                        continue
                    self._measured.add(number)
                    key = (number, sample.host, sample.instance)
                    if rule.broken_by(sample.value):
                        before = self._beyond.get(key)
                        self._beyond[key] = _RuleBreach(before.since if before else now, now, sample.value)
                    else:
                        self._beyond.pop(key, None)

    def broken(
        self, loading: Mapping[str, int] = _NONE, silences: Sequence[Silence] = ()
    ) -> RuleOutcome | None:
        """The rule that ends the run; None as long as none does.

        Args:
            loading: scenario -> when its load began (UTC ns), of those that have work left.
            silences: of each collector.
        """
        now = self._clock()
        for number, rule in enumerate(self._rules):
            if isinstance(rule, SilenceRule):
                result = self._by_silence(number, rule, loading, silences)
            else:
                result = self._by_operations(number, rule, now) or self._by_samples(number, rule)
            if result:
                return RuleOutcome(number, result)
        return None

    def not_measured(self) -> list[RuleOutcome]:
        """Each rule whose metric has had no value until now, with a warning: it cannot end the run."""
        with self._lock:
            return [
                RuleOutcome(
                    number,
                    f"stop_when[{number}]: {_what(rule)}{_of(rule)} was not measured: this rule could not "
                    "end the run",
                )
                for number, rule in enumerate(self._rules)
                if number not in self._measured
            ]

    @property
    def due(self) -> bool:
        """Whether every rule has had time to be measured."""
        longest = max((rule.for_s for rule in self._rules), default=0.0)
        return self._clock() - self._begun >= max(longest, _FIRST_VALUES_S) + LATE_S

    def _by_silence(
        self, number: int, rule: SilenceRule, loading: Mapping[str, int], silences: Sequence[Silence]
    ) -> str | None:
        if rule.silent == "collectors":
            watched = [one for one in silences if any(self._is_at(rule, host) for host in one.hosts)]
            result = next((one for one in watched if one.for_s >= rule.for_s), None)
            if watched:
                self._measured.add(number)
            if result is None:
                return None
            why = result.why or "its last reading has not ended"
            return (
                f"stop_when: the collector {result.kind} of {', '.join(result.hosts)} gave no reading for "
                f"{units.seconds(rule.for_s)}: {why}"
            )
        names = [name for name in loading if rule.scenario in (None, name)]
        if not names:
            return None
        self._measured.add(number)
        begun_ns = min(loading[name] for name in names)
        if (time.time_ns() - begun_ns) / 1e9 < rule.for_s + LATE_S:
            return None
        now = time.monotonic()
        reported = self._live.between(names, now - LATE_S - rule.for_s, now - LATE_S)
        if reported.ok or reported.skipped:
            return None
        of = rule.scenario or "any scenario"
        also = [f"{count} {what}" for count, what in
                ((reported.failed, "failed"), (reported.dropped, "could not start")) if count]  # fmt: skip
        more = f" ({', '.join(also)})" if also else ""
        return f"stop_when: no operation of {of} completed for {units.seconds(rule.for_s)}{more}"

    def _is_at(self, rule: SilenceRule, host: str) -> bool:
        return rule.host in (None, host) and rule.tier in (None, self._hosts.get(host, {}).get("tier"))

    def _by_operations(self, number: int, rule: StopRule, now: float) -> str | None:
        if not rule.of_operations:
            return None
        scenarios = [rule.scenario] if rule.scenario else self._scenarios
        reported = self._live.between(scenarios, now - LATE_S - rule.for_s, now - LATE_S)
        value = reported.error_ratio if rule.metric == "error_ratio" else reported.p95_s
        if value is None:
            return None
        with self._lock:
            self._measured.add(number)
        if now - self._begun < rule.for_s + LATE_S or not rule.broken_by(value):
            return None
        return self._sentence(rule, value, f"of {rule.scenario}" if rule.scenario else "of all scenarios")

    def _by_samples(self, number: int, rule: StopRule) -> str | None:
        with self._lock:
            result = [
                (host, instance, beyond.value)
                for (of, host, instance), beyond in self._beyond.items()
                if of == number and beyond.until - beyond.since >= rule.for_s
            ]
        if not result:
            return None
        host, instance, value = result[0]
        return self._sentence(rule, value, f"on {host}" + (f" ({instance})" if instance else ""))

    def _sentence(self, rule: StopRule, value: float, where: str) -> str:
        side = "above" if rule.above is not None else "below"
        limit = rule.above if rule.above is not None else rule.below
        return (
            f"stop_when: {rule.metric} {where} was {side} {units.of_metric(rule.metric, limit)} for "
            f"{units.seconds(rule.for_s)} (now {units.of_metric(rule.metric, value)})"
        )

    def _speaks_of(self, rule: StopRule, sample: Sample) -> bool:
        """Whether a sample is of what the rule names; a host's own figure where it names no part of it."""
        if rule.of_operations or sample.metric != rule.metric:
            return False
        about = self._hosts.get(sample.host, {})
        if rule.host not in (None, sample.host) or rule.tier not in (None, about.get("tier")):
            return False
        if rule.role is not None:
            role = about.get("roles", {}).get(rule.role)
            return role is not None and role.get("device") == sample.instance
        if rule.metric.startswith(("cpu.", "mem.")):
            apart = rule.tier and about.get(_APART.get(rule.metric, ""))  # else the whole host is the tier
            return sample.instance == (f"tier:{rule.tier}" if apart else "")
        return True


_APART = {
    "cpu.busy_ratio": "tier_cores",
    "mem.available_bytes": "tier_cap_bytes",
    "mem.available_ratio": "tier_cap_bytes",
}
"""A metric that a tier has of its own -> what the inventory has of a host if it is measured."""


def _what(rule: StopRule | SilenceRule) -> str:
    """The metric that a rule compares."""
    return f"the silence of {rule.silent}" if isinstance(rule, SilenceRule) else rule.metric


def _of(rule: StopRule | SilenceRule) -> str:
    """The scenario, host, tier or disk of a rule; "" for all."""
    named = {name: getattr(rule, name, None) for name in ("scenario", "host", "tier", "role")}
    lines = [f"{name} {value}" for name, value in named.items() if value]
    return f" of {', '.join(lines)}" if lines else ""
