"""The groups of golden answers: the commands, the recorded runs, and the files of the answers."""

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
        name: name of the group and of its folder or file below ``expected/``.
        names: function that returns the names of the answers.
        ask: function that computes the answer of a name, in the pinned process.
        every: continuous integration checks the first answer and every N-th after it; 0: none.
        packed: True if the answers are in one compressed file, because they are many megabytes of text.
    """

    name: str
    names: Callable[[], Sequence[str]]
    ask: Callable[[str], str]
    every: int = 1
    packed: bool = False

    def quick(self) -> Sequence[str]:
        """Return the names that continuous integration checks."""
        return self.names()[:: self.every] if self.every else []

    @property
    def _file(self) -> Path:
        return EXPECTED / f"{self.name}.json.gz"

    def is_recorded(self) -> bool:
        """Return True if recorded answers exist."""
        return self._file.exists() if self.packed else (EXPECTED / self.name).exists()

    def recorded(self) -> dict[str, str]:
        """Return the recorded answers."""
        if self.packed:
            found: dict[str, str] = json.loads(gzip.decompress(self._file.read_bytes()))
            return found
        place = EXPECTED / self.name
        return {path.stem: path.read_text(encoding="utf-8") for path in sorted(place.glob("*.txt"))}

    def record(self, answers: Mapping[str, str]) -> None:
        """Write the answers and remove those that no longer exist."""
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
    """Return a function that lists the names in a folder of ``golden_runs/``."""
    return lambda: sorted(path.name for path in (RUNS / folder).iterdir())


def _verdict(folder: str) -> Callable[[str], str]:
    """Return a function from a run's name to the output of ``analyse --explain`` and verdict.json."""

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
"""Name -> arguments of a comparison of runs of real farms."""


def _compared(name: str) -> str:
    """Return the output of a comparison and its comparison.json."""
    given = COMPARED[name]
    with workplace(*{RUNS / "real" / word for word in given if (RUNS / "real" / word).is_dir()}):
        return answer("compare", *given, "--out", "out") + files([Path("out")])


def _settings(manifest: dict[str, Any]) -> list[str]:
    """Return what-if settings of a run: more load, more cores, a faster disk."""
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
    """Return the output of ``what-if`` for a run, without settings and with each setting."""
    manifest = json.loads((RUNS / "real" / name / "manifest.json").read_text(encoding="utf-8"))
    with workplace(RUNS / "real" / name):
        said = [answer("what-if", name, "--json")]
        said += [answer("what-if", name, "--set", one) for one in _settings(manifest)]
        return "\n".join(said)


def _reported(name: str) -> str:
    """Return a run's Markdown and JSON reports."""
    with workplace(RUNS / "real" / name):
        said = answer("report", name, "--format", "md,json")
        return said + files([Path(name)], ("report.md", "report.json"))


def _trend(name: str) -> str:
    """Return the output of ``runs --trend`` on a history, as text and as JSON."""
    with workplace(RUNS / "trends" / name):
        said = answer("runs", name, "--trend", "nightly", "--fail-on", "worse")
        return said + answer("runs", name, "--trend", "nightly", "--json")


def _listed(name: str) -> str:
    """Return the list of the runs of real farms, and the history of one plan."""
    with workplace(RUNS / name):
        return answer("runs", name) + answer("runs", name, "--trend", "healthy-mix")


def _probe(name: str) -> str:
    """Return the verdict on a probe, its report, and its comparison with the next probe."""
    names = _below("probes")()
    other = names[(names.index(name) + 1) % len(names)]
    with workplace(RUNS / "probes" / name, RUNS / "probes" / other):
        said = doors.judged_probe(Path(name))
        said += answer("report", name, "--format", "md") + files([Path(name)], ("report.md",))
        return said + answer("compare", name, "--with", other, "--json", "--out", "out")


def _predicted_by_probe(name: str) -> str:
    """Return the predicted throughput of two runs' applications on a probed disk."""
    runs = ("log-cap-240", "cpu-sql-30")
    with workplace(RUNS / "probes" / name, *(RUNS / "real" / run for run in runs)):
        return "\n".join(answer("what-if", run, "--set", f"sql.log={name}") for run in runs)


def _imported(name: str) -> str:
    """Return the output of ``import`` of another tool's file, the verdict on it, and all its samples."""
    [source] = (RUNS / "imports").glob(f"{name}.*")
    with workplace():
        shutil.copyfile(source, source.name)
        said = answer("import", source.name, "--host", "db1", "--zone", "UTC", "--out", "out")
        [run] = Path("out").iterdir()
        rows = pq.read_table(run / "samples.parquet").to_pylist()
        return said + files([run]) + "".join(f"{json.dumps(list(row.values()))}\n" for row in rows)


def _published(name: str) -> str:
    """Return the verdict on the figures of a published report."""
    with workplace():
        shutil.copyfile(EXAMPLES / f"{name}.yaml", f"{name}.yaml")
        return answer("analyse", f"{name}.yaml") + answer("analyse", f"{name}.yaml", "--json")


def _read(door: str) -> str:
    """Return the result of a collector or an importer for each of its recorded inputs, one line each."""
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
