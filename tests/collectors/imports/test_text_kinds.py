"""What recorders print as text or CSV: each kind by a file of its own, and what is odd in such files."""

# ruff: noqa: E501 -- lines are as long as those of the tools

from __future__ import annotations

from pathlib import Path

import pytest
from collectors.imports.test_sysstat import utc_ns

from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.checked import checked
from pinchpoint_collectors.imports.record import ForeignFileError, Found, Settings
from pinchpoint_collectors.record import Sample

RECORDED = Path(__file__).parents[2] / "golden_runs" / "imports"
Key = tuple[str, str]


def recorded(name: str) -> str:
    """A file as its tool wrote it."""
    return (RECORDED / name).read_bytes().decode()


def read(text: str, settings: Settings | None = None) -> tuple[dict[Key, list[Sample]], Found]:
    """(metric, instance) -> its samples, and what else the file says; its content tells its kind."""
    found = Found()
    format_ = registry.recognised(text[:8192])
    series: dict[Key, list[Sample]] = {}
    for sample in checked(format_.read(text.splitlines(keepends=True), settings or Settings(), found), found):
        series.setdefault((sample.metric, sample.instance), []).append(sample)
    return series, found


def last(text: str) -> dict[Key, float | None]:
    """The last value of each series."""
    return {key: samples[-1].value for key, samples in read(text)[0].items()}


KINDS: dict[str, tuple[str, str, int, float, dict[Key, float | None]]] = {
    # file -> kind, host, readings, seconds of each, figures of the last one
    "iostat-text.txt": (
        "iostat",
        "vm",
        3,
        2.0,
        {
            ("cpu.busy_ratio", ""): 0.9876,
            ("cpu.steal_ratio", ""): 0.0124,
            ("disk.reads_per_s", "vda"): 174.5,
            ("disk.write_latency_s", "vda"): 0.00011,
            ("disk.write_bytes_per_s", "vda"): 3384 * 1024,
            ("disk.flushes_per_s", "vda"): 259.5,
            ("disk.outstanding", "vda"): 0.14,
            ("disk.busy_ratio", "vda"): 0.03,
            ("disk.read_latency_s", "loop0"): None,
        },
    ),
    "sar.txt": (
        "sar",
        "vm",
        3,
        2.0,
        {
            ("cpu.busy_ratio", ""): 0.9875,
            ("cpu.busy_ratio", "1"): 0.9851,
            ("cpu.run_queue", ""): 6.0,
            ("mem.available_bytes", ""): 22923536 * 1024,
            ("mem.paged_in_bytes_per_s", ""): 0.0,
            ("disk.transfers_per_s", "vda"): 1020.5,
            ("disk.transfer_latency_s", "vda"): 0.00013,
            ("disk.write_bytes_per_s", "vda"): 3482 * 1024,
            ("net.received_bytes_per_s", "eth0"): 0.0,
            ("net.errors_per_s", "eth0"): 0.0,
            ("net.drops_per_s", "eth0"): 0.0,
            ("pressure.cpu_ratio", ""): 0.7544,
        },
    ),
    "vmstat.txt": (
        "vmstat",
        "",
        2,
        2.0,
        {
            ("cpu.busy_ratio", ""): 0.98,
            ("cpu.steal_ratio", ""): 0.02,
            ("cpu.run_queue", ""): 4.0,
            ("mem.available_bytes", ""): (20759616 + 301152 + 2401252) * 1024,
            ("mem.paged_in_bytes_per_s", ""): 0.0,
            ("disk.write_bytes_per_s", "all"): 2666 * 1024,
        },
    ),
    "dstat.csv": (
        "dstat",
        "vm",
        3,
        2.0,
        {
            ("cpu.busy_ratio", ""): 0.64815,
            ("cpu.busy_ratio", "1"): 1.0,
            ("cpu.wait_ratio", "0"): 0.44944,
            ("cpu.run_queue", ""): 2.0,
            ("mem.available_bytes", ""): 20368224256 + 118833152 + 2823311360,
            ("mem.paged_out_bytes_per_s", ""): 0.0,
            ("disk.reads_per_s", "vda"): 3552.5,
            ("disk.write_bytes_per_s", "vda"): 819200.0,
            ("disk.busy_ratio", "vda"): 0.47,
            ("net.received_bytes_per_s", "eth0"): 0.0,
        },
    ),
    "nmon.nmon": (
        "nmon",
        "vm",
        2,
        2.0,
        {
            ("cpu.busy_ratio", ""): 0.988,
            ("cpu.busy_ratio", "1"): 0.985,
            ("cpu.steal_ratio", ""): 0.012,
            ("cpu.run_queue", ""): 5.0,
            ("mem.available_bytes", ""): (20037.9 + 2017.7 + 294.2) * 1024**2,
            ("mem.paged_in_bytes_per_s", ""): 0.0,
            ("disk.transfers_per_s", "vda"): 1070.8,
            ("disk.busy_ratio", "vda"): 0.035,
            ("disk.write_bytes_per_s", "vda"): 3614.6 * 1024,
            ("net.sent_bytes_per_s", "eth0"): 0.0,
        },
    ),
    "pidstat.txt": (
        "pidstat",
        "vm",
        3,
        2.0,
        {
            ("cpu.busy_ratio", "process:pytest"): 0.3134,
            ("cpu.busy_ratio", "thread:dd"): 0.5871,
            ("cpu.busy_ratio", "thread:fio"): 0.0299,
            ("cpu.waiting_threads", ""): 1.841,
        },
    ),
    "esxtop.csv": (
        "esxtop",
        "esx1",
        3,
        15.0,
        {
            ("cpu.busy_ratio", ""): 0.725,
            ("cpu.busy_ratio", "0"): 0.93,
            ("cpu.waiting_threads", ""): 1.545,
            ("mem.available_bytes", ""): 7997 * 1024**2,
            ("mem.available_ratio", ""): 7997 / 262133,
            ("mem.paged_in_bytes_per_s", ""): 0.0,
            ("disk.writes_per_s", "naa.600508b1001c"): 63.0,
            ("disk.write_latency_s", "naa.600508b1001c"): 0.0093,
            ("disk.read_latency_s", "naa.600508b1001c"): 0.0033,
            ("disk.read_bytes_per_s", "naa.600508b1001c"): 4.5 * 1024**2,
            ("disk.outstanding", "naa.600508b1001c"): 3.0,
            ("net.received_bytes_per_s", "vmnic0"): 403e6 / 8,
        },
    ),
    "jmeter.jtl": (
        "jmeter",
        "db1",
        3,
        1.0,
        {
            ("cpu.busy_ratio", ""): 0.70,
            ("cpu.wait_ratio", ""): 0.07,
            ("cpu.busy_ratio", "0"): 0.97,
            ("mem.available_ratio", ""): 0.365,
            ("mem.available_bytes", ""): 3970 * 1024**2,
            ("mem.paged_in_bytes_per_s", ""): 10 * 4096,
            ("disk.outstanding", "/data"): 3.25,
            ("disk.reads_per_s", "/data"): 250.0,
            ("disk.write_bytes_per_s", "/data"): 1200 * 1024,
            ("net.received_bytes_per_s", "eth0"): 125000.0,
        },
    ),
    "get-counter.csv": (
        "get-counter",
        "sql1",
        3,
        15.0,
        {
            ("cpu.busy_ratio", ""): 0.6282194,
            ("cpu.busy_ratio", "1"): 0.6088458,
            ("cpu.waiting_threads", ""): 6.0,
            ("mem.available_bytes", ""): 8704 * 1024**2,
            ("mem.paged_bytes_per_s", ""): 12.5 * 4096,
            ("disk.write_latency_s", "L:"): 0.01534568,
            ("disk.writes_per_s", "L:"): 223.25,
            ("disk.outstanding", "L:"): 3.0,
            ("disk.busy_ratio", "L:"): 0.615,
            ("net.total_bytes_per_s", "vmxnet3 ethernet adapter"): 1234570.8,
            ("net.speed_bytes_per_s", "vmxnet3 ethernet adapter"): 1.25e9,
            ("db.memory_grants_pending", ""): 3.0,
        },
    ),
    "get-counter-samples.csv": (
        "get-counter",
        "sql1",
        3,
        15.0,
        {
            ("cpu.busy_ratio", ""): 0.6282194,
            ("cpu.busy_ratio", "1"): 0.6088458,
            ("cpu.waiting_threads", ""): 6.0,
            ("mem.available_bytes", ""): 8704 * 1024**2,
            ("mem.paged_bytes_per_s", ""): 12.5 * 4096,
            ("disk.write_latency_s", "L:"): 0.01534568,
            ("disk.writes_per_s", "L:"): 223.25,
            ("disk.outstanding", "L:"): 3.0,
            ("disk.busy_ratio", "L:"): 0.615,
            ("net.total_bytes_per_s", "vmxnet3 ethernet adapter"): 1234570.8,
            ("net.speed_bytes_per_s", "vmxnet3 ethernet adapter"): 1.25e9,
            ("db.memory_grants_pending", ""): 3.0,
        },
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_recorded_file_in_our_units(name: str) -> None:
    """Its content tells its kind; the first reading, which covers the time since the start, is left out."""
    kind, host, readings, interval_s, figures = KINDS[name]
    text = recorded(name)
    series, found = read(text)
    assert registry.recognised(text[:8192]).name == kind
    assert list(found.hosts) == [host]
    values = {key: series[key][-1].value for key in figures}
    assert values == {key: value if value is None else pytest.approx(value) for key, value in figures.items()}
    assert {len(samples) for samples in series.values()} == {readings}
    assert {round(sample.interval_s, 1) for samples in series.values() for sample in samples} == {interval_s}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_cut_off_at_the_end_is_left_out(name: str) -> None:
    """The recorder was ended in the middle of a line: all before it is read."""
    text = recorded(name)
    whole, _ = read(text)
    begin, _, end = text.rstrip().rpartition("\n")
    cut, found = read(f"{begin}\n{end[: len(end) * 2 // 3]}")
    assert set(cut) <= set(whole)
    assert (cut != whole) is any("cut off" in note for note in found.notes)
    assert cut != whole or name == "get-counter.csv"  # where the cell at the end is of no use


EDITS: dict[str, tuple[str, str, str, str]] = {
    # what is damaged -> file, text, what stands there then, what is said
    "iostat: a word in the middle": ("iostat-text.txt", "31.92", "x1.92", "found 'x1.92' in column system"),
    "iostat: a cell is missing": ("iostat-text.txt", " 17200.00 ", " ", "found 22 cells; allowed: 23"),
    "iostat: an odd time": ("iostat-text.txt", "11/28/26 09:38:36", "11/28/26 09:38:96", "found the time"),
    "sar: a word": ("sar.txt", "22800052", "22800O52", "found '22800O52' in column kbavail"),
    "vmstat: a word": ("vmstat.txt", " 20759616 ", " 2O759616 ", "found '2O759616' in column free"),
    "dstat: a cell is missing": ("dstat.csv", ",99.500,", ",", "found 43 cells; allowed: 44"),
    "dstat: time goes back": (
        "dstat.csv",
        "28-11 09:54:55",
        "28-11 09:54:52",
        "not later than that of the row before",
    ),
    "nmon: a word": ("nmon.nmon", "T0002,68.3,", "T0002,6B.3,", "found '6B.3' in column CPU001 User%"),
    "nmon: an odd time": (
        "nmon.nmon",
        "09:38:36,28-NOV",
        "09:38:36,28-NOX",
        "found the time '09:38:36 28-NOX-2026'",
    ),
    "get-counter: a value is missing": (
        "get-counter.csv",
        "processor queue length :\n4",
        "processor queue length :",
        "found 27 lines in Readings",
    ),
    "get-counter: a word": (
        "get-counter-samples.csv",
        '"223,25"',
        '"223,2S"',
        "found '223,2S' where a number should be",
    ),
    "get-counter: an odd time": (
        "get-counter-samples.csv",
        "20.11.2026 14:00:15",
        "yesterday",
        "found the time 'yesterday'",
    ),
    "pidstat: a cell is missing": (
        "pidstat.txt",
        "20.87     0  pytest",
        "20.87  pytest",
        "found 9 cells; allowed: 10",
    ),
    "esxtop: a word": ("esxtop.csv", '"62.00"', '"6Z.00"', "found '6Z.00' where a number should be"),
    "esxtop: a cell is missing": ("esxtop.csv", '"62.00",', "", "found 30 cells, the header has 31"),
    "jmeter: a word": ("jmeter.jtl", ",72250,", ",7225O,", "found '7225O' in column elapsed"),
    "jmeter: an odd time": (
        "jmeter.jtl",
        "1795165201000,72250",
        "2026/11/20 09:00:01,72250",
        "found the time '2026/11/20 09:00:01'",
    ),
    "sar: a cell is missing": ("sar.txt", "     33.75     30.27", "     33.75", "found 6 cells; allowed: 7"),
}


@pytest.mark.parametrize("what", EDITS)
def test_what_is_damaged_elsewhere_is_refused(what: str) -> None:
    """The line, what was found, what is allowed."""
    name, old, new, words = EDITS[what]
    text = recorded(name)
    assert old in text
    with pytest.raises(ForeignFileError, match=words) as caught:
        read(text.replace(old, new, 1))
    assert any(word in str(caught.value) for word in ("allowed", "split the file", "take it"))


def test_iostat_of_any_age_and_place() -> None:
    """Decimal commas, sectors, one latency for both ways, a name in a line of its own, a time without its day."""
    head = "Linux 2.6.18-8.el5 (db1) \t30.05.2011\n\n"
    cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           6,00    0,00    2,00    1,50    0,00   90,50\n"
    disk = "Device:         rrqm/s   wrqm/s   r/s   w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n"
    row = "{}  0,00 5,00 10,00 30,00 80,00 400,00 12,00 1,20 30,00 2,00 8,00\n\n"
    rows = row.format("sda") + row.format("mapper/vg00-a_long_name\n      ")
    text = head + "".join(f"Time: 10:0{minute}:00\n{cpu}\n{disk}{rows}" for minute in range(3))
    series, _ = read(text)
    values = last(text)
    assert values["cpu.busy_ratio", ""] == pytest.approx(0.08)
    for name in ("sda", "mapper/vg00-a_long_name"):
        assert values["disk.write_bytes_per_s", name] == 400 * 512
        assert values["disk.transfer_latency_s", name] == pytest.approx(0.030)
        assert series["disk.transfer_latency_s", name][-1].weight == 40 * 60
    assert series["cpu.busy_ratio", ""][-1].time_ns == utc_ns(2011, 5, 30, 10, 2)


SAR = "Linux 3.10.0 (db1) \t11/20/2026 \t_x86_64_\t(4 CPU)\n\n"


def test_sar_in_america_over_midnight_and_a_restart() -> None:
    """AM and PM; the next day; what lies between the last reading and the restart is not covered."""
    rows = "11:50:01 PM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
    rows += "".join(
        f"{clock}     all     10.00      0.00      5.00      1.00      0.00     84.00\n"
        for clock in ("11:55:01 PM", "12:00:01 AM")
    )
    rows += "\n12:10:07 AM       LINUX RESTART\t(4 CPU)\n\n12:15:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
    rows += "12:20:01 AM     all     10.00      0.00      5.00      1.00      0.00     84.00\nAverage:        all     1.00      0.00      5.00      1.00      0.00     93.00\n"
    series, _ = read(SAR + rows)
    samples = series["cpu.busy_ratio", ""]
    assert [sample.interval_s for sample in samples] == [300.0] * 3
    assert samples[-1].time_ns == utc_ns(2026, 11, 21, 0, 20, 1)


def test_sar_of_an_older_version() -> None:
    """Bytes and sectors in place of KiB; what is available of the memory is what is free or cached."""
    tables = (
        (
            "kbmemfree kbmemused  %memused kbbuffers  kbcached  kbcommit   %commit",
            "1000 9000 90.00 100 5000 9000 80.00",
        ),
        (
            "IFACE   rxpck/s   txpck/s   rxbyt/s   txbyt/s   rxcmp/s   txcmp/s  rxmcst/s",
            "eth0 1.00 1.00 640.00 320.00 0.00 0.00 0.00",
        ),
        (
            "DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util",
            "dev8-0 10.00 8.00 16.00 2.40 0.50 50.00 1.00 1.00",
        ),
    )
    text = SAR + "\n".join(f"10:00:01 {names}\n10:10:01 {row}\n" for names, row in tables)
    values, (_, found) = last(text), read(text)
    assert values["mem.available_bytes", ""] == 6100 * 1024
    assert values["net.received_bytes_per_s", "eth0"] == 640
    assert values["disk.write_bytes_per_s", "dev8-0"] == 16 * 512
    assert values["disk.outstanding", "dev8-0"] == 0.5
    assert any("free and cached together" in note for note in found.notes)


def test_nothing_available_beside_much_that_is_free_is_no_shortage() -> None:
    """A version that does not know what is available writes 0."""
    text = (
        SAR
        + "10:00:01 kbmemfree kbavail kbmemused %memused kbbuffers kbcached\n10:10:01 8000 0 50000 86.20 100 45000\n"
    )
    assert last(text)["mem.available_bytes", ""] == 53100 * 1024


VMSTAT = """procs -----------memory---------- ---swap-- -----io---- -system-- ----cpu----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa
"""


def test_vmstat_without_times_and_in_an_odd_unit() -> None:
    """Older ones know no steal; MiB (-SM) cannot be told from the file, and are no shortage."""
    rows = VMSTAT + " 9  0      0  16000   3000   4000    0    0     1     1    1    1 99  0  1  0\n" * 2
    with pytest.raises(ForeignFileError, match="--start"):
        read(rows)
    series, found = read(rows + VMSTAT + rows.splitlines()[2], Settings(start_s=1e9, every_s=5.0))
    assert [sample.value for sample in series["cpu.busy_ratio", ""]] == pytest.approx([0.99, 0.99])
    assert ("mem.available_bytes", "") not in series
    assert any("memory was left out" in note for note in found.notes)


DSTAT = """"pcp-dstat 6.0.3 CSV Output"
"Author:","PCP team",,,,"URL:","https://pcp.io"
"Host:","db1",,,,"User:","root"
"Cmdline:","pcp-dstat -o x 5",,,,"Date:","31 Dec 2026 23:59:50 {zone}"
{names}
"""
USAGE = '"total usage",,,,,"dsk/total",,"net/total",\n"total usage:usr","total usage:sys","total usage:idl","total usage:wai","total usage:stl","dsk/total:read","dsk/total:writ","net/total:recv","net/total:send"'


def test_dstat_of_pcp_without_times() -> None:
    """Its header tells when it began and how often it read; what is empty was not measured."""
    text = DSTAT.format(zone="UTC", names=USAGE) + "4,1,95,0,0,0,0,0,0\n90,5,5,0,0,,8192,0,0\n"
    series, found = read(text)
    [sample] = series["cpu.busy_ratio", ""]
    assert sample.value == pytest.approx(0.95)
    assert sample.interval_s == 5.0
    assert sample.time_ns == utc_ns(2026, 12, 31, 23, 59, 55)
    assert series["disk.read_bytes_per_s", "total"][0].value is None
    assert any("5 s (its command line)" in note for note in found.notes)


def test_dstat_over_the_end_of_a_year_in_a_zone() -> None:
    """Times have no year. The file was written to again: the row after the new header is left out as well."""
    names = '"system","procs",,\n"time","run","blk","new"'
    head = DSTAT.format(zone="CET", names=names)
    text = (
        head
        + "31-12 23:59:50,9,0,0\n31-12 23:59:55,1,0,0\n01-01 00:00:00,2,0,0\n"
        + head
        + "01-01 00:10:00,9,0,0\n01-01 00:10:05,3,0,0\n"
    )
    series, found = read(text)
    assert [sample.value for sample in series["cpu.run_queue", ""]] == [1, 2, 3]
    assert series["cpu.run_queue", ""][1].time_ns == utc_ns(2027, 1, 1)
    assert found.zone_assumed


def test_nmon_that_was_sorted_says_the_same() -> None:
    """Its analysers want it so."""
    text = recorded("nmon.nmon")
    assert last("\n".join(sorted(text.splitlines()))) == last(text)


def test_nmon_of_aix() -> None:
    """Its file cache can be given up; pages of the paging space are counted per second."""
    head = "AAA,progname,topas_nmon\nAAA,AIX,7.2.0.1\nAAA,host,lpar1\nAAA,interval,60\n"
    head += "CPU_ALL,CPU Total lpar1,User%,Sys%,Wait%,Idle%,Busy,PhysicalCPUs\nMEMNEW,Memory New lpar1,Process%,FScache%,System%,Free%,Pinned%,User%\n"
    head += "PAGE,Paging lpar1,faults,pgin,pgout,pgsin,pgsout,reclaims,scans,cycles\nDISKBUSY1,Disk %Busy lpar1,hdisk0\n"
    rows = "ZZZZ,T000{0},10:0{0}:00,20-NOV-2026\nCPU_ALL,T000{0},70.0,20.0,4.0,6.0,,4\nMEMNEW,T000{0},50.0,20.0,25.0,5.0,10.0,70.0\nPAGE,T000{0},9.0,8.0,7.0,3.0,2.0,0,0,0\nDISKBUSY1,T000{0},88.0\n"
    text = head + rows.format(1) + rows.format(2)
    values = last(text)
    assert values["cpu.busy_ratio", ""] == pytest.approx(0.90)
    assert values["mem.available_ratio", ""] == pytest.approx(0.25)
    assert values["mem.paged_in_bytes_per_s", ""] == 3 * 4096
    assert values["disk.busy_ratio", "hdisk0"] == pytest.approx(0.88)
    assert read(text)[1].hosts["lpar1"]["os"] == "AIX"


def test_pidstat_in_columns_of_one_line() -> None:
    """``-h`` has a time in each row and none above; a command may have spaces; who is not there was idle."""
    head = "Linux 6.1.0 (db1) \t11/20/2026 \t_x86_64_\t(4 CPU)\n\n# Time        UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n"
    rows = [
        f"{1795858714 + 5 * at} 0 12 90.00 10.00 0.00 50.00 100.00 1 postgres: walwriter\n" for at in range(3)
    ]
    text = (
        head
        + rows[0]
        + "\n"
        + rows[1]
        + rows[1].replace("12", "13", 1)
        + "\n"
        + rows[2].replace("walwriter", "checkpointer")
    )
    series, _ = read(text)
    assert [one.value for one in series["cpu.busy_ratio", "process:postgres: walwriter"]] == [0.5, 0.0]
    assert [one.value for one in series["cpu.waiting_threads", ""]] == [1.0, 0.5]
    assert series["cpu.waiting_threads", ""][0].interval_s == 5.0


def test_esxtop_of_adapters_alone() -> None:
    """Where no device was logged, the adapters are the disks; the world of a machine is none of them."""
    text = recorded("esxtop.csv").replace("Physical Disk SCSI Device(", "Physical Disk Per-Device-Per-World(")
    series, _ = read(text)
    assert {key for key in series if key[0].startswith("disk.")} == {("disk.transfers_per_s", "vmhba0")}


def test_jmeter_as_xml_beside_the_loads_own_samples() -> None:
    """A failed sample was not measured; what is counted covers the time since the reading before."""
    rows = [
        (0, "40000", "true", "db1 Disks I/O writes"),
        (0, "90000", "true", "db1 CPU idle"),
        (5000, "60000", "true", "db1 Disks I/O writes"),
        (5000, "0", "false", "db1 CPU idle"),
        (5001, "17", "true", "Log in"),
    ]
    text = '<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n'
    text += "".join(
        f'<sample t="{value}" lt="0" ts="{1795165200000 + at}" s="{well}" lb="{label}" rc="" rm=""/>\n'
        for at, value, well, label in rows
    )
    series, found = read(text + "</testResults>\n")
    assert series["disk.writes_per_s", "all"][0].value == pytest.approx(12.0)
    assert series["disk.writes_per_s", "all"][0].interval_s == 5.0
    assert series["cpu.busy_ratio", ""][0].value is None
    assert any("Log in" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "idle", "odd"),
    [
        ("iostat-text.txt", " 1.24    0.00\n", " 1.24    -700.00\n"),
        ("sar.txt", " 1.25      0.00\n", " 1.25      -700.00\n"),
        ("vmstat.txt", " 37   0   0   2 ", " 37   -700   0   2 "),
        ("nmon.nmon", "T0003,65.2,33.6,0.0,0.0,", "T0003,65.2,33.6,0.0,-700.0,"),
        ("dstat.csv", "14.021,21.164,0,", "-700.0,21.164,0,"),
    ],
)
def test_what_cannot_be_is_not_measured_and_said(name: str, idle: str, odd: str) -> None:
    """A CPU that was idle for less than no time."""
    text = recorded(name)
    assert idle in text
    series, found = read(text.replace(idle, odd, 1))
    assert None in [sample.value for sample in series["cpu.busy_ratio", ""]]
    assert any("1 value cannot be and count" in note for note in found.notes)
