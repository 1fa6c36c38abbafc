"""Defines the parameters of storage-probe in a plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from pinchpoint_collectors.common.names import unknown

from ..contract import Params
from ..units import Bytes, Seconds
from .suites import SUITES, Suite

LEAST_BYTES = 16 * 2**20
"""Smallest size of the file in bytes: 16 times the largest block of any suite, so that random I/O is
possible."""
UNTIMED = "each cell of {suite} lasts until the file is written or read whole; what makes it shorter is"
_DEFAULT = "database"


class StorageProbeParams(Params):
    """``params`` of storage-probe.

    Attributes:
        suite: a name of ``SUITES``.
        disk: ``tier.role``, a disk of the farm that is on this machine; without it and ``folder`` the only
            one.
        folder: an absolute path on this machine, in place of ``disk``.
        repeat: repetitions of the suite; without it as in the suite.
        time_per_cell: how long a cell is measured; likewise.
        size: size of the file; likewise.
        threads: that many threads of fio, each with the suite's queue depth.
        line: up to how many outstanding I/Os does this mean latency hold; without it 20 ms.
    """

    suite: str = _DEFAULT
    disk: str | None = None
    folder: str | None = None
    repeat: Annotated[int, Field(ge=1, le=1000)] | None = None
    time_per_cell: Seconds | None = None
    size: Bytes | None = None
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    line: Seconds | None = None

    def paths(self) -> tuple[str, ...]:
        return (self.folder,) if self.folder is not None else ()

    @field_validator("suite")
    @classmethod
    def _known_suite(cls, suite: str) -> str:
        if suite not in SUITES:
            raise ValueError(unknown("suite", suite, SUITES))
        return suite

    @field_validator("folder")
    @classmethod
    def _absolute(cls, folder: str | None) -> str | None:
        if folder is not None and not folder.startswith("/"):
            raise ValueError(f"{folder!r} is no absolute path; allowed: a path such as /srv/data")
        return folder

    @field_validator("size")
    @classmethod
    def _large_enough(cls, size: int | None) -> int | None:
        if size is not None and size < LEAST_BYTES:
            raise ValueError(f"{size} bytes are too few for a measurement; allowed: from 16MiB on")
        return size

    @model_validator(mode="after")
    def _one_place(self) -> StorageProbeParams:
        if self.disk is not None and self.folder is not None:
            raise ValueError("both disk and folder are given; allowed is one of them: remove the other")
        return self

    @model_validator(mode="after")
    def _timed(self) -> StorageProbeParams:
        if self.time_per_cell is not None and self.chosen.seconds is None:
            raise ValueError(f"time_per_cell is given, but {UNTIMED.format(suite=self.suite)} size")
        return self

    @property
    def chosen(self) -> Suite:
        """Return the suite with the number of threads applied."""
        return SUITES[self.suite].threaded(self.threads)

    @property
    def repetitions(self) -> int:
        """Return the number of repetitions."""
        return self.repeat or self.chosen.repetitions

    @property
    def seconds(self) -> float | None:
        """Return the seconds per cell; None if each tool runs until its work is done."""
        return self.time_per_cell or self.chosen.seconds
