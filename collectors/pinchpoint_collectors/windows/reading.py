"""Parses lines with counters: classes with their types, and values from two readings.

There is one formula per counter type; of which type a counter is, Windows says itself (the qualifier
``CounterType`` of its property in the CIM class). Types, formulas and symbols are those of winperf.h and of
Microsoft's "Calculating Counter Values"
(learn.microsoft.com/windows/win32/perfctrs/calculating-counter-values) and "WMI Performance Counter Types"
(learn.microsoft.com/windows/win32/wmisdk/wmi-performance-counter-types): X is the counter, B its base, D the
time stamp and F its ticks per second; 0 and 1 are the readings before and now. A formula's place:

* rates, "Statistical"/"Counter" types: learn.microsoft.com/previous-versions/ms938545(v=msdn.10)
* ``PERF_AVERAGE_TIMER``: .../ms938538(v=msdn.10)
* ``PERF_100NSEC_TIMER``, ``..._INV``: .../ms938529(v=msdn.10), .../ms938533(v=msdn.10)
* queue lengths: .../windows/embedded/ms901178(v=msdn.10); technet.microsoft.com/library/cc781696(v=ws.10)
* precision timers: technet.microsoft.com/library/cc756128(v=ws.10)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pinchpoint_collectors.common.powershell import Line
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.value import Value, growth
from pinchpoint_collectors.windows.counters import Counter, instance_of
from pinchpoint_collectors.windows.script import CounterObject, chosen, sql_instance

_LARGE = 0x100
"""Bit of a type that means 64 bits (PERF_SIZE_LARGE of winperf.h)."""
_DWORD = 2**32


class Raw(NamedTuple):
    """The raw values of one counter.

    Attributes:
        value: value of the counter.
        base: divisor of the type (``NAME_Base``); None if it has none.
        perf_time: Timestamp_PerfTime, in ticks.
        sys_time: Timestamp_Sys100NS, in 100 ns.
        perf_per_s: Frequency_PerfTime, ticks per second.
    """

    value: int
    base: int | None
    perf_time: int
    sys_time: int
    perf_per_s: int


class Formatted(NamedTuple):
    """The value that the Performance Monitor would show, in its units (percentages up to 100); None: unknown.

    Attributes:
        value: value.
        weight: number of operations of a mean; None if it is no mean.
    """

    value: float | None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class CounterType:
    """One type of counter.

    Attributes:
        name: name in winperf.h.
        number: number in winperf.h.
        cook: formula of (before, now, whether the counter has 64 bits). It is not called if ``before`` is
            needed and missing.
        difference: whether it needs a previous reading, because the counter only grows.
    """

    name: str
    number: int
    cook: Callable[[Raw, Raw, bool], Formatted]
    difference: bool = True

    @property
    def large(self) -> bool:
        """Return whether the counter has 64 bits. One of 32 bits wraps after a short time."""
        return bool(self.number & _LARGE)


def grown(before: int, now: int, *, large: bool) -> int | None:
    """Return the growth of a counter.

    A counter of 64 bits that fell was reset (None); one of 32 bits wrapped.
    """
    return growth(before, now) if large else (now - before) % _DWORD


def _rate(old: Raw, new: Raw, large: bool) -> Formatted:
    """Return (X1 - X0) / ((D1 - D0) / F)."""
    count, ticks = grown(old.value, new.value, large=large), new.perf_time - old.perf_time
    return Formatted(None if count is None or ticks <= 0 else count / (ticks / new.perf_per_s))


def _average_timer(old: Raw, new: Raw, large: bool) -> Formatted:
    """Return ((X1 - X0) / F) / (B1 - B0): seconds per operation. The base counts in 32 bits."""
    spent, operations = grown(old.value, new.value, large=large), _operations(old, new)
    if spent is None or operations is None:
        return Formatted(None)
    return Formatted(spent / new.perf_per_s / operations if operations else None, operations)


def _operations(old: Raw, new: Raw) -> int | None:
    return None if old.base is None or new.base is None else grown(old.base, new.base, large=False)


def _timer_100ns(old: Raw, new: Raw, large: bool) -> Formatted:
    """Return 100 (X1 - X0) / (D1 - D0), both in 100 ns."""
    spent, passed = grown(old.value, new.value, large=large), new.sys_time - old.sys_time
    return Formatted(None if spent is None or passed <= 0 else 100 * spent / passed)


def _timer_100ns_inverse(old: Raw, new: Raw, large: bool) -> Formatted:
    """Return 100 (1 - (X1 - X0) / (D1 - D0)), because the counter is the idle time."""
    idle = _timer_100ns(old, new, large).value
    return Formatted(None if idle is None else 100 - idle)


def _precision_timer(old: Raw, new: Raw, large: bool) -> Formatted:
    """Return 100 (X1 - X0) / (B1 - B0). The base is the time stamp that was taken with the counter."""
    spent = grown(old.value, new.value, large=large)
    passed = None if old.base is None or new.base is None else new.base - old.base
    return Formatted(None if spent is None or passed is None or passed <= 0 else 100 * spent / passed)


def _queue_100ns(old: Raw, new: Raw, large: bool) -> Formatted:
    """Return (X1 - X0) / (D1 - D0), both in 100 ns: the mean number of waiting or served requests."""
    share = _timer_100ns(old, new, large).value
    return Formatted(None if share is None else share / 100)


def _queue(old: Raw, new: Raw, large: bool) -> Formatted:
    """Return (X1 - X0) / (D1 - D0), both in ticks of the performance counter."""
    spent, ticks = grown(old.value, new.value, large=large), new.perf_time - old.perf_time
    return Formatted(None if spent is None or ticks <= 0 else spent / ticks)


def _now(_: Raw, new: Raw, __: bool) -> Formatted:
    """Return X1, the current count."""
    return Formatted(float(new.value))


def _share_now(_: Raw, new: Raw, __: bool) -> Formatted:
    """Return 100 X1 / B1; None if the base is 0."""
    return Formatted(100 * new.value / new.base if new.base else None)


_TYPES = (
    CounterType("PERF_COUNTER_RAWCOUNT", 0x00010000, _now, difference=False),
    CounterType("PERF_COUNTER_LARGE_RAWCOUNT", 0x00010100, _now, difference=False),
    CounterType("PERF_RAW_FRACTION", 0x20020400, _share_now, difference=False),
    CounterType("PERF_LARGE_RAW_FRACTION", 0x20020500, _share_now, difference=False),
    CounterType("PERF_COUNTER_COUNTER", 0x10410400, _rate),
    CounterType("PERF_COUNTER_BULK_COUNT", 0x10410500, _rate),
    CounterType("PERF_AVERAGE_TIMER", 0x30020400, _average_timer),
    CounterType("PERF_100NSEC_TIMER", 0x20510500, _timer_100ns),
    CounterType("PERF_100NSEC_TIMER_INV", 0x21510500, _timer_100ns_inverse),
    CounterType("PERF_PRECISION_100NS_TIMER", 0x20570500, _precision_timer),
    CounterType("PERF_COUNTER_QUEUELEN_TYPE", 0x00450400, _queue),
    CounterType("PERF_COUNTER_LARGE_QUEUELEN_TYPE", 0x00450500, _queue),
    CounterType("PERF_COUNTER_100NS_QUEUELEN_TYPE", 0x00550500, _queue_100ns),
)

TYPES: Mapping[int, CounterType] = {one.number: one for one in _TYPES}
"""Number of a type -> the type, for all known types."""


_STAMPS = 3
"""First cells after the name: Timestamp_PerfTime, Timestamp_Sys100NS, Frequency_PerfTime."""


class Row(NamedTuple):
    """One instance at one time. The stamps are those of ``Raw``, and ``cells`` are in the order of the class.

    A stamp that was not given is 0. No difference is reported then.
    """

    perf_time: int
    sys_time: int
    perf_per_s: int
    cells: tuple[int | None, ...]


class ClassRows(NamedTuple):
    """One class at one time.

    Attributes:
        utc: time of the reading in 100 ns since 1601, by the clock of the machine.
        by_name: instance -> row; ``""`` is the only instance of a class without instances.
    """

    utc: int
    by_name: Mapping[str, Row]


class PropertyColumn(NamedTuple):
    """Position of a property in a row, and its type."""

    at: int
    base_at: int | None
    type: CounterType


@dataclass(frozen=True, slots=True)
class CounterClass:
    """One class of counters of a machine.

    Attributes:
        name: name without ``Win32_PerfRawData_``.
        wanted: object that was requested.
        counters: counters and their metrics.
        errors: totals of errors.
        sql_instance: instance of SQL Server (``""``: the default one); None: not of SQL Server.
        unknown: property with an unknown type -> number of the type, as reported.
    """

    name: str
    wanted: CounterObject
    counters: Sequence[tuple[PropertyColumn, Counter]]
    errors: Sequence[PropertyColumn] = ()
    sql_instance: str | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)

    def raw(self, row: Row, column: PropertyColumn) -> Raw | None:
        """Return a counter of an instance; None if the machine gave no value."""
        value = row.cells[column.at]
        if value is None:
            return None
        base = None if column.base_at is None else row.cells[column.base_at]
        return Raw(value, base, row.perf_time, row.sys_time, row.perf_per_s)


def class_of(line: Line, wanted: Sequence[CounterObject]) -> CounterClass | None:
    """Return the class in a line ``class``; None if only its name looks like a requested one.

    Raises:
        CollectorError: the script does not write such a line.
    """
    try:
        name = str(line["class"])
        asked = next(one for one in wanted if one.pattern == line["pattern"])
        columns, types = str(line["columns"]).split(","), str(line["types"]).split(",")
        numbers = dict(zip(columns, types, strict=True))
    except (KeyError, ValueError, StopIteration) as error:
        raise _unknown_line(line) from error
    instance = sql_instance(asked, name)
    if instance is None and asked.pattern.startswith("MSSQL"):
        return None
    known = {
        one: TYPES[int(number)]
        for one, number in numbers.items()
        if number.isdecimal() and int(number) in TYPES
    }
    places = {one: at for at, one in enumerate(columns)}

    def column(one: str) -> PropertyColumn:
        return PropertyColumn(places[one], places.get(f"{one}_Base"), known[one])

    used = chosen(asked, {one: kind.number for one, kind in known.items()})
    asked_for = {*asked.counters, *asked.errors}
    return CounterClass(
        name=name,
        wanted=asked,
        counters=[(column(one), means) for one, means in used.items()],
        errors=[column(one) for one in asked.errors if one in known],
        sql_instance=instance,
        unknown={one: number for one, number in numbers.items() if one in asked_for and one not in known},
    )


def rows_of(line: Line, width: int) -> ClassRows:
    """Return the content of a line ``rows``.

    Args:
        line: line of the script.
        width: number of columns of the class.

    Raises:
        CollectorError: the script does not write such a line.
    """
    try:
        result = {str(row[0]): _row(row, width) for row in line["rows"]}
        return ClassRows(int(line["utc"]), result)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise _unknown_line(line) from error


def _row(row: Sequence[Any], width: int) -> Row:
    stamps, cells = row[1 : 1 + _STAMPS], row[1 + _STAMPS :]
    if len(cells) != width:
        raise ValueError(f"{len(cells)} values in a row of {width}")
    perf_time, sys_time, perf_per_s = (int(stamp or 0) for stamp in stamps)
    return Row(perf_time, sys_time, perf_per_s, tuple(None if cell is None else int(cell) for cell in cells))


def _unknown_line(line: Line) -> CollectorError:
    return CollectorError(
        f"the machine answered with a line that is none of the script's ({str(dict(line))[:120]}); is "
        "something in between that changes what is sent?"
    )


TUNNELS = re.compile(r"isatap\.|Teredo |6to4 |Microsoft 6To4|Microsoft IP-HTTPS", re.IGNORECASE)
"""Pseudo interfaces whose packets also pass another interface."""
_LATENCIES = ("disk.read_latency_s", "disk.write_latency_s")


def interval_s(before: ClassRows, after: ClassRows) -> float | None:
    """Return the seconds between two readings by the machine's steady clock; None without a common instance.

    The result is 0 or less if that clock was reset, because the machine was restarted.
    """
    for name, row in after.by_name.items():
        old = before.by_name.get(name)
        if old is not None and row.perf_per_s:
            return (row.perf_time - old.perf_time) / row.perf_per_s
    return None


def values(
    counted: CounterClass, before: ClassRows | None, after: ClassRows, *, only_instance: bool = True
) -> Iterator[Value]:
    """Yield the values of a class.

    Args:
        counted: class.
        before: previous reading; None at the first, which gives only values that need no difference.
        after: this reading.
        only_instance: whether the machine has no other instance of SQL Server. Otherwise the names of
            databases get the instance's name as a prefix, except for the default instance.
    """
    old_rows = before.by_name if before else {}
    for name in dict.fromkeys([*after.by_name, *old_rows]):
        instance = _instance(counted, name, only_instance=only_instance)
        if instance is None:
            continue
        old, new = old_rows.get(name), after.by_name.get(name)
        if new is None:  # the device was removed meanwhile
            yield from (Value(means.metric, instance, None) for _, means in counted.counters)
            if counted.errors:
                yield Value("net.errors_per_s", instance, None)
        else:
            yield from _of_row(counted, instance, old, new)


def not_read(
    counted: CounterClass, before: ClassRows | None, *, only_instance: bool = True
) -> Iterator[Value]:
    """Yield nulls for a class that could not be read this time, for the instances it had before."""
    if before is not None:
        yield from values(counted, before, ClassRows(before.utc, {}), only_instance=only_instance)


def with_ratio(value: Iterable[Value], memory_bytes: int | None) -> Iterator[Value]:
    """Yield the same values, and available memory also as a ratio of the memory size."""
    for one in value:
        yield one
        if one.metric == "mem.available_bytes" and memory_bytes:
            share = None if one.value is None else one.value / memory_bytes
            yield Value("mem.available_ratio", one.instance, share)


def _of_row(counted: CounterClass, instance: str, old: Row | None, new: Row) -> Iterator[Value]:
    lost = old is not None and _was_reset(counted, old, new)
    result = {
        means.metric: _value(means, _cooked(counted, column, old, new, lost=lost), instance)
        for column, means in counted.counters
        if old is not None or not column.type.difference
    }
    if old is not None and new.perf_per_s > 0:
        for metric in _LATENCIES:
            if metric in result and _wrapped_twice(result.get("disk.outstanding"), old, new):
                result[metric] = Value(metric, instance, None)
        if counted.errors:
            result["net.errors_per_s"] = _errors(counted, instance, old, new)
    yield from result.values()


def _cooked(
    counted: CounterClass, column: PropertyColumn, old: Row | None, new: Row, *, lost: bool
) -> Formatted:
    raw = counted.raw(new, column)
    if raw is None:
        return Formatted(None)
    if not column.type.difference:
        return column.type.cook(raw, raw, column.type.large)
    raw_before = counted.raw(old, column) if old is not None else None
    if raw_before is None or lost or new.perf_per_s <= 0:
        return Formatted(None)
    return column.type.cook(raw_before, raw, column.type.large)


def _value(means: Counter, cooked: Formatted, instance: str) -> Value:
    """Return a value in base units.

    A value below 0 is a 0 with clock errors: an idle time may exceed the elapsed time.
    """
    shown = None if cooked.value is None else max(0.0, cooked.value * means.scale + means.offset)
    return Value(means.metric, instance, shown, cooked.weight)


def _was_reset(counted: CounterClass, old: Row, new: Row) -> bool:
    """Return whether a counter of 64 bits fell.

    Counters of 32 bits did not wrap then, but were also reset.
    """
    for column, _ in counted.counters:
        if column.type.large and column.type.difference:
            before, now = old.cells[column.at], new.cells[column.at]
            if before is not None and now is not None and grown(before, now, large=True) is None:
                return True
    return new.perf_time < old.perf_time


def _wrapped_twice(outstanding: Value | None, old: Row, new: Row) -> bool:
    """Return whether the time spent in I/O may have exceeded the 32 bits of its counter: 429 s at 10 MHz."""
    if outstanding is None or outstanding.value is None:
        return False
    return outstanding.value * (new.perf_time - old.perf_time) >= _DWORD


def _errors(counted: CounterClass, instance: str, old: Row, new: Row) -> Value:
    """Return errors of both directions per second, from their totals."""
    pairs = [(old.cells[column.at], new.cells[column.at]) for column in counted.errors]
    passed_s = (new.perf_time - old.perf_time) / new.perf_per_s
    total = _sum([None if a is None or b is None or b < a else b - a for a, b in pairs])
    return Value("net.errors_per_s", instance, None if total is None or passed_s <= 0 else total / passed_s)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _instance(counted: CounterClass, name: str, *, only_instance: bool) -> str | None:
    """Return an instance in Pinchpoint's form; None if it is left out."""
    instance = instance_of(counted.wanted.object, name)
    if instance is None or (counted.wanted.object == "Network Interface" and TUNNELS.match(instance)):
        return None
    if counted.sql_instance and not only_instance:
        return f"{counted.sql_instance}/{instance}"
    return instance
