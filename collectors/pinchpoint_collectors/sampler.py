"""Reads a collector on a fixed schedule, and reports its cost and failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from pinchpoint_collectors import bounds
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, GapReporter, Sample

_NS = 1_000_000_000

Sink = Callable[[Sequence[Sample]], None]


class Event(Protocol):
    """Writes one line to the events of the run: ``on_event("gap", kind="local", hosts=[...], ...)``."""

    def __call__(self, event: str, /, **fields: object) -> None:
        """Write one event with its name and fields; the fields are JSON-ready."""
        ...


class Clock:
    """The clocks of a sampler. Tests replace them."""

    def time_ns(self) -> int:
        """Return UTC nanoseconds, the time of samples."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return monotonic nanoseconds, the time of the schedule."""
        return time.monotonic_ns()

    def cpu_s(self) -> float:
        """Return CPU seconds of the calling thread."""
        return time.thread_time()


class Schedule:
    """Slots at whole multiples of the interval in UTC. A monotonic clock keeps them from drifting."""

    def __init__(self, utc_ns: int, monotonic_ns: int, interval_s: float) -> None:
        self._interval_ns = round(interval_s * _NS)
        self._next_ns = monotonic_ns + -utc_ns % self._interval_ns

    def wait_s(self, monotonic_ns: int) -> float:
        """Return the seconds until the next slot; 0 if it is due."""
        return max(0, self._next_ns - monotonic_ns) / _NS

    def advance(self, monotonic_ns: int) -> int:
        """Go to the next future slot. Return the number of missed slots.

        Call it after the work of a slot. Slots that passed meanwhile are skipped and not repeated.
        """
        behind_ns = monotonic_ns - self._next_ns
        missed = max(0, behind_ns // self._interval_ns)
        self._next_ns += (missed + 1) * self._interval_ns
        return missed


class Sampler:
    """A thread that reads one collector every ``interval_s`` and passes on its samples.

    A failed reading loses only its own samples: ``collector.ok`` is 0. One event has the reason of the first
    failure, another reports the recovery, and the time between is reported as a gap (by the collector itself
    if it is a ``GapReporter``, which may deliver samples late). If the sink or ``on_event`` raises, the
    sampler ends and ``error`` has the exception: the caller must check it, because a run without samples is
    not valid. An impossible value (``bounds``) becomes "not measured" and is counted in ``nonsense``; an
    event names the first of each series.

    Args:
        collector: collector to read. The sampler never closes it.
        kind: kind of the collector, which is the instance of its own metrics.
        hosts: watched hosts; each gets ``collector.cpu_s``, ``.duration_s`` and ``.ok``.
        sink: receives the samples of one reading, in this thread.
        on_event: receives ``collector_failed`` (kind, hosts, why), ``collector_recovered`` (kind, hosts),
            ``gap`` (kind, hosts, missed, interval_s, why; from and to in UTC if readings failed), the
            collector's own events (``record.Incident``), and ``impossible_value`` (kind, hosts, why).
        interval_s: seconds between readings.
        clock: clocks; tests replace them.
        bounded: whether the sampler checks for impossible values; if not, the receiver of the samples does.
    """

    def __init__(
        self,
        collector: Collector,
        kind: str,
        hosts: Sequence[str],
        sink: Sink,
        *,
        on_event: Event,
        interval_s: float = 1.0,
        clock: Clock | None = None,
        bounded: bool = True,
    ) -> None:
        self.error: Exception | None = None
        self.nonsense = bounds.Tally()
        self._collector = collector
        self._kind = kind
        self._hosts = tuple(hosts)
        self._sink = sink
        self._on_event = on_event
        self._interval_s = interval_s
        self._clock = clock or Clock()
        self._bounded = bounded
        self._reported_nonsense = 0
        self._failing: _Failing | None = None
        self._worked_ns = self._clock.time_ns()
        self._read_ns = self._clock.monotonic_ns()
        self._before_ns: int | None = None
        self._stopping = threading.Event()
        self._asked_s: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"sampler-{kind}", daemon=True)

    def start(self) -> Self:
        """Start the thread. The first reading is at the next whole interval."""
        self._read_ns = self._clock.monotonic_ns()
        self._thread.start()
        return self

    def ask_to_stop(self) -> None:
        """Request the end after the current reading, without waiting for it.

        With many samplers, request the end of all of them first.
        """
        if self._asked_s is None:
            self._asked_s = time.monotonic()
        self._stopping.set()

    def stop(self, timeout_s: float = 10.0) -> None:
        """End after the current reading. A second call does nothing, and neither does one before ``start``.

        Raises ``CollectorError`` if that reading does not end in time. Check ``error`` afterwards.
        """
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            waited_s = max(timeout_s, round(time.monotonic() - (self._asked_s or 0.0)))
            raise CollectorError(
                f"collector {self._kind!r} of {', '.join(self._hosts)}: its last reading did not end within "
                f"{waited_s:g} s; its machine does not answer"
            )

    @property
    def failing_s(self) -> float:
        """Return the seconds of failing readings; 0 if the last one succeeded."""
        failing = self._failing
        return 0.0 if failing is None else (self._clock.monotonic_ns() - failing.since_ns) / _NS

    @property
    def silent_s(self) -> float:
        """Return the seconds without a successful reading. A reading in progress counts from its start."""
        return (self._clock.monotonic_ns() - self._read_ns) / _NS

    @property
    def why(self) -> str:
        """Return why readings began to fail; "" if the last one succeeded."""
        failing = self._failing
        return "" if failing is None else failing.why

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._read()  # initial counters: the first samples must not cover the time since connecting
            schedule = Schedule(self._clock.time_ns(), self._clock.monotonic_ns(), self._interval_s)
            while not self._stopping.wait(schedule.wait_s(self._clock.monotonic_ns())):
                self.tick()
                missed = schedule.advance(self._clock.monotonic_ns())
                if missed:
                    self._report("gap", missed=missed, interval_s=self._interval_s, why=_late(missed))
            if self._failing is not None:
                self._report_blind(self._failing)
        except Exception as error:  # noqa: BLE001 - whatever the sink raised must reach who polls `error`
            self.error = error

    def tick(self) -> None:
        """Read once now. Pass on the samples and the collector's own cost. Raises the errors of the sink."""
        clock = self._clock
        start_ns, start_cpu_s = clock.monotonic_ns(), clock.cpu_s()
        samples, why = self._read()
        duration_s, cpu_s = (clock.monotonic_ns() - start_ns) / _NS, clock.cpu_s() - start_cpu_s
        interval_s = 0.0 if self._before_ns is None else (start_ns - self._before_ns) / _NS
        self._before_ns = start_ns
        own = (
            ("collector.cpu_s", cpu_s),
            ("collector.duration_s", duration_s),
            ("collector.ok", 0.0 if why else 1.0),
        )
        stamp_ns = clock.time_ns()
        about = [
            Sample(stamp_ns, interval_s, host, metric, self._kind, value)
            for host in self._hosts
            for metric, value in own
        ]
        self._sink([*samples, *about])
        self._report_change(why)
        self._report_nonsense()

    def _read(self) -> tuple[Sequence[Sample], str | None]:
        """Return the samples and None, or no samples and the reason."""
        try:
            return self._possible(self._collector.read()), None
        except CollectorError as error:
            return (), str(error)
        except Exception as error:  # noqa: BLE001 - a driver's own error must not end the watching of a host
            return (), f"{type(error).__name__}: {error}"

    def _possible(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        if not self._bounded:
            return samples
        return self.nonsense.checked(samples, self._clock.time_ns() + bounds.AHEAD_NS)

    def _report_nonsense(self) -> None:
        """Report one event for each series with an impossible value. The total is reported at the end."""
        for one in list(self.nonsense.found.values())[self._reported_nonsense :]:
            self._report("impossible_value", why=one.words())
        self._reported_nonsense = len(self.nonsense.found)

    def _report_change(self, why: str | None) -> None:
        """Report one event for the first failure and one for the recovery, and not one per second."""
        if isinstance(self._collector, GapReporter):
            for incident in self._collector.incidents():
                self._report(incident.event, **incident.fields)
        now_ns = self._clock.time_ns()
        if why is None:
            failing, self._failing, self._worked_ns = self._failing, None, now_ns
            self._read_ns = self._clock.monotonic_ns()
            if failing is not None:
                self._report("collector_recovered")
                if not isinstance(self._collector, GapReporter):
                    self._report_blind(failing)
        elif self._failing is None:
            self._failing = _Failing(self._worked_ns, self._clock.monotonic_ns(), why)
            self._report("collector_failed", why=why)
        else:
            self._failing.readings += 1

    def _report_blind(self, failing: _Failing) -> None:
        """Report the gap of failed readings until now."""
        span = {"from": utc(failing.worked_ns), "to": utc(self._clock.time_ns())}
        self._report("gap", **span, missed=failing.readings, interval_s=self._interval_s, why=failing.why)

    def _report(self, event: str, **fields: object) -> None:
        self._on_event(event, kind=self._kind, hosts=list(self._hosts), **fields)


@dataclass(slots=True)
class _Failing:
    """Consecutive failed readings.

    Attributes:
        worked_ns: time of the last successful reading in UTC ns.
        since_ns: time of the first failure in monotonic ns.
        why: reason of the first failure.
        readings: number of failures.
    """

    worked_ns: int
    since_ns: int
    why: str
    readings: int = 1


def _late(missed: int) -> str:
    return f"{missed} reading(s) missed: the one before was late or slow"
