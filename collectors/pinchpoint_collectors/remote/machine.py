"""What is asked of all watches of one machine before somebody goes there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.record import Watch

_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)")


def each_once(watches: Sequence[Watch], kind: str) -> None:
    """Raises ``CollectorError`` where a host is watched by this kind twice."""
    hosts = [watch.host for watch in watches]
    for host in hosts:
        if hosts.count(host) > 1:
            raise CollectorError(
                f"host {host!r} is watched by {kind!r} more than once; list it once for a host"
            )


def say_the_same(watches: Sequence[Watch], options: Sequence[str], where: str) -> None:
    """Raises ``CollectorError`` where they differ in one of these options: the machine is read once."""
    for option in options:
        if len({str(watch.options.get(option)) for watch in watches}) > 1:
            hosts = ", ".join(watch.host for watch in watches)
            raise CollectorError(
                f"{where}: {option}: {hosts} are one machine and say different things; "
                "say the same for all of them"
            )


def interval_s(options: Mapping[str, Any], shortest_s: float, longest_s: float) -> float:
    """Seconds between two readings, 1 where nothing is said. Raises ``OptionError``."""
    given = options.get("interval", "1s")
    found = _INTERVAL.fullmatch(given) if isinstance(given, str) else None
    seconds = float(found[1]) * (0.001 if found[2] == "ms" else 1.0) if found else 0.0
    if not shortest_s <= seconds <= longest_s:
        allowed = f"a duration from {shortest_s * 1000:g}ms to {longest_s:g}s"
        raise OptionError("interval", f"found {given!r}; allowed: {allowed}")
    return seconds
