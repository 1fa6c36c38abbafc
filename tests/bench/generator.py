"""Run the real load generator process and send it the controller's messages over its pipes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
from bench.load import BenchError, Load

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.slots import deal_slots
from pinchpoint.store import compact, histogram
from pinchpoint_scenarios.contract import Endpoint

SCENARIO = "bench"
REAL = "pinchpoint.loadgen.local"
_WARM_UP_S = 0.6
_RUN_OUT_S = 0.3  # operations due in the last second may start late; an immediate stop would drop them
_READY_S, _STOPPED_S = 30.0, 20.0


def generate(
    load: Mapping[str, Any],
    *,
    seconds: int,
    cores: Sequence[int],
    use: str = "sql-mix",
    params: Mapping[str, Any] | None = None,
    endpoint: Endpoint | None = None,
    endpoints: Sequence[Endpoint] = (),
    module: str = REAL,
) -> Load:
    """Drive one scenario with one generator per entry of ``cores``; the generators share the load.

    Args:
        load: the load model in the JSON form that the controller sends.
        seconds: measured time in whole seconds, after a warm-up.
        cores: the core of each generator.
        use: the scenario's registered name.
        params: the scenario's parameters.
        endpoint: the server that the scenario loads.
        endpoints: the servers, for a scenario that loads several.
        module: the module that the generator process runs.

    Raises:
        BenchError: an operation or a generator process failed.
    """
    scenario = {"use": use, "params": dict(params or {}), "load": dict(load), "repeat_s": None}
    there = [*endpoints, *([endpoint] if endpoint else [])]
    names = [f"generator{number + 1}" for number in range(len(cores))]
    owners = deal_slots(names)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as running:
        assignments = [
            Assignment(
                name=name,
                worker=number,
                cores=[cores[number]],
                beat_s=0.2 + 0.6 * number / len(names),
                journal=folder,
                seed=1,
                endpoints={
                    each.name: {**({"url": each.url} if each.url else {}), **each.options} for each in there
                },
                scenarios={SCENARIO: scenario},
                slots={SCENARIO: sorted(owners[name])},
                ranks={SCENARIO: (number, len(names))},
            )
            for number, name in enumerate(names)
        ]
        processes = [running.enter_context(_running(module, one)) for one in assignments]
        first_s, cpu_s = _window(processes, seconds)
        table = compact.tables(Path(folder))[0]
    return _load(table, first_s, seconds, cpu_s)


@contextmanager
def _running(module: str, assignment: Assignment) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        _tell(process, assignment.to_json())
        yield process
    finally:
        process.kill()
        process.communicate()


def _window(processes: Sequence[subprocess.Popen[str]], seconds: int) -> tuple[int, float]:
    """Start, measure and stop; return (first measured UTC second, CPU seconds of all processes)."""
    for process in processes:
        _wait_for(process, "ready", _READY_S)
    begin_ns = time.time_ns() + 100_000_000
    for process in processes:
        _tell(process, {"begin": [SCENARIO], "at_ns": begin_ns})
    first_s = math.ceil(begin_ns / 1e9 + _WARM_UP_S)
    time.sleep(first_s - time.time())
    before = _cpu_s(processes)
    time.sleep(first_s + seconds - time.time())
    cpu_s = _cpu_s(processes) - before
    time.sleep(_RUN_OUT_S)
    for process in processes:
        _tell(process, {"stop": True})
    for process in processes:
        _wait_for(process, "stopped", _STOPPED_S)
    return first_s, cpu_s


def _cpu_s(processes: Sequence[subprocess.Popen[str]]) -> float:
    times = [psutil.Process(process.pid).cpu_times() for process in processes]
    return float(sum(each.user + each.system for each in times))


def _tell(process: subprocess.Popen[str], message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def _wait_for(process: subprocess.Popen[str], kind: str, within_s: float) -> None:
    assert process.stdout is not None
    until = time.monotonic() + within_s
    for line in process.stdout:  # the generator sends a message each second
        message = json.loads(line)
        if message["type"] == kind:
            return
        if message["type"] == "failed":
            raise BenchError(f"the generator failed: {message['why']}")
        if time.monotonic() > until:
            raise BenchError(f"the generator did not say {kind!r} within {within_s:g} s")
    raise BenchError(f"the generator ended (exit status {process.wait()}) before it said {kind!r}")


def _load(table: pa.Table, first_s: int, seconds: int, cpu_s: float) -> Load:
    inside = pc.and_(pc.greater_equal(table["time_s"], first_s), pc.less(table["time_s"], first_s + seconds))
    rows = [
        row
        for row in table.filter(inside).to_pylist()
        if row["scenario"] == SCENARIO and "/" not in row["operation"]
    ]
    if failures := {row["outcome"] for row in rows} - {"ok"}:
        raise BenchError(f"operations ended as {', '.join(sorted(failures))}: nothing to compare")
    counts = histogram.summed([row["service"] for row in rows])
    total = sum(row["count"] for row in rows)
    if not total:
        raise BenchError("no operation was recorded")
    times_us, _ = histogram.values_us(np.arange(len(counts)))
    return Load(total / seconds, cpu_s / total * 1e6, times_us.astype(np.float64), counts)


def closed(users: int) -> dict[str, Any]:
    """Return the JSON form of a closed load: this number of users without think time."""
    return {"model": "closed", "users": users, "think_s": 0.0}


def open_load(rate_per_s: float) -> dict[str, Any]:
    """Return the JSON form of an open load with Poisson arrivals."""
    return {"model": "open", "rate_per_s": rate_per_s, "arrivals": "poisson"}
