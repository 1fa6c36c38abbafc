"""Drops impossible samples of a file. Refuses a column with many of them, and suggests its unit.

A single impossible value is an error of the recorder, and counts as not measured. If most values of a column
are impossible, the column has another unit than assumed, and the other values are wrong as well.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median

from pinchpoint_collectors import bounds
from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import CsvMapping, FileFacts
from pinchpoint_collectors.record import Sample

_PERCENT = 105.0
"""Range of a percentage, with rounding."""
_FEWEST, _OFTEN = 3, 0.05
"""Number of impossible values, and share of the column, that mean another unit if all values can be
percentages."""
_USUAL_WAIT_S = 60.0
"""Usual longest wait in seconds. Longer waits throughout mean another unit, because systems abort an I/O
after it."""
_KEPT = 1000
"""Number of impossible values of a column whose median suggests its unit."""


@dataclass(slots=True)
class _Column:
    """One series of the file while it is read.

    Attributes:
        measured: its values.
        counted: number of values other than 0, which fits any unit.
        odd: number of these that are impossible, or are waits that no disk has throughout.
        line: line of the first value.
        kept: first few values.
    """

    measured: int = 0
    counted: int = 0
    odd: int = 0
    line: int | None = None
    kept: array[float] = field(default_factory=lambda: array("d"))

    def add(self, sample: Sample, line: int | None) -> None:
        """Count an impossible or unusual value."""
        self.odd += 1
        self.line = self.line or line
        if sample.value is not None and len(self.kept) < _KEPT:
            self.kept.append(sample.value)

    def is_another_unit(self, metric: str, *, is_mapped: bool) -> bool:
        """Return whether the column has another unit.

        That is so if most values are impossible, or if the impossible ones look like percentages.
        """
        if 2 * self.odd > self.counted and (self.odd >= _FEWEST or 2 * self.odd > self.measured):
            return bool(self.kept)
        if not is_mapped or not metric.endswith("_ratio") or self.odd < max(_FEWEST, _OFTEN * self.counted):
            return False
        return all(bounds.SHARE < value <= _PERCENT for value in self.kept)

    def words(self, metric: str, *, is_mapped: bool) -> str:
        """Return what was found, what it may be, and the remedy."""
        bound, middle = bounds.bound_of(metric), median(self.kept)
        highest = 1.0 if metric.endswith("_ratio") else bound.highest
        if _is_wait(metric) and middle <= highest:
            highest = _USUAL_WAIT_S
        limit = "below 0" if middle < 0 else f"above {bounds.number(highest)}"
        guess, scale = _guess(metric, middle)
        answer = f"`scale: {scale}`" if scale else "`scale` and `offset`"
        remedy = (
            f"say {answer} in the mapping"
            if is_mapped
            else f"map it with --kind csv --map MAPPING and {answer}"
        )
        values = f"{self.odd:,} of {counted(self.counted, 'value')}"
        return f"{values} {limit}, median {bounds.number(middle)}: {guess}; {remedy}"


def checked(
    samples: Iterable[Sample], facts: FileFacts, mapping: CsvMapping | None = None
) -> Iterator[Sample]:
    """Yield the samples, with impossible values as not measured. ``facts`` counts them.

    A column of the file has one unit. If it covers several hosts, all of them are checked together.

    Args:
        samples: samples of one file.
        facts: facts of the file, with the current line if it has lines.
        mapping: mapping of a CSV, in which the user declared the unit of each column.

    Raises:
        ForeignFileError: most values of a column are impossible.
    """
    is_mapped = mapping is not None
    of_all_hosts = mapping is not None and mapping.host_column is not None
    columns: dict[tuple[str, str, str], _Column] = {}
    impossible = bounds.Tally()
    for sample in samples:
        key = "" if of_all_hosts else sample.host, sample.metric, sample.instance
        column = columns.get(key)
        if column is None:
            column = columns[key] = _Column()
        is_possible = bounds.is_possible(sample)
        column.measured += sample.value is not None
        column.counted += bool(sample.value)
        if not is_possible or (is_mapped and _is_unusual(sample)):
            column.add(sample, facts.line)
        if is_possible:
            yield sample
        else:
            impossible.add(replace(bounds.nonsense(sample), line=facts.line))
            yield sample._replace(value=None, weight=None)
    for (_, metric, instance), column in columns.items():
        if column.is_another_unit(metric, is_mapped=is_mapped):
            words = column.words(metric, is_mapped=is_mapped)
            raise ForeignFileError(f"{f'{metric} {instance}'.strip()}: {words}", column.line)
    for sentence in bounds.sentences(impossible.found.values()):
        facts.note(sentence)


def _is_unusual(sample: Sample) -> bool:
    """Return whether a value suggests another unit, if most values of its column do."""
    value = sample.value or 0.0
    if sample.metric.endswith("_ratio"):
        return value > bounds.SHARE
    return _is_wait(sample.metric) and value > _USUAL_WAIT_S


def _is_wait(metric: str) -> bool:
    return metric.startswith("disk.") and metric.endswith("_latency_s")


def _guess(metric: str, middle: float) -> tuple[str, str | None]:
    """Return the unit of a column with a median, and its scale to base units; None if unknown."""
    if middle < 0:
        return "it is below 0: perhaps its sign or its offset is wrong", None
    units: tuple[tuple[str, float], ...] = ()
    if metric.endswith("_ratio"):
        units = (("percent", 0.01), ("per mille", 0.001), ("percent x 100", 0.0001))
        most = _PERCENT / 100
    elif metric.endswith("_s") and not metric.endswith("_per_s"):
        units = (("milliseconds", 1e-3), ("microseconds", 1e-6), ("nanoseconds", 1e-9))
        most = 1.0
    for name, scale in units:
        if middle * scale <= most:
            return f"perhaps {name}", f"{scale:.9f}".rstrip("0")
    if metric.endswith("_per_s"):
        return "perhaps a total since the machine started, not a rate", None
    return "it may be in another unit", None
