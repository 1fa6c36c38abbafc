"""The figures of production by source, and where sources differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pinchpoint.plan import production


@dataclass(frozen=True, slots=True)
class ProductionFigure:
    """One figure of production.

    Attributes:
        value: in base units.
        origin: where it comes from, in words.
    """

    value: float
    origin: str


Figures = dict[str, ProductionFigure]
"""Name (of ``production.FIGURES``) -> figure; what a source does not report is missing."""

COUNTED = ("reads", "read_bytes", "read_s", "writes", "write_bytes", "write_s")
"""Counters of the log's files and of the data files: ``log.reads``, ``data.reads``, ..."""
WAITED = {"log": "Log:WRITELOG", "data": "Data:PAGEIOLATCH"}
"""How the waits for a commit's write and for a page begin, as collector ``sqlserver`` names them."""


class FigureRatio(NamedTuple):
    """A figure that is one amount ÷ another, of both production and its replay.

    Attributes:
        figure: of ``production.FIGURES``.
        amount, per: what whoever asks has counted, by name.
        words: how production's is made, in words.
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
"""Ratios of a database server's counters, its sessions' waits, and its disks."""


def ratios(amounts: Mapping[str, float | None]) -> Iterator[tuple[FigureRatio, float]]:
    """The ratios of which both amounts are known; what did not happen has no size and no time."""
    for one in RATIOS:
        amount, per = amounts.get(one.amount), amounts.get(one.per)
        if amount is not None and per:
            yield one, amount / per


APART = 0.1
"""Two sources that differ by more than this share differ."""


@dataclass(slots=True)
class Collected:
    """The figures of all sources together; where several report the same figure, one is taken.

    Attributes:
        figures: those that were taken.
        disagreements: sentences on sources that differ: both figures, which was taken, and why.
    """

    figures: Figures = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)

    def take(self, name: str, figure: ProductionFigure, why: str, apart: float = APART) -> None:
        """Take a figure, unless a better source gave it already.

        Args:
            name: of ``production.FIGURES``.
            figure: sources come in the order of preference.
            why: why an earlier one is better.
            apart: by how much they may differ without a word.
        """
        taken = self.figures.setdefault(name, figure)
        if taken is not figure:
            self.compare(production.FIGURES[name], taken, figure, why, apart)

    def compare(
        self, what: str, taken: ProductionFigure, other: ProductionFigure, why: str, apart: float = APART
    ) -> None:
        """Note where two sources differ."""
        if abs(taken.value - other.value) > apart * max(abs(taken.value), abs(other.value)):
            self.disagreements.append(
                f"{what}: {plain(taken.value)} ({taken.origin}), {plain(other.value)} ({other.origin}); "
                f"taken is the first: {why}"
            )


def plain(value: float, digits: int = 4) -> str:
    """A number with this many digits, without an exponent."""
    return f"{float(f'{value:.{digits}g}'):.12f}".rstrip("0").rstrip(".") or "0"
