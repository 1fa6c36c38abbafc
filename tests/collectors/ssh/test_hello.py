"""Tests of a host's description: disks on LVM, RAID, multipath and btrfs, and facts."""

from __future__ import annotations

from pathlib import Path

import pytest
from collectors.ssh.recorded import answered, hello

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.disks import Disks
from pinchpoint_collectors.linux.inventory import interfaces, machine_facts, usable_cores
from pinchpoint_collectors.linux_over_ssh.frame import FileText, Frame
from pinchpoint_collectors.linux_over_ssh.hello import Hello, parse
from pinchpoint_collectors.linux_over_ssh.script import script
from pinchpoint_collectors.linux_over_ssh.tiers import parse_all
from pinchpoint_collectors.record import Processes, Watch
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.ssh import FILES, LinuxHost

POSTGRES = "612 (postgres) S 1 612 612 0 -1 4194560 5 0 0 0 250 50 10 5 20 0 1 0 900 1 2" + " 0" * 30


def disks(found: Hello) -> Disks:
    return Disks(mountinfo.parse(found.files.fact("/proc/self/mountinfo") or ""), files=found.files)


@pytest.mark.parametrize(
    ("given", "device", "members"),
    [
        ("/var/lib/postgresql", "dm-0", ["sdb", "sdc"]),  # a logical volume on a partition and a disk
        ("/dev/mapper/vg0-data", "dm-0", ["sdb", "sdc"]),
        ("/wal", "md0", ["sdc", "sdd"]),  # software RAID
        ("/san/data", "dm-2", ["sde", "sdf"]),  # two paths to one SAN disk
        ("/content", "sdg", []),  # btrfs: a folder's device number is no device
        ("/image", "loop0", ["dm-0", "sdb", "sdc"]),  # an image file on the logical volume
        ("sdb1", "sdb", []),
        ("/dev/sdg1", "sdg", []),
    ],
)
def test_a_role_leads_to_whole_devices(given: str, device: str, members: list[str]) -> None:
    """A role resolves to whole devices, with the code of `local` and the host's data."""
    found = disks(parse(hello()))
    assert found.place(given).device == device
    assert found.facts(device)["members"] == members


@pytest.mark.parametrize(("given", "why"), [("/tmp", "in memory"), ("/share", "on another machine")])
def test_a_role_on_no_device_says_why(given: str, why: str) -> None:
    """A role without a device gives the reason, without a guess."""
    place = disks(parse(hello())).place(given)
    assert place.device is None
    assert why in (place.why or "")


def test_a_path_that_is_not_there_names_host_and_role() -> None:
    """A missing path's error names the place in farm.yaml and mentions permissions."""
    watch = Watch("sql1", "sql", disks={"log": "/no/such"})
    message = "host 'sql1', role 'log': disk '/no/such': no such path on the host, or its user may not look"
    with pytest.raises(CollectorError, match=message):
        LinuxHost(parse(hello()), [watch], HostClock())


def test_an_unknown_device_lists_those_there_are() -> None:
    """An unknown device's error lists the whole devices and the nearest name."""
    with pytest.raises(CollectorError, match="disks here: sda, sdb, sdc, sdd, sde, sdf, sdg; nearest: sdb"):
        disks(parse(hello())).place("sdb9")


def test_facts_of_the_machine() -> None:
    """A host's facts have the keys of `local`, usable cores, and active interfaces."""
    found = parse(hello()).files
    facts = machine_facts(found)
    assert facts.keys() == machine_facts().keys()
    assert facts["cpu_model"] == "Intel(R) Xeon(R) Platinum 8272CL CPU @ 2.60GHz"
    assert (facts["cores"], facts["usable_cores"]) == (4, [0, 1, 2, 4])
    assert facts["memory_bytes"] == 16384000 * 1024
    assert facts["os"] == "Debian GNU/Linux 12 (bookworm)"
    assert facts["virtualisation"] == "Microsoft Corporation Virtual Machine"
    assert facts["machine_id"] == "7c3b7b8e-2a1f-4f0e-9f59-0c1df0a7a6c1"
    assert interfaces(found) == {"eth0": 1.25e9, "lo": None}


KERNEL = ("/proc/2/status:Name:\tkthreadd", "/proc/2/status:PPid:\t0")


@pytest.mark.parametrize(
    ("second", "cores"),
    [
        # isolcpus or CPUAffinity: the first process may not use the database's cores
        (KERNEL, list(range(8))),
        (("/proc/2/status:Name:\tsh", "/proc/2/status:PPid:\t1"), [0, 1, 2, 4]),  # a container with a cpuset
        # a user process with that name
        (("/proc/2/status:Name:\tkthreadd", "/proc/2/status:PPid:\t1"), [0, 1, 2, 4]),
    ],
)
def test_the_cores_of_a_machine_are_not_those_of_its_first_process(
    second: tuple[str, ...], cores: list[int]
) -> None:
    """All online cores count if kernel threads are visible; a container's limit is kept."""
    found = parse(hello("/sys/devices/system/cpu/online:0-7", *second)).files
    assert usable_cores(found) == cores
    assert machine_facts(found)["cores"] == len(cores)


def test_facts_of_disks_and_roles() -> None:
    """Facts of a disk: model, scheduler, cache; of a role: mount point, file system, options."""
    host = LinuxHost(parse(hello()), [Watch("sql1", "sql", {"data": "/var/lib/postgresql"})], HostClock())
    facts = host.facts(Watch("sql1", "sql", {"data": "/var/lib/postgresql"}))
    assert facts["disks"]["sdb"]["model"] == "Virtual Disk"
    assert facts["disks"]["sdb"]["write_cache"] == "write back"
    assert facts["disks"]["sda"]["scheduler"] == "mq-deadline"
    assert facts["disks"]["sda"]["rotational"] is True
    assert set(facts["disks"]) == {"dm-0", "sda", "sdb", "sdc", "sdd", "sde", "sdf", "sdg"}
    assert facts["roles"]["data"] == {
        "given": "/var/lib/postgresql",
        "device": "dm-0",
        "mount_point": "/var/lib/postgresql",
        "file_system": "xfs",
        "mount_options": "rw,noatime,rw,attr2",
        "data_io": "not verified",
        "why": None,
    }


def test_a_disk_that_is_not_counted_there_is_not_measured() -> None:
    """A disk that the host does not count sends no zeros; other disks continue."""
    others = [f"missing {path} not wanted" for path in FILES if path != "/proc/diskstats"]
    watch = Watch("sql1", "sql", {"data": "sdb"})
    clock = HostClock()
    clock.observe(0, 0, 0)
    host = LinuxHost(parse(hello("/sys/block/sdb/queue/iostats:0", *others)), [watch], clock)
    line = "   8       0 {} 500 3 40000 100 900 4 80000 300 2 350 400\n"
    text = "".join(line.format(name) for name in ("sda", "sdb"))
    for now_ns in (1_000_000_000, 2_000_000_000):
        sections = [FileText(now_ns, text if path == "/proc/diskstats" else "") for path in FILES]
        samples = host.samples(Frame(now_ns, (*sections, FileText(now_ns, ""))))
    assert "sda" in {each.instance for each in samples}
    assert "sdb" not in {each.instance for each in samples}
    (missing,) = (each for each in host.facts(watch)["not_measured"] if each["instance"] == "sdb")
    assert missing["metric"] == "disk.*"
    assert missing["remedy"] == "run there as root: echo 1 > /sys/block/sdb/queue/iostats"


def test_the_host_is_asked_what_its_kernel_counts() -> None:
    """The script, in a local shell, asks for each disk's counters and for kernel threads."""
    text = script(1.0, 40.0, ("/proc/stat",), (), processes=False)
    found = parse(answered(text).stdout.partition("\n#e\n")[0]).files
    files = [file for pattern in ("*/queue/iostats", "*/stat") for file in Path("/sys/block").glob(pattern)]
    assert [str(file) for file in files if found.fact(str(file)) is None] == []
    assert usable_cores(found) == usable_cores()


def test_a_file_that_is_missing_is_not_measured_with_its_remedy() -> None:
    """A missing file, as on a kernel without pressure files, is not measured and has a remedy."""
    found = parse(hello("missing /proc/pressure/io No such file or directory"))
    facts = LinuxHost(found, [Watch("sql1", "sql")], HostClock()).facts(Watch("sql1", "sql"))
    (missing,) = (each for each in facts["not_measured"] if each["metric"] == "pressure.io_ratio")
    assert missing["why"] == "/proc/pressure/io: No such file or directory"
    assert "psi=1" in missing["remedy"]


def test_what_the_host_can_do() -> None:
    """Whole seconds in sleep and 10 ms steps in the clock are detected."""
    found = parse(hello(fractions="no", nanoseconds="no"))
    assert (found.fractions, found.nanoseconds) == (False, False)


@pytest.mark.parametrize("said", ["", "Last login: Mon", "#pinchpoint\nfractions yes"])
def test_another_shell_than_expected_is_said(said: str) -> None:
    """An unexpected shell gives an error with its output."""
    with pytest.raises(CollectorError, match="its shell"):
        parse(said)


def test_another_system_than_linux_is_said() -> None:
    """A system with a shell but without /proc gives an error."""
    foreign = "\n".join(line for line in hello().splitlines() if not line.startswith("/proc/"))
    with pytest.raises(CollectorError, match="no /proc/meminfo as Linux has it"):
        parse(f"{foreign}\n")


def test_what_is_read_over_and_over_is_what_local_reads() -> None:
    """The files read by `ssh` are those read by `local`."""
    assert FILES[0] == "/proc/stat"
    assert set(FILES) >= {"/proc/meminfo", "/proc/vmstat", "/proc/diskstats", "/proc/net/dev"}
    assert len(FILES) == 8


def test_a_tier_whose_processes_are_not_there_is_not_measured() -> None:
    """A tier whose processes are missing is not measured; the reason has the process name."""
    for name, said in (("mysqld", ["no process named mysqld runs there"]), ("postgres", [])):
        watch = Watch("sql1", "sql", processes=Processes(names=(name,)))
        host = LinuxHost(parse(hello()), [watch], HostClock())
        host.tiers.find(parse_all(POSTGRES))
        facts = host.facts(watch)
        assert [each["why"] for each in facts["not_measured"] if each["metric"] == "cpu.busy_ratio"] == said
