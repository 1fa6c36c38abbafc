"""The groups of golden answers: what is asked of which recorded runs, and where the answers lie."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from golden import doors, routes, statements
from golden.commands import answer, files, workplace

RUNS = Path(__file__).parents[1] / "golden_runs"
EXAMPLES = Path(__file__).parents[2] / "infra" / "examples"
EXPECTED = Path(__file__).with_name("expected")


@dataclass(frozen=True, slots=True)
class Group:
    """Answers that are recorded and checked together.

    Attributes:
        name: of the group; of its folder or file below ``expected/``.
        names: of its answers.
        ask: computes the answer of a name, in the pinned process.
        every: continuous integration checks the first and each so many further ones; 0: none.
        packed: kept in one compressed file, where they are many megabytes of text.
    """

    name: str
    names: Callable[[], Sequence[str]]
    ask: Callable[[str], str]
    every: int = 1
    packed: bool = False

    def quick(self) -> Sequence[str]:
        """The names that continuous integration checks."""
        return self.names()[:: self.every] if self.every else []

    @property
    def _file(self) -> Path:
        return EXPECTED / f"{self.name}.json.gz"

    def is_recorded(self) -> bool:
        """Whether there are any answers to compare with."""
        return self._file.exists() if self.packed else (EXPECTED / self.name).exists()

    def recorded(self) -> dict[str, str]:
        """The answers as they were recorded."""
        if self.packed:
            found: dict[str, str] = json.loads(gzip.decompress(self._file.read_bytes()))
            return found
        place = EXPECTED / self.name
        return {path.stem: path.read_text(encoding="utf-8") for path in sorted(place.glob("*.txt"))}

    def record(self, answers: Mapping[str, str]) -> None:
        """Write the answers; those that are no longer given go."""
        if self.packed:
            EXPECTED.mkdir(exist_ok=True)
            text = json.dumps(answers, indent=0, sort_keys=True)
            self._file.write_bytes(gzip.compress(text.encode(), mtime=0))
            return
        place = EXPECTED / self.name
        place.mkdir(parents=True, exist_ok=True)
        for path in place.glob("*.txt"):
            if path.stem not in answers:
                path.unlink()
        for name, text in answers.items():
            (place / f"{name}.txt").write_text(text, encoding="utf-8")


def _below(folder: str) -> Callable[[], list[str]]:
    """The names of what lies in a folder of ``golden_runs/``."""
    return lambda: sorted(path.name for path in (RUNS / folder).iterdir())


def _verdict(folder: str) -> Callable[[str], str]:
    """``analyse --explain`` and verdict.json of a run."""

    def ask(name: str) -> str:
        with workplace(RUNS / folder / name):
            return answer("analyse", name, "--explain") + files([Path(name)])

    return ask


COMPARED: dict[str, tuple[str, ...]] = {
    "repeats": ("healthy-mix", "--with", "healthy-mix-2", "healthy-mix-3"),
    "repeats-of-both": ("healthy-mix", "healthy-mix-2", "--with", "healthy-mix-3", "healthy-mix"),
    "again": ("healthy-mix", "--with", "healthy-mix-2", "--aa", "healthy-mix-3"),
    "same-load-slower-log": ("log-cap-240", "--with", "log-floor-35ms", "--factor", "disks"),
    "another-resource": ("cpu-sql-30", "--with", "log-cap-240"),
    "another-farm": ("lock-one-row", "--with", "pool-sql-12"),
    "farms-not-alike": ("network-sql", "--with", "thread-nosql"),
    "fail-on-worse": ("data-one-reader", "--with", "data-low-depth", "--fail-on", "worse"),
    "bound-and-margin": ("thread-nosql", "--with", "thread-nosql-wide", "--bound", "3", "--margin", "10%"),
    "metrics": ("cpu-sql-30", "--with", "lock-one-row", "--metric", "scenario.orders.throughput_per_s"),
    "crawls": ("index-cap-10", "--with", "files-device"),
    "steps": ("log-cap-310", "--with", "log-cap-240"),
}
"""Name -> command line of a comparison of runs of real farms."""


def _compared(name: str) -> str:
    """A comparison and its comparison.json."""
    given = COMPARED[name]
    with workplace(*{RUNS / "real" / word for word in given if (RUNS / "real" / word).is_dir()}):
        return answer("compare", *given, "--out", "out") + files([Path("out")])


def _settings(manifest: dict[str, Any]) -> list[str]:
    """What may be asked of a run: more load, more cores, a faster disk."""
    found = []
    for name, scenario in manifest["plan"]["scenarios"].items():
        load = scenario["load"]
        if load["model"] == "closed":
            found.append(f"{name}.users={2 * load['users']}")
        elif load["model"] == "open":
            found.append(f"{name}.rate={2 * load['rate_per_s']:g}/s")
    for host in manifest["hosts"].values():
        found.append(f"{host['tier']}.cpu=4")
        found += [f"{host['tier']}.{role}.latency=1ms" for role in host["roles"]]
    return list(dict.fromkeys(found))


def _predicted(name: str) -> str:
    """``what-if`` of a run as it is, and with each thing that may be set."""
    manifest = json.loads((RUNS / "real" / name / "manifest.json").read_text(encoding="utf-8"))
    with workplace(RUNS / "real" / name):
        said = [answer("what-if", name, "--json")]
        said += [answer("what-if", name, "--set", one) for one in _settings(manifest)]
        return "\n".join(said)


def _reported(name: str) -> str:
    """The Markdown and JSON reports of a run."""
    with workplace(RUNS / "real" / name):
        said = answer("report", name, "--format", "md,json")
        return said + files([Path(name)], ("report.md", "report.json"))


def _trend(name: str) -> str:
    """``runs --trend`` of a history, as text and as JSON."""
    with workplace(RUNS / "trends" / name):
        said = answer("runs", name, "--trend", "nightly", "--fail-on", "worse")
        return said + answer("runs", name, "--trend", "nightly", "--json")


def _listed(name: str) -> str:
    """The list of the runs of real farms, and the history of one plan among them."""
    with workplace(RUNS / name):
        return answer("runs", name) + answer("runs", name, "--trend", "healthy-mix")


def _probe(name: str) -> str:
    """The verdict on a probe, its report, and the next probe beside it."""
    names = _below("probes")()
    other = names[(names.index(name) + 1) % len(names)]
    with workplace(RUNS / "probes" / name, RUNS / "probes" / other):
        said = doors.judged_probe(Path(name))
        said += answer("report", name, "--format", "md") + files([Path(name)], ("report.md",))
        return said + answer("compare", name, "--with", other, "--json", "--out", "out")


def _predicted_by_probe(name: str) -> str:
    """What the application of two runs does on a disk that was probed."""
    runs = ("log-cap-240", "cpu-sql-30")
    with workplace(RUNS / "probes" / name, *(RUNS / "real" / run for run in runs)):
        return "\n".join(answer("what-if", run, "--set", f"sql.log={name}") for run in runs)


def _imported(name: str) -> str:
    """``import`` of another tool's file, the verdict on it, and every sample it became."""
    [source] = (RUNS / "imports").glob(f"{name}.*")
    with workplace():
        shutil.copyfile(source, source.name)
        said = answer("import", source.name, "--host", "db1", "--zone", "UTC", "--out", "out")
        [run] = Path("out").iterdir()
        rows = pq.read_table(run / "samples.parquet").to_pylist()
        return said + files([run]) + "".join(f"{json.dumps(list(row.values()))}\n" for row in rows)


def _published(name: str) -> str:
    """The figures of a published report, judged."""
    with workplace():
        shutil.copyfile(EXAMPLES / f"{name}.yaml", f"{name}.yaml")
        return answer("analyse", f"{name}.yaml") + answer("analyse", f"{name}.yaml", "--json")


def _read(door: str) -> str:
    """What a collector or an importer makes of each of its recorded inputs, a line each."""
    lines = (RUNS / "inputs" / f"{door}.jsonl").read_text(encoding="utf-8").splitlines()
    return "".join(f"{doors.answered(door, line)}\n" for line in lines)


STATEMENTS = {"postgresql": statements.of_postgres, "valkey": statements.of_valkey}

GROUPS = {
    group.name: group
    for group in (
        Group("synthetic", _below("synthetic"), _verdict("synthetic"), every=6, packed=True),
        Group("real", _below("real"), _verdict("real"), every=2),
        Group("compared", lambda: list(COMPARED), _compared, every=12),
        Group("predicted", _below("real"), _predicted, every=32),
        Group("reported", lambda: _below("real")()[::4], _reported, every=0),
        Group("trends", _below("trends"), _trend, every=8),
        Group("listed", lambda: ["real"], _listed),
        Group("probes", _below("probes"), _probe, every=6),
        Group(
            "imported", lambda: sorted(path.stem for path in (RUNS / "imports").iterdir()), _imported, every=5
        ),
        Group(
            "published", lambda: sorted(path.stem for path in EXAMPLES.glob("*.yaml")), _published, every=0
        ),
        Group("routes", lambda: ["web"], lambda _: routes.answers()),
        Group("statements", lambda: sorted(STATEMENTS), lambda name: STATEMENTS[name]()),
        Group("inputs", lambda: sorted(doors.DOORS), _read),
        Group("predicted_by_probe", _below("probes"), _predicted_by_probe, every=0),
    )
}
