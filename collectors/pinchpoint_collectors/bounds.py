"""Defines the physical bounds of each metric. A value outside of them counts as not measured.

A bound is physical: no machine exceeds it. It does not say what is usual or good. All inputs use this table:
collectors (``sampler.py``), files of other tools (``imports/checked.py``), stored runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.record import Sample

DAY_S = 86_400.0


class ValueRange(NamedTuple):
    """The lowest and the highest possible value of a metric."""

    lowest: float
    highest: float

    def has(self, value: float) -> bool:
        """Return whether a value is possible. NaN and infinity are not."""
        return self.lowest <= value <= self.highest


SHARE = 1.5
"""Range of a share. A share is at most 1, but two counters read one after the other, and clock ticks of 10 ms
in a reading of 0.1 s, can exceed 1 by less than a half. Such values are kept."""
BELOW_0 = -0.1
"""Range of a share that may be below 0 for the same reason, such as 1 - an idle share of 100.3 %."""

_SHARE = ValueRange(BELOW_0, SHARE)
_OF_A_LIMIT = ValueRange(BELOW_0, 1000.0)
"""Range of usage ÷ limit, which exceeds 1 if a limit is lowered while the server runs."""
_YES_NO = ValueRange(0.0, 1.0)
_CORES = ValueRange(0.0, 8192.0)
"""Largest number of cores of a Linux kernel (NR_CPUS)."""
_TASKS = ValueRange(0.0, 2.0**24)
"""Largest number of tasks: Linux has at most 2^22 process ids (PID_MAX_LIMIT), Windows 2^24 handles of a
process."""
_MEMORY = ValueRange(0.0, 2.0**56)
"""Largest memory in bytes: the widest physical address space (ARMv9: 56 bits; x86-64: 52)."""
_BYTES = ValueRange(0.0, 2.0**63)
"""Largest value of the byte counters of file systems and servers."""
_BYTES_PER_S = ValueRange(0.0, 1e14)
"""Largest number of bytes per second: 100 TB/s is 100 times the memory bandwidth of a large server."""
_IO_PER_S = ValueRange(0.0, 1e9)
"""Largest number of I/Os per second: an NVMe drive reaches 1e6 to 1e7, a machine full of drives 1e8."""
_PER_S = ValueRange(0.0, 1e12)
"""Largest rate of other events: a thousand cores that each count an event every nanosecond."""
_COUNT = ValueRange(0.0, 1e15)
"""Largest count, below 2^53, up to which a float represents every whole number."""
WEIGHT = _COUNT
"""Range of the number of operations behind a mean."""
_TIME = ValueRange(0.0, 31 * DAY_S)
"""Range of a time. A wait ends with its reading, and no reading covers more than a month
(``LONGEST_INTERVAL_S``)."""
_DISK_WAIT = ValueRange(0.0, 3600.0)
"""Range of a disk's latency. A hung disk takes minutes: Linux gives a SCSI request 30 s and five retries (180
s), Azure asks for 300 s and for 240 s of NVMe, Windows has 60 s and eight retries (540 s). An hour is also
where histograms end."""
_ENDED_AT_ONCE = ValueRange(0.0, 1e9)
"""Range of the seconds that sessions waited per second, if a wait is counted at its end: a checkpoint of half
an hour counts 1800."""

_TABLE: tuple[tuple[str, ValueRange], ...] = (
    # Linux 5.0 to 5.18 count a disk's busy time when its I/O ends: an I/O of a minute counts in one second.
    ("disk.busy_ratio", ValueRange(BELOW_0, 60.0)),
    # The kernel updates its pressure figures every two seconds, so a reading each 0.1 s can see 20 times the
    # mean.
    ("pressure.*_ratio", ValueRange(BELOW_0, 30.0)),
    # CPU seconds per second of a process with several threads.
    ("generator.cpu_ratio", _CORES),
    ("generator.cpu_wait_ratio", _CORES),
    # A disk on burst credits exceeds its own limit.
    ("cloud.*_iops_ratio", _OF_A_LIMIT),
    ("cloud.*_bytes_ratio", _OF_A_LIMIT),
    ("db.connections_ratio", _OF_A_LIMIT),
    ("db.memory_ratio", _OF_A_LIMIT),
    ("db.units_ratio", _OF_A_LIMIT),
    ("db.workers_ratio", _OF_A_LIMIT),
    ("db.tickets_ratio", _OF_A_LIMIT),
    ("db.pool.busy_ratio", _OF_A_LIMIT),
    ("db.cache_ratio", _OF_A_LIMIT),
    ("db.cache_dirty_ratio", _OF_A_LIMIT),
    ("db.buffer_ratio", _OF_A_LIMIT),
    ("db.checkpoint_age_ratio", _OF_A_LIMIT),
    # Memory that virtual machines demand ÷ memory that they have.
    ("mem.demand_ratio", _OF_A_LIMIT),
    ("disk.used_*_ratio", _OF_A_LIMIT),
    ("*_ratio", _SHARE),
    ("cpu.cores", _CORES),
    ("cpu.stolen_cores", _CORES),
    ("cpu.used_cores", _CORES),
    ("generator.allowed_cores", _CORES),
    ("cpu.run_queue", _TASKS),
    ("cpu.waiting_threads", _TASKS),
    ("cpu.blocked_threads", _TASKS),
    ("net.output_queue", _COUNT),
    ("web.requests_queued", _COUNT),
    ("generator.users", _COUNT),
    # NVMe drives accept 65,535 queues of 65,536 commands.
    ("disk.outstanding", ValueRange(0.0, 2.0**32)),
    ("cloud.disk_outstanding", ValueRange(0.0, 2.0**32)),
    ("collector.ok", _YES_NO),
    ("generator.recorder_ok", _YES_NO),
    ("db.aof.failing", _YES_NO),
    ("db.aof.rewriting", _YES_NO),
    ("db.snapshot_running", _YES_NO),
    # The clock of a host may be at 1970, or wrong by the same time in the other direction.
    ("collector.clock_offset_s", ValueRange(-4e9, 4e9)),
    # SQL Server counts the life of a page in whole seconds of 32 bits.
    ("db.page_life_s", ValueRange(0.0, 2.0**31)),
    ("disk.*_latency_s", _DISK_WAIT),
    ("cloud.disk_*latency_s", _DISK_WAIT),
    # An adapter without a known speed may report the highest number (2^64 bits/s).
    ("net.speed_bytes_per_s", _BYTES),
    ("*_s_per_s", _ENDED_AT_ONCE),
    ("*_bytes_per_s", _BYTES_PER_S),
    ("disk.*_per_s", _IO_PER_S),
    ("cloud.disk_*_per_s", _IO_PER_S),
    ("*_per_s", _PER_S),
    ("*_s", _TIME),
    ("mem.*_bytes", _MEMORY),
    ("*_bytes", _BYTES),
    # The names of counters of databases and searches have no unit.
    ("app.*", _COUNT),
    ("db.*", _COUNT),
    ("search.*", _COUNT),
)
"""Patterns of metric names with their ranges. The first match counts."""

_ANY = ValueRange(-1e300, 1e300)
"""Range of metrics that this version does not know: any number."""

LONGEST_INTERVAL_S = 31 * DAY_S
"""Longest interval of a sample in seconds. A crawl may take days, which are one row, but no row covers a
month."""
EARLIEST_NS, LATEST_NS = 0, 7_258_118_400 * 10**9
"""Range of times, from 1970 to 2200. It is within the range of 64-bit nanoseconds (2262)."""
AHEAD_NS = 2 * 366 * 86_400 * 10**9
"""Largest time in the future. The clock of a recorder may be wrong by a year (a mistyped year), but not by
two."""


@lru_cache(maxsize=4096)
def bound_of(metric: str) -> ValueRange:
    """Return the possible range of a metric's values."""
    return next((bound for name, bound in _TABLE if fnmatchcase(metric, name)), _ANY)


def is_known(metric: str) -> bool:
    """Return whether the table has a range for a metric."""
    return any(fnmatchcase(metric, name) for name, _ in _TABLE)


def share(value: float) -> float:
    """Return 1 - a share, or 0 if rounding alone makes it negative. Impossible values are kept."""
    return 0.0 if BELOW_0 <= value < 0 else value


def is_possible(sample: Sample) -> bool:
    """Return whether a sample's value and weight are possible; "not measured" is possible."""
    value, weight = sample.value, sample.weight
    if value is not None and not bound_of(sample.metric).has(value):
        return False
    return weight is None or _COUNT.has(weight)


def is_placed(time_ns: float, interval_s: float, latest_ns: float = LATEST_NS) -> bool:
    """Return whether the time and the interval of a sample are possible."""
    return EARLIEST_NS <= time_ns <= latest_ns and 0 <= interval_s <= LONGEST_INTERVAL_S


@dataclass(slots=True)
class Impossible:
    """The impossible values of one series.

    Attributes:
        count: number of values.
        first: first value, as text.
        allowed: possible range, as text.
        time_ns: time of the first value in ns.
        line: line of the first value in its file; None: no file, or a file without lines.
    """

    host: str
    metric: str
    instance: str
    count: int
    first: str
    allowed: str
    time_ns: int
    line: int | None = None

    @property
    def series(self) -> str:
        """Return the name of the series as text."""
        return f"{self.metric} {self.instance}".strip() + (f" of {self.host}" if self.host else "")

    def words(self) -> str:
        """Return the series, the value that was found, and the possible range as text."""
        at = f", at {utc(self.time_ns)}" if EARLIEST_NS <= self.time_ns <= LATEST_NS else ""
        at = f", in line {self.line}" if self.line else at
        return (
            f"{self.series}: {counted(self.count, 'impossible value')}, not measured; "
            f"the first is {self.first}{at}; allowed: {self.allowed}"
        )

    def facts(self) -> dict[str, Any]:
        """Return the entry for a host in the manifest's ``data_quality``."""
        at = utc(self.time_ns) if EARLIEST_NS <= self.time_ns <= LATEST_NS else None
        about = {"metric": self.metric, "instance": self.instance}
        return {**about, "count": self.count, "first": self.first, "allowed": self.allowed, "at": at}


def number(value: float) -> str:
    """Return a number as text."""
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.6g}"


def nonsense(sample: Sample, latest_ns: float = LATEST_NS) -> Impossible:
    """Return what is impossible in a sample; None if nothing is."""
    bound = bound_of(sample.metric)
    if not is_placed(sample.time_ns, sample.interval_s, latest_ns):
        first = f"of {number(sample.time_ns / 1e9)} s since 1970, and covers {number(sample.interval_s)} s"
        allowed = (
            f"{number(EARLIEST_NS / 1e9)} to {number(latest_ns / 1e9)} s since 1970, over "
            f"{number(LONGEST_INTERVAL_S)} s at most"
        )
    elif sample.value is not None and not bound.has(sample.value):
        first, allowed = number(sample.value), f"{number(bound.lowest)} to {number(bound.highest)}"
    else:
        first = f"a mean of {number(sample.weight or 0.0)} operations"
        allowed = f"means of 0 to {number(_COUNT.highest)} operations"
    return Impossible(sample.host, sample.metric, sample.instance, 1, first, allowed, sample.time_ns)


class Tally:
    """Replaces impossible values by "not measured", and counts them by series.

    A sample with an impossible time or interval is left out.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], Impossible] = {}

    def checked(self, samples: Iterable[Sample], latest_ns: float = LATEST_NS) -> list[Sample]:
        """Yield the samples with a possible time. Raises TypeError for a value that is not a number."""
        kept = []
        for sample in samples:
            placed = is_placed(sample.time_ns, sample.interval_s, latest_ns)
            if placed and is_possible(sample):
                kept.append(sample)
                continue
            self.add(nonsense(sample, latest_ns))
            if placed:
                kept.append(sample._replace(value=None, weight=None))
        return kept

    def add(self, impossible: Impossible) -> None:
        """Count an impossible value."""
        key = impossible.host, impossible.metric, impossible.instance
        if (known := self.found.get(key)) is None:
            self.found[key] = impossible
        else:
            known.count += impossible.count


_SHOWN = 10


def sentences(impossibles: Iterable[Impossible]) -> list[str]:
    """Return one sentence per series, and above a limit one sentence for the rest."""
    rows = list(impossibles)
    left = sum(one.count for one in rows[_SHOWN:])
    values = counted(left, "more impossible value")
    more = [f"{values} of {len(rows) - _SHOWN} other series: not measured"]
    return [*(one.words() for one in rows[:_SHOWN]), *(more if left else [])]
