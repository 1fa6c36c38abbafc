"""The plan's ``stop_when``: what ends a run before it does harm, judged while it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pinchpoint.base import units
from pinchpoint.plan import StopRule
from pinchpoint.run.seconds import LATE_S, LiveSeconds
from pinchpoint_collectors.record import Sample

_FIRST_VALUES_S = 30.0
"""A metric that has no value until then is warned of while the run can still be ended."""


class _Beyond(NamedTuple):
    """Readings that followed each other and all broke a rule.

    Attributes:
        since: when the first of them came, by the rules' clock (s).
        until: likewise the last: of the time after it nothing is known.
        value: the last one's.
    """

    since: float
    until: float
    value: float


class StopRules:
    """Watches every rule; samples come from the collectors' threads.

    Args:
        rules: of the plan.
        hosts: inventory of every host, with the devices of its roles (manifest.json's ``hosts``).
        scenarios: the plan's, by name.
        told: what the generators tell.
        clock: seconds of any origin that only go forward.
    """

    def __init__(
        self,
        rules: Sequence[StopRule],
        hosts: Mapping[str, Mapping[str, Any]],
        scenarios: Sequence[str],
        told: LiveSeconds,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._hosts = hosts
        self._scenarios = scenarios
        self._told = told
        self._clock = clock
        self._begun = clock()
        self._lock = threading.Lock()
        self._beyond: dict[tuple[int, str, str], _Beyond] = {}
        self._measured: set[int] = set()

    def samples(self, samples: Iterable[Sample]) -> None:
        """Take one reading of a collector."""
        now = self._clock()
        with self._lock:
            for number, rule in enumerate(self._rules):
                for sample in samples:
                    if sample.value is None or not self._speaks_of(rule, sample):
                        continue
                    self._measured.add(number)
                    key = (number, sample.host, sample.instance)
                    if rule.broken_by(sample.value):
                        before = self._beyond.get(key)
                        self._beyond[key] = _Beyond(before.since if before else now, now, sample.value)
                    else:
                        self._beyond.pop(key, None)

    def broken(self) -> str | None:
        """What ends the run, as a sentence; None as long as nothing does."""
        now = self._clock()
        for number, rule in enumerate(self._rules):
            found = self._by_operations(number, rule, now) or self._by_samples(number, rule)
            if found:
                return found
        return None

    def not_measured(self) -> list[str]:
        """A warning for each rule whose metric has had no value until now: it cannot end the run."""
        with self._lock:
            return [
                f"stop_when[{number}]: {rule.metric}{_of(rule)} was not measured: this rule could not end "
                "the run"
                for number, rule in enumerate(self._rules)
                if number not in self._measured
            ]

    @property
    def due(self) -> bool:
        """Whether every rule has had time to be measured."""
        longest = max((rule.for_s for rule in self._rules), default=0.0)
        return self._clock() - self._begun >= max(longest, _FIRST_VALUES_S) + LATE_S

    def _by_operations(self, number: int, rule: StopRule, now: float) -> str | None:
        if not rule.of_operations:
            return None
        scenarios = [rule.scenario] if rule.scenario else self._scenarios
        told = self._told.between(scenarios, now - LATE_S - rule.for_s, now - LATE_S)
        value = told.error_ratio if rule.metric == "error_ratio" else told.p95_s
        if value is None:
            return None
        with self._lock:
            self._measured.add(number)
        if now - self._begun < rule.for_s + LATE_S or not rule.broken_by(value):
            return None
        return self._sentence(rule, value, f"of {rule.scenario}" if rule.scenario else "of all scenarios")

    def _by_samples(self, number: int, rule: StopRule) -> str | None:
        with self._lock:
            found = [
                (host, instance, beyond.value)
                for (of, host, instance), beyond in self._beyond.items()
                if of == number and beyond.until - beyond.since >= rule.for_s
            ]
        if not found:
            return None
        host, instance, value = found[0]
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
            return sample.instance == (f"tier:{rule.tier}" if rule.tier else "")
        return True


def _of(rule: StopRule) -> str:
    """Of which scenario, host, tier or disk; nothing of any."""
    named = {name: getattr(rule, name) for name in ("scenario", "host", "tier", "role")}
    said = [f"{name} {value}" for name, value in named.items() if value]
    return f" of {', '.join(said)}" if said else ""
