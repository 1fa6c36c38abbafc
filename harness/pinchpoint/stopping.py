"""The plan's ``stop_when``: what ends a run before it does harm, judged while it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pinchpoint.plan import StopRule
from pinchpoint.report import units
from pinchpoint.seconds import LATE_S, LiveSeconds
from pinchpoint_collectors.record import Sample


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

    def samples(self, samples: Iterable[Sample]) -> None:
        """Take one reading of a collector."""
        now = self._clock()
        with self._lock:
            for number, rule in enumerate(self._rules):
                for sample in samples:
                    if sample.value is None or not self._speaks_of(rule, sample):
                        continue
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
            found = self._by_operations(rule, now) or self._by_samples(number, rule)
            if found:
                return found
        return None

    def _by_operations(self, rule: StopRule, now: float) -> str | None:
        if not rule.of_operations or now - self._begun < rule.for_s + LATE_S:
            return None
        scenarios = [rule.scenario] if rule.scenario else self._scenarios
        told = self._told.between(scenarios, now - LATE_S - rule.for_s, now - LATE_S)
        value = told.error_ratio if rule.metric == "error_ratio" else told.p95_s
        if value is None or not rule.broken_by(value):
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
