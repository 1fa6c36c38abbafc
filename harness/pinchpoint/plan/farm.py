"""Defines the records of farm.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    computed_field,
    field_validator,
    model_validator,
)

from pinchpoint.base.redact import hidden, redacted_value
from pinchpoint.plan import units
from pinchpoint.plan.embedded import Embedded
from pinchpoint.plan.endpoints import Endpoints
from pinchpoint.plan.hosts import public_options
from pinchpoint.plan.prices import Prices
from pinchpoint.plan.problems import BadValue, quoted
from pinchpoint.plan.prove import Allowed
from pinchpoint.plan.record import (
    Bytes,
    BytesPerSecond,
    FileContext,
    FilePath,
    Iops,
    Name,
    StrictRecord,
    only_one,
)
from pinchpoint_collectors.common.names import nearest_name
from pinchpoint_infra.catalogue import profile

_DEVICE = re.compile(r"[\w/][\w/.:+@#=!~, \\-]*")
_DEVICE_WORDS = (
    "allowed: the name a host gives a device (nvme1n1, /dev/mapper/vg-log, D:, 1 D:), of letters, digits, "
    "spaces and / \\ . : , + - _ @ # = ! ~; the first character is a letter, a digit, _ or /"
)
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]")
"""The start of an absolute path on Linux and on Windows."""


def _curve(value: object, info: ValidationInfo) -> object:
    """A latency curve as pairs sorted by outstanding I/Os.

    A file gives the curve as ``{1: 2ms, 8: 16ms}``, JSON as pairs.
    """
    if isinstance(info.context, FileContext):
        if not isinstance(value, Mapping) or not value:
            raise BadValue(f"found {units.found(value)}", f"allowed: {_CURVE}")
        pairs = [(_depth(depth), units.duration(latency)) for depth, latency in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(float(depth), float(latency_s)) for depth, latency_s in value]
    else:
        return value
    if any(latency_s <= 0 for _, latency_s in pairs):
        raise BadValue("a latency of nothing", f"allowed: {_CURVE}")
    return tuple(sorted(pairs))


def _depth(value: object) -> float:
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if type(number) is not int or number < 1:
        raise BadValue(f"found {units.found(value)} outstanding", "allowed: whole numbers from 1 on")
    return float(number)


_CURVE = "mean latency by I/Os outstanding, such as {1: 2ms, 8: 16ms}"

_CURVE_FORM = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"pattern": "^[1-9][0-9]*$"},
    "additionalProperties": units.DURATION_FORM,
}
Curve = Annotated[
    tuple[tuple[float, float], ...],
    BeforeValidator(_curve, json_schema_input_type=Annotated[Any, WithJsonSchema(_CURVE_FORM)]),
]
"""(outstanding I/Os, mean latency in seconds), sorted by outstanding I/Os."""


class DeclaredLimits(StrictRecord):
    """The limits of a disk, or of all disks of a machine together.

    Attributes:
        iops: I/Os per second.
        bytes_per_s: bytes per second, reads and writes together.
        io_unit_bytes: a larger I/O counts as several, one for each of these units, such as ``8KiB``.
        latency: mean latency by outstanding I/Os, as ``probe --calibrate`` prints it: ``{1: 2ms, 8: 16ms}``.
    """

    iops: Iops | None = Field(default=None, gt=0)
    bytes_per_s: BytesPerSecond | None = Field(default=None, gt=0)
    io_unit_bytes: Bytes | None = Field(default=None, alias="io_unit", gt=0)
    latency: Curve | None = None

    @model_validator(mode="after")
    def _limit_something(self) -> Self:
        if self.iops is None and self.bytes_per_s is None and self.latency is None:
            raise BadValue(
                "limits that limit nothing",
                "needed: iops, bytes_per_s or both, or the latency that a probe found; or the word unknown",
            )
        return self


def _limits_form(value: object) -> str:
    return "unknown" if isinstance(value, str) else "limits"


class FarmDisk(StrictRecord):
    """One disk role of a host.

    Attributes:
        device: the device on the host, such as ``nvme1n1`` or ``D:``. Give this or ``path``.
        path: an absolute path on the host that lies on this disk, such as ``/var/lib/postgresql``.
        profile: the type of the disk in the catalogue, such as ``azure/p30``. Give this or ``limits``.
        limits: its limits, such as ``{iops: 5000, bytes_per_s: 200MB/s}``, or ``unknown``.
        stripes: the number of disks of that profile that are striped (RAID 0).
        attached: ``network`` (default) or ``cached`` (through the host's cache): both count against the
            limits of the machine. ``local``, a disk in the machine itself, does not.
        write_test: a folder on this disk in which ``pinchpoint check`` may write 16 MiB and remove them, to
            test the counters of the disk. Without it nothing is written.
    """

    device: str | None = Field(default=None, min_length=1)
    path: str | None = None
    profile: str | None = None
    limits: (
        Annotated[
            Annotated[DeclaredLimits, Tag("limits")] | Annotated[Literal["unknown"], Tag("unknown")],
            Discriminator(_limits_form),
        ]
        | None
    ) = None
    stripes: int | None = Field(default=None, ge=1, le=64)
    attached: Literal["network", "cached", "local"] | None = None
    write_test: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_derived(cls, value: object, info: ValidationInfo) -> object:
        """The value without ``resolved_limits``, which a manifest contains and a file must not."""
        if isinstance(value, Mapping) and not isinstance(info.context, FileContext):
            return {key: item for key, item in value.items() if key != "resolved_limits"}
        return value

    @field_validator("limits", mode="before")
    @classmethod
    def _limits_are_known(cls, value: object) -> object:
        if isinstance(value, str) and value != "unknown":
            allowed = "allowed: unknown, or limits such as {iops: 5000, bytes_per_s: 200MB/s}"
            raise BadValue(f"found the text {quoted(value)}", allowed, nearest_name(value, ["unknown"]))
        return value

    @field_validator("device")
    @classmethod
    def _device_is_a_name(cls, value: str | None) -> str | None:
        """The device name, if it is safe: the name becomes part of shell commands and /sys paths."""
        if value is not None and (not _DEVICE.fullmatch(value) or ".." in re.split(r"[/\\]", value)):
            raise BadValue(f"the device {quoted(value)}", _DEVICE_WORDS)
        return value

    @field_validator("path", "write_test")
    @classmethod
    def _path_is_absolute(cls, value: str | None) -> str | None:
        if value is not None and (not _ABSOLUTE.match(value) or "\0" in value):
            raise BadValue(f"the path {quoted(value)}", "allowed: an absolute path on that host")
        return value

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        only_one({"device": self.device, "path": self.path})
        only_one({"profile": self.profile, "limits": self.limits})
        if self.stripes is not None and self.profile is None:
            raise BadValue("stripes without a profile", "needed: the profile of one of the striped disks")
        return self

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def resolved_limits(self) -> DeclaredLimits | None:
        """The declared limits of the disk: its own or its profile's; ``None`` if neither is known."""
        if isinstance(self.limits, DeclaredLimits):
            return self.limits
        if self.profile is None:
            return None
        entry, count = profile(self.profile), self.stripes or 1
        return DeclaredLimits(
            iops=entry.iops and entry.iops * count,
            bytes_per_s=entry.bytes_per_s and entry.bytes_per_s * count,
            io_unit_bytes=entry.io_unit_bytes,
        )


class Collect(StrictRecord):
    """One collector: how a host or a server is measured.

    Attributes:
        kind: ``local``, ``ssh``, ``windows``, ``postgres`` or another kind of collector.
        required: ``true`` ends the run when the host cannot be read for 10 s.
    """

    model_config = ConfigDict(extra="allow")

    kind: str = Field(description="the kind of collector, such as local")
    required: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """The options of the collector: the keys of the entry without ``kind`` and ``required``."""
        return dict(self.model_extra or {})

    def shown(self) -> dict[str, Any]:
        """The entry with secrets replaced; an option is a secret unless its kind declares it as public."""
        public = {"kind", "required", *public_options(self.kind)}
        return {
            key: redacted_value(value) if key in public else hidden(value)
            for key, value in self.to_json().items()
        }


class FarmHost(StrictRecord):
    """One host of a tier.

    Attributes:
        machine: the type of the machine in the catalogue, such as ``azure/ds12``.
        region: the cloud region it is in, such as ``westeurope``; by default the farm's.
        zone: its availability zone, such as ``1`` or ``eu-west-1a``.
        collect: the collectors that measure it, such as ``[{kind: ssh, address: sql1.example}]``.
        disks: its disks by role: ``log``, ``data``, ``tempdb``, ``index``, or a name of yours.
    """

    machine: str | None = None
    region: str | None = None
    zone: str | None = None
    collect: tuple[Collect, ...] = Field(default=(), strict=False)
    disks: Mapping[Name, FarmDisk] = Field(default_factory=dict)


class Tier(StrictRecord):
    """One tier: the hosts that play one role in the farm, by name."""

    hosts: Mapping[Name, FarmHost] = Field(min_length=1, description="the tier's hosts, by name")


class FarmFile(StrictRecord):
    """The system under test: its servers, tiers and disks.

    Attributes:
        name: its name.
        environment: ``test``, ``staging`` or ``production``. Scenarios that write refuse ``production``.
        endpoints: the servers that scenarios talk to, such as ``{sql: {url: "postgresql://..."}}``.
        region: the cloud region of its hosts, such as ``westeurope``.
        tiers: the hosts of each tier: ``web``, ``search``, ``sql``, ``nosql``, ``files``, or a name of yours.
        embedded: a farm that Pinchpoint starts on this machine, instead of endpoints.
        prove: how ``run --prove`` may make a resource slower, such as ``sql.log``.
        prices: what disks and machines cost per month.
    """

    name: Name = Field(description="the farm's name, such as prod")
    environment: Literal["test", "staging", "production"] = Field(description="test, staging or production")
    endpoints: Endpoints = Endpoints()
    region: str | None = None
    tiers: Mapping[Name, Tier] = Field(default_factory=dict)
    embedded: Embedded | None = None
    prove: Mapping[str, Allowed] = Field(default_factory=dict)
    prices: Prices | None = None


class Farm(FarmFile):
    """The system under test.

    Attributes:
        name: its name.
        environment: ``test``, ``staging`` or ``production``; see ``guard``.
        endpoints: the endpoints of running servers, with ``${ENV}`` not replaced; see ``expand``.
        region: the cloud region of hosts that name no region; ``None`` if not given.
        tiers: the tiers by name: hosts, their collectors, and their declared disks.
        embedded: how the embedded farm is built; ``None`` for a farm that already runs.
        prove: how ``run --prove`` may make a resource slower, by ``tier.role``, ``tier.cpu`` or
            ``tier.endpoint``.
        prices: prices of disks and machines from the user; ``None`` if not given.
        identity: the resolved path of farm.yaml, which identifies the farm.
    """

    identity: FilePath

    @property
    def offered(self) -> frozenset[str]:
        """The names of all endpoints that scenarios can use: given ones and those of the embedded farm."""
        built = self.embedded.endpoints if self.embedded else frozenset[str]()
        return built | frozenset(self.endpoints.named())
