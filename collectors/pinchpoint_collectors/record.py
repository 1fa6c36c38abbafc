"""The contract of every collector: a sample, what to watch, and the collector itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pinchpoint_collectors.common.times import utc


class Sample(NamedTuple):
    """One measured value of one metric of one instance on one host at one instant.

    Attributes:
        time_ns: UTC nanoseconds since 1970, stamped where the value was read; the end of the interval.
        interval_s: seconds the value covers (the time since the reading before).
        host: the host's name in farm.yaml.
        metric: a name of docs/metrics.md's table; its last part says the base unit (``_s``, ``_bytes``,
            ``_per_s``, ``_ratio``), none a count.
        instance: device, core, interface, ``tier:NAME``, ``thread:NAME``; ``""`` where there is only one.
        value: the value in base units; ``None`` means "not measured" and is never written as 0.
        weight: the number of operations behind a mean (a latency); ``None`` where the value is no mean.
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
    """Which processes belong to a tier on a host; their children are always included.

    Exactly one way is used, the first that is set: process ids, names, a TCP port that a process listens on.
    Of processes of these names, those whose command line has a text, where one is given; of several servers
    of these names the one that listens on the port, where one does.
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
        tier: the tier it belongs to.
        disks: disk role -> device name (``nvme1n1``, ``/dev/sdb1``) or an absolute path on it.
        processes: the tier's processes, or ``None`` where the whole host is the tier.
        options: the remaining keys of the farm.yaml ``collect`` entry (address, endpoint, ...).
        required: whether the run is to end when the host can no longer be read.
    """

    host: str
    tier: str
    disks: Mapping[str, str] = field(default_factory=dict)
    processes: Processes | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """One metric a host does not give, why, and what to do (None if nothing can be done).

    ``db.write*`` and ``disk.*`` stand for all metrics that begin so.
    """

    metric: str
    instance: str
    why: str
    remedy: str | None


class Incident(NamedTuple):
    """One line for the run's events that only the collector knows.

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
    """Reads one machine on demand, independent of schedules, files and verdicts."""

    def read(self) -> Sequence[Sample]:
        """Read all counters once and return the samples since the reading before.

        The first call primes the counters and returns only values that need no difference. A value that
        is not available is a sample with value ``None``; a metric that the machine does not have is not sent
        and stands in the inventory's ``not_measured``. Raises ``CollectorError`` when the reading failed.
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

    For any other the sampler reports a gap for the time in which its readings failed.
    """

    def incidents(self) -> Sequence[Incident]:
        """What happened since it was asked before; asked after every reading, also one that failed."""
        ...


@runtime_checkable
class LateCollector(Protocol):
    """A collector whose values come minutes late: it is read on after the measurement.

    Attributes:
        late_s: how long at most.
    """

    late_s: float

    def complete(self, until_ns: int) -> bool:
        """Whether all values up to then came, or were reported as not measured; asked from another thread."""
        ...


@runtime_checkable
class OptionChecker(Protocol):
    """A kind that knows which values of its options cannot be, before anything is reached.

    farm.yaml is then refused with file and line; what is not checked so, ``connect`` says.
    """

    def check_options(self, watch: Watch) -> None:
        """Raises ``OptionError`` for one that cannot be; ``CollectorError`` for what this machine lacks."""
        ...


class Kind(Protocol):
    """One kind of collector, as named by ``kind:`` in farm.yaml."""

    name: str
    options: frozenset[str]
    """The option names farm.yaml may give besides ``kind``."""
    public: frozenset[str]
    """Options whose values may be shown in files and messages; all other values are secrets."""

    def machine(self, watch: Watch) -> str:
        """The machine a watch is about: watches with the same answer share one collector (one reading)."""
        ...

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """A collector for all watches of one machine. Raises ``CollectorError`` with the remedy."""
        ...
