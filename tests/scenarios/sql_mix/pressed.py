"""Measure which disk each preset loads; print the rows of the table in the scenarios' README.

    PYTHONPATH=tests python tests/scenarios/sql_mix/pressed.py [SECONDS [PRESET...]]

A PostgreSQL server has its log, its data and its temporary files on three equal emulated disks: the disk at
its limit is the one that the preset loads. Needs root, loop devices and FUSE (fuse3).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from scenarios.sql_mix.helpers import ask, loaded
from scenarios.sql_mix.server import Server, made_in
from scenarios.support import made
from support import disk_folder

from pinchpoint_infra.disks import DiskSpec, support
from pinchpoint_infra.disks.emulated import EmulatedDisk, remove_all
from pinchpoint_infra.disks.way import DiskStack, choose
from pinchpoint_scenarios.sql_mix.params import PRESETS

ROLES = ("log", "data", "temp")
SPEC = DiskSpec(iops=500, latency_s=0.001)
"""Limits of each disk: the IOPS of a small premium disk (Azure P10), and a millisecond per I/O."""
FARM_ID = "9e55ed000001"
USERS = 8
WARM_UP_S = 10.0
MEASURED: list[dict[str, Any]] = [
    *({"preset": preset} for preset in PRESETS),
    # The operating system keeps small temporary files in memory, so these are large.
    {"preset": "tempdb", "spill_bytes": "256MiB"},
]


@dataclass(frozen=True, slots=True)
class Pressed:
    """The load of one disk under one preset.

    Attributes:
        ios_per_s: reads and writes per second.
        bytes_per_s: bytes read and written per second.
        outstanding: mean number of outstanding I/Os.
    """

    ios_per_s: float
    bytes_per_s: float
    outstanding: float

    def __str__(self) -> str:
        return f"{self.ios_per_s:.0f}/s, {self.bytes_per_s / 1e6:.1f} MB/s, {self.outstanding:.1f}"


@contextmanager
def server_on_three_disks() -> Iterator[tuple[Server, dict[str, EmulatedDisk]]]:
    """Yield the server and its disks, without limits at first; remove all at the end."""
    way = choose(SPEC, support())
    if not isinstance(way, DiskStack):
        raise SystemExit(f"the disks cannot be made here: {way}")
    place = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/var/tmp"))  # on a real disk, not in memory
    place.chmod(0o755)
    disks = {
        role: EmulatedDisk(
            f"sql.{role}", FARM_ID, SPEC, way, place / "disks" / role, place / "sql" / role, dict(os.environ)
        )
        for role in ROLES
    }
    server: Server | None = None
    try:
        for disk in disks.values():
            disk.build()
        server = made_in(place / "sql", emulated=frozenset({"log", "data"}))
        spilled = place / "sql" / "temp" / "space"
        spilled.mkdir(mode=0o700)
        if server.user is not None:
            os.chown(spilled, server.user, -1)
        ask(server.admin, f"CREATE TABLESPACE temporary LOCATION '{spilled}'")
        ask(server.admin, "GRANT CREATE ON TABLESPACE temporary TO PUBLIC")
        ask(server.admin, "ALTER ROLE loader SET temp_tablespaces = 'temporary'")
        yield server, disks
    finally:
        if server:
            server.remove()
        remove_all(FARM_ID, place)
        for disk in disks.values():
            disk.close()
        shutil.rmtree(place)


def measure(
    server: Server, disks: dict[str, EmulatedDisk], params: dict[str, Any], length_s: float
) -> tuple[dict[str, Pressed], float]:
    """Return each disk's load under the preset, and operations per second; the data table stays."""
    driver = made("sql-mix", {"sql": server.endpoint}, params)
    driver.prepare(lambda sentence: print(f"{params['preset']}: {sentence}", file=sys.stderr))
    for disk in disks.values():
        disk.apply(on=True, group=None)
    try:
        with loaded(driver, USERS, WARM_UP_S + length_s) as recorder:
            time.sleep(WARM_UP_S)
            before, done, begun = psutil.disk_io_counters(perdisk=True), len(recorder.rows), time.monotonic()
            time.sleep(max(0.0, length_s - 0.5))
            after, taken_s = psutil.disk_io_counters(perdisk=True), time.monotonic() - begun
            done = sum("/" not in row.operation for row in recorder.rows[done:])
        failures = {outcome for _, outcome in recorder.counts()} - {"ok"}
        assert not failures, failures
    finally:
        for disk in disks.values():
            disk.apply(on=False, group=None)
        driver.finish(keep_data=True)
    found = {role: _between(before[disk.device], after[disk.device], taken_s) for role, disk in disks.items()}
    return found, done / taken_s


def _between(before: Any, after: Any, taken_s: float) -> Pressed:
    grown = {
        name: getattr(after, name) - getattr(before, name)
        for name in ("read_count", "write_count", "read_bytes", "write_bytes", "read_time", "write_time")
    }
    return Pressed(
        ios_per_s=(grown["read_count"] + grown["write_count"]) / taken_s,
        bytes_per_s=(grown["read_bytes"] + grown["write_bytes"]) / taken_s,
        outstanding=(grown["read_time"] + grown["write_time"]) / 1000 / taken_s,
    )


def main() -> None:
    """Measure the named presets, or all; print one row each."""
    length_s = float(sys.argv[1]) if len(sys.argv) > 1 else 40.0
    chosen = [params for params in MEASURED if params["preset"] in (sys.argv[2:] or PRESETS)]
    print("| preset | operations/s | " + " | ".join(ROLES) + " |\n| --- | --- | --- | --- | --- |")
    with server_on_three_disks() as (server, disks):
        for params in chosen:
            found, rate = measure(server, disks, params, length_s)
            cells = [", ".join(map(str, params.values())), f"{rate:.0f}", *map(str, found.values())]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
