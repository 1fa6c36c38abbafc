"""A pool of load generators against a server, and workers as another machine would run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.pool import GeneratorPool
from pinchpoint.store import compact

RATE = 60
TOKEN = "a-token-of-the-tests-and-of-nothing-else"
OPEN = {"model": "open", "rate_per_s": RATE, "arrivals": "constant"}


class WorkerOptions:
    """A pool of generators, its events, and its measurements."""

    def __init__(self, folder: Path, url: str, load: dict[str, Any], workers: int, listen: int | None = None):
        self.journal = folder / "journal"
        self.journal.mkdir()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.begun_s = 0.0
        given = {"burst": {"use": "nosql-burst", "params": {}, "load": load, "repeat_s": None}}
        one = Assignment(
            name="", worker=0, cores=[], beat_s=0.3, journal=str(self.journal), seed=1,
            endpoints={"nosql": {"url": url}}, scenarios=given, slots={}, ranks={},
        )  # fmt: skip
        names = [Assignment(**one.to_json() | {"name": f"g{n}", "worker": n}) for n in range(workers)]
        self.pool = GeneratorPool(
            names,
            os.environ,
            lambda event, **fields: self.events.append((event, fields)),
            lambda *_: None,
            ("127.0.0.1", listen) if listen else None,
            elsewhere=one,
            journal=str(self.journal),
            token=TOKEN,
        )

    def start(self, meanwhile: Callable[[], bool] = lambda: False) -> None:
        """Wait for all generators, and begin the load."""
        self.pool.start()
        self.pool.wait_ready(meanwhile)
        assert self.pool.failures() == []
        self.pool.begin(["burst"])
        self.begun_s = time.monotonic()

    def check_workers(self, seconds: float = 0.0, until: Callable[[], bool] = lambda: False) -> float:
        """Tend the pool for that time or until a condition holds; return the seconds."""
        begun = time.monotonic()
        while not until() and (time.monotonic() - begun < seconds or not seconds):
            assert time.monotonic() - begun < 30, (self.events, self.pool.failures())
            self.pool.check_workers()
            time.sleep(0.05)
        return time.monotonic() - begun

    def events_of(self, event: str) -> list[dict[str, Any]]:
        """Return the fields of every event of that name."""
        return [fields for name, fields in self.events if name == event]

    def end(self) -> float:
        """Stop the load, and return its duration in seconds."""
        lasted_s = time.monotonic() - self.begun_s
        self.pool.stop()
        return lasted_s

    def done(self, since_s: int = 0) -> dict[str, Any]:
        """Return operations done, failed and dropped since that second, and sums by worker."""
        operations, _ = compact.tables(self.journal)
        rows = [
            row for row in operations.to_pylist() if row["operation"] != "/send" and row["time_s"] >= since_s
        ]
        workers: dict[str, int] = {}
        for row in rows:
            workers[row["worker"]] = workers.get(row["worker"], 0) + row["count"]
        return {
            "ok": sum(row["count"] for row in rows if row["outcome"] == "ok"),
            "failed": [row for row in rows if row["outcome"] not in ("ok", "dropped")],
            "dropped": sum(row["dropped"] for row in rows),
            "workers": workers,
        }

    def users(self) -> float:
        """Return the number of working users by the generators' last reports."""
        _, samples = compact.tables(self.journal)
        last: dict[str, tuple[int, float]] = {}
        for row in samples.to_pylist():
            if row["metric"] == "generator.users":
                last[row["host"]] = max(last.get(row["host"], (0, 0.0)), (row["time_ns"], row["value"]))
        return sum(value for time_ns, value in last.values() if time_ns > time.time_ns() - 2_500_000_000)


@contextmanager
def crew(
    folder: Path, url: str, load: dict[str, Any], workers: int, listen: int | None = None
) -> Iterator[WorkerOptions]:
    """Yield a pool that is removed completely at the test's end."""
    found = WorkerOptions(folder, url, load, workers, listen)
    try:
        yield found
    finally:
        found.pool.kill()


@contextmanager
def elsewhere(port: int, token: str = TOKEN, **permits: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a worker as another machine would run it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pinchpoint.loadgen.remote", "127.0.0.1", str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        print(json.dumps({"token": token, **permits}), file=process.stdin, flush=True)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
