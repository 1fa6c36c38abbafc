"""Pairs of farms for the what-if: predict one farm from the other's run, run it, and compare.

A folder in ``pairs/`` has ``plan.yaml``, ``base.yaml`` and ``other.yaml`` (two farms) and ``pair.yaml``. The
base's model predicts the other farm's throughput from the measured disks and cores of the other run; within
10 % it is right. A second prediction uses only the settings of pair.yaml, as a user without the other farm
would do. (An emulated disk has exactly its set limits only on an idle machine.)
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ground_truth import machine
from ground_truth.cases import Need
from ground_truth.standing import RunFailed, standing_farm
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pinchpoint.analysis.model.prediction import predict_change
from pinchpoint.base.errors import InputError, PinchpointError
from pinchpoint.forecast import Prediction, predict
from pinchpoint.forecast.other_side import between
from pinchpoint.forecast.predict import read_modelled_run
from pinchpoint.plan import Plan, load
from pinchpoint.store.read import open_run

PAIRS = Path(__file__).with_name("pairs")
SIDES = ("base", "other")
WITHIN = 0.10
ENOUGH = 0.8
"""Ratio of all pairs that must be right."""


class PairFile(BaseModel):
    """The content of one pair.yaml.

    Attributes:
        set: settings of the base's model that predict the other farm.
        why: the difference between the farms, and its expected effect.
        needs: what the machine must offer.
        unsolved: reason why the prediction is still wrong. The pair runs and counts as a miss.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    set: tuple[str, ...] = Field(min_length=1)
    why: str = Field(min_length=1)
    needs: tuple[Need, ...] = ()
    unsolved: str | None = Field(default=None, min_length=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair of farms.

    Attributes:
        name: name of the pair's folder.
        folder: path of the pair's files.
        plan: the plan that loads both farms.
        file: the content of pair.yaml.
    """

    name: str
    folder: Path
    plan: Plan
    file: PairFile


@dataclass(frozen=True, slots=True)
class Side:
    """One farm of a pair, in the form of a case."""

    folder: Path
    plan: Plan

    @property
    def load_s(self) -> float:
        """The maximum time of the plan's load, in seconds."""
        phases = self.plan.phases
        return phases.warm_up.at_most_s + phases.measure.at_most_s + phases.cool_down_s


@dataclass(frozen=True, slots=True)
class PairRow:
    """The result of one run of a pair.

    Attributes:
        measured_per_s: measured operations per second of the other farm.
        predicted: prediction by the base's model from the other run's disks, cores and load; None without a
            result.
        by_set_per_s: predicted operations per second from the settings alone; None without a result.
        failure: reason for a missing result.
    """

    pair: Pair
    repeat: int
    seconds: float
    measured_per_s: float | None = None
    predicted: Prediction | None = None
    by_set_per_s: float | None = None
    failure: str = ""

    @property
    def predicted_per_s(self) -> float | None:
        """Predicted operations per second of the plan's first scenario."""
        return self.predicted.scenarios[0].then_per_s if self.predicted else None

    @property
    def error_ratio(self) -> float | None:
        """Predicted throughput ÷ measured throughput - 1."""
        return off(self.predicted_per_s, self.measured_per_s)

    @property
    def right(self) -> bool:
        """True if the prediction is within 10 %."""
        return self.error_ratio is not None and abs(self.error_ratio) <= WITHIN

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ground-truth.json, with the keys of a case's entry."""
        one = self.predicted.scenarios[0] if self.predicted else None
        return {
            "case": self.pair.name,
            "repeat": self.repeat,
            "expected": _per_s(self.measured_per_s),
            "found": _per_s(self.predicted_per_s) if self.predicted else self.failure,
            "confidence": None,
            "right": self.right,
            "seconds": round(self.seconds, 1),
            "unsolved": self.pair.file.unsolved,
            "base_per_s": one.now_per_s if one else None,
            "measured_per_s": self.measured_per_s,
            "predicted_per_s": self.predicted_per_s,
            "interval_per_s": [one.low_per_s, one.high_per_s] if one else None,
            "error_ratio": self.error_ratio,
            "by_set_error_ratio": off(self.by_set_per_s, self.measured_per_s),
            "binds_then": self.predicted.binds_then.name if self.predicted else None,
        }


def off(predicted: float | None, measured: float | None) -> float | None:
    """Return predicted ÷ measured - 1; None if one of them is missing."""
    return predicted / measured - 1 if predicted is not None and measured else None


def _per_s(value: float | None) -> str:
    return "nothing" if value is None else f"{value:,.4g}/s"


def names() -> list[str]:
    """Return the names of all pairs."""
    return sorted(folder.name for folder in PAIRS.glob("*/"))


def shared_out(patterns: Sequence[str], known: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return (names that the patterns select, patterns that select none); all names without a pattern."""
    if not patterns:
        return list(known), []
    meant = {pattern: [name for name in known if fnmatchcase(name, pattern)] for pattern in patterns}
    chosen = {name for found in meant.values() for name in found}
    return [name for name in known if name in chosen], [pattern for pattern in patterns if not meant[pattern]]


def read_pair(folder: Path) -> Pair:
    """Read one pair. Raises InputError."""
    # reading checks both farms
    _, plan = [load(folder / f"{side}.yaml", folder / "plan.yaml") for side in SIDES][-1]
    path = folder / "pair.yaml"
    try:
        file = PairFile.model_validate(YAML(typ="safe").load(path))
    except (OSError, YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except ValidationError as error:
        problems = (f"{path}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(*problems) from error
    return Pair(folder.name, folder, plan, file)


class Runner:
    """Runs pairs one after the other.

    Args:
        kept: folder for the runs of misses, or with ``keep`` for all runs.
        keep: True: keep every run.
        again: True: run nothing and judge the kept runs.
    """

    def __init__(self, kept: Path, *, keep: bool = False, again: bool = False) -> None:
        self._kept, self._keep, self._again = kept, keep, again

    def run(self, pairs: Iterable[Pair], work: Path, repeat: int = 1) -> Iterator[PairRow]:
        """Yield a row for each pair and repetition when it ends."""
        for pair in pairs:
            for number in range(1, repeat + 1):
                yield self._row(pair, number, work / pair.name / str(number))

    def _row(self, pair: Pair, number: int, work: Path) -> PairRow:
        begun = time.monotonic()
        place = self._kept / (pair.name if number == 1 else f"{pair.name}-{number}")
        if not self._again:
            missing = machine.lacking(pair.file.needs)
            if missing:
                why = f"error: {missing}" if machine.is_root() else f"not possible here: {missing}"
                return PairRow(pair, number, 0.0, failure=why)
            shutil.rmtree(place, ignore_errors=True)
            try:
                for side in SIDES:
                    _run(pair, side, work, place / side)
            except (RunFailed, PinchpointError) as error:
                return PairRow(pair, number, time.monotonic() - begun, failure=f"error: {error}")
        row = _judged(pair, number, place, begun)
        if row.right and not self._keep and not self._again:
            shutil.rmtree(place)
        return row


def _run(pair: Pair, side: str, work: Path, place: Path) -> None:
    """Start one farm of a pair, run the plan, stop the farm, and keep the run."""
    folder = work / side
    folder.mkdir(parents=True)
    shutil.copyfile(pair.folder / f"{side}.yaml", folder / "farm.yaml")
    shutil.copyfile(pair.folder / "plan.yaml", folder / "plan.yaml")
    with standing_farm(folder / "standing") as farm:
        directory = farm.run(Side(folder, pair.plan))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(directory, place)
        shutil.copyfile(farm.log, place / "run.log")


def _judged(pair: Pair, number: int, place: Path, begun: float) -> PairRow:
    """Compare the prediction from the base's run with the other run; a failed analysis is part of the row."""
    row = PairRow(pair, number, time.monotonic() - begun)
    try:
        base, other = (read_modelled_run(open_run(place / side)) for side in SIDES)
        theirs = other.measured.seen[0]
        predicted = predict_change(base, between(base.measured, other.measured).settings)
        by_set = predict(open_run(place / SIDES[0]), pair.file.set)
    except PinchpointError as error:
        return PairRow(pair, number, time.monotonic() - begun, failure=f"error: {error}")
    return PairRow(
        row.pair,
        number,
        time.monotonic() - begun,
        measured_per_s=theirs.now_per_s,
        predicted=predicted,
        by_set_per_s=by_set.scenarios[0].then_per_s,
    )


# ---- what is printed ------------------------------------------------------------------------------

HEADINGS = ("pair", "base", "predicted", "interval", "measured", "off by", "by what is set", "right")


def table(rows: Sequence[PairRow]) -> str:
    """Return a table of all pairs, each failure below its row."""
    lines = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADINGS))]
    texts = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    texts += [f"    {row.pair.name}: {row.failure}" for row in rows if row.failure]
    return "\n".join(texts)


def line(row: PairRow) -> str:
    """Return the line that is printed when a pair ends."""
    found = _percent(row.error_ratio) if row.predicted else row.failure
    predicted, measured = _per_s(row.predicted_per_s), _per_s(row.measured_per_s)
    return f"{row.pair.name}: predicted {predicted}, measured {measured}: {found}"


def _cells(row: PairRow) -> tuple[str, ...]:
    name = row.pair.name if row.repeat == 1 else f"{row.pair.name} #{row.repeat}"
    one = row.predicted.scenarios[0] if row.predicted else None
    span = f"{one.low_per_s:,.4g} to {one.high_per_s:,.4g}" if one else "-"
    right = (
        "yes" if row.right else f"NO, unsolved: {row.pair.file.unsolved}" if row.pair.file.unsolved else "NO"
    )
    return (
        name,
        _per_s(one.now_per_s if one else None),
        _per_s(row.predicted_per_s),
        span,
        _per_s(row.measured_per_s),
        _percent(row.error_ratio),
        _percent(off(row.by_set_per_s, row.measured_per_s)),
        right,
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"


def enough(rows: Sequence[PairRow]) -> bool:
    """Return True if enough pairs are right."""
    return sum(row.right for row in rows) >= ENOUGH * len(rows)
