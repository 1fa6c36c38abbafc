"""Tests of ``local`` on Windows: PDH's counters through a simulated pywin32 module."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collectors.windows.sshhost import powershell
from collectors.windows.standin import Machine as StandIn

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Processes, Sample, Watch
from pinchpoint_collectors.registry import kind
from pinchpoint_collectors.windows.local import LocalWindows, ask_machine
from pinchpoint_collectors.windows.machine import WindowsMachine
from pinchpoint_collectors.windows.script import request

DISK = {
    "Current Disk Queue Length": (1.0, False),
    "Disk Reads/sec": (100.0, True),
    "Disk Writes/sec": (50.0, True),
    "Disk Read Bytes/sec": (819_200.0, True),
    "Disk Write Bytes/sec": (3_276_800.0, True),
    "Avg. Disk sec/Read": (0.002, True),
    "Avg. Disk sec/Write": (0.008, True),
    "Avg. Disk Queue Length": (0.6, True),
    "% Idle Time": (40.0, True),
}
"""Counter -> (PDH's value, True if it needs two readings)."""
OBJECTS: dict[str, tuple[list[str], dict[str, tuple[float, bool]]]] = {
    "LogicalDisk": (["C:", "L:", "HarddiskVolume1", "_Total"], DISK),
    "PhysicalDisk": (["0 C:", "1 L:", "_Total"], DISK),
    "Processor Information": (["0,0", "0,1", "0,_Total", "_Total"], {"% Processor Time": (25.0, True)}),
    "Memory": ([], {"Available Bytes": (2.0**32, False), "Pages Input/sec": (256.0, True)}),
    "System": ([], {"Processor Queue Length": (3.0, False)}),
    "Network Interface": (
        ["vmxnet3 Ethernet Adapter", "isatap.{1E7A-0001}"],
        {
            "Bytes Received/sec": (125_000.0, True),
            "Bytes Sent/sec": (1.0, True),
            "Current Bandwidth": (1e10, False),
        },
    ),
    "SQLServer:Databases": (["orders", "_Total"], {"Log Flushes/sec": (20.0, True)}),
    "MSSQL$PROD:Databases": (["sales", "_Total"], {"Log Flushes/sec": (7.0, True)}),
}


class PdhError(Exception):
    """Replaces pywintypes.error."""


class StandInPdh:
    """The used part of win32pdh; like PDH it gives a rate only after a second reading."""

    PDH_FMT_DOUBLE = 512

    def __init__(self) -> None:
        self.readings = 0
        self.open = 0
        self.gone: set[str] = set()
        self.broken = False
        self.idle = False

    def OpenQuery(self) -> int:  # noqa: N802 - pywin32's name
        self.open += 1
        return 7

    def AddEnglishCounter(self, query: int, path: str) -> tuple[str, str, bool]:  # noqa: N802 - likewise
        assert query == 7
        name, _, counter = path.removeprefix("\\").partition("\\")
        shown = name.removesuffix("(*)")
        if shown not in OBJECTS or counter not in OBJECTS[shown][1]:
            raise PdhError(-1073738824, "AddEnglishCounter", "The specified counter could not be found.")
        assert bool(OBJECTS[shown][0]) == name.endswith("(*)"), path
        return shown, counter, name.endswith("(*)")

    def CollectQueryData(self, query: int) -> None:  # noqa: N802 - likewise
        if self.broken:
            raise PdhError(-2147481643, "CollectQueryData", "No data to return.")
        self.readings += 1

    def GetFormattedCounterValue(self, counter: Any, form: int) -> tuple[int, float]:  # noqa: N802 - likewise
        return 0, self._shown(counter, form)

    def GetFormattedCounterArray(self, counter: Any, form: int) -> dict[str, float]:  # noqa: N802 - likewise
        shown = self._shown(counter, form)
        return {name: shown for name in OBJECTS[counter[0]][0] if name not in self.gone}

    def CloseQuery(self, query: int) -> None:  # noqa: N802 - likewise
        self.open -= 1

    def _shown(self, counter: tuple[str, str, bool], form: int) -> float:
        assert form == self.PDH_FMT_DOUBLE
        shown, difference = OBJECTS[counter[0]][1][counter[1]]
        if difference and self.readings < 2:
            raise PdhError(-1073738810, "GetFormattedCounterValue", "The data is not valid.")
        return 0.0 if self.idle and "Disk" in counter[1] else shown


@pytest.fixture
def machine() -> WindowsMachine:
    """Return the machine as PowerShell describes it."""
    found = WindowsMachine()
    for text in StandIn().hello(request((), 0)):
        found.take(json.loads(text))
    return found


def collector(pdh: StandInPdh, machine: WindowsMachine, *sql: str, **disks: str) -> LocalWindows:
    return LocalWindows([Watch("sql1", "sql", disks=disks)], pdh, PdhError, machine, sql)


def by_series(samples: Any) -> dict[tuple[str, str], Sample]:
    return {(sample.metric, sample.instance): sample for sample in samples}


def test_two_readings_tell_what_pdh_shows_in_our_units(machine: WindowsMachine) -> None:
    """PDH gives the same metrics as raw counters, in base units; latencies have their weights."""
    pdh = StandInPdh()
    local = collector(pdh, machine, log="L:")
    local.read()
    found = by_series(local.read())
    for device in ("C:", "L:", "0 C:", "1 L:"):
        assert found["disk.write_latency_s", device].value == pytest.approx(0.008)
        assert found["disk.busy_ratio", device].value == pytest.approx(0.6)
        assert found["disk.outstanding", device].value == pytest.approx(0.6)
        weight = found["disk.write_latency_s", device].weight
        assert weight == pytest.approx(50 * found["disk.write_latency_s", device].interval_s)
    assert [found["cpu.busy_ratio", core].value for core in ("", "0", "1")] == [0.25] * 3
    assert found["mem.available_ratio", ""].value == 0.5
    assert found["mem.paged_in_bytes_per_s", ""].value == 256 * 4096
    assert found["net.speed_bytes_per_s", "vmxnet3 Ethernet Adapter"].value == 1.25e9
    assert ("disk.writes_per_s", "HarddiskVolume1") not in found
    assert ("net.sent_bytes_per_s", "isatap.{1E7A-0001}") not in found
    assert not [one for one in found if one[1].casefold().endswith("_total")]
    local.close()
    local.close()
    assert pdh.open == 0


def test_the_first_reading_tells_what_needs_no_difference(machine: WindowsMachine) -> None:
    """After one reading rates are missing, not 0."""
    pdh = StandInPdh()
    local = collector(pdh, machine)
    pdh.readings = 0
    found = by_series(local.read())
    assert found["mem.available_bytes", ""].value == 2**32
    assert not [
        metric for metric, _ in found if metric.endswith("_per_s") and metric != "net.speed_bytes_per_s"
    ]


def test_no_operation_has_no_latency(machine: WindowsMachine) -> None:
    """Without operations the latency is null, although Windows shows 0."""
    pdh = StandInPdh()
    local = collector(pdh, machine)
    pdh.idle = True
    local.read()
    latency = by_series(local.read())["disk.write_latency_s", "L:"]
    assert (latency.value, latency.weight) == (None, 0)


def test_a_disk_that_goes_away_is_null(machine: WindowsMachine) -> None:
    """A removed disk's metrics are null."""
    pdh = StandInPdh()
    local = collector(pdh, machine)
    local.read()
    local.read()
    pdh.gone.add("L:")
    assert by_series(local.read())["disk.writes_per_s", "L:"].value is None


def test_instances_of_sql_server_are_found_by_the_registry_s_names(machine: WindowsMachine) -> None:
    """SQL Server's default and named instances are found by the registry's names."""
    local = collector(StandInPdh(), machine, "MSSQLSERVER", "PROD")
    local.read()
    found = by_series(local.read())
    assert found["db.log_flushes_per_s", "orders"].value == 20
    assert found["db.log_flushes_per_s", "PROD/sales"].value == 7


def test_the_inventory_says_what_is_not_there(machine: WindowsMachine) -> None:
    """The inventory lists disks with their parts, missing counters, and metrics that PDH lacks."""
    facts = collector(StandInPdh(), machine, log="L:\\log").inventory()["sql1"]
    assert facts["roles"]["log"]["device"] == "L:"
    assert facts["disks"]["L:"]["members"] == ["1 L:"]
    missing = {one["metric"]: one for one in facts["not_measured"]}
    assert "Memory" in missing["mem.paged_out_bytes_per_s"]["why"]
    assert {"net.errors_per_s", "disk.flush*", "cpu.steal_ratio"} <= set(missing)
    watch = Watch("sql1", "sql", options={"process": "nobody-is-called-so"})
    told = LocalWindows([watch], StandInPdh(), PdhError, machine).inventory()["sql1"]["not_measured"]
    assert {one["instance"] for one in told} >= {"tier:sql", "thread:*"}


def test_a_tier_is_told_apart_from_the_machine(machine: WindowsMachine) -> None:
    """The tier's CPU is this process's share of the two processors."""
    watch = Watch("sql1", "sql", processes=Processes(pids=(os.getpid(),)))
    local = LocalWindows([watch], StandInPdh(), PdhError, machine)
    local.read()
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    found = by_series(local.read())
    busy = found["cpu.busy_ratio", "tier:sql"]
    assert found["cpu.cores", "tier:sql"].value == 2
    assert busy.value is not None
    assert 0.2 <= busy.value * busy.interval_s * 2 + 0.02 < 0.6
    assert "tier:sql" not in {one["instance"] for one in local.inventory()["sql1"]["not_measured"]}


def test_what_is_wrong_is_said(machine: WindowsMachine) -> None:
    """A missing drive and damaged counters give an error, and the query is closed."""
    pdh = StandInPdh()
    with pytest.raises(CollectorError, match=r"role 'log': Windows counts no disk 'X:'; there are C:, L:"):
        collector(pdh, machine, log="X:")
    assert pdh.open == 0
    local = collector(pdh, machine)
    pdh.broken = True
    with pytest.raises(CollectorError, match=r"lodctr /R"):
        local.read()


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Return a function that simulates Windows with the given program as its PowerShell."""

    def make(program: str) -> None:
        path = tmp_path / "powershell"
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setattr(platform, "system", lambda: "Windows")

    return make


def test_powershell_is_asked_what_the_machine_is(windows: Callable[[str], None]) -> None:
    """The machine's facts come from the script that is used for remote machines, which then ends."""
    windows(powershell(1))
    found = ask_machine()
    assert found.said["hostname"] == "SQL1"
    assert found.unknown == {"caches": "Access denied"}
    assert [one["instance"] for one in found.sql_servers] == ["MSSQLSERVER"]


def test_a_powershell_that_says_nothing_is_not_known_and_no_error(windows: Callable[[str], None]) -> None:
    """If PowerShell fails, its output is the reason and no error is raised."""
    windows("echo 'scripts are disabled on this system' >&2; exit 1")
    assert "scripts are disabled" in ask_machine().unknown["host"]


def test_local_on_windows_says_that_it_needs_pywin32(windows: Callable[[str], None]) -> None:
    """Without pywin32, which this machine cannot install, the error names it."""
    windows("exit 1")
    with pytest.raises(CollectorError, match=r"needs pywin32, .*pinchpoint-collectors\[windows\]"):
        kind("local").connect([Watch("sql1", "sql")])
