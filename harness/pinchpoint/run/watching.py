"""What collectors tell of themselves while a run goes on, added up for the manifest: how far it was seen."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pinchpoint.run.preflight import Connected
from pinchpoint_collectors.bounds import Nonsense
from pinchpoint_collectors.record import Sample

_GAPS = 1000
"""More than these are counted, not listed: a host that is lost every few seconds all night."""


@dataclass(slots=True)
class _Seen:
    """One host through one kind of collector."""

    readings: int = 0
    failed: int = 0
    cpu_s: dict[str, float] = field(default_factory=dict)
    received_bytes: float | None = None
    offset_s: float | None = None
    error_s: float | None = None
    offset_changes_s: tuple[float, float] | None = None
    gaps: list[dict[str, Any]] = field(default_factory=list)
    impossible: list[dict[str, Any]] = field(default_factory=list)
    more_gaps: int = 0


class Watching:
    """Takes samples and events from the collectors' threads."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._guard = threading.Lock()

    def samples(self, samples: Iterable[Sample]) -> None:
        """Take one reading of a collector."""
        with self._guard:
            for sample in samples:
                if sample.metric.startswith("collector."):
                    self._of(sample.host, sample.instance.partition("/")[0], sample)

    def event(self, event: str, fields: Mapping[str, Any]) -> None:
        """Take what a sampler tells; what is no gap is left out."""
        if event != "gap" or "from" not in fields:
            return
        told = {key: value for key, value in fields.items() if key not in ("kind", "hosts")}
        with self._guard:
            for host in fields["hosts"]:
                seen = self._seen.setdefault((host, fields["kind"]), _Seen())
                if len(seen.gaps) < _GAPS:
                    seen.gaps.append(told)
                else:
                    seen.more_gaps += 1

    def nonsense(self, kind: str, found: Iterable[Nonsense]) -> None:
        """Take what a sampler found that cannot be, once it has ended."""
        with self._guard:
            for one in found:
                self._seen.setdefault((one.host, kind), _Seen()).impossible.append(one.facts())

    def collectors(self, connected: Sequence[Connected], interval_s: float) -> list[dict[str, Any]]:
        """The manifest's ``collectors``, with what each came to."""
        with self._guard:
            return [
                {
                    "kind": one.kind,
                    "hosts": list(one.hosts),
                    "interval_s": interval_s,
                    **_came_to(self._seen.get((one.hosts[0], one.kind))),
                }
                for one in connected
            ]

    def quality(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The manifest's ``data_quality``: host -> kind -> clock, gaps, values that cannot be."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        with self._guard:
            for (host, kind), seen in sorted(self._seen.items()):
                found.setdefault(host, {})[kind] = {
                    "clock_offset_s": seen.offset_s,
                    "clock_error_s": seen.error_s,
                    "clock_offset_between_s": seen.offset_changes_s,
                    "gaps": seen.gaps,
                    "more_gaps": seen.more_gaps,
                    "impossible": seen.impossible,
                }
        return found

    def _of(self, host: str, kind: str, sample: Sample) -> None:
        seen = self._seen.setdefault((host, kind), _Seen())
        value, name = sample.value, sample.metric.removeprefix("collector.")
        if name == "ok":
            seen.readings += 1
            seen.failed += value != 1
        elif value is None:
            return
        elif name == "cpu_s":
            seen.cpu_s[sample.instance] = seen.cpu_s.get(sample.instance, 0.0) + value
        elif name == "received_bytes":
            seen.received_bytes = (seen.received_bytes or 0.0) + value
        elif name == "clock_offset_s":
            low, high = seen.offset_changes_s or (value, value)
            seen.offset_s, seen.offset_changes_s = value, (min(low, value), max(high, value))
        elif name == "clock_error_s":
            seen.error_s = max(seen.error_s or 0.0, value)


def _came_to(seen: _Seen | None) -> dict[str, Any]:
    """Readings and cost; nothing where it never read."""
    if seen is None:
        return {}
    here = [value for instance, value in seen.cpu_s.items() if not instance.endswith("/host")]
    there = [value for instance, value in seen.cpu_s.items() if instance.endswith("/host")]
    return {
        "readings": seen.readings,
        "failed": seen.failed,
        "cpu_s": sum(here) if here else None,
        "host_cpu_s": sum(there) if there else None,
        "received_bytes": seen.received_bytes,
    }
