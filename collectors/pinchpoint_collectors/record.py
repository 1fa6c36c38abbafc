"""Contract of every collector: a sample, what to watch, and the collector itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pinchpoint_collectors.common.times import utc


class Sample(NamedTuple):
    """One measured value of one metric of one instance on one host at one time.

    Attributes:
        time_ns: UTC nanoseconds since 1970 at the end of the interval, taken when the value was read.
        interval_s: seconds that the value covers (the time since the last reading).
        host: name of the host in farm.yaml.
        metric: name in the table of docs/metrics.md. Its last part is the base unit (``_s``, ``_bytes``,
            ``_per_s``, ``_ratio``); without one it is a count.
        instance: device, core, interface, ``tier:NAME``, ``thread:NAME``; ``""`` if there is only one.
        value: value in base units. ``None`` means "not measured" and is never written as 0.
        weight: number of operations of a mean (a latency); ``None`` for other values.
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
    """The processes of a tier on a host. Their children always belong to it.

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
        host: name of the host in farm.yaml.
        tier: tier of the host.
        disks: disk role -> device name (``nvme1n1``, ``/dev/sdb1``) or an absolute path on the disk.
        processes: processes of the tier, or ``None`` if the whole host is the tier.
        options: other keys of the ``collect`` entry in farm.yaml (address, endpoint, ...).
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
    """A metric that a host does not have, the reason, and the remedy (None if there is none).

    ``db.write*`` and ``disk.*`` stand for all metrics with this start.
    """

    metric: str
    instance: str
    why: str
    remedy: str | None


class Incident(NamedTuple):
    """An event for the event log of the run that only the collector knows.

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
        """Return a gap: nothing was read between two times of the local clock."""
        span = {"from": utc(from_ns), "to": utc(to_ns)}
        return Incident("gap", {**span, "missed": missed, "interval_s": interval_s, "why": why})


class Collector(Protocol):
    """Reads one machine on request. It knows no schedules, files or verdicts."""

    def read(self) -> Sequence[Sample]:
        """Read all counters once and return the samples since the last reading.

        The first call reads the initial counters and returns only values that need no difference. A value
        that is not available is a sample with value ``None``; a metric that the machine does not have is not
        sent and listed in the inventory's ``not_measured``. Raises ``CollectorError`` when the reading
        failed.
        """
        ...

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return facts about each watched host, which are read once before the first sample.

        Host name -> JSON-ready facts, which may be empty. Keys: docs/metrics.md ("Inventory").
        """
        ...

    def close(self) -> None:
        """Release the resources of the collector. A second call does nothing."""
        ...


@runtime_checkable
class GapReporter(Protocol):
    """A collector that reports its own gaps, such as a remote one. Late samples are no gap.

    For other collectors, the sampler reports failed readings as gaps.
    """

    def incidents(self) -> Sequence[Incident]:
        """Return events since the last call. It is called after every reading, also after a failed one."""
        ...


@runtime_checkable
class LateCollector(Protocol):
    """A collector whose values arrive minutes late. It is also read after the end of the measurement.

    Attributes:
        late_s: longest delay in seconds.
    """

    late_s: float

    def complete(self, until_ns: int) -> bool:
        """Return whether all values up to a time have arrived or are not measured.

        Another thread calls it.
        """
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
    """One kind of collector: a ``kind:`` of farm.yaml."""

    name: str
    options: frozenset[str]
    """Names of the options that farm.yaml may have besides ``kind``."""
    public: frozenset[str]
    """Options whose values may be shown in files and messages; all other values are secrets."""

    def machine(self, watch: Watch) -> str:
        """Return the machine of a watch.

        Watches with the same machine share one collector and its readings.
        """
        ...

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Return a collector for all watches of one machine. Raises ``CollectorError`` with the remedy."""
        ...
