"""Tests of the parsers of /proc's machine-wide files on recorded texts, with values computed by hand."""

from __future__ import annotations

import pytest

from pinchpoint_collectors.linux import meminfo, mountinfo, net_dev, pressure, stat, vmstat
from pinchpoint_collectors.value import Value

STAT = """\
cpu  8438 10 10952 213231 401 7 102 18 40 0
cpu0 2853 10 5179 108459 57 7 22 3 40 0
cpu1 5585 0 5773 104772 344 0 80 15 0 0
intr 457318 0 0 0 25 1 1 14
ctxt 1197433
btime 1795232058
processes 134721
procs_running 3
procs_blocked 0
softirq 387308 0 37214 8 25611 76282 0 151 85036 0 163006
"""
LATER = (
    STAT.replace("cpu0 2853 10 5179 108459 57 7 22 3", "cpu0 2883 10 5199 108479 67 7 22 23")
    .replace("cpu1 5585 0 5773 104772 344", "cpu1 5585 0 5773 104872 343")
    .replace("procs_running 3", "procs_running 1")
)


def by_name(values: object) -> dict[tuple[str, str], float | None]:
    return {(each.metric, each.instance): each.value for each in values}  # type: ignore[attr-defined]


def test_cpu_ratios_are_shares_of_the_ticks_that_passed() -> None:
    """CPU ratios are shares of the passed ticks, and the machine's is the mean of its cores."""
    found = by_name(stat.values(stat.parse(STAT), stat.parse(LATER), [0, 1]))
    assert found["cpu.busy_ratio", "0"] == pytest.approx(0.50)
    assert found["cpu.wait_ratio", "0"] == pytest.approx(0.10)
    assert found["cpu.steal_ratio", "0"] == pytest.approx(0.20)
    assert found["cpu.busy_ratio", "1"] == 0
    assert found["cpu.wait_ratio", "1"] == 0  # 344 to 343: proc(5) allows a decrease
    assert found["cpu.busy_ratio", ""] == pytest.approx(0.25)


def test_the_reader_is_no_thread_that_waits() -> None:
    """The collector itself is not in the run queue: procs_running of three means two, one means none."""
    assert list(stat.values(None, stat.parse(STAT), [0, 1])) == [Value("cpu.run_queue", "", 2)]
    assert list(stat.values(None, stat.parse(LATER), [0, 1])) == [Value("cpu.run_queue", "", 0)]


def test_only_usable_cores_count() -> None:
    """Only usable cores count, as in a container with core 0 alone."""
    found = by_name(stat.values(stat.parse(STAT), stat.parse(LATER), [0]))
    assert found["cpu.busy_ratio", ""] == pytest.approx(0.50)
    assert ("cpu.busy_ratio", "1") not in found


def test_cpu_counters_that_went_back_give_no_ratio() -> None:
    """CPU counters that went back give null, for the core and the machine."""
    found = by_name(stat.values(stat.parse(LATER), stat.parse(STAT), [0, 1]))
    assert found["cpu.busy_ratio", "0"] is None
    assert found["cpu.busy_ratio", ""] is None


def test_a_core_taken_offline_is_not_measured() -> None:
    """A core that goes offline has nulls, and the other core continues."""
    later = "\n".join(line for line in LATER.splitlines() if not line.startswith("cpu1"))
    found = by_name(stat.values(stat.parse(STAT), stat.parse(later), [0, 1]))
    assert found["cpu.busy_ratio", "1"] is None
    assert found["cpu.busy_ratio", ""] == pytest.approx(0.50)


MEMINFO = """\
MemTotal:       24684084 kB
MemFree:        24263264 kB
MemAvailable:   12342042 kB
HugePages_Total:       4
Hugepagesize:       2048 kB
"""


def test_memory_is_in_bytes() -> None:
    """Values with kB are multiples of 1,024 bytes; values without a unit are counts."""
    parsed = meminfo.parse(MEMINFO)
    assert parsed["HugePages_Total"] == 4
    found = by_name(meminfo.values(None, parsed, 0.0))
    assert found["mem.available_bytes", ""] == 12342042 * 1024
    assert found["mem.available_ratio", ""] == pytest.approx(0.5)


def test_a_kernel_that_does_not_say_what_is_available_gives_no_value() -> None:
    """Kernels before 3.14, without MemAvailable, give no value; free memory is not used instead."""
    assert list(meminfo.values(None, meminfo.parse("MemTotal: 100 kB\nMemFree: 50 kB\n"), 1.0)) == []


def test_paging_is_swap_traffic_not_block_traffic() -> None:
    """Paging is pswpin and pswpout; pgpgin also grows with each file read."""
    before = vmstat.parse("pgpgin 1000\npgpgout 5\npswpin 10\npswpout 3\n")
    after = vmstat.parse("pgpgin 9000\npgpgout 5\npswpin 14\npswpout 1\n")
    found = by_name(vmstat.values(before, after, 2.0, 4096))
    assert found["mem.paged_in_bytes_per_s", ""] == 4 * 4096 / 2
    assert found["mem.paged_out_bytes_per_s", ""] is None  # the counter went back


PRESSURE = """\
some avg10=0.34 avg60=0.10 avg300=0.04 total=3313840
full avg10=0.31 avg60=0.08 avg300=0.03 total=3145815
"""


def test_pressure_is_the_share_of_the_interval_from_the_total() -> None:
    """Pressure comes from the total: 0.5 s of stall in 2 s are 0.25."""
    before = pressure.parse(PRESSURE)
    assert before == 3313840
    found = list(pressure.values(before, before + 500_000, 2.0, "io"))
    assert found == [Value("pressure.io_ratio", "", 0.25)]
    assert list(pressure.values(None, before, 0.0, "io")) == []


NET = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0
  eth0:550889643   27668    2    7    0     0          0         0  1468206   15463    3    0    0     0
eth0:1: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0
"""


def test_network_rates_and_a_device_that_went_away() -> None:
    """Watched devices have rates per second; a device that disappeared has nulls."""
    before = net_dev.parse(NET)
    after = {"eth0": net_dev.NetCounters(550889643 + 4000, 1468206 + 1000, 7)}
    found = by_name(net_dev.values(before, after, 2.0, {"eth0": 125e6, "lo": None}))
    assert found["net.received_bytes_per_s", "eth0"] == 2000
    assert found["net.sent_bytes_per_s", "eth0"] == 500
    assert found["net.errors_per_s", "eth0"] == 1
    assert found["net.speed_bytes_per_s", "eth0"] == 125e6
    assert found["net.received_bytes_per_s", "lo"] is None
    assert ("net.speed_bytes_per_s", "lo") not in found


MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard
40 27 254:16 / /var/lib/my\040sql rw,noatime - xfs /dev/vdb rw,attr2
41 27 0:40 /@data /srv rw - btrfs /dev/vdc rw,subvol=/@data
42 41 0:41 / /srv rw - tmpfs none rw
"""


def test_mounts_with_spaces_tags_and_one_over_the_other() -> None:
    """The longest mount point above a path wins, then the later one; names are unescaped."""
    mounts = mountinfo.parse(MOUNTS)
    found = mountinfo.mount_of("/var/lib/my sql/data", mounts)
    assert found is not None
    assert (found.device, found.file_system, found.source) == ("254:16", "xfs", "/dev/vdb")
    hidden = mountinfo.mount_of("/srv/x", mounts)
    assert hidden is not None
    assert hidden.file_system == "tmpfs"
    root = mountinfo.mount_of("/srvother", mounts)
    assert root is not None
    assert root.mount_point == "/"
