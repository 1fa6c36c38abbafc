"""Base of the collectors of cloud platforms, whose values arrive minutes late with their own times.

A platform measures each minute, and its values are available one to three minutes later. The collector is
therefore also read after the end of the measurement, for at most ``LATE_S`` (``record.LateCollector``).
Values that are still missing then are not measured.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

from pinchpoint_collectors.common.backoff import retry_after_s
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.record import Incident, NotMeasured, Sample, Watch

LATE_S = 240
"""Seconds after the end of its interval at which a missing value counts as not measured."""
EVERY_S = 30.0
"""Seconds between two queries."""
_LOOK_BACK_S = 900
"""Length in seconds of the time range that is checked for values at the start."""
_FIRST = 2
"""Number of earlier values of each series that the start returns, for ``check``."""
_THROTTLED_S = 60.0
_NS = 1_000_000_000


class MetricSeries(NamedTuple):
    """One metric of one instance, measured every ``grain_s`` seconds, at whole multiples in UTC."""

    metric: str
    instance: str
    grain_s: int


class MetricPoint(NamedTuple):
    """One value in base units, and the start of its interval (UTC seconds)."""

    series: MetricSeries
    begin_s: int
    value: float

    @property
    def end_s(self) -> int:
        """Return the end of its interval in UTC seconds."""
        return self.begin_s + self.series.grain_s


class ThrottledError(CollectorError):
    """The platform gives no answers for some time.

    Args:
        said: answer of the platform.
        after_s: requested pause in seconds; None if none is requested.
    """

    def __init__(self, text: str, after_s: float | None) -> None:
        self.after_s = _THROTTLED_S if after_s is None else after_s
        super().__init__(f"{text}; the next query is in {self.after_s:.0f} s, and no value is lost meanwhile")


class Platform(Protocol):
    """The metrics of one machine and its disks.

    Attributes:
        name: name of the platform in messages.
        series: series that are queried.
    """

    name: str
    series: Sequence[MetricSeries]

    def fetch(self, begin_s: int, end_s: int) -> Iterable[MetricPoint]:
        """Return all existing values of intervals between two times. Raises ``CollectorError``."""
        ...

    def unknown(self) -> Mapping[str, str]:
        """Return metric that the platform lacks for this machine -> reason."""
        ...

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


class PlatformCollector:
    """Fetches the values of the platform until all have arrived or are too late.

    Implements ``GapReporter`` and ``LateCollector``.

    Args:
        watches: hosts of the farm on this machine.
        platform: metrics of the machine.
        where: name of the collector in messages.
        clock: returns UTC seconds; tests replace it.
    """

    late_s = LATE_S + 2 * EVERY_S

    def __init__(
        self,
        watches: Sequence[Watch],
        platform: Platform,
        where: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._watches = tuple(watches)
        self._platform = platform
        self._where = where
        self._clock = clock
        self._reported: list[Incident] = []
        now_s = clock()
        self._next = {each: _floor(now_s, each.grain_s) for each in platform.series}
        """Series -> its earliest interval without a value that may still arrive."""
        self._came: set[tuple[MetricSeries, int]] = set()
        self._lost: dict[MetricSeries, int] = {}
        self._had: dict[MetricSeries, int] = {}
        self._due_s = 0.0
        self._down: str | None = None
        self._until_s: float | None = None
        self._complete = False
        before = list(platform.fetch(int(now_s) - _LOOK_BACK_S, int(now_s)))
        self._seen_before = {point.series for point in before}
        self._first = [
            point
            for each in platform.series
            for point in _latest((one for one in before if one.series == each), self._next[each])
        ]
        self._primed = False
        self._due_s = now_s + EVERY_S

    def read(self) -> Sequence[Sample]:
        """Return every value that arrived since the last reading, with its own time."""
        if not self._primed:
            self._primed = True
            return ()
        points, self._first = self._first, []
        now_s = self._clock()
        fetched = now_s >= self._due_s and self._fetch(now_s, points)
        samples = [sample for point in points for sample in self._samples(point, point.value)]
        # While the platform gives no answer, nothing is lost, because values can be fetched later, except the
        # last ones.
        if fetched or (self._until_s is not None and now_s > self._until_s + LATE_S):
            samples += self._missed(now_s)
        if self._down is not None and not samples:
            raise CollectorError(self._down)
        return samples

    def complete(self, until_ns: int) -> bool:
        """Return whether all values up to a time have arrived, or were reported as not measured."""
        if self._until_s is None:
            self._until_s = until_ns / _NS
            self._due_s = min(self._due_s, self._clock() + 1)
        return self._complete

    def incidents(self) -> Sequence[Incident]:
        """Return minutes without any value, and series with missing values."""
        reported, self._reported = self._reported, []
        return reported

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the metrics that are not measured on this machine."""
        missing = [asdict(each) for each in self._not_measured()]
        return {
            watch.host: {"tier": watch.tier, "platform": self._platform.name, "not_measured": missing}
            for watch in self._watches
        }

    def close(self) -> None:
        """Close the connection."""
        self._platform.close()

    def _fetch(self, now_s: float, into: list[MetricPoint]) -> bool:
        """Add new values to ``into``. Return whether the platform answered."""
        self._due_s = now_s + EVERY_S
        try:
            result = list(self._platform.fetch(min(self._next.values()), int(now_s)))
        except ThrottledError as error:
            self._due_s = now_s + error.after_s
            self._down = str(error)
            return False
        except CollectorError as error:
            self._down = str(error)
            return False
        self._down = None
        for point in result:
            place = point.series, point.begin_s
            # An interval that is not over yet has a partial value.
            if point.begin_s >= self._next[point.series] and point.end_s <= now_s and place not in self._came:
                self._came.add(place)
                self._had[point.series] = self._had.get(point.series, 0) + 1
                into.append(point)
        return True

    def _missed(self, now_s: float) -> list[Sample]:
        """Yield values that are too late as not measured."""
        lost: dict[int, list[MetricSeries]] = {}
        for series in self._next:
            while self._over(series, now_s):
                begin_s = self._next[series]
                if (series, begin_s) in self._came:
                    self._came.discard((series, begin_s))
                else:
                    lost.setdefault(begin_s, []).append(series)
                    self._lost[series] = self._lost.get(series, 0) + 1
                self._next[series] = begin_s + series.grain_s
        self._note_gaps(lost)
        if self._until_s is not None and not self._complete and self._all_over():
            self._note_missing()
            self._complete = True
        return [
            sample
            for begin_s, missing in lost.items()
            for series in missing
            for sample in self._samples(MetricPoint(series, begin_s, 0.0), None)
        ]

    def _over(self, series: MetricSeries, now_s: float) -> bool:
        """Return whether the earliest open interval is complete: its value has arrived, or is too late."""
        begin_s = self._next[series]
        end_s = begin_s + series.grain_s
        if self._until_s is not None and end_s > self._until_s:
            return False
        return (series, begin_s) in self._came or now_s > end_s + LATE_S

    def _all_over(self) -> bool:
        return all(begin_s + series.grain_s > (self._until_s or 0) for series, begin_s in self._next.items())

    def _samples(self, point: MetricPoint, value: float | None) -> Iterator[Sample]:
        series = point.series
        for watch in self._watches:
            yield Sample(
                point.end_s * _NS, float(series.grain_s), watch.host, series.metric, series.instance, value
            )

    # ---- what did not come ----------------------------------------------------------------------------

    def _note_gaps(self, lost: Mapping[int, Sequence[MetricSeries]]) -> None:
        """Record a gap for each minute without any value, unless there are never values."""
        usual = {series for series in self._next if series.grain_s == 60 and self._comes(series)}
        for begin_s, missing in sorted(lost.items()):
            if usual and usual <= set(missing):
                why = f"{self._platform.name} reported no value of it within {LATE_S // 60} minutes"
                self._reported.append(Incident.gap(begin_s * _NS, (begin_s + 60) * _NS, 1, 60.0, why))

    def _note_missing(self) -> None:
        """Record one sentence for all series with missing values at the end."""
        some = {series: count for series, count in self._lost.items() if self._comes(series)}
        if some:
            words = ", ".join(
                f"{_words(series)} ({count} of {count + self._had.get(series, 0)} values)"
                for series, count in sorted(some.items())
            )
            why = self._down or f"{self._platform.name} reported none within {LATE_S // 60} minutes"
            self._reported.append(
                Incident("partial_answer", {"why": f"{self._where}: not measured: {words}: {why}"})
            )

    def _comes(self, series: MetricSeries) -> bool:
        return series in self._seen_before or series in self._had

    def _not_measured(self) -> Iterator[NotMeasured]:
        unknown = self._platform.unknown()
        for series in self._platform.series:
            if series not in self._seen_before:
                why = unknown.get(series.metric) or (
                    f"{self._platform.name} reported no value of it from {_LOOK_BACK_S // 60} minutes before "
                    f"to {utc(int(self._clock()) * _NS)}"
                )
                yield NotMeasured(series.metric, series.instance, why, None)


def connected(
    watches: Sequence[Watch],
    where: str,
    libraries: Mapping[str, str],
    extra: str,
    make: Callable[[Watch, str], Platform],
) -> PlatformCollector:
    """Log in and fetch the last minutes. Raises ``CollectorError`` with the remedy.

    Args:
        watches: hosts of the farm on this machine.
        where: name of the collector in messages.
        libraries: imports of ``make``, module -> package. They belong to the ``extra``.
        extra: extra of pinchpoint-collectors.
        make: creates the metrics of a machine from its watch and ``where``.
    """
    try:
        for module in libraries:
            importlib.import_module(module)
    except ImportError as error:
        missing, are = " and ".join(libraries.values()), "are" if len(libraries) > 1 else "is"
        raise CollectorError(
            f"{where}: it needs {missing}, which {are} not installed here ({error}); "
            f"run: pip install 'pinchpoint-collectors[{extra}]'"
        ) from error
    platform = make(watches[0], where)
    try:
        return PlatformCollector(watches, platform, where)
    except CollectorError:
        platform.close()
        raise


def place(watch: Watch, kind: str) -> str:
    """Return the name of a host's collector in messages."""
    return f"host {watch.host!r}, collector {kind!r}"


def first_line(error: Exception) -> str:
    """Return the message of an error on one line of at most 200 characters."""
    text = str(getattr(error, "message", "") or error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


def asked_pause_s(headers: Mapping[str, str]) -> float | None:
    """Return the pause of ``Retry-After`` in seconds; None without one."""
    return retry_after_s(
        next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    )


def as_instances(option: str, given: object, roles: Iterable[str], where: str) -> dict[str, tuple[str, ...]]:
    """Return ``{log: 0, data: [1, 2]}`` as role -> names of its disks on the platform."""
    if not isinstance(given, Mapping) or not given:
        raise OptionError(
            option, "missing or no mapping; needed: a disk role and its disk, as {log: ...}", where
        )
    known = set(roles)
    result = {}
    for role, named in given.items():
        if known and role not in known:
            raise OptionError(
                option, f"no disk role {role!r} on this host; allowed: {', '.join(sorted(known))}", where
            )
        each = named if isinstance(named, list) else [named]
        result[str(role)] = tuple(str(one) for one in each)
    return result


def _floor(time_s: float, grain_s: int) -> int:
    return int(time_s // grain_s) * grain_s


def _latest(points: Iterable[MetricPoint], before_s: int) -> list[MetricPoint]:
    return sorted((one for one in points if one.begin_s < before_s), key=lambda one: one.begin_s)[-_FIRST:]


def _words(series: MetricSeries) -> str:
    return f"{series.metric} {series.instance}".strip()
