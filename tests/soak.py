"""``make soak``: load a farm for an hour with every local collector; memory and rates must stay the same.

A real PostgreSQL and Valkey run on this machine and are watched by the collectors local, postgres, valkey,
ssh and agent. A run of one minute comes first, because the long run's report may not take much longer than
the short run's. The results are printed and written to ``build/soak.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import IO, Any

import numpy as np
import psutil
from servers import postgres, valkey
from sshd_hosts import SshdHost, sshd_host
from support import PINCHPOINT

from pinchpoint.store.read import open_run

BUILD = Path(__file__).parents[1] / "build"
RATE = 50
"""Operations per second of each scenario."""
MOST_GROWTH, MOST_DRIFT, MOST_REPORT = 0.05, 0.005, 1.5
_SETTLES = 0.2
"""First part of a run, as a ratio, in which caches fill: growth is measured after this part."""
_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Row:
    """One result: its value, its bound, and True if the value is within the bound."""

    name: str
    value: float | None
    bound: float
    right: bool


@dataclass(slots=True)
class Watched:
    """A run of the command: its directory, exit status, and memory of its processes over time."""

    status: int = -1
    directory: Path = Path()
    memory: dict[str, list[int]] = field(default_factory=dict)


@contextmanager
def agent(host: SshdHost, folder: Path) -> Iterator[dict[str, Any]]:
    """Run an agent that records this machine; yield the ``collect`` entry that reads the agent's files."""
    config = folder / "agent.toml"
    config.write_text(f'folder = "{folder / "ring"}"\n')
    program = PINCHPOINT.with_name("pinchpoint-collect")
    process = subprocess.Popen([program, "record", "--config", config], stderr=subprocess.DEVNULL)
    try:
        yield {
            "kind": "agent",
            **host.options(),
            "command": str(program),
            "folder": str(folder / "ring"),
        }
    finally:
        process.terminate()
        process.wait()


def files(
    folder: Path, sql: str, nosql: str, host: SshdHost, own: dict[str, Any], measure_s: int
) -> list[str]:
    """Write farm.yaml and plan.yaml and return the arguments of the run."""
    disks = {"data": {"path": "/"}}
    farm = {
        "name": "soak",
        "environment": "test",
        "endpoints": {"sql": {"url": sql}, "nosql": {"url": nosql}},
        "tiers": {
            "sql": {"hosts": {"db1": {"collect": [{"kind": "local"}, {"kind": "postgres"}], "disks": disks}}},
            "nosql": {"hosts": {"kv1": {"collect": [{"kind": "ssh", **host.options()}, {"kind": "valkey"}]}}},
            "web": {"hosts": {"web1": {"collect": [own]}}},
        },
    }
    load = {"model": "open", "rate": f"{RATE}/s", "arrivals": "constant"}
    scenarios = {
        "orders": {"use": "sql-mix", "load": load, "params": {"operations": {"log_append": 1}}},
        "burst": {"use": "nosql-burst", "load": load},
    }
    phases = {"warm_up": "5s", "measure": f"{measure_s}s"}
    (folder / "farm.yaml").write_text(json.dumps(farm))
    (folder / "plan.yaml").write_text(json.dumps({"name": "soak", "scenarios": scenarios, "phases": phases}))
    return [
        "run",
        str(folder / "plan.yaml"),
        "--farm",
        str(folder / "farm.yaml"),
        "--out",
        str(folder / "runs"),
    ]


def watched(arguments: list[str]) -> Watched:
    """Run the command, and read the memory of its processes during the measure phase."""
    found = Watched()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([PINCHPOINT, *arguments], stdout=subprocess.PIPE, stderr=said, text=True)
        while process.poll() is None and "stopping the load" not in (words := _read(said)):
            time.sleep(_EVERY_S)
            if "measuring" in words:
                _note_memory(process.pid, found.memory)
        out, _ = process.communicate(timeout=600)
        assert out.strip(), _read(said)
    found.status = process.returncode
    found.directory = Path(out.splitlines()[-1])
    return found


def _read(said: IO[str]) -> str:
    return os.pread(said.fileno(), 2**20, 0).decode(errors="replace")


def _note_memory(pid: int, memory: dict[str, list[int]]) -> None:
    """Add the resident memory of the controller and of each process that it has started."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return
    for one in [psutil.Process(pid), *children]:
        try:
            name = "load generator" if "loadgen" in " ".join(one.cmdline()) else one.name()
            name = "controller" if one.pid == pid else name
            memory.setdefault(f"{name} {one.pid}", []).append(one.memory_info().rss)
        except psutil.Error:
            continue


def growth(readings: list[int]) -> float | None:
    """Return the growth from the second to the last fifth, as a ratio; None if there are too few readings."""
    fifth = int(len(readings) * _SETTLES)
    if fifth < 3:
        return None
    return median(readings[-fifth:]) / median(readings[fifth : 2 * fifth]) - 1


def report_s(directory: Path, out: Path) -> float:
    """Return the CPU seconds of ``pinchpoint report``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([PINCHPOINT, "report", directory, "--out", out], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judged(short: Watched, long: Watched, folder: Path) -> Iterator[Row]:
    """Yield the results of the long run, each with its bound."""
    yield Row("exit status", long.status, 0, long.status in (0, 3))
    for name, readings in long.memory.items():
        grown = growth(readings)
        if grown is not None:
            yield Row(f"memory growth, {name}", grown, MOST_GROWTH, grown < MOST_GROWTH)
    run = open_run(long.directory)
    [measure] = [phase for phase in run.manifest["phases"] if phase["name"] == "measure"]
    begin_s, end_s = (_seconds(measure[key]) for key in ("from", "to"))
    rows = [row for row in run.operations.to_pylist() if row["operation"] != "/send"]
    wide = max(row["interval_s"] for row in rows)
    for scenario in ("orders", "burst"):
        counts: dict[int, int] = {}
        for row in rows:
            if row["scenario"] == scenario and begin_s <= row["time_s"] < end_s - wide:
                counts[row["time_s"]] = counts.get(row["time_s"], 0) + row["count"]
        ends = [int(end) for end in np.arange(min(counts), max(counts) + 1, wide)]
        lost = sum(wide for end in ends if not counts.get(end))
        yield Row(f"seconds without an operation, {scenario}", lost, 0, lost == 0)
        quarter = len(ends) // 4
        parts = ends[1 : quarter + 1], ends[-quarter - 1 : -1]
        rates = [sum(counts.get(end, 0) for end in part) / len(part) / wide for part in parts]
        drift = abs(rates[1] / rates[0] - 1)
        yield Row(f"rate drift, {scenario}", drift, MOST_DRIFT, drift < MOST_DRIFT)
    for host, kinds in run.manifest["data_quality"].items():
        for kind, quality in kinds.items():
            gaps = len(quality["gaps"]) + (quality.get("more_gaps") or 0)
            yield Row(f"gaps of the collector {kind} on {host}", gaps, 0, gaps == 0)
    times = [report_s(one.directory, folder / f"report-{at}") for at, one in enumerate((short, long))]
    ratio = times[1] / times[0]
    yield Row("report time over that of one minute", ratio, MOST_REPORT, ratio < MOST_REPORT)


def _seconds(text: str) -> float:
    return float(np.datetime64(text.rstrip("Z")).astype("datetime64[us]").astype(np.int64)) / 1e6


def main() -> int:
    """Run the soak test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pinchpoint-soak-")))
        sql, nosql = stack.enter_context(postgres()), stack.enter_context(valkey())
        host = stack.enter_context(sshd_host())
        own = stack.enter_context(agent(host, folder))
        short = watched(files(folder, sql, nosql, host, own, 60))
        long = watched(files(folder, sql, nosql, host, own, round(asked.minutes * 60)))
        rows = list(judged(short, long, folder))
    BUILD.mkdir(exist_ok=True)
    (BUILD / "soak.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    for row in rows:
        value = "-" if row.value is None else f"{row.value:.4f}"
        print(f"{'right' if row.right else 'WRONG':6} {row.name:60} {value:>10} (bound {row.bound:g})")
    return int(not all(row.right for row in rows))


if __name__ == "__main__":
    sys.exit(main())
