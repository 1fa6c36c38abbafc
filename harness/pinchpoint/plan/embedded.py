"""Defines the records of ``embedded`` in farm.yaml: the farm that Pinchpoint starts on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from pinchpoint.plan.problems import BadValue
from pinchpoint.plan.record import (
    Bytes,
    BytesPerSecond,
    FileContext,
    FilePath,
    Iops,
    Name,
    PerSecond,
    Ratio,
    Seconds,
    StrictRecord,
    in_file,
    only_one,
)
from pinchpoint.plan.units import DURATION, DURATION_FORM, RATE_FORM, found
from pinchpoint_infra.servers import Server, servers_of

T = TypeVar("T")

EmbeddedTier = Literal["web", "sql", "search", "nosql", "files"]

EMBEDDED_ENDPOINTS: Mapping[str, str] = {
    "web": "sharepoint",
    "sql": "sql",
    "search": "search",
    "nosql": "nosql",
    "files": "files",
}
"""The name of the endpoint of each tier of the embedded farm."""

EMBEDDED_ROLES: Mapping[str, tuple[str, ...]] = {
    "web": (),
    "sql": ("log", "data"),
    "search": ("index",),
    "nosql": ("data",),
    "files": ("content",),
}
"""The disk roles of each tier of the embedded farm."""

SEVERAL = ("search",)
"""The tiers of the embedded farm that may have several hosts."""

_MOST_HOSTS = 8

SERVED = ("web", "sql", "search", "nosql")
"""The tiers whose servers listen on a TCP port; ``files`` is a folder."""

GENERATOR = "generator"
"""The name of the load generators in ``cpus``: a load generator without enough CPU can be emulated too."""


THROTTLED = ("web",)
"""The tiers whose server can refuse requests above a rate."""


class Credits(StrictRecord):
    """The limits of a disk while it has burst credits.

    Attributes:
        iops: I/Os per second.
        bytes_per_s: bytes per second.
        credit_s: how long full credits last at that rate, such as ``30m``.
    """

    iops: Iops | None = Field(default=None, gt=0)
    bytes_per_s: BytesPerSecond | None = Field(default=None, gt=0)
    credit_s: Seconds = Field(alias="credit", gt=0, description=DURATION)


_CAPS = ("iops", "bytes_per_s", "read_iops", "write_iops", "read_bytes_per_s", "write_bytes_per_s")


class EmulatedLimits(StrictRecord):
    """The limits of an emulated disk; each is optional.

    Attributes:
        iops: I/Os per second, reads and writes together.
        bytes_per_s: bytes per second, reads and writes together, such as ``60MB/s``.
        read_iops, write_iops, read_bytes_per_s, write_bytes_per_s: limits of reads or writes alone.
        io_unit_bytes: a larger I/O counts as several, one for each of these units, such as ``8KiB``.
        burst: the limits while it has credits; the others are then the base rate.
    """

    iops: Iops | None = Field(default=None, ge=1)
    bytes_per_s: BytesPerSecond | None = Field(default=None, ge=4096)
    read_iops: Iops | None = Field(default=None, ge=1)
    write_iops: Iops | None = Field(default=None, ge=1)
    read_bytes_per_s: BytesPerSecond | None = Field(default=None, ge=4096)
    write_bytes_per_s: BytesPerSecond | None = Field(default=None, ge=4096)
    io_unit_bytes: Bytes | None = Field(default=None, alias="io_unit", ge=512)
    burst: Credits | None = None

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if all(getattr(self, name) is None for name in _CAPS):
            raise BadValue("limits that limit nothing", f"needed: one of {', '.join(_CAPS)}")
        for name in ("iops", "bytes_per_s"):
            base, burst = getattr(self, name), getattr(self.burst, name, None)
            if burst is not None and (base is None or burst <= base):
                raise BadValue(f"a burst whose {name} is not above the limit's own", "needed: a higher one")
        return self


class DeviceModel(StrictRecord):
    """A device that serves one I/O at a time, unevenly, like a spinning disk.

    Attributes:
        service_s: mean time of an I/O.
        sequential_s: mean time of a sequential I/O. Default: a tenth of the other.
        spread_ratio: standard deviation divided by the mean.
    """

    service_s: Seconds = Field(alias="service", gt=0, le=10, description=DURATION)
    sequential_s: Seconds | None = Field(default=None, alias="sequential", gt=0, le=10)
    spread_ratio: Ratio = Field(default=0.4, alias="spread", ge=0)


class Rise(StrictRecord):
    """A disk that is slow at the start.

    Attributes:
        from_ratio: its speed at the start, as a share of full speed.
        over_s: time until full speed.
    """

    from_ratio: Ratio = Field(alias="from", gt=0, lt=1, description="its share of full speed, such as 30%")
    over_s: Seconds = Field(alias="over", gt=0, description=DURATION)


_LEAST_DISKS = {0: 1, 1: 2, 4: 3, 5: 3, 6: 4, 10: 4}
"""RAID level -> the lowest number of disks."""


class BuiltDisk(StrictRecord):
    """One emulated disk.

    Attributes:
        profile: a disk type of the catalogue, such as ``azure/p10``, with its burst credits; or
            ``limits``.
        limits: the limits themselves, such as ``{iops: 500}``. Without both, the disk has no cap.
        latency_s: the shortest time of each I/O, such as ``10ms``.
        jitter_s: mean random time that is added to it.
        device: a device that serves one I/O at a time.
        warm_up: a slow start.
        stripes: the number of such disks that make the array.
        raid: the level of the array: 0 (stripes alone), 1, 4, 5, 6 or 10. Only its time is emulated.
        size_bytes: its size, such as ``4GiB``.
        time_scale: credits and warm-up run faster by this factor: 60 makes 30 minutes 30 seconds.
        read_ahead_bytes: how far the kernel reads ahead of sequential reads, such as ``1MiB``.
        host_cache_bytes: a cache on the host: this much of what was read last comes from it, such as
            ``1GiB``.
    """

    profile: str | None = None
    limits: EmulatedLimits | None = None
    latency_s: Seconds = Field(default=0.0, alias="latency", ge=0, le=10)
    jitter_s: Seconds = Field(default=0.0, alias="jitter", ge=0, le=10)
    device: DeviceModel | None = None
    warm_up: Rise | None = None
    stripes: int = Field(default=1, ge=1, le=64)
    raid: Literal[0, 1, 4, 5, 6, 10] = 0
    size_bytes: Bytes | None = Field(default=None, alias="size", ge=64 * 2**20)
    time_scale: float = Field(default=1.0, ge=1, le=10_000)
    read_ahead_bytes: Bytes = Field(default=128 * 2**10, alias="read_ahead", ge=0, le=64 * 2**20)
    host_cache_bytes: Bytes = Field(default=0, alias="host_cache", ge=0)

    @model_validator(mode="after")
    def _one_source_of_figures(self) -> Self:
        only_one({"profile": self.profile, "limits": self.limits})
        if self.stripes < _LEAST_DISKS[self.raid] or (self.raid == 10 and self.stripes % 2):
            raise BadValue(
                f"raid: {self.raid} with stripes: {self.stripes}",
                f"needed: {_LEAST_DISKS[self.raid]} stripes or more{', an even number' * (self.raid == 10)}",
            )
        slow = self.profile or self.limits or self.device or self.latency_s or self.jitter_s
        if self.warm_up and not slow:
            raise BadValue(
                "a warm_up of a disk without limits", "needed: profile, limits, latency or device too"
            )
        return self


_LONGEST_RETRY_S = 300


def _whole_seconds(seconds: float) -> float:
    if seconds != round(seconds) or not 1 <= seconds <= _LONGEST_RETRY_S:
        raise BadValue(f"a wait of {seconds:g} s", f"allowed: whole seconds, 1s to {_LONGEST_RETRY_S}s")
    return seconds


WholeSeconds = Annotated[Seconds, AfterValidator(_whole_seconds)]


class Throttle(StrictRecord):
    """A server that refuses requests above a rate, with Retry-After.

    Attributes:
        requests_per_s: requests per second that are answered, all clients together, such as ``50/s``.
        retry_after_s: the time in ``Retry-After``, in whole seconds.
        status: 429 (too many requests), or 503 (the server is busy).
    """

    short_form = RATE_FORM

    requests_per_s: PerSecond = Field(alias="rate", gt=0, le=1_000_000, description="such as 50/s")
    retry_after_s: WholeSeconds = Field(default=1.0, alias="retry_after")
    status: Literal[429, 503] = 429

    @model_validator(mode="before")
    @classmethod
    def _rate_alone(cls, value: object, info: ValidationInfo) -> object:
        short = isinstance(info.context, FileContext) and isinstance(value, str | int | float)
        return {"rate": value} if short else value


class Delay(StrictRecord):
    """A delay in front of an endpoint, such as a VPN.

    Attributes:
        round_trip_s: time added to each round trip, such as ``250ms``.
        bytes_per_s: bandwidth in each direction. Default: no limit.
    """

    short_form = DURATION_FORM

    round_trip_s: Seconds = Field(default=0.0, alias="round_trip", ge=0, le=60)
    bytes_per_s: BytesPerSecond | None = Field(default=None, ge=1024)

    @model_validator(mode="before")
    @classmethod
    def _round_trip_alone(cls, value: object, info: ValidationInfo) -> object:
        short = isinstance(info.context, FileContext) and isinstance(value, str | int | float)
        return {"round_trip": value} if short else value


SERVERS = ("sql", "nosql")
"""The tiers that are database servers and accept ``settings``."""

_MEGABIT = 1_000_000 / 8
_FASTEST_MEGABITS = 100


def _interface_speed(bytes_per_s: float) -> float:
    megabits = bytes_per_s / _MEGABIT
    if megabits != round(megabits) or not 1 <= megabits <= _FASTEST_MEGABITS:
        allowed = f"allowed: whole megabits per second, 1 to {_FASTEST_MEGABITS} (125KB/s to 12.5MB/s)"
        raise BadValue(f"an interface of {megabits:g} megabits per second", allowed)
    return bytes_per_s


InterfaceSpeed = Annotated[BytesPerSecond, AfterValidator(_interface_speed)]


def _setting(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or "\n" in str(value):
        raise BadValue(f"found {found(value)}", "allowed: a number, or a line of text; on and off in quotes")
    return str(value)


Setting = Annotated[str, in_file(_setting, {"type": ["string", "number"]})]


class Content(StrictRecord):
    """The documents of the embedded farm.

    Attributes:
        corpus: a folder of documents. Default: the documentation of this machine.
        documents: the number of documents. If the folder has fewer, copies are added.
    """

    corpus: FilePath | None = None
    documents: int | None = Field(default=None, gt=0)


DiskName = Annotated[str, Field(min_length=1)]
ServerName = Annotated[str, Field(min_length=1)]
"""``tier``, or ``tier.host``; ``checks`` verifies that the farm has this server."""


def built_servers(hosts: object, tier: str) -> tuple[Server, ...]:
    """The servers of a tier of the embedded farm; ``hosts`` is ``Embedded.hosts``, as data or as record."""
    number = hosts.get(tier) if tier in SEVERAL and isinstance(hosts, Mapping) else None
    return servers_of(tier, number if isinstance(number, int) and 1 <= number <= _MOST_HOSTS else 1)


def for_each_server(given: Mapping[str, T], hosts: object) -> dict[str, T]:
    """The values with each tier's name replaced by its servers' names; a server's own value has priority."""
    result: dict[str, T] = {}
    for name, value in sorted(given.items(), key=lambda item: item[0].count(".")):
        tier, *rest = name.split(".")
        servers = built_servers(hosts, tier)
        one_of_several = len(servers) > 1 and rest and rest[0] in {server.host for server in servers}
        for server in servers:
            result[name if one_of_several else ".".join((server.name, *rest))] = value
    return result


class Embedded(StrictRecord):
    """The farm that Pinchpoint starts on this machine. The analysis never reads this.

    Attributes:
        tiers: the tiers to start: ``web``, ``sql``, ``search``, ``nosql``, ``files``.
        hosts: the number of hosts of ``search``, such as ``{search: 2}``: ``search1`` and ``search2``. What
            is given to the tier, each host has for itself; ``search.search2`` and ``search.search2.index``
            stand for one host alone.
        disks: emulated disks by ``tier.role``, such as ``sql.log`` (root, Linux).
        cpus: cores by tier, such as ``{search: 0.5}`` (root).
        memory: memory by tier, page cache included, such as ``{sql: 256MiB}`` (root).
        delays: delays by tier, such as ``{web: 250ms}``. With ``files`` Samba serves the documents as an
            SMB share (root).
        throttle: the request rate above which ``web`` refuses, such as ``{web: 50/s}``.
        networks: speed of a network interface of its own, by tier, such as ``{web: 10MB/s}`` (root).
        settings: settings of the servers ``sql`` and ``nosql``, such as ``{sql: {max_connections: 50}}``.
        share_cores: ``true`` lets the tiers use the load generators' cores too.
        content: its documents.
    """

    tiers: tuple[EmbeddedTier, ...] = Field(
        strict=False, min_length=1, description="a list of tiers to start: web, sql, search, nosql, files"
    )
    hosts: Mapping[Name, Annotated[int, Field(ge=1, le=_MOST_HOSTS)]] = Field(default_factory=dict)
    disks: Mapping[DiskName, BuiltDisk] = Field(default_factory=dict)
    cpus: Mapping[ServerName, Annotated[float, Field(ge=0.01, le=1024)]] = Field(default_factory=dict)
    memory: Mapping[ServerName, Annotated[Bytes, Field(ge=16 * 2**20)]] = Field(default_factory=dict)
    delays: Mapping[ServerName, Delay] = Field(default_factory=dict)
    throttle: Mapping[Name, Throttle] = Field(default_factory=dict)
    networks: Mapping[ServerName, InterfaceSpeed] = Field(default_factory=dict)
    settings: Mapping[Name, Mapping[Name, Setting]] = Field(default_factory=dict)
    share_cores: bool = False
    content: Content = Content()

    @field_validator("tiers")
    @classmethod
    def _tiers_fit(cls, value: tuple[EmbeddedTier, ...]) -> tuple[EmbeddedTier, ...]:
        twice = sorted({tier for tier in value if value.count(tier) > 1})
        if twice:
            raise BadValue(f"{', '.join(twice)} given twice", "allowed: each tier once")
        if "web" in value and "sql" not in value:
            raise BadValue(
                "the tier web without the tier sql", "needed: sql too; web's content lies in its database"
            )
        return value

    @property
    def endpoints(self) -> frozenset[str]:
        """The names of the embedded farm's endpoints."""
        return frozenset(EMBEDDED_ENDPOINTS[tier] for tier in self.tiers)
