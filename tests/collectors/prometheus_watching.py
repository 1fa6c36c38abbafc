"""Helpers for tests of the collector `prometheus`: connect, read for some time, close."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from collectors.prometheus_servers import Relay

from pinchpoint_collectors.record import Collector, Sample, Watch
from pinchpoint_collectors.registry import kind


def watch(url: str, relay: Relay, disks: dict[str, str] | None = None, **options: Any) -> Watch:
    told = {"url": url, "instance": f"127.0.0.1:{relay.port}", **options}
    return Watch("sql1", "sql", disks=disks or {}, options=told)


@contextmanager
def watching(*watches: Watch) -> Iterator[Collector]:
    collector = kind("prometheus").connect(watches)
    try:
        yield collector
    finally:
        collector.close()


def gathered(collector: Collector, seconds: float) -> list[Sample]:
    """Return the samples of some seconds, read as a sampler does."""
    found: list[Sample] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found += collector.read()
        time.sleep(0.2)
    return found
