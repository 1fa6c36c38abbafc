"""Runs the collectors of a run, one thread each, and adds up their readings and costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pinchpoint.run.manifest import INTERVAL_S
from pinchpoint.run.preflight import Connected
from pinchpoint.run.stop_rules import Silence
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors import bounds
from pinchpoint_collectors.bounds import Impossible
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import LateCollector, Sample
from pinchpoint_collectors.sampler import Sampler

_GAPS = 1000
"""Largest number of listed gaps per host. Further gaps are only counted, because a host may fail all
night."""


@dataclass(slots=True)
class _WatchedHost:
    """Figures of one host from one kind of collector."""

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
    """Receives samples and events from the threads of the collectors."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _WatchedHost] = {}
        self._guard = threading.Lock()

    def samples(self, samples: Iterable[Sample]) -> None:
        """Receive one reading of a collector."""
        with self._guard:
            for sample in samples:
                if sample.metric.startswith("collector."):
                    self._of(sample.host, sample.instance.partition("/")[0], sample)

    def event(self, event: str, fields: Mapping[str, Any]) -> None:
        """Receive an event of a sampler. Only gaps are stored."""
        if event != "gap" or "from" not in fields:
            return
        reported = {key: value for key, value in fields.items() if key not in ("kind", "hosts")}
        with self._guard:
            for host in fields["hosts"]:
                seen = self._seen.setdefault((host, fields["kind"]), _WatchedHost())
                if len(seen.gaps) < _GAPS:
                    seen.gaps.append(reported)
                else:
                    seen.more_gaps += 1

    def nonsense(self, kind: str, impossibles: Iterable[Impossible]) -> None:
        """Receive the impossible values of a sampler after its end."""
        with self._guard:
            for one in impossibles:
                self._seen.setdefault((one.host, kind), _WatchedHost()).impossible.append(one.facts())

    def collectors(self, connected: Sequence[Connected], interval_s: float) -> list[dict[str, Any]]:
        """Return the manifest's ``collectors`` with their readings and costs."""
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
        """Return the manifest's ``data_quality``: host -> kind -> clock, gaps, impossible values."""
        result: dict[str, dict[str, dict[str, Any]]] = {}
        with self._guard:
            for (host, kind), seen in sorted(self._seen.items()):
                result.setdefault(host, {})[kind] = {
                    "clock_offset_s": seen.offset_s,
                    "clock_error_s": seen.error_s,
                    "clock_offset_between_s": seen.offset_changes_s,
                    "gaps": seen.gaps,
                    "more_gaps": seen.more_gaps,
                    "impossible": seen.impossible,
                }
        return result

    def _of(self, host: str, kind: str, sample: Sample) -> None:
        seen = self._seen.setdefault((host, kind), _WatchedHost())
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


def _came_to(seen: _WatchedHost | None) -> dict[str, Any]:
    """Return readings and cost of a collector; an empty object if there was no reading."""
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


@dataclass(frozen=True, slots=True)
class LateValues:
    """Waits for values that arrive minutes after their time.

    Attributes:
        say: receives sentences for the user.
        interrupted: returns whether the user has asked to stop.
    """

    say: Callable[[str], None]
    interrupted: Callable[[], bool]


_LOOK_S = 1.0

REQUIRED_S = 10.0
"""Longest time in seconds for which a host with a required collector may be unreachable."""

_BLIND_S = 3.0
"""Seconds without a successful reading at the end of the load, after which a collector causes a warning."""

STOP_S = 10.0
"""Time limit for the last readings of all collectors after the run, in seconds."""


class Collectors:
    """Reads every collector once a second and stores the readings in the run directory.

    Args:
        store: run directory.
        also: further receivers of the samples; they are called in the threads of the collectors.
    """

    def __init__(self, store: RunWriter, also: Sequence[Callable[[Sequence[Sample]], None]]) -> None:
        self._store = store
        self._watching = Watching()
        self._takers = (store.samples, *also, self._watching.samples)
        self._samplers: list[tuple[Connected, Sampler]] = []

    def start(self, connected: Sequence[Connected]) -> None:
        """Start to read each collector."""
        for source in connected:
            sampler = Sampler(
                source.collector,
                source.kind,
                source.hosts,
                self._take,
                interval_s=INTERVAL_S,
                on_event=self._on_event,
            )
            self._samplers.append((source, sampler.start()))

    @property
    def errors(self) -> list[Exception]:
        """Return why samples could not be stored. If there is a reason, the run is no evidence."""
        return [sampler.error for _, sampler in self._samplers if sampler.error]

    def lost(self) -> str | None:
        """Return why the run must end, if a required host is unreachable; None if it may continue."""
        for source, sampler in self._samplers:
            if source.required and sampler.failing_s > REQUIRED_S:
                hosts = ", ".join(source.hosts)
                return (
                    f"{hosts}: not seen for {REQUIRED_S:.0f} s, and the collector {source.kind} is required: "
                    f"{sampler.why}"
                )
        return None

    def silences(self) -> list[Silence]:
        """Return the time since the last reading of each collector."""
        return [
            Silence(one.kind, one.hosts, sampler.silent_s, sampler.why) for one, sampler in self._samplers
        ]

    def _warn_of_blind(self) -> None:
        for source, sampler in self._samplers:
            if sampler.silent_s > _BLIND_S:
                self._store.warn(
                    f"{', '.join(source.hosts)}: the collector {source.kind} gave no reading in the last "
                    f"{sampler.silent_s:.0f} s of the load: {sampler.why or 'its last reading did not end'}"
                )

    def stop(self, late: LateValues | None = None) -> None:
        """Stop all collectors. A collector that does not answer is reported and left. All samples are kept.

        If ``late`` allows it, late values are awaited.
        """
        self._warn_of_blind()
        waiting = [one for one in self._samplers if late and isinstance(one[0].collector, LateCollector)]
        for one in self._samplers:
            if one not in waiting:
                one[1].ask_to_stop()
        if late and waiting:
            self._await(waiting, late)
        until_s = time.monotonic() + STOP_S
        for _, sampler in self._samplers:
            try:
                sampler.stop(max(0.0, until_s - time.monotonic()))
            except CollectorError as error:
                self._store.warn(str(error))
        for source, sampler in self._samplers:
            result = list(sampler.nonsense.found.values())
            self._watching.nonsense(source.kind, result)
            for sentence in bounds.sentences(result):
                self._store.warn(f"collector {source.kind}: {sentence}")
        if self._samplers:
            connected = [source for source, _ in self._samplers]
            rows = self._watching.collectors(connected, INTERVAL_S)
            before = {_key(row): row["interval_s"] for row in self._store.manifest.get("collectors") or ()}
            for row in rows:  # another load may be the one that limits throughput
                row["interval_s"] = before.get(_key(row), row["interval_s"])
            self._store.manifest["collectors"] = rows
            self._store.manifest["data_quality"] = self._watching.quality()
            self._store.save_manifest()

    def _await(self, waiting: Sequence[tuple[Connected, Sampler]], late: LateValues) -> None:
        """Read until all values up to now have arrived, within the time limits of their platforms."""
        until_ns, begin_s = time.time_ns(), time.monotonic()
        kinds = ", ".join(sorted({source.kind for source, _ in waiting}))
        longest_s = max(
            one.collector.late_s for one, _ in waiting if isinstance(one.collector, LateCollector)
        )
        late.say(f"{kinds}: the values of the last minutes come later; waiting up to {longest_s:.0f} s")
        left = list(waiting)
        while True:
            for source, sampler in list(left):
                collector = source.collector
                waited_s = time.monotonic() - begin_s
                if (
                    not isinstance(collector, LateCollector)
                    or sampler.error
                    or collector.complete(until_ns)
                    or waited_s > collector.late_s
                ):
                    sampler.ask_to_stop()
                    left.remove((source, sampler))
            if not left:
                return
            if late.interrupted():
                self._store.warn(
                    f"collector {kinds}: the wait for its last values was interrupted: not measured"
                )
                for _, sampler in left:
                    sampler.ask_to_stop()
                return
            time.sleep(_LOOK_S)

    def _take(self, samples: Sequence[Sample]) -> None:
        for take in self._takers:
            take(samples)

    def _on_event(self, event: str, /, **fields: Any) -> None:
        self._watching.event(event, fields)
        self._store.event(event, **fields)
        if event == "partial_answer":
            self._store.warn(fields["why"])
        if event == "clock_offset":
            self._store.warn(
                f"the clock of {', '.join(fields['hosts'])} is {fields['offset_s']:+.2f} s off ours: samples "
                f"of it are corrected to {fields['error_s']:.3f} s, its own logs will not fit; set it by NTP"
            )


def _key(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    return row["kind"], tuple(row["hosts"])
