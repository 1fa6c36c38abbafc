"""Tests of a tier's memory in a limited control group: recorded files, and a real group of version 1."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinchpoint_collectors.linux import cgroups
from pinchpoint_collectors.linux.cgroups import GroupMemory, MemoryCaps, TierMemory
from pinchpoint_collectors.linux.mountinfo import Mount
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Collector, Processes, Watch
from pinchpoint_collectors.value import Value

MIB = 2**20


STAT_V2 = """\
anon 41943040
file 25165824
kernel 3145728
shmem 0
inactive_anon 41943040
active_anon 8192
inactive_file 20971520
active_file 4194304
unevictable 0
workingset_refault_anon 0
workingset_refault_file 1200
pgscan 5000
pgsteal 4096
pgfault 31337
pgmajfault 250
"""

EVENTS_V2 = "low 0\nhigh 2\nmax 7\noom 0\noom_kill 0\noom_group_kill 0\n"


@pytest.mark.parametrize(
    ("limit", "cap"), [("9223372036854771712\n", None), ("9223372036854710272", None), ("67108864\n", 2**26)]
)
def test_no_cap_of_version_1_is_a_very_large_number(limit: str, cap: int | None) -> None:
    """A very large number, with pages of 4 or 64 KiB, means no limit."""
    assert cgroups.cap_bytes_v1(limit) == cap


@pytest.mark.parametrize(
    ("limits", "cap"), [(("max\n", "max\n"), None), (("max", "5"), 5), (("7", "max"), 7), (("7", "5"), 5)]
)
def test_the_lower_limit_of_version_2_is_the_cap(limits: tuple[str, str], cap: int | None) -> None:
    """The lower of `memory.high` and `memory.max` is the limit; above `memory.high` a group is slowed."""
    assert cgroups.cap_bytes_v2(*limits) == cap


def test_growth_becomes_rates_and_a_counter_gone_back_is_null() -> None:
    """Pages become bytes, a counter that went back is null, and a missing counter sends nothing."""
    before = GroupMemory(100, 90, 20, 10, 1000, None, 5)
    after = GroupMemory(100, 95, 20, 14, 900, None, 5)
    assert list(cgroups.memory_values(before, after, 2.0, "tier:sql", 4096)) == [
        Value("mem.available_bytes", "tier:sql", 25),
        Value("mem.available_ratio", "tier:sql", 0.25),
        Value("mem.major_faults_per_s", "tier:sql", 2.0),
        Value("mem.refaulted_bytes_per_s", "tier:sql", None),
        Value("mem.limit_hits_per_s", "tier:sql", 0.0),
    ]
    assert len(list(cgroups.memory_values(None, after, 0.0, "tier:sql", 4096))) == 2


def test_a_working_set_beyond_the_cap_leaves_nothing() -> None:
    """A working set above a lowered limit leaves 0 bytes, not a negative number."""
    assert GroupMemory(100, 150, 20, None, None, None, None).available_bytes == 0
    assert GroupMemory(100, 15, 20, None, None, None, None).available_bytes == 100


def unified(folder: Path, **files: str) -> MemoryCaps:
    """Return the limits of a machine with version 2 only, from a folder of files."""
    for name, text in files.items():
        (folder / f"memory.{name}").write_text(text)
    caps = MemoryCaps()
    caps._groups._v1 = None
    caps._groups._v2 = Mount("0:1", "/", str(folder), "rw", "cgroup2", "cgroup2", "rw")
    return caps


def test_version_2_from_its_files(tmp_path: Path) -> None:
    """Values come from the process's group; a limit above the machine's memory sends nothing."""
    caps = unified(tmp_path, max=f"{80 * MIB}\n", high="max\n", current="70000000\n", stat=STAT_V2)
    tier = TierMemory("sql", caps, os.sysconf("SC_PAGE_SIZE"))
    assert list(tier.read([os.getpid()], 0.0)) == [], "a group that goes away at this moment"
    (tmp_path / "memory.events").write_text(EVENTS_V2)
    left = 80 * MIB - (70_000_000 - 20971520)
    assert list(tier.read([os.getpid()], 0.0)) == [
        Value("mem.available_bytes", "tier:sql", left),
        Value("mem.available_ratio", "tier:sql", left / (80 * MIB)),
    ]
    (tmp_path / "memory.stat").write_text(STAT_V2.replace("pgsteal 4096", "pgsteal 4106"))
    found = {value.metric: value.value for value in tier.read([os.getpid()], 2.0)}
    assert found["mem.reclaimed_bytes_per_s"] == 5 * os.sysconf("SC_PAGE_SIZE")
    assert found["mem.refaulted_bytes_per_s"] == 0
    for limit in ("max\n", f"{2**60}\n"):
        (tmp_path / "memory.max").write_text(limit)
        assert list(tier.read([os.getpid()], 1.0)) == []


WORKER = """
import mmap, sys
kept = []
for line in sys.stdin:
    command, _, argument = line.strip().partition(" ")
    if command == "take":  # memory of its own
        kept.append(bytearray(b"x") * (int(argument) << 20))
    elif command == "read":  # through the page cache
        with open(argument, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
    elif command == "map":  # page by page, each a fault
        with open(argument, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
            pages.madvise(mmap.MADV_RANDOM)
            sum(pages[at] for at in range(0, len(pages), 4096))
    print("done", flush=True)
"""

Do = Callable[[str], None]


@contextmanager
def capped(cap_bytes: int) -> Iterator[tuple[Collector, Do, Path]]:
    """Yield a collector, a control function and the group of a process with that memory limit."""
    controller = Path("/sys/fs/cgroup/memory")
    if os.geteuid() != 0 or not (controller / "tasks").exists():
        pytest.skip("needs root and the version 1 memory controller at /sys/fs/cgroup/memory")
    group = controller / f"pp-test-{os.getpid()}"
    group.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        (group / "memory.limit_in_bytes").write_text(str(cap_bytes))
        (group / "cgroup.procs").write_text(str(process.pid))

        def do(command: str) -> None:
            assert process.stdin
            assert process.stdout
            process.stdin.write(command + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        watch = Watch("app1", "app", processes=Processes(pids=(process.pid,)))
        yield LocalKind().connect([watch]), do, group
    finally:
        process.kill()
        process.communicate()
        for _ in range(50):  # the kernel frees the last pages shortly after the process has ended
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def tier(collector: Collector) -> dict[str, float | None]:
    """Return the tier's memory metrics of a reading."""
    wanted = [each for each in collector.read() if each.instance == "tier:app"]
    return {each.metric: each.value for each in wanted if each.metric.startswith("mem.")}


@pytest.mark.root
def test_memory_taken_and_files_read_below_a_cap(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """Anonymous memory reduces what is available, a file read once does not, and repeated reads refault."""
    real_disk(tmp_path)
    once, again = tmp_path / "once", tmp_path / "again"
    for path in (once, again):
        path.write_bytes(os.urandom(96 * MIB))
        with path.open("rb") as file:
            os.fsync(file.fileno())
            # the pages then belong to the group
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with capped(64 * MIB) as (collector, do, group):
        do("take 1")
        assert collector.inventory()["app1"]["tier_cap_bytes"] == 64 * MIB
        before = tier(collector)
        assert set(before) == {"mem.available_bytes", "mem.available_ratio"}
        do("take 32")
        do(f"read {once}")
        after = tier(collector)
        taken = (before["mem.available_bytes"] or 0) - (after["mem.available_bytes"] or 0)
        assert 30 * MIB < taken < 38 * MIB, "its own memory, and hardly any of 96 MiB of file"
        assert after["mem.available_ratio"] == pytest.approx((after["mem.available_bytes"] or 0) / (64 * MIB))
        assert (after["mem.limit_hits_per_s"] or 0) > 0
        usage = int((group / "memory.usage_in_bytes").read_text())
        assert usage > 56 * MIB, "the cache fills what is left all the same"
        do(f"map {again}")
        do(f"map {again}")
        pressed = tier(collector)
        assert (pressed["mem.major_faults_per_s"] or 0) > 100
        assert (pressed["mem.refaulted_bytes_per_s"] or 0) > MIB
        (group / "memory.limit_in_bytes").write_text("-1")
        assert tier(collector) == {}, "nothing is sent where there is no cap"
        assert collector.inventory()["app1"]["tier_cap_bytes"] is None
