"""Probe disks with known limits: the published storage tests, and copies of other sizes.

A folder in ``probes/`` has ``expected.yaml`` and a farm file for each side, or names the ``example`` with
these farms. One ``pinchpoint probe`` measures all sides, as a user would, and each verdict must be as
expected.yaml states for its side.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ground_truth import machine
from ground_truth.cases import Need
from ground_truth.standing import PINCHPOINT, RunFailed, end
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pinchpoint.base.errors import InputError, PinchpointError
from pinchpoint.probe.figures import figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import PROBE, Probe, load
from pinchpoint.probe.verdict import ProbeVerdict

PROBES = Path(__file__).with_name("probes")
EXAMPLES = Path(__file__).parents[2] / "infra" / "examples"
AT_MOST_S = 1800.0

DiskKind = Literal["disk_cap", "disk_device", "disk_concurrency", "disk_latency"]
Span = tuple[float, float]
"""The smallest and the largest right value."""


class ExpectedSide(BaseModel):
    """The expected answers on one disk.

    Attributes:
        kinds: workload or measurement -> the kind of disk limit.
        holds_to: workload -> the largest queue depth below the latency threshold; 0: none.
        times: measurement -> its throughput ÷ the throughput of the first side.
        figures: measurement -> I/Os per second.
        host_cache: True if reads come from a cache on the host; None: either is right.
        contradicted: True if the declared limits differ from the disk's limits.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kinds: Mapping[str, DiskKind] = {}
    holds_to: Mapping[str, Span] = {}
    times: Mapping[str, Span] = {}
    figures: Mapping[str, Span] = {}
    host_cache: bool | None = False
    contradicted: bool = False


class ExpectedProbes(BaseModel):
    """The content of one expected.yaml.

    Attributes:
        example: the folder of ``infra/examples`` with the farms; None: the farms are next to this file.
            suite, disk: the suite, and the disk that it measures on each farm.
        options: further options of ``pinchpoint probe``.
        why: reason why the answers are true.
        needs: what the machine must offer.
        sides: farm file without its suffix -> the expected answers on its disk; the first side is the base of
            ``times``.
        unsolved: reason why the verdict is still wrong. The case runs and counts as a miss.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    example: str | None = None
    suite: str
    disk: str = "nosql.data"
    options: tuple[str, ...] = ()
    why: str = Field(min_length=1)
    needs: tuple[Need, ...] = ()
    sides: Mapping[str, ExpectedSide] = Field(min_length=1)
    unsolved: str | None = Field(default=None, min_length=1)


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """One case of a probe.

    Attributes:
        name: name of the case's folder.
        farms: the farm file of each side, in the order of ``expected.sides``.
        expected: the expected answers.
    """

    name: str
    farms: tuple[Path, ...]
    expected: ExpectedProbes

    @property
    def command(self) -> list[str]:
        """The arguments of the command that measures all sides."""
        asked = self.expected
        given = [each for farm in self.farms for each in ("--farm", str(farm))]
        return ["probe", *given, "--disk", asked.disk, "--suite", asked.suite, *asked.options]


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """The result of one run of a case.

    Attributes:
        misses: differences between the verdicts and the expected answers, one sentence each.
        failure: reason for a missing result.
    """

    case: ProbeCase
    repeat: int
    seconds: float
    misses: tuple[str, ...] = ()
    failure: str = ""

    @property
    def right(self) -> bool:
        """True if every verdict is as expected."""
        return not self.misses and not self.failure

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ground-truth.json, with the keys of a case's entry."""
        return {
            "case": self.case.name,
            "repeat": self.repeat,
            "expected": f"{self.case.expected.suite} of {', '.join(self.case.expected.sides)}",
            "found": self.failure or "; ".join(self.misses) or "as expected",
            "confidence": None,
            "right": self.right,
            "seconds": round(self.seconds, 1),
            "unsolved": self.case.expected.unsolved,
        }


def names() -> list[str]:
    """Return the names of all cases."""
    return sorted(folder.name for folder in PROBES.glob("*/"))


def read_probe_case(folder: Path) -> ProbeCase:
    """Read one case. Raises InputError."""
    path = folder / "expected.yaml"
    try:
        expected = ExpectedProbes.model_validate(YAML(typ="safe").load(path))
    except (OSError, YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except ValidationError as error:
        problems = (f"{path}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(*problems) from error
    place = EXAMPLES / expected.example if expected.example else folder
    farms = tuple(place / f"{side}.yaml" for side in expected.sides)
    if absent := [str(farm) for farm in farms if not farm.is_file()]:
        raise InputError(f"{path}: sides: no such file: {', '.join(absent)}")
    return ProbeCase(folder.name, farms, expected)


def judged(case: ProbeCase, probes: Sequence[Probe]) -> Iterator[str]:
    """Yield differences between the probes' verdicts, in the order of the sides, and the expected answers."""
    first = _rates(probes[0])
    for (name, expected), probe in zip(case.expected.sides.items(), probes, strict=True):
        for miss in _missed(expected, judge(probe), _rates(probe), first):
            yield f"{name}: {miss}"


def _missed(
    expected: ExpectedSide, verdict: ProbeVerdict, rates: Mapping[str, float], first: Mapping[str, float]
) -> Iterator[str]:
    workloads = {one.workload: one for one in verdict.workloads}
    kinds = {name: one.kind for name, one in workloads.items()}
    kinds |= {cell.cell: cell.kind for one in workloads.values() for cell in one.cells if len(one.cells) > 1}
    for name, kind in expected.kinds.items():
        if kinds.get(name) != kind:
            yield f"{name} is {kinds.get(name)}, not {kind}"
    for name, (low, high) in expected.holds_to.items():
        holds = workloads[name].line_holds_to or 0 if name in workloads else None
        if holds is None or not low <= holds <= high:
            yield f"{name} is below the line up to {holds} outstanding, not {low:g} to {high:g}"
    for what, spans, base in (
        ("times the first side", expected.times, first),
        ("per second", expected.figures, {}),
    ):
        for name, (low, high) in spans.items():
            found = rates.get(name, 0.0) / base.get(name, 1.0)
            if not low <= found <= high:
                yield f"{name} is {found:.3g} {what}, not {low:g} to {high:g}"
    if expected.host_cache not in (None, bool(verdict.host_cache)):
        yield f"a cache on the host is {'' if verdict.host_cache else 'not '}suspected"
    if bool(verdict.contradicted) != expected.contradicted:
        yield verdict.contradicted or "the declared limits are not contradicted"


def _rates(probe: Probe) -> dict[str, float]:
    """Return I/Os per second by measurement; bytes per second if the tool reports no I/Os."""
    return {
        cell.name: mean.middle
        for cell, one in figures(probe).items()
        if (mean := one.iops or one.bytes_per_s) is not None
    }


def run(
    cases: Iterable[ProbeCase], kept: Path, repeat: int = 1, *, keep: bool, again: bool
) -> Iterator[ProbeRow]:
    """Yield a row for each case and repetition.

    Args:
        cases: the cases to run.
        kept: folder for the probes of misses, or with ``keep`` for all probes.
        repeat: number of repetitions of each case.
        keep: True: keep every probe.
        again: True: measure nothing and judge the kept probes.
    """
    for case in cases:
        for number in range(1, repeat + 1):
            place = kept / (case.name if number == 1 else f"{case.name}-{number}")
            row = _row(case, number, place, again=again)
            if row.right and not keep and not again:
                shutil.rmtree(place)
            yield row


def _row(case: ProbeCase, number: int, place: Path, *, again: bool) -> ProbeRow:
    begun = time.monotonic()
    try:
        if not again:
            if missing := machine.lacking(case.expected.needs):
                why = f"error: {missing}" if machine.is_root() else f"not possible here: {missing}"
                return ProbeRow(case, number, 0.0, failure=why)
            shutil.rmtree(place, ignore_errors=True)
            _measure(case, place)
        misses = tuple(judged(case, _kept(case, place)))
    except (RunFailed, PinchpointError) as error:
        return ProbeRow(case, number, time.monotonic() - begun, failure=f"error: {error}")
    return ProbeRow(case, number, time.monotonic() - begun, misses)


def _measure(case: ProbeCase, place: Path) -> None:
    """Measure all sides with one command, as a user calls it. Raises RunFailed."""
    place.mkdir(parents=True)
    log = place / "run.log"
    with log.open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            [PINCHPOINT, *case.command, "--out", place],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(AT_MOST_S)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end(process)
    if status:
        words = " / ".join(log.read_text(encoding="utf-8").strip().splitlines()[-3:])
        raise RunFailed(f"exit status {status}: {words}", place)
    if status is None:
        raise RunFailed(f"did not end within {AT_MOST_S:.0f} s", place)


def _kept(case: ProbeCase, place: Path) -> list[Probe]:
    """Return the probe of each side, in the order of the farms. Raises RunFailed."""
    made = sorted(place.glob(f"*/{PROBE}"), key=lambda path: load(path.parent).started)
    if len(made) != len(case.farms):
        raise RunFailed(f"{len(made)} probes of {len(case.farms)} disks", place)
    return [load(path.parent) for path in made]


def line(row: ProbeRow) -> str:
    """Return the line that is printed when a case ends, with the misses below."""
    unsolved = row.case.expected.unsolved
    answer = "right" if row.right else row.failure or f"NO{f', unsolved: {unsolved}' if unsolved else ''}"
    return "\n    ".join([f"{row.case.name}: {answer} ({row.seconds:.0f} s)", *row.misses])
