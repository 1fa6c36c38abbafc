"""Reads a collector on a fixed schedule, and says itself what that cost and whether it worked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample

_NS = 1_000_000_000

Sink = Callable[[Sequence[Sample]], None]


class Event(Protocol):
    """Writes one line to the run's events: ``on_event("gap", kind="local", hosts=[...], ...)``."""

    def __call__(self, event: str, /, **fields: object) -> None:
        """Take one event by its name and fields; the fields are JSON-ready."""
        ...


class Clock:
    """The three clocks of a sampler; a test gives it another."""

    def time_ns(self) -> int:
        """UTC nanoseconds: what samples are stamped with."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Nanoseconds that no clock change touches: what the schedule goes by."""
        return time.monotonic_ns()

    def cpu_s(self) -> float:
        """CPU seconds of the calling thread."""
        return time.thread_time()


class Schedule:
    """Slots at whole multiples of the interval in UTC, kept by the monotonic clock: they never drift."""

    def __init__(self, utc_ns: int, monotonic_ns: int, interval_s: float) -> None:
        self._interval_ns = round(interval_s * _NS)
        self._next_ns = monotonic_ns + -utc_ns % self._interval_ns

    def wait_s(self, monotonic_ns: int) -> float:
        """Seconds until the next slot; 0 when it has come."""
        return max(0, self._next_ns - monotonic_ns) / _NS

    def advance(self, monotonic_ns: int) -> int:
        """Go on to the next slot still to come; returns how many were missed on the way.

        Call it once a slot's work is done: slots that passed meanwhile are skipped, never made up for.
        """
        behind_ns = monotonic_ns - self._next_ns
        missed = max(0, behind_ns // self._interval_ns)
        self._next_ns += (missed + 1) * self._interval_ns
        return missed


class Sampler:
    """A thread that reads one collector every ``interval_s`` and hands the samples on.

    A reading that fails costs its samples only: ``collector.ok`` is 0, and an event tells the reason when
    readings begin to fail and when they work again. A sink (or ``on_event``) that raises ends the sampler,
    and ``error`` holds the exception: who started it must look there, as a run without its samples is no
    evidence.

    Args:
        collector: what is read. The sampler never closes it.
        kind: the collector's kind: the instance of its own metrics.
        hosts: the hosts it watches; each gets ``collector.cpu_s``, ``.duration_s`` and ``.ok``.
        sink: takes the samples of one reading, in this thread.
        on_event: takes ``collector_failed`` (kind, hosts, why), ``collector_recovered`` (kind, hosts) and
            ``gap`` (kind, hosts, missed, interval_s, why).
        interval_s: seconds between readings.
        clock: for tests.
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
    ) -> None:
        self.error: Exception | None = None
        self._collector = collector
        self._kind = kind
        self._hosts = tuple(hosts)
        self._sink = sink
        self._on_event = on_event
        self._interval_s = interval_s
        self._clock = clock or Clock()
        self._ok = True
        self._before_ns: int | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sampler-{kind}", daemon=True)

    def start(self) -> Self:
        """Begin; the first reading is at the next whole interval."""
        self._thread.start()
        return self

    def stop(self, timeout_s: float = 10.0) -> None:
        """End after the reading under way. Safe to call twice, also before ``start``.

        Raises ``CollectorError`` when that reading does not end in time. Look at ``error`` afterwards.
        """
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise CollectorError(
                f"collector {self._kind!r} of {', '.join(self._hosts)}: its last reading did not end within "
                f"{timeout_s:g} s; its machine does not answer"
            )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._read()  # primes: the first samples must not cover all the time since it was connected
            schedule = Schedule(self._clock.time_ns(), self._clock.monotonic_ns(), self._interval_s)
            while not self._stopping.wait(schedule.wait_s(self._clock.monotonic_ns())):
                self.tick()
                missed = schedule.advance(self._clock.monotonic_ns())
                if missed:
                    self._tell_gap(missed)
        except Exception as error:  # noqa: BLE001 - whatever the sink raised must reach who polls `error`
            self.error = error

    def tick(self) -> None:
        """One reading now, its samples and its own cost handed to the sink. Raises what the sink raises."""
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
        self._tell_change(why)

    def _read(self) -> tuple[Sequence[Sample], str | None]:
        """The samples and None, or none and why."""
        try:
            return self._collector.read(), None
        except CollectorError as error:
            return (), str(error)
        except Exception as error:  # noqa: BLE001 - a driver's own error must not end the watching of a host
            return (), f"{type(error).__name__}: {error}"

    def _tell_change(self, why: str | None) -> None:
        """One event when readings begin to fail and one when they work again, not one a second."""
        if why and self._ok:
            self._on_event("collector_failed", kind=self._kind, hosts=list(self._hosts), why=why)
        elif not why and not self._ok:
            self._on_event("collector_recovered", kind=self._kind, hosts=list(self._hosts))
        self._ok = why is None

    def _tell_gap(self, missed: int) -> None:
        self._on_event(
            "gap",
            kind=self._kind,
            hosts=list(self._hosts),
            missed=missed,
            interval_s=self._interval_s,
            why=f"{missed} reading(s) missed: the one before was late or slow",
        )
