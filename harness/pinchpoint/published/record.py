"""A report's figures as a YAML file (README.md beside this file): means of disks, CPUs, crawled sources."""

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
    """The highest possible value of a figure: a typing error in a report is no measurement."""
    return bound_of(metric).highest


class DiskFigures(StrictRecord):
    """A disk's means.

    Attributes:
        tier, host, role: whose it is, and what it is for.
        latency_s: of the I/Os the report is about.
        iops: I/Os per second.
        latency_max_s: the longest, of the seconds that the report's means are over.
        iops_max: the most, likewise.
        profile, stripes: what it is, by the catalogue, or
        limits: what it can do at most; neither where the report does not say.
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
            _ = self.caps  # a name the catalogue does not have is refused here
        return self

    @property
    def caps(self) -> DeclaredLimits | None:
        """Its limits; None if they are not known."""
        from pinchpoint_infra.catalogue import catalogue  # noqa: PLC0415 -- reading it takes a fifth of a second

        if self.profile is not None and self.profile not in catalogue():
            names = [name for name, entry in catalogue().items() if entry.kind == "disk"]
            raise unknown("disk", self.profile, names)
        return FarmDisk(profile=self.profile, stripes=self.stripes, limits=self.limits).resolved_limits


class CpuFigures(StrictRecord):
    """How busy a host's CPU was; nothing where the report does not say."""

    tier: Name
    host: Name
    busy_ratio: Ratio | None = Field(default=None, alias="busy", ge=0)


class SourceFigures(StrictRecord):
    """A crawled source.

    Attributes:
        name: the report's.
        tier: the tier of the farm behind it; nothing where it lies outside.
        count: documents.
        failed: all of it failed.
        duration_s: of its crawl.
        rate_per_s: as published.
        latency_s: repository latency.
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
    """One farm of the report."""

    disks: tuple[DiskFigures, ...] = Field(default=(), strict=False)
    cpus: tuple[CpuFigures, ...] = Field(default=(), strict=False)
    sources: tuple[SourceFigures, ...] = Field(default=(), strict=False)


class PublishedConclusion(StrictRecord):
    """The limit that the report names for a farm.

    Attributes:
        farm: which.
        of: the CPU or the disks
        tier: of this tier.
        role: of disks, which.
    """

    farm: str
    of: Literal["cpu", "disk"]
    tier: Name
    role: Name | None = None


class PublishedClaim(StrictRecord):
    """The report's statement about a source's figure in two farms.

    Attributes:
        says: its words.
        source: of this source.
        figure: which of its figures.
        base: the farm it is compared with.
        other: the farm that it is about.
        ratio: other ÷ base, as the words have it.
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
        published: the version of this form.
        title: of the report.
        farms: by name, in the order in which they are to be compared.
        conclusions: the report's own.
        claims: what it says of figures of two farms.
        differ: what else differs between the farms, in sentences.
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
"""Files of a run's directory; none of them holds a report's figures."""


def read_report(path: Path) -> PublishedReport:
    """Read a file of published figures. Raises InputError with every problem it has."""
    if path.name in RUN_FILES:
        raise InputError(f"{path}: is a file of a run; give the run's directory: {path.parent}")
    if kind := kind_of(read_document(path)):
        raise InputError(f"{path}: is a {kind}, not a run; `pinchpoint run` makes a run of a plan and a farm")
    return load_as(PublishedReport, path)
