"""What the tests of collectors of servers share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch
from pinchpoint_collectors.registry import kind


@contextmanager
def asking(name: str, host: str, tier: str, url: str, **options: Any) -> Iterator[Collector]:
    """A collector of a kind that has read once."""
    collector = kind(name).connect([Watch(host, tier, options={"url": url, **options})])
    try:
        collector.read()
        yield collector
    finally:
        collector.close()


def found(samples: Sequence[Sample]) -> Mapping[tuple[str, str], float | None]:
    """Their values by metric and instance."""
    return {(each.metric, each.instance): each.value for each in samples}


def of(values: Any) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Values with their weights, by metric and instance."""
    return {(value.metric, value.instance): (value.value, value.weight) for value in values}


def only(samples: Sequence[Sample], metric: str, instance: str) -> Sample:
    """The one sample of a metric's instance."""
    (one,) = (each for each in samples if (each.metric, each.instance) == (metric, instance))
    return one


def read_again(collector: Collector, within_s: float) -> None:
    """Read until a reading works. Raises ``AssertionError`` where none does in time."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            collector.read()
            break
        except CollectorError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
