"""What one operation of a run asks of each disk role: the I/O mix, measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pinchpoint.analysis.measures import measure_disk
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.slowness import write_and_flush_s
from pinchpoint.base.errors import InputError
from pinchpoint.data.series import mean
from pinchpoint.forecast.predict import Base

STEADY = ("closed", "open", "soak")
"""Models of a load that stays what it is."""


@dataclass(frozen=True, slots=True)
class DiskMix:
    """What one operation asks of one disk role, and what that took there. None: not measured.

    Attributes:
        disk: ``sql.log``.
        reads: reads per operation.
        writes: writes per operation, as the kernel counts them, or data writes where that is verified.
        bytes: bytes per operation, both ways.
        read_s: mean latency of a read.
        write_s: of a write, with its flush where there is one.
        waits_s: how long an operation waits for it, as the database says of its own sessions.
    """

    disk: str
    reads: float
    writes: float
    bytes: float | None
    read_s: float | None
    write_s: float | None
    waits_s: float | None

    @property
    def size_bytes(self) -> float | None:
        """Mean size of an I/O."""
        ios = self.reads + self.writes
        return self.bytes / ios if self.bytes is not None and ios else None

    @property
    def reads_ratio(self) -> float:
        """Reads ÷ all I/O."""
        ios = self.reads + self.writes
        return self.reads / ios if ios else 0.0


def mix_of(base: Base) -> Mapping[str, DiskMix]:
    """By disk role. Raises InputError where the load is none that can be carried over."""
    models = {flow.load.model for flow in base.case.flows if flow.finished}
    if base.case.climb or not models <= set(STEADY):
        raise InputError(
            f"--predict: {base.run.directory}: its load is {', '.join(sorted(models))}; what is carried over "
            "is a steady load: fixed users, or a rate that stays"
        )
    return {one.disk: one for one in _disks(base)}


def _disks(base: Base) -> Iterator[DiskMix]:
    per_s = sum(one.per_s for one in base.measured.seen)
    for resource in base.case.resources:
        if resource.type == "disk" and resource.whole is None and resource.roles:
            yield _of(base, resource, per_s)


def _of(base: Base, resource: Resource, per_s: float) -> DiskMix:
    found = measure_disk(resource, base.rows)
    reads, writes = (mean(resource.columns[name][base.rows]) or 0.0 for name in ("reads", "writes"))
    return DiskMix(
        disk=f"{resource.roles[0].tier}.{resource.roles[0].role}",
        reads=reads / per_s,
        writes=writes / per_s,
        bytes=found.bytes / per_s if found.bytes is not None else None,
        read_s=found.read_s,
        write_s=write_and_flush_s(resource, found),
        waits_s=found.sessions / per_s if found.sessions is not None else None,
    )
