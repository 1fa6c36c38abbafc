"""Parses /proc/net/dev: traffic by interface."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from pinchpoint_collectors.value import Value, rate

METRICS = ("net.received_bytes_per_s", "net.sent_bytes_per_s", "net.errors_per_s")


class NetCounters(NamedTuple):
    """Counts of one interface since boot. ``errors`` are those of both directions, without drops."""

    received_bytes: int
    sent_bytes: int
    errors: int


def parse(text: str, only: Collection[str] | None = None) -> dict[str, NetCounters]:
    """Return counters by interface, only of the interfaces in ``only`` if given.

    A name may contain colons (``eth0:1``).
    """
    interfaces = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.rpartition(":")
        name = name.strip()
        if only is None or name in only:
            f = rest.split()
            interfaces[name] = NetCounters(int(f[0]), int(f[8]), int(f[2]) + int(f[10]))
    return interfaces


def values(
    before: Mapping[str, NetCounters] | None,
    after: Mapping[str, NetCounters],
    interval_s: float,
    speeds: Mapping[str, float | None],
) -> Iterator[Value]:
    """Yield rates of the interfaces in ``speeds`` (bytes/s of each, None for an unknown speed)."""
    for name, speed in speeds.items():
        if speed is not None:
            yield Value("net.speed_bytes_per_s", name, speed)
        if before is None:
            continue
        if name not in before or name not in after:  # the interface was removed meanwhile
            yield from (Value(metric, name, None) for metric in METRICS)
            continue
        old, new = before[name], after[name]
        received = rate(old.received_bytes, new.received_bytes, interval_s)
        sent = rate(old.sent_bytes, new.sent_bytes, interval_s)
        yield Value("net.received_bytes_per_s", name, received)
        yield Value("net.sent_bytes_per_s", name, sent)
        yield Value("net.errors_per_s", name, rate(old.errors, new.errors, interval_s))
