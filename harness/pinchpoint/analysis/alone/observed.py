"""What samples alone tell of a resource: how long it was over its limit, when, and by what rule.

Nothing is known of operations: who waited, and for what. A resource that is over its limit for a minute or
longer is used up for that while (E1, or what METHOD step 4 lets stand in its place for a disk without a known
limit); that is one kind of evidence, whatever else agrees.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pinchpoint.analysis.alone.stretches import (
    PLATEAU,
    Figures,
    Steps,
    Stretch,
    figures,
    longest,
    seconds_over,
    stretches,
)
from pinchpoint.analysis.thresholds import Threshold
from pinchpoint.analysis.verdict import Fact, Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, Series

PAGED = "mem.paged_in_bytes_per_s"
"""Without it nobody knows whether little memory kept anybody waiting."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at, and what it is held against; see ``Suspect`` for the fields."""

    kind: Kind
    resource: str
    tier: str
    host: str
    instance: str
    role: str | None
    limit: Threshold


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen of it.

    Attributes:
        facts: what was measured; the first is the one that speaks for or against it.
        measured: whether it could be held against its limit.
        used: of a limit that is a ratio, the mean use; None of others.
        over_s: how long it was over the limit, all readings together.
        measured_s: how long it was read.
        stretches: when, the longest first.
        demoted: why nobody need have waited for it; "" where that is not so.
    """

    subject: Subject
    facts: tuple[Fact, ...]
    measured: bool = False
    used: float | None = None
    over_s: float = 0.0
    measured_s: float = 0.0
    stretches: tuple[Stretch, ...] = ()
    demoted: str = ""

    @property
    def used_up(self) -> bool:
        """Whether it was over its limit for a minute or longer at a stretch."""
        return longest(self.stretches) >= PLATEAU.value


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a subject.

    Attributes:
        series: whose readings are over the limit or not.
        over: the steps that are over it.
        text: the figures, in words.
        metric: what they are of.
        value: the one that counts.
        how: in what way it is over the limit, where that takes words.
    """

    series: Series
    over: Steps
    text: str
    metric: str
    value: float
    how: str = ""


def unmeasured(subject: Subject, metric: str, why: str) -> Observed:
    """A resource that should have been read and was not."""
    fact = Fact(why, metric, None, subject.host, subject.instance, "E1", *rule(subject.limit))
    return Observed(subject, (fact,))


def seen(
    inputs: Inputs,
    subject: Subject,
    reading: Reading,
    more: Iterable[Fact] = (),
    *,
    used: float | None = None,
    demoted: str = "",
) -> Observed:
    """A resource that was read, with how long it was over its limit, and when."""
    covered_s = reading.series.covered_s
    found = stretches(inputs.window, covered_s, reading.over)
    over_s = seconds_over(covered_s, reading.over)
    text = f"{reading.text}; {_over_words(over_s, float(covered_s.sum()), found, reading.how)}"
    kind = "E1" if longest(found) >= PLATEAU.value else "context"
    fact = Fact(
        text, reading.metric, reading.value, subject.host, subject.instance, kind, *rule(subject.limit)
    )
    return Observed(
        subject=subject,
        facts=(fact, *more),
        measured=True,
        used=used,
        over_s=over_s,
        measured_s=float(covered_s.sum()),
        stretches=found,
        demoted=demoted,
    )


def over(values: Floats, series: Series, limit: float, *, strictly: bool = False) -> Steps:
    """The steps with a reading that is at the limit or over it; ``strictly``: over it."""
    there = np.isfinite(values) & (series.covered_s > 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(there & ((values > limit) if strictly else (values >= limit)))


def context(inputs: Inputs, host: str, metric: str, instance: str, words: str) -> Iterable[Fact]:
    """One more figure, where it was measured: ``words`` stand behind its mean."""
    found = figures(inputs.samples.series(host, metric, instance))
    if found is not None and found.maximum > 0:
        text = f"{units.of_metric(metric, found.mean)} {words} on average{spread_words(found, metric)}"
        yield Fact(text, metric, found.mean, host, instance)


def rule(limit: Threshold) -> tuple[float, str, str]:
    """A threshold as a fact has it."""
    return limit.value, limit.source, limit.says


def spread_words(found: Figures | None, metric: str) -> str:
    """The 95th percentile and the largest value, in words."""
    if found is None:
        return ""
    p95, most = units.of_metric(metric, found.p95), units.of_metric(metric, found.maximum)
    return f", p95 {p95}, at most {most}"


def _over_words(over_s: float, measured_s: float, found: tuple[Stretch, ...], how: str) -> str:
    extra = f" {how}" if how else ""
    if not found:
        return f"never over its limit{extra}"
    return (
        f"over its limit{extra} for {units.seconds(over_s)} of {units.seconds(measured_s)}, "
        f"{units.seconds(found[0].seconds)} of that in a row"
    )
