"""Defines the parts of verdict.json that a history of many runs reads."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.analysis.verdict import Bottleneck, Outcome
from pinchpoint.store.document import Form, NotBelow0

Amount = NotBelow0 | None
"""A number of 0 or more; None: not measured."""


class TierUse(Form):
    """The share of a shared resource that a tier used."""

    tier: str
    share_ratio: NotBelow0


@dataclass(frozen=True, slots=True)
class BottleneckForm(Bottleneck):
    """A bottleneck whose ``uses`` are checked."""

    uses: tuple[TierUse, ...] = ()  # type: ignore[assignment]


class ScenarioForm(Form):
    """The figures of a scenario."""

    throughput_per_s: Amount = None
    service_p95_s: Amount = None
    response_p95_s: Amount = None


class CrawlForm(Form):
    """A crawled source (``crawls.crawl_table``)."""

    source: str
    rate_per_s: Amount = None
    repository_latency_s: Amount = None


class VerdictForm(Form):
    """The content of verdict.json; only ``outcome`` is in the files of all versions."""

    outcome: Outcome
    bottleneck: BottleneckForm | None = None
    scenarios: dict[str, ScenarioForm] = {}
    crawl: list[CrawlForm] = []
