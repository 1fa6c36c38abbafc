"""The parts of verdict.json that a history of many runs reads; a report judges its run anew."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.analysis.verdict import Bottleneck, Outcome
from pinchpoint.store.document import Form, NotBelow0

Amount = NotBelow0 | None
"""None: not measured."""


class Use(Form):
    """How much of a shared resource a tier used."""

    tier: str
    share_ratio: NotBelow0


@dataclass(frozen=True, slots=True)
class Named(Bottleneck):
    """A suspect, with the form of its uses."""

    uses: tuple[Use, ...] = ()  # type: ignore[assignment]


class Scenario(Form):
    """What a scenario did."""

    throughput_per_s: Amount = None
    service_p95_s: Amount = None
    response_p95_s: Amount = None


class Crawl(Form):
    """A crawled source (``crawls.crawl_table``)."""

    source: str
    rate_per_s: Amount = None
    repository_latency_s: Amount = None


class Kept(Form):
    """verdict.json. Only its outcome was always there."""

    outcome: Outcome
    bottleneck: Named | None = None
    scenarios: dict[str, Scenario] = {}
    crawl: list[Crawl] = []
