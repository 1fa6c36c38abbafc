"""``make ground-truth``: run the labelled cases and compare the verdicts with the labels.

Every case runs once and is analysed with its limits declared, withheld, and wrong by a factor of two in both
directions. A case is right if all these analyses name the answer of expected.yaml, and if no noise (a missing
collector, samples every five seconds, a fifth of the samples lost) leads to another answer.

Afterwards come the pairs, farms that are predicted from each other's runs (``pairs.py``), and the probes of
disks (``probed.py``).
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ground_truth import machine, pairs, probed
from ground_truth.cases import Case, farms, select
from ground_truth.judge import NotBlind, judge
from ground_truth.rows import Printer, Row, confusion, summary, write
from ground_truth.standing import RunFailed, StandingFarm, standing_farm

from pinchpoint.analysis.coverage import stolen
from pinchpoint.base.errors import ExitStatus, InputError, PinchpointError
from pinchpoint.base.interrupts import Interrupted, Interrupts
from pinchpoint.data.inputs import read_inputs
from pinchpoint.store.read import open_run

BUILD = Path(__file__).parents[2] / "build"
MORE = 2
"""Number of further runs of a case after a run that the hypervisor disturbed."""


class GroundTruth:
    """One call of ``make ground-truth``.

    Args:
        groups: the cases, grouped by the farm that they share.
        build: path for the result and for kept runs.
        repeat: number of runs of each case.
        keep: True: keep every run; False: keep only misses.
        again: True: run nothing and judge the kept runs.
        noise: ``cpu``: a second program saturates the farm's cores for a third of every measure phase.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[Case]],
        build: Path,
        *,
        repeat: int = 1,
        keep: bool = False,
        again: bool = False,
        noise: str = "",
    ) -> None:
        self._groups = groups
        self._repeat = repeat
        self._keep = keep
        self._again = again
        self._noise = noise
        self._kept = build / "ground-truth-runs"
        self._result = build / "ground-truth.json"
        self._printer = Printer([case for group in groups for case in group])
        self.rows: list[Row] = []

    def run(self) -> None:
        """Run all cases; a case's row is printed and saved when the case ends."""
        with tempfile.TemporaryDirectory(prefix="pinchpoint-ground-truth-") as work:
            for number, group in enumerate(self._groups, 1):
                with standing_farm(Path(work) / str(number)) as farm:
                    for repeat in range(1, self._repeat + 1):
                        for case in group:
                            self._note(self._row(case, repeat, farm))

    def _note(self, row: Row) -> None:
        self.rows.append(row)
        self._printer.row(row)
        write(self.rows, self._result)

    def _row(self, case: Case, repeat: int, farm: StandingFarm) -> Row:
        """Run a case once and return its row; an error becomes part of the row, and the other cases run."""
        place = self._kept / (case.name if repeat == 1 else f"{case.name}-{repeat}")
        if self._again:
            return self._judged(case, repeat, place, time.monotonic())
        # a run of an earlier call would be taken for this call's run
        shutil.rmtree(place, ignore_errors=True)
        if missing := machine.lacking(case.expected.needs):
            return Row(case, repeat, 0.0, failure=_not_run(missing), noise=self._noise)
        begun = time.monotonic()
        try:
            directory = self._undisturbed(case, farm)
        except RunFailed as error:
            _move(error.directory, farm.log, place)
            row = self._failed(case, repeat, begun, error)
            return replace(row, kept=place)
        except PinchpointError as error:
            return self._failed(case, repeat, begun, error)
        row = self._judged(case, repeat, directory, begun)
        if row.right and not self._keep:
            shutil.rmtree(directory)
            return row
        _move(directory, farm.log, place)
        return row if row.right else replace(row, kept=place)

    def _undisturbed(self, case: Case, farm: StandingFarm) -> Path:
        """Run a case; repeat it at most twice if the hypervisor took CPU time from the machine.

        The load of other virtual machines on the hypervisor is not part of the case.
        """
        for left in reversed(range(1 + MORE)):
            directory = farm.run(case, burn=self._noise == "cpu", neighbours=case.expected.neighbours)
            taken = "; ".join(stolen(read_inputs(open_run(directory))))
            if not taken or not left:
                break
            print(f"    {case.name}: {taken}: run again", flush=True)
            shutil.rmtree(directory)
        return directory

    def _judged(self, case: Case, repeat: int, directory: Path, begun: float) -> Row:
        """Analyse a run and return its row; a failed analysis is part of the row."""
        judged, failure = None, ""
        try:
            judged = judge(directory)
        except (NotBlind, PinchpointError) as error:
            failure = f"error: {error}"
        except Exception as error:  # noqa: BLE001 -- see above
            failure = f"error: the analysis failed: {type(error).__name__}: {error}"
        return Row(case, repeat, time.monotonic() - begun, judged, failure, noise=self._noise)

    def _failed(self, case: Case, repeat: int, begun: float, error: Exception) -> Row:
        return Row(case, repeat, time.monotonic() - begun, failure=f"error: {error}", noise=self._noise)


def _not_run(missing: str) -> str:
    """Return the reason why a case did not run: an error for root, "not possible here" for other users."""
    return f"error: {missing}" if machine.is_root() else f"not possible here: {missing}"


def _move(directory: Path | None, log: Path, place: Path) -> None:
    """Move a run and its log to the folder of kept runs."""
    if directory is None:
        place.mkdir(parents=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(directory, place)
    shutil.copyfile(log, place / "run.log")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``make ground-truth``; return 0 only if everything was right."""
    given = _parser().parse_args(arguments)
    try:
        chosen, paired, disks = _chosen(
            re.split(r"[\s,]+", given.cases.strip()) if given.cases.strip() else []
        )
    except InputError as error:
        print(error, file=sys.stderr)
        return ExitStatus.BAD_INPUT
    groups, paired = farms(chosen, *given.shard), paired[given.shard[0] - 1 :: given.shard[1]]
    disks = disks[given.shard[0] - 1 :: given.shard[1]]
    if not groups and not paired and not disks:
        print(f"shard {given.shard[0]} of {given.shard[1]} has no cases: there are fewer farms than shards")
        return ExitStatus.FINE
    rows: list[Row] = []
    runner = pairs.Runner(BUILD / "ground-truth-runs", keep=given.keep, again=given.again)
    predicted: list[pairs.PairRow] = []
    measured: list[probed.ProbeRow] = []
    interrupted = False
    try:
        with Interrupts():
            if groups:
                whole = GroundTruth(
                    groups, BUILD, repeat=given.repeat, keep=given.keep, again=given.again, noise=given.noise
                )
                rows = whole.rows
                whole.run()
            _predict(runner, paired, given.repeat, rows, predicted)
            kept = BUILD / "ground-truth-runs"
            for row in probed.run(disks, kept, given.repeat, keep=given.keep, again=given.again):
                measured.append(row)
                print(probed.line(row), flush=True)
                write([*rows, *predicted, *measured], BUILD / "ground-truth.json")
    except Interrupted:
        interrupted = True
    _conclude(rows, predicted, measured, interrupted=interrupted)
    if interrupted:
        return ExitStatus.INTERRUPTED
    right = all(row.right for row in rows) and all(row.right for row in measured)
    return 0 if right and pairs.enough(predicted) else 1


def _chosen(patterns: Sequence[str]) -> tuple[list[Case], list[pairs.Pair], list[probed.ProbeCase]]:
    """Return the cases, pairs and probes that the patterns select; all without a pattern.

    Raises InputError.
    """
    names, rest = pairs.shared_out(patterns, pairs.names())
    disks, rest = pairs.shared_out(rest, probed.names()) if rest or not patterns else ([], [])
    chosen = select(rest) if rest or not patterns else []
    return (
        chosen,
        [pairs.read_pair(pairs.PAIRS / name) for name in names],
        [probed.read_probe_case(probed.PROBES / name) for name in disks],
    )


def _predict(
    runner: pairs.Runner,
    paired: Sequence[pairs.Pair],
    repeat: int,
    rows: Sequence[Row],
    predicted: list[pairs.PairRow],
) -> None:
    """Run the pairs; a pair's row is printed and saved when the pair ends."""
    with tempfile.TemporaryDirectory(prefix="pinchpoint-pairs-") as work:
        for row in runner.run(paired, Path(work), repeat):
            predicted.append(row)
            print(pairs.line(row), flush=True)
            write([*rows, *predicted], BUILD / "ground-truth.json")


def _conclude(
    rows: Sequence[Row],
    predicted: Sequence[pairs.PairRow],
    measured: Sequence[probed.ProbeRow],
    *,
    interrupted: bool,
) -> None:
    if rows:
        print(f"\n{confusion(rows)}\n")
        print("\n".join(summary(rows)))
    stopped = "; interrupted, the rest was not run" if interrupted else ""
    if predicted:
        near = sum(row.right for row in predicted)
        print(f"\n{pairs.table(predicted)}\n")
        print(
            f"{near} of {len(predicted)} pairs predicted within {pairs.WITHIN:.0%}{'' if rows else stopped}"
        )
    if measured:
        print(
            f"{sum(row.right for row in measured)} of {len(measured)} probes right{'' if rows else stopped}"
        )
    if rows or not (predicted or measured):
        right = sum(row.right for row in rows)
        print(f"{right} of {len(rows)} right{stopped}; {BUILD / 'ground-truth.json'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make ground-truth", description=__doc__)
    parser.add_argument("--cases", default="", help="names, globs or @lists, separated by spaces or commas")
    parser.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N", help="part I of N, by farms")
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N", help="run each case N times")
    parser.add_argument("--keep", action="store_true", help="keep every run, not only those that were missed")
    parser.add_argument("--again", action="store_true", help="judge the runs that were kept; run nothing")
    parser.add_argument(
        "--noise", default="", choices=("", "cpu"), help="cpu: a second program steals CPU for a third of it"
    )
    return parser


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: I/N with I from 1 to N, such as 1/2")
    return int(match[1]), int(match[2])


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: a whole number from 1 on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
