"""Helpers for the tests of collectors of servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch
from pinchpoint_collectors.registry import kind


@contextmanager
def asking(name: str, host: str, tier: str, url: str, **options: Any) -> Iterator[Collector]:
    """Yield a collector of this kind that has read once."""
    collector = kind(name).connect([Watch(host, tier, options={"url": url, **options})])
    try:
        collector.read()
        yield collector
    finally:
        collector.close()


def found(samples: Sequence[Sample]) -> Mapping[tuple[str, str], float | None]:
    """Return the samples' values by metric and instance."""
    return {(each.metric, each.instance): each.value for each in samples}


def of(values: Any) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Return (value, weight) by metric and instance."""
    return {(value.metric, value.instance): (value.value, value.weight) for value in values}


def only(samples: Sequence[Sample], metric: str, instance: str) -> Sample:
    """Return the only sample of a metric and instance."""
    (one,) = (each for each in samples if (each.metric, each.instance) == (metric, instance))
    return one


def read_again(collector: Collector, within_s: float) -> None:
    """Read until a reading succeeds. Raises ``AssertionError`` if none succeeds in time."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            collector.read()
            break
        except CollectorError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


@contextmanager
def blocked(session: Callable[[], AbstractContextManager[Any]], sessions: int) -> Iterator[None]:
    """Make ``sessions`` sessions wait for a row that an idle transaction has locked."""
    change = "UPDATE hot SET version = version + 1"
    with ExitStack() as stack:
        holder, *waiting = (stack.enter_context(session()) for _ in range(sessions + 1))
        for statement in (
            "DROP TABLE IF EXISTS hot",
            "CREATE TABLE hot AS SELECT 0 AS version",
            "BEGIN",
            change,
        ):
            holder.execute(statement)
        threads = [threading.Thread(target=each.execute, args=(change,)) for each in waiting]
        for thread in threads:
            thread.start()
        try:
            time.sleep(0.3)
            yield
        finally:
            holder.execute("ROLLBACK")
            for thread in threads:
                thread.join()
        holder.execute("DROP TABLE hot")


def around_a_wait(
    collector: Collector, session: Callable[[], AbstractContextManager[Any]]
) -> tuple[Sequence[Sample], Mapping[tuple[str, str], float | None]]:
    """Return a reading while three sessions wait for a row, and the values of a reading afterwards."""
    time.sleep(0.3)
    assert found(collector.read())["db.lock_waiters", ""] == 0
    with blocked(session, 3):
        collector.read()
        time.sleep(1)
        during = collector.read()
    collector.read()
    time.sleep(0.3)
    after, values = found(collector.read()), found(during)
    for metric, value in {
        "lock_waiters": 3, "sessions_blocked": 3, "sessions_active": 3, "sessions_running": 0,
        "sessions_idle_in_transaction": 1, "connections": 5,  # with the collector's own
    }.items():  # fmt: skip
        assert values[f"db.{metric}", ""] == value, metric
    assert after["db.lock_waiters", ""] == 0
    return during, after
