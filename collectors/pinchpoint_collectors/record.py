"""The contract of every collector: a sample, what to watch, and the collector itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pinchpoint_collectors.common.times import utc


class Sample(NamedTuple):
    """One measured value of one metric of one instance on one host at one instant.

    Attributes:
        time_ns: UTC nanoseconds since 1970 at the end of the interval, taken when the value was read.
        interval_s: seconds the value covers (the time since the reading before).
        host: the host's name in farm.yaml.
        metric: a name in docs/metrics.md's table; its last part is the base unit (``_s``, ``_bytes``,
            ``_per_s``, ``_ratio``), without one it is a count.
        instance: device, core, interface, ``tier:NAME``, ``thread:NAME``; ``""`` if there is only one.
        value: the value in base units; ``None`` means "not measured" and is never written as 0.
        weight: the number of operations of a mean (a latency); ``None`` for other values.
    """

    time_ns: int
    interval_s: float
    host: str
    metric: str
    instance: str
    value: float | None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a tier on a host; their children always belong to it.

    The first option that is set counts: process ids, names, or a TCP port that a process listens on. With
    names, ``command_line`` selects processes by a text in their command line, and of several servers the one
    that listens on ``port``.
    """

    pids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    port: int | None = None
    command_line: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """What to measure on one host of the farm.

    Attributes:
        host: the host's name in farm.yaml.
        tier: the host's tier.
        disks: disk role -> device name (``nvme1n1``, ``/dev/sdb1``) or an absolute path on the disk.
        processes: the tier's processes, or ``None`` if the whole host is the tier.
        options: the remaining keys of the farm.yaml ``collect`` entry (address, endpoint, ...).
        required: whether the run must end when the host can no longer be read.
    """

    host: str
    tier: str
    disks: Mapping[str, str] = field(default_factory=dict)
    processes: Processes | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A metric that a host does not have, why, and the remedy (None if there is none).

    ``db.write*`` and ``disk.*`` stand for all metrics with this beginning.
    """

    metric: str
    instance: str
    why: str
    remedy: str | None


class Incident(NamedTuple):
    """An event for the run's event log that only the collector knows.

    Attributes:
        event: ``gap`` (``from`` and ``to`` in ISO UTC, ``missed`` readings, ``interval_s``, ``why``),
            ``clock_offset`` (``offset_s``, ``error_s``; reported above a second),
            ``partial_answer`` (``why``).
        fields: JSON-ready; the sampler adds ``kind`` and ``hosts``.
    """

    event: str
    fields: Mapping[str, Any]

    @staticmethod
    def gap(from_ns: int, to_ns: int, missed: int, interval_s: float, why: str) -> Incident:
        """Nothing was read from then to then, both by our clock."""
        span = {"from": utc(from_ns), "to": utc(to_ns)}
        return Incident("gap", {**span, "missed": missed, "interval_s": interval_s, "why": why})


class Collector(Protocol):
    """Reads one machine on demand; it knows no schedules, files or verdicts."""

    def read(self) -> Sequence[Sample]:
        """Read all counters once and return the samples since the last reading.

        The first call reads the initial counters and returns only values that need no difference. A value
        that is not available is a sample with value ``None``; a metric that the machine does not have is not
        sent and listed in the inventory's ``not_measured``. Raises ``CollectorError`` when the reading
        failed.
        """
        ...

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts about each watched host, read once before the first sample.

        Host name -> JSON-ready facts, which may be empty. Keys: see docs/metrics.md ("Inventory").
        """
        ...

    def close(self) -> None:
        """Release the collector's resources. Safe to call twice."""
        ...


@runtime_checkable
class GapReporter(Protocol):
    """A collector that reports its own gaps, such as a remote one; late samples are no gap.

    For other collectors, the sampler reports failed readings as gaps.
    """

    def incidents(self) -> Sequence[Incident]:
        """Events since the last call; called after every reading, also after a failed one."""
        ...


@runtime_checkable
class LateCollector(Protocol):
    """A collector whose values arrive minutes late: it is read after the end of the measurement, too.

    Attributes:
        late_s: the longest delay.
    """

    late_s: float

    def complete(self, until_ns: int) -> bool:
        """Whether all values up to then have arrived or are not measured; called from another thread."""
        ...


@runtime_checkable
class OptionChecker(Protocol):
    """A kind that checks the values of its options before it connects.

    farm.yaml is then refused with file and line; other errors are reported by ``connect``.
    """

    def check_options(self, watch: Watch) -> None:
        """Raises ``OptionError`` for an invalid value; ``CollectorError`` for what this machine lacks."""
        ...


class Kind(Protocol):
    """One kind of collector, the ``kind:`` of farm.yaml."""

    name: str
    options: frozenset[str]
    """The option names that farm.yaml may have besides ``kind``."""
    public: frozenset[str]
    """Options whose values may be shown in files and messages; all other values are secrets."""

    def machine(self, watch: Watch) -> str:
        """The machine of a watch: watches with the same machine share one collector (one reading)."""
        ...

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """A collector for all watches of one machine. Raises ``CollectorError`` with the remedy."""
        ...
