"""Holds the figures of production by source, and notes where sources differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pinchpoint.plan import production


@dataclass(frozen=True, slots=True)
class ProductionFigure:
    """One figure of production.

    Attributes:
        value: the figure in base units.
        origin: the source of the figure, in words.
    """

    value: float
    origin: str


Figures = dict[str, ProductionFigure]
"""Name (a key of ``production.FIGURES``) -> figure. Figures that no source reports have no entry."""

COUNTED = ("reads", "read_bytes", "read_s", "writes", "write_bytes", "write_s")
"""Counters of the log files and of the data files; their full names are ``log.reads``, ``data.reads``, ..."""
WAITED = {"log": "Log:WRITELOG", "data": "Data:PAGEIOLATCH"}
"""Prefixes of the waits for a log write and for a page, as collector ``sqlserver`` names the waits."""


class FigureRatio(NamedTuple):
    """A figure that is the ratio of two amounts, for production and for its replay.

    Attributes:
        figure: name of the figure, a key of ``production.FIGURES``.
        amount, per: names of the dividend and the divisor.
        words: the calculation of production's figure, in words.
    """

    figure: str
    amount: str
    per: str
    words: str = ""


RATIOS = (
    FigureRatio(production.LOG_WRITE_BYTES, "log.write_bytes", "log.writes", "bytes ÷ writes"),
    FigureRatio(production.LOG_WRITE_LATENCY_S, "log.write_s", "log.writes", "time ÷ writes"),
    FigureRatio(production.LOG_IOS_PER_WRITE, "log.writes", "writes", "its writes ÷ transactions"),
    FigureRatio(production.LOG_DISK_BYTES_PER_WRITE, "log.write_bytes", "writes", "÷ transactions"),
    FigureRatio(production.DATA_READ_BYTES, "data.read_bytes", "data.reads", "bytes ÷ reads"),
    FigureRatio(production.DATA_WRITE_BYTES, "data.write_bytes", "data.writes", "bytes ÷ writes"),
    FigureRatio(production.DATA_READS_PER_DATA_WRITE, "data.reads", "data.writes", "reads ÷ writes"),
    FigureRatio(production.DATA_READ_LATENCY_S, "data.read_s", "data.reads", "time ÷ reads"),
    FigureRatio(production.LOG_WAIT_S, "log.wait_s", "log.waits", f"{WAITED['log']}*, time ÷ waits"),
    FigureRatio(production.DATA_WAIT_S, "data.wait_s", "data.waits", f"{WAITED['data']}*, time ÷ waits"),
    FigureRatio(production.PAGE_READS_PER_OPERATION, "data.reads", "operations"),
    FigureRatio(production.TEMP_BYTES_PER_OPERATION, "temp_bytes", "operations"),
    FigureRatio(production.LOG_BYTES_PER_WRITE, "wal_bytes", "writes"),
    FigureRatio(production.DISK_READ_BYTES, "disk.read_bytes", "disk.reads"),
    FigureRatio(production.DISK_WRITE_BYTES, "disk.write_bytes", "disk.writes"),
    FigureRatio(production.DISK_IO_BYTES, "disk.bytes", "disk.ios"),
)
"""Ratios of a database server's counters, of its sessions' waits and of its disks' counters."""


def ratios(amounts: Mapping[str, float | None]) -> Iterator[tuple[FigureRatio, float]]:
    """(ratio, value) of each ratio with both amounts; a divisor of 0 gives no ratio."""
    for one in RATIOS:
        amount, per = amounts.get(one.amount), amounts.get(one.per)
        if amount is not None and per:
            yield one, amount / per


APART = 0.1
"""Relative difference above which two sources disagree."""


@dataclass(slots=True)
class Collected:
    """The figures of all sources; if several sources report a figure, the first one is used.

    Attributes:
        figures: the figures in use.
        disagreements: sentences about sources that differ: both figures, the used one, and the reason.
    """

    figures: Figures = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)

    def take(self, name: str, figure: ProductionFigure, why: str, apart: float = APART) -> None:
        """Use a figure unless an earlier source reported it; note a disagreement.

        Args:
            name: name of the figure, a key of ``production.FIGURES``.
            figure: the figure; callers give the best source first.
            why: why the earlier source is better.
            apart: relative difference above which the sources disagree.
        """
        taken = self.figures.setdefault(name, figure)
        if taken is not figure:
            self.compare(production.FIGURES[name], taken, figure, why, apart)

    def compare(
        self, what: str, taken: ProductionFigure, other: ProductionFigure, why: str, apart: float = APART
    ) -> None:
        """Note a disagreement if two sources differ by more than ``apart``."""
        if abs(taken.value - other.value) > apart * max(abs(taken.value), abs(other.value)):
            self.disagreements.append(
                f"{what}: {plain(taken.value)} ({taken.origin}), {plain(other.value)} ({other.origin}); "
                f"taken is the first: {why}"
            )


def plain(value: float, digits: int = 4) -> str:
    """A number with ``digits`` significant digits, without an exponent."""
    return f"{float(f'{value:.{digits}g}'):.12f}".rstrip("0").rstrip(".") or "0"
