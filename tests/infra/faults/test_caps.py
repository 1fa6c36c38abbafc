"""Tests of CPU and memory limits with real control groups and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support import held

from pinchpoint_infra.faults import caps

pytestmark = pytest.mark.alone

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: control groups")
FARM_ID = "00c0ffee0000"
BUSY = "while True: pass"
GREEDY = "import time; data = bytearray(200 * 2**20); print(len(data), flush=True); time.sleep(30)"


@pytest.fixture
def group() -> Iterator[caps.Group]:
    made = caps.Group(FARM_ID, "sql", caps.support())
    made.make()
    yield made
    caps.remove_all(FARM_ID)
    assert left() == []


def left() -> list[Path]:
    """Return the control groups of the tests' farm."""
    return [
        place / f"pinchpoint-{FARM_ID}"
        for place in caps.support().roots.values()
        if (place / f"pinchpoint-{FARM_ID}").exists()
    ]


def started(group: caps.Group, code: str) -> subprocess.Popen[str]:
    with group.inside():
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def used_cores(processes: list[subprocess.Popen[str]], seconds: float) -> float:
    def total_s() -> float:
        return sum(sum(psutil.Process(one.pid).cpu_times()[:2]) for one in processes)

    before, begun = total_s(), time.monotonic()
    time.sleep(seconds)
    return (total_s() - before) / (time.monotonic() - begun)


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


@AS_ROOT
@pytest.mark.parametrize("cores", [0.15, 0.4])
def test_a_tier_gets_the_cpu_it_is_allowed(group: caps.Group, cores: float) -> None:
    """Two busy processes share the CPU limit; without the limit they use all CPU."""
    busy = [started(group, BUSY), started(group, BUSY)]
    try:
        group.cap_cpu(cores)
        time.sleep(0.2)
        held(cores, 0.05, lambda: used_cores(busy, 3))
        group.cap_cpu(None)
        time.sleep(0.2)
        assert used_cores(busy, 1) > cores * 1.5
    finally:
        end(*busy)


@AS_ROOT
def test_a_tier_that_takes_more_memory_than_it_may_is_ended(group: caps.Group) -> None:
    """The kernel ends a process above the memory limit; with a higher limit it runs."""
    group.cap_memory(64 * 2**20)
    greedy = started(group, GREEDY)
    assert greedy.wait(20) == -9
    greedy.communicate()
    group.cap_memory(None)
    group.cap_memory(400 * 2**20)
    modest = started(group, GREEDY)
    assert modest.stdout is not None
    assert modest.stdout.readline() == f"{200 * 2**20}\n"
    end(modest)


@AS_ROOT
def test_the_page_cache_counts_as_its_memory(group: caps.Group, tmp_path: Path) -> None:
    """The page cache counts: a file larger than the limit is not kept in memory by reading it."""
    path = Path("/var/tmp") / f"pinchpoint-caps-{os.getpid()}"
    path.write_bytes(os.urandom(2**20) * 96)
    try:
        group.cap_memory(48 * 2**20)
        reader = started(group, f"data = open({str(path)!r}, 'rb')\nwhile data.read(2**20): pass")
        assert reader.wait(30) == 0
        reader.communicate()
        [memory] = [place for name, place in caps.support().roots.items() if name == "memory"]
        place = memory / f"pinchpoint-{FARM_ID}" / "sql"
        used = next(
            place / name for name in ("memory.usage_in_bytes", "memory.current") if (place / name).exists()
        )
        assert int(used.read_text()) <= 48 * 2**20
    finally:
        path.unlink()


@AS_ROOT
def test_groups_of_killed_processes_are_removed() -> None:
    """Groups of killed processes are removed; those of other farms stay."""
    mine, other = (caps.Group(farm_id, "web", caps.support()) for farm_id in (FARM_ID, "00c0ffee0001"))
    mine.make()
    other.make()
    busy = started(mine, BUSY)
    busy.kill()
    assert caps.remove_all(FARM_ID) == [
        f"removed {2 * len(set(caps.support().roots.values()))} control groups"
    ]
    busy.communicate()
    assert left() == []
    assert caps.remove_all("00c0ffee0001") != []
    assert caps.remove_all("00c0ffee0001") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="runs as an ordinary user")
def test_without_rights_the_remedy_is_named() -> None:
    """Without root nothing is created, and one sentence names the remedy."""
    machine = caps.support()
    assert machine.roots == {}
    assert "root rights" in machine.missing["cpu"]
