"""Defines the YAML form of a report's figures (see README.md): means of disks, CPUs and crawled sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from pinchpoint.base.errors import InputError
from pinchpoint.plan.document import read_document
from pinchpoint.plan.farm import DeclaredLimits, FarmDisk
from pinchpoint.plan.files import kind_of, load_as
from pinchpoint.plan.problems import BadValue, unknown
from pinchpoint.plan.record import Name, PerSecond, Ratio, Seconds, StrictRecord, only_one
from pinchpoint.store.schema import EVENTS, MANIFEST, OPERATIONS, REPORT, SAMPLES, VERDICT
from pinchpoint_collectors.bounds import bound_of


def _most(metric: str) -> float:
    """The highest possible value of a metric; a higher value in a report is a typing error."""
    return bound_of(metric).highest


class DiskFigures(StrictRecord):
    """The published means of a disk.

    Attributes:
        tier, host, role: tier, host and role of the disk.
        latency_s: mean latency of an I/O, seconds.
        iops: mean I/Os per second.
        latency_max_s: highest latency in the report's period, seconds.
        iops_max: highest I/Os per second in the report's period.
        profile, stripes: type of the disk in the catalogue, and number of such disks; or
        limits: limits of the disk. Neither is set if the report gives no limits.
    """

    tier: Name
    host: Name
    role: Name
    latency_s: Seconds | None = Field(default=None, alias="latency", ge=0, le=_most("disk.write_latency_s"))
    iops: float | None = Field(default=None, ge=0, le=_most("disk.transfers_per_s"))
    latency_max_s: Seconds | None = Field(
        default=None, alias="latency_max", ge=0, le=_most("disk.write_latency_s")
    )
    iops_max: float | None = Field(default=None, ge=0, le=_most("disk.transfers_per_s"))
    profile: str | None = None
    stripes: int | None = Field(default=None, ge=1, le=64)
    limits: DeclaredLimits | None = None

    @model_validator(mode="after")
    def _known_limits(self) -> Self:
        only_one({"profile": self.profile, "limits": self.limits})
        if self.profile is not None:
            _ = self.caps  # raises an error for a type that is not in the catalogue
        return self

    @property
    def caps(self) -> DeclaredLimits | None:
        """The limits of the disk; None if not known."""
        from pinchpoint_infra.catalogue import catalogue  # noqa: PLC0415 -- reading it takes a fifth of a second

        if self.profile is not None and self.profile not in catalogue():
            names = [name for name, entry in catalogue().items() if entry.kind == "disk"]
            raise unknown("disk", self.profile, names)
        return FarmDisk(profile=self.profile, stripes=self.stripes, limits=self.limits).resolved_limits


class CpuFigures(StrictRecord):
    """The published mean utilisation of a host's CPU; ``busy_ratio`` is None if not published."""

    tier: Name
    host: Name
    busy_ratio: Ratio | None = Field(default=None, alias="busy", ge=0)


class SourceFigures(StrictRecord):
    """The published figures of a crawled source.

    Attributes:
        name: name of the source in the report.
        tier: tier of the farm that serves the source; None for a source outside the farm.
        count: number of documents.
        failed: whether the whole crawl failed.
        duration_s: duration of the crawl, seconds.
        rate_per_s: published documents per second.
        latency_s: repository latency, seconds.
    """

    name: str = Field(min_length=1)
    tier: Name | None = None
    count: int | None = Field(default=None, ge=0, le=round(_most("search.waiting")))
    failed: bool = False
    duration_s: Seconds | None = Field(default=None, alias="duration", gt=0)
    rate_per_s: PerSecond | None = Field(default=None, alias="rate", ge=0)
    latency_s: Seconds | None = Field(
        default=None, alias="latency", ge=0, le=_most("search.repository_latency_s")
    )


class FarmFigures(StrictRecord):
    """The published figures of one farm."""

    disks: tuple[DiskFigures, ...] = Field(default=(), strict=False)
    cpus: tuple[CpuFigures, ...] = Field(default=(), strict=False)
    sources: tuple[SourceFigures, ...] = Field(default=(), strict=False)


class PublishedConclusion(StrictRecord):
    """The bottleneck that the report names for a farm.

    Attributes:
        farm: name of the farm.
        of: kind of the resource: ``cpu`` or ``disk``.
        tier: tier of the resource.
        role: role of the disks; None for a CPU or for all disks of the tier.
    """

    farm: str
    of: Literal["cpu", "disk"]
    tier: Name
    role: Name | None = None


class PublishedClaim(StrictRecord):
    """A statement of the report that compares a source's figure in two farms.

    Attributes:
        says: words of the statement.
        source: name of the source.
        figure: the compared figure.
        base: name of the first farm, the divisor of ``ratio``.
        other: name of the second farm, the dividend of ``ratio``.
        ratio: other ÷ base, as the statement gives it.
    """

    says: str = Field(min_length=1)
    source: str
    figure: Literal["rate", "latency", "duration", "count"]
    base: str
    other: str
    ratio: float = Field(gt=0)


class PublishedReport(StrictRecord):
    """The published figures and conclusions.

    Attributes:
        published: version of this form.
        title: title of the report.
        farms: figures by farm name, in the order of comparison.
        conclusions: the report's own conclusions.
        claims: the report's statements that compare two farms.
        differ: sentences about other differences between the farms.
    """

    published: Literal[1] = Field(description="1")
    title: str = Field(min_length=1)
    farms: Mapping[str, FarmFigures] = Field(min_length=1, description="the farms' figures, by name")
    conclusions: tuple[PublishedConclusion, ...] = Field(default=(), strict=False)
    claims: tuple[PublishedClaim, ...] = Field(default=(), strict=False)
    differ: tuple[str, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _conclusions_of_farms(self) -> Self:
        for one in self.conclusions:
            if one.farm not in self.farms:
                raise BadValue(
                    f"a conclusion about the farm {one.farm!r}", f"allowed: {', '.join(self.farms)}"
                )
        for claim in self.claims:
            for farm in (claim.base, claim.other):
                if farm not in self.farms:
                    raise BadValue(f"a claim about the farm {farm!r}", f"allowed: {', '.join(self.farms)}")
                sources = [source.name for source in self.farms[farm].sources]
                if claim.source not in sources:
                    raise BadValue(
                        f"a claim about the source {claim.source!r} of {farm}",
                        f"allowed: {', '.join(sources) or 'none'}",
                    )
        return self


RUN_FILES = (MANIFEST, OPERATIONS, SAMPLES, EVENTS, VERDICT, REPORT)
"""Files of a run directory, which never contain a report's figures."""


def read_report(path: Path) -> PublishedReport:
    """The published figures in a YAML file. Raises InputError with all problems of the file."""
    if path.name in RUN_FILES:
        raise InputError(f"{path}: is a file of a run; give the run's directory: {path.parent}")
    if kind := kind_of(read_document(path)):
        raise InputError(f"{path}: is a {kind}, not a run; `pinchpoint run` makes a run of a plan and a farm")
    return load_as(PublishedReport, path)
