"""Decides during a run, from the figures of each second, whether a stop rule of the plan ends the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pinchpoint.base import units
from pinchpoint.plan import SilenceRule, StopRule
from pinchpoint.run.recent_seconds import LATE_S, RecentSeconds
from pinchpoint_collectors.record import Sample

_NONE: Mapping[str, int] = {}
_FIRST_VALUES_S = 30.0
"""Seconds after which a metric without a value causes a warning, so that the user can still end the run."""


class _RuleBreach(NamedTuple):
    """Consecutive readings that all break a rule.

    Attributes:
        since: time of the first reading in seconds, by the clock of the rules.
        until: time of the last reading in seconds. The time after it is unknown.
        value: value of the last reading.
    """

    since: float
    until: float
    value: float


class Silence(NamedTuple):
    """A collector and the time since its last reading.

    Attributes:
        kind: kind of the collector in farm.yaml.
        hosts: hosts of the collector.
        for_s: seconds since the last reading.
        why: why the last reading failed; "" if unknown, such as for a reading that does not end.
    """

    kind: str
    hosts: Sequence[str]
    for_s: float
    why: str


class RuleOutcome(NamedTuple):
    """The result of one stop rule.

    Attributes:
        number: index of the rule in ``stop_when`` of the plan, from 0.
        why: sentence on the result.
    """

    number: int
    why: str


class StopRules:
    """Watches all stop rules. The threads of the collectors deliver samples.

    Args:
        rules: stop rules of the plan.
        hosts: host -> inventory with the devices of its roles (``hosts`` of manifest.json).
        scenarios: names of the scenarios.
        live: reports of the load generators.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        rules: Sequence[StopRule | SilenceRule],
        hosts: Mapping[str, Mapping[str, Any]],
        scenarios: Sequence[str],
        live: RecentSeconds,
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
        """Receive one reading of a collector."""
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
        """Return the rule that ends the run; None if no rule does.

        Args:
            loading: scenario -> begin of its load in UTC ns, for scenarios with work left.
            silences: time since the last reading of each collector.
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
        """Return each rule whose metric has no value yet, with a warning. Such a rule cannot end the run."""
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
        """Return whether enough time has passed for each rule's metric to have a value."""
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
        """Return whether a sample belongs to the target of a rule.

        If the rule names no part of a host, the figure of the whole host counts.
        """
        if rule.of_operations or sample.metric != rule.metric:
            return False
        about = self._hosts.get(sample.host, {})
        if rule.host not in (None, sample.host) or rule.tier not in (None, about.get("tier")):
            return False
        if rule.role is not None:
            role = about.get("roles", {}).get(rule.role)
            return role is not None and role.get("device") == sample.instance
        if rule.metric.startswith(("cpu.", "mem.")):
            # without such an entry, the whole host belongs to the tier
            apart = rule.tier and about.get(_APART.get(rule.metric, ""))
            return sample.instance == (f"tier:{rule.tier}" if apart else "")
        return True


_APART = {
    "cpu.busy_ratio": "tier_cores",
    "mem.available_bytes": "tier_cap_bytes",
    "mem.available_ratio": "tier_cap_bytes",
}
"""Metric of a tier -> entry in the inventory of a host that measures the tier separately."""


def _what(rule: StopRule | SilenceRule) -> str:
    """Return the metric that a rule compares, as text."""
    return f"the silence of {rule.silent}" if isinstance(rule, SilenceRule) else rule.metric


def _of(rule: StopRule | SilenceRule) -> str:
    """Return the scenario, host, tier or disk of a rule; "" if it applies to all."""
    named = {name: getattr(rule, name, None) for name in ("scenario", "host", "tier", "role")}
    lines = [f"{name} {value}" for name, value in named.items() if value]
    return f" of {', '.join(lines)}" if lines else ""
