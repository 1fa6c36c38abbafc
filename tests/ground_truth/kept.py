"""``make kept-truth``: judge the runs kept in ``golden_runs/``, each in many variants, in a minute.

A run of a real farm has the answer of its case. It is judged unchanged, with its limits withheld and wrong by
a factor of two, as means over 5, 15 and 60 s, and without a host, a collector or a kind of metric. A
simulated run has its answer in ``simulated.csv`` and is judged unchanged. Unlike ``make ground-truth``, the
resource decides: another resource, or an all-clear for a limited run, is wrong.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from ground_truth.cases import CASES, Answer, read_case
from ground_truth.judge import found_in
from ground_truth.noises import LOST, SEED, collectors, every, lost, without
from ground_truth.variants import VARIANTS

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.samples import table

TESTS = Path(__file__).parents[1]
RUNS = TESTS / "golden_runs"
SIMULATED = Path(__file__).with_name("simulated.csv")
REAL, SYNTHETIC = "real", "synthetic"
AS_IS = next(iter(VARIANTS))
MEANS_S = (5, 15, 60)
LEFT_OUT: dict[str, Callable[[str], bool]] = {
    "pressure": lambda metric: metric.startswith("pressure."),
    "database views": lambda metric: metric.startswith("db."),
    "disk latency": lambda metric: metric.startswith("disk.") and "latency" in metric,
}

Score = Literal["right", "declined", "wrong"]


@dataclass(frozen=True, slots=True)
class Judged:
    """The score of one verdict on a kept run.

    Attributes:
        set: ``real`` or ``synthetic``.
        score: ``right``, ``wrong`` or ``declined``.
        kind: True if the kind of limit is right as well.
        candidate: True if the verdict declined but had the right candidate.
        confidence: confidence of the bottleneck.
        said: the verdict in a few words.
    """

    set: str
    run: str
    variant: str
    expected: str
    score: Score
    kind: bool
    candidate: bool
    confidence: str | None
    said: str


def truths(set_: str) -> dict[str, Answer]:
    """Return the answer of each run of a set, by the run's name."""
    if set_ == SYNTHETIC:
        with SIMULATED.open(encoding="utf-8", newline="") as file:
            rows = {
                row.pop("run"): {key: value or None for key, value in row.items()}
                for row in csv.DictReader(file)
            }
        return {name: Answer(**row) for name, row in rows.items()}  # type: ignore[arg-type]
    names = sorted(path.name for path in (RUNS / REAL).iterdir())
    cases = {name: name if (CASES / name).is_dir() else name.rpartition("-")[0] for name in names}
    return {name: read_case(CASES / case).expected.answer for name, case in cases.items()}


def variants(run: StoredRun) -> Iterator[tuple[str, StoredRun]]:
    """Yield (name, variant of the run), the unchanged run first."""
    for name, change in VARIANTS.items():
        manifest = change(run.manifest)
        if name == AS_IS or manifest != VARIANTS[AS_IS](run.manifest):
            yield name, replace(run, manifest=manifest)
    samples = table(run.samples)
    for seconds in MEANS_S:
        yield f"means over {seconds} s", replace(run, samples=every(samples, seconds))
    yield f"{LOST:.0%} lost", replace(run, samples=lost(samples, LOST, SEED))
    for host in sorted(run.manifest.get("hosts") or {}):
        yield (
            f"without host {host}",
            replace(run, samples=samples.filter(pc.not_equal(samples["host"], host))),
        )
    for host, kind in collectors(samples):
        yield f"without {kind} of {host}", replace(run, samples=without(samples, host, kind))
    metrics = set(pc.unique(samples["metric"]).to_pylist())
    for name, is_left_out in LEFT_OUT.items():
        if gone := [metric for metric in metrics if is_left_out(metric)]:
            left = samples.filter(pc.invert(pc.is_in(samples["metric"], pa.array(gone))))
            yield f"without {name}", replace(run, samples=left)


def score(set_: str, run: str, variant: str, expected: Answer, verdict: Verdict) -> Judged:
    """Compare a verdict with the answer and return the score."""
    named = found_in(verdict)
    found, sure = named.answer, named.confidence
    worth: Score = "right" if found.resource == expected.resource else "wrong"
    if worth == "wrong" and (found.outcome == "inconclusive" or found.kind == "contention"):
        worth = "declined"  # a verdict on other processes of the machine is no verdict on the farm
    ones = [Answer("bottleneck", one.kind, one.tier, one.role) for one in verdict.candidates]
    candidate = worth == "declined" and any(one.resource == expected.resource for one in ones)
    said = str(found) if found.kind or not ones else f"{found}: {', '.join(map(str, ones))}"
    return Judged(set_, run, variant, str(expected), worth, found == expected, candidate, sure, said)


def judged(set_: str, name: str, expected: Answer) -> list[Judged]:
    """Judge a kept run in all its variants."""
    run = open_run(RUNS / set_ / name)
    made = variants(run) if set_ == REAL else [(AS_IS, run)]
    return [score(set_, name, variant, expected, analyse(one)) for variant, one in made]


def report(found: Iterable[Judged]) -> str:
    """Return a table with a row per set and variant; variants that remove data of one host share a row."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in found:
        of_host = one.variant.startswith("without") and one.variant.rpartition(" ")[2][-1].isdigit()
        row = counts[one.set, "without a host or a collector" if of_host else one.variant]
        row.update((one.score, *(["kind"] if one.kind else []), *(["candidate"] if one.candidate else [])))
        if one.score == "wrong":
            row[f"wrong {one.confidence}"] += 1
    heads = {
        "right": "right",
        "kind": "with its kind",
        "declined": "declined",
        "candidate": "with the right candidate",
        "wrong": "wrong",
        "wrong high": "with high confidence",
        "wrong medium": "with medium",
    }
    lines = [f"| set | variant | {' | '.join(heads.values())} |", f"|{' --- |' * (len(heads) + 2)}"]
    for (set_, variant), row in counts.items():
        lines.append(f"| {' | '.join([set_, variant, *(str(row[name]) for name in heads)])} |")
    return "\n".join(lines)


def _one(asked: tuple[str, str, Answer]) -> list[Judged]:
    return judged(*asked)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a verdict on a real run is wrong with at least medium confidence."""
    parser = argparse.ArgumentParser(prog="make kept-truth", description=__doc__)
    parser.add_argument("--set", default="", help="real or synthetic; both without it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    sets = [one for one in (REAL, SYNTHETIC) if one.startswith(given.set)]
    asked = [(set_, name, answer) for set_ in sets for name, answer in truths(set_).items()]
    found: list[Judged] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for ones in pool.map(_one, asked, chunksize=4):
            found += ones
            for one in ones:
                if one.score == "wrong":
                    print(
                        f"wrong: {one.run}, {one.variant}: {one.expected} -> {one.said} ({one.confidence})",
                        flush=True,
                    )
    build = TESTS.parent / "build"
    build.mkdir(exist_ok=True)
    (build / "kept-truth.json").write_text(
        json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8"
    )
    print(report(found))
    return int(
        any(
            one.set == REAL and one.score == "wrong" and one.confidence in ("medium", "high") for one in found
        )
    )


if __name__ == "__main__":
    sys.exit(main())
