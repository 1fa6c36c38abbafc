"""``make foreign-truth FOLDER=...``: judge labelled recordings; count right, wrong and declined verdicts.

Each recording is imported as `pinchpoint import` does. It is judged unchanged, as means over 5, 10, 15 and 60
seconds if it is finer, with a tenth of its readings lost, and without one kind of metric at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
from ground_truth.noises import SEED, every, lost

from foreign_truth.labels import Label, read_labels
from foreign_truth.score import Judged, score
from pinchpoint.analysis import analyse
from pinchpoint.base.errors import ExitStatus, InputError, PinchpointError
from pinchpoint.imports import import_as_run, open_source, read_mapping, read_places
from pinchpoint.imports.reading import TimeSpan
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.samples import table
from pinchpoint_collectors.imports.record import Settings

BUILD = Path(__file__).parents[2] / "build"
AS_IS = "as is"
MEANS_S = (5, 10, 15, 60)
LOST = 0.1
KINDS = ("cpu.", "mem.", "disk.", "net.", "db.", "pressure.")


def judged(label: Label, *, variants: bool) -> list[Judged]:
    """Judge a recording in all its variants; an unreadable file is ``failed``, with the message."""
    with tempfile.TemporaryDirectory(prefix="pinchpoint-foreign-") as folder:
        try:
            run = _imported(label, Path(folder))
            return [score(label, name, analyse(one)) for name, one in _variants(run, all_of_them=variants)]
        except PinchpointError as error:
            return [Judged(label, AS_IS, "failed", candidate=False, said=str(error))]


def variants_of(label: Label, folder: Path) -> Iterator[tuple[str, StoredRun]]:
    """Import the recording into the folder and return pairs of (variant, recording)."""
    folder.mkdir(parents=True)
    return _variants(_imported(label, folder), all_of_them=True)


def _imported(label: Label, folder: Path) -> StoredRun:
    settings = Settings(mapping=read_mapping(label.mapping) if label.mapping else None)
    kind = label.kind or ("csv" if label.mapping else None)
    sources = [open_source(path, kind, None) for path in label.files]
    places = read_places(None, label.disks, [], (), None)
    return open_run(import_as_run(sources, settings, places, TimeSpan(), folder))


def _variants(run: StoredRun, *, all_of_them: bool) -> Iterator[tuple[str, StoredRun]]:
    yield AS_IS, run
    if not all_of_them:
        return
    samples = table(run.samples)
    usual_s = pc.quantile(samples["interval_s"], 0.5)[0].as_py()
    length_s = usual_s + (pc.max(samples["time_ns"]).as_py() - pc.min(samples["time_ns"]).as_py()) / 1e9
    for seconds in MEANS_S:
        if usual_s < seconds <= length_s / 4:
            yield f"{seconds} s", replace(run, samples=every(samples, seconds))
    yield f"{LOST:.0%} lost", replace(run, samples=lost(samples, LOST, SEED))
    metrics = set(pc.unique(samples["metric"]).to_pylist())
    for kind in KINDS:
        if any(name.startswith(kind) for name in metrics):
            kept = samples.filter(pc.invert(pc.starts_with(samples["metric"], kind)))
            if kept.num_rows:
                yield f"without {kind.rstrip('.')}", replace(run, samples=kept)


def report(found: Sequence[Judged]) -> str:
    """Return a table with a row per set, answer and variant."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for one in found:
        row = counts[one.label.set, one.label.answer, one.variant]
        row[one.score] += 1
        row["candidate"] += one.candidate
    lines = [
        "| set | answer | variant | right | wrong | named | declined | with the right candidate | failed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (set_, answer, variant), row in sorted(counts.items()):
        cells = [
            set_,
            answer,
            variant,
            *(row[name] for name in ("right", "wrong", "named", "declined", "candidate", "failed")),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def disagreeing(found: Iterable[Judged]) -> str:
    """Return how many verdicts on means differ from the verdict on the unchanged recording."""
    as_is = {one.label.case: one for one in found if one.variant == AS_IS}
    means = [one for one in found if one.variant.endswith(" s")]
    other = [one for one in means if one.said != as_is[one.label.case].said]
    gone = [one for one in other if one.score == "declined" or as_is[one.label.case].score == "declined"]
    return (
        f"{len(other)} of {len(means)} means over {', '.join(map(str, MEANS_S))} s say something else than "
        f"the recording as it is; in {len(other) - len(gone)} of these both name a resource"
    )


def _all_judged(labels: Sequence[Label], jobs: int, *, variants: bool) -> Iterator[list[Judged]]:
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_one, labels, [variants] * len(labels), chunksize=4)


def _one(label: Label, variants: bool) -> list[Judged]:
    return judged(label, variants=variants)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 for a wrong answer or an unreadable file, 2 for a bad folder, else 0."""
    parser = argparse.ArgumentParser(prog="make foreign-truth", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--set", default="", help="only sets whose name begins with this")
    parser.add_argument("--as-is", action="store_true", help="no variants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    try:
        labels = [
            one for folder in given.folder for one in read_labels(folder) if one.set.startswith(given.set)
        ]
    except InputError as error:
        print(error, file=sys.stderr)
        return ExitStatus.BAD_INPUT
    found: list[Judged] = []
    for ones in _all_judged(labels, given.jobs, variants=not given.as_is):
        found += ones
        for one in ones:
            if one.score in ("wrong", "named", "failed"):
                print(
                    f"{one.score}: {one.label.case} ({one.label.answer}), {one.variant}: {one.said}",
                    flush=True,
                )
    BUILD.mkdir(exist_ok=True)
    text = json.dumps([one.to_json() for one in found], indent=1)
    (BUILD / "foreign-truth.json").write_text(text, encoding="utf-8")
    print(report(found))
    print(disagreeing(found))
    return int(any(one.score in ("wrong", "failed") for one in found))


if __name__ == "__main__":
    sys.exit(main())
