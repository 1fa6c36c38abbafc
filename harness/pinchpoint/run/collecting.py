"""The collectors of a run while it goes on: a thread each, and what they tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pinchpoint.run.manifest import INTERVAL_S
from pinchpoint.run.preflight import Connected
from pinchpoint.run.watching import Watching
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors import bounds
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Sample
from pinchpoint_collectors.sampler import Sampler

REQUIRED_S = 10.0
"""A host whose collector is required may be out of sight for so long."""

STOP_S = 10.0
"""So long the last readings of all may take together, once the run is over."""


class Collectors:
    """Reads every collector once a second, and keeps what they say in the run's directory.

    Args:
        store: the run's directory.
        also: who else takes the samples, in the threads of the collectors.
    """

    def __init__(self, store: RunWriter, also: Sequence[Callable[[Sequence[Sample]], None]]) -> None:
        self._store = store
        self._watching = Watching()
        self._takers = (store.samples, *also, self._watching.samples)
        self._samplers: list[tuple[Connected, Sampler]] = []

    def start(self, connected: Sequence[Connected]) -> None:
        """Begin to read each."""
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
        """Why samples could not be kept: then the run is no evidence."""
        return [sampler.error for _, sampler in self._samplers if sampler.error]

    def lost(self) -> str | None:
        """Why the run must end: a host that it must not do without is out of sight; None: it may go on."""
        for source, sampler in self._samplers:
            if source.required and sampler.failing_s > REQUIRED_S:
                hosts = ", ".join(source.hosts)
                return (
                    f"{hosts}: not seen for {REQUIRED_S:.0f} s, and the collector {source.kind} is required: "
                    f"{sampler.why}"
                )
        return None

    def stop(self) -> None:
        """End all of them; one that does not answer any more is said, and left. What they came to is kept."""
        for _, sampler in self._samplers:
            sampler.ask_to_stop()
        until_s = time.monotonic() + STOP_S
        for _, sampler in self._samplers:
            try:
                sampler.stop(max(0.0, until_s - time.monotonic()))
            except CollectorError as error:
                self._store.warn(str(error))
        for source, sampler in self._samplers:
            found = list(sampler.nonsense.found.values())
            self._watching.nonsense(source.kind, found)
            for sentence in bounds.sentences(found):
                self._store.warn(f"collector {source.kind}: {sentence}")
        if self._samplers:
            connected = [source for source, _ in self._samplers]
            rows = self._watching.collectors(connected, INTERVAL_S)
            before = {_key(row): row["interval_s"] for row in self._store.manifest.get("collectors") or ()}
            for row in rows:  # somebody else may set the pace
                row["interval_s"] = before.get(_key(row), row["interval_s"])
            self._store.manifest["collectors"] = rows
            self._store.manifest["data_quality"] = self._watching.quality()
            self._store.save_manifest()

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
