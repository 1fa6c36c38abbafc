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
