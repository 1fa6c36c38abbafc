"""Short logs as administrators post them: the recorded resources are judged, whatever is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness.imports.made import judged, places, written

from pinchpoint.analysis.saved import verdict_of
from pinchpoint.base.errors import InputError
from pinchpoint.imports import import_as_run, open_source, read_mapping
from pinchpoint.imports.reading import TimeSpan
from pinchpoint_collectors.imports.record import Settings

HEADER = "(PDH-CSV 4.0) (UTC)(0)"
QUIET = {
    r"Processor(_Total)\% Processor Time": 12,
    r"LogicalDisk(D:)\Avg. Disk sec/Transfer": 0.002,
    r"LogicalDisk(D:)\Disk Transfers/sec": 70,
}
WAITS = "SQLServer:Wait Statistics"
CORES = {rf"Processor({core})\% Processor Time": 4 for core in range(1, 4)}


def perfmon(counters: dict[str, float], header: str = HEADER, rows: int = 6) -> str:
    lines = [[header, *(rf"\\HV9\{name}" if name else "" for name in counters)]]
    values = [str(value) if name else "" for name, value in counters.items()]
    lines += [[f"11/20/2026 09:{minute:02}:00.000", *values] for minute in range(rows)]
    return "".join(",".join(f'"{cell}"' for cell in line) + "\r\n" for line in lines)


CASES: dict[str, tuple[dict[str, float], str, str | None, str]] = {
    # counters -> outcome, kind of the bottleneck, resource of the bottleneck or first candidate
    "queries wait for memory": (
        {**QUIET, r"SQLServer:Memory Manager\Memory Grants Pending": 9},
        "bottleneck",
        "memory",
        "memory",
    ),
    "sessions are blocked": (
        {**QUIET, r"SQLServer:General Statistics\Processes blocked": 40},
        "bottleneck",
        "lock",
        "lock",
    ),
    "locks, by how often and how long they are waited for": (
        {
            **QUIET,
            r"SQLServer:Locks(_Total)\Average Wait Time (ms)": 9000,
            r"SQLServer:Locks(_Total)\Lock Waits/sec": 3,
        },
        "bottleneck",
        "lock",
        "lock",
    ),
    "lock waits that are short": (
        {
            **QUIET,
            r"SQLServer:Locks(_Total)\Average Wait Time (ms)": 20,
            r"SQLServer:Locks(_Total)\Lock Waits/sec": 3,
        },
        "inconclusive",
        None,
        "memory",
    ),
    "sessions wait, by what they wait for": (
        {
            **QUIET,
            rf"{WAITS}(Waits in progress)\Lock waits": 24,
            rf"{WAITS}(Waits started per second)\Lock waits": 3,
        },
        "bottleneck",
        "lock",
        "lock",
    ),
    "sessions wait for pages, the disk is fast": (
        {**QUIET, rf"{WAITS}(Cumulative wait time (ms) per second)\Page IO latch waits": 31000},
        "inconclusive",
        None,
        "disk",
    ),
    "sessions wait for the log": (
        {**QUIET, r"SQLServer:Databases(_Total)\Log Flush Wait Time": 24000},
        "inconclusive",
        None,
        "disk",
    ),
    "sessions wait for pages in memory": (
        {**QUIET, rf"{WAITS}(Waits in progress)\Page latch waits": 30},
        "inconclusive",
        None,
        "lock",
    ),
    "sessions wait for their clients": (
        {**QUIET, rf"{WAITS}(Waits in progress)\Network IO waits": 40},
        "inconclusive",
        None,
        "dependency",
    ),
    "sessions wait for a worker": (
        {**QUIET, rf"{WAITS}(Waits in progress)\Wait for the worker": 60},
        "bottleneck",
        "pool",
        "pool",
    ),
    "no session waits": (
        {**QUIET, rf"{WAITS}(Waits in progress)\Page IO latch waits": 1},
        "inconclusive",
        None,
        "memory",
    ),
    "pages are read, without the available memory": (
        {r"Processor(_Total)\% Processor Time": 22, r"Memory\Page Reads/sec": 900},
        "inconclusive",
        None,
        "memory",
    ),
    "an interface is full, both ways together": (
        {
            **QUIET,
            r"Network Interface(nic)\Bytes Total/sec": 1.23e8,
            r"Network Interface(nic)\Current Bandwidth": 1e9,
        },
        "inconclusive",
        None,
        "network",
    ),
    "an interface is full, one way": (
        {
            **QUIET,
            r"Network Interface(nic)\Bytes Received/sec": 1.2e8,
            r"Network Interface(nic)\Bytes Sent/sec": 1e6,
            r"Network Interface(nic)\Current Bandwidth": 1e9,
        },
        "bottleneck",
        "network",
        "network",
    ),
    "the hypervisor's CPU is full": (
        {**QUIET, r"Hyper-V Hypervisor Logical Processor(_Total)\% Total Run Time": 98},
        "bottleneck",
        "cpu",
        "cpu",
    ),
    "one core is full": (
        {**QUIET, r"Processor(0)\% Processor Time": 99.6, **CORES},
        "inconclusive",
        None,
        "thread",
    ),
    "a disk is busy with a queue, without latency": (
        {
            r"Processor(_Total)\% Processor Time": 12,
            r"PhysicalDisk(1 E:)\% Idle Time": 0.2,
            r"PhysicalDisk(1 E:)\Avg. Disk Queue Length": 40,
        },
        "inconclusive",
        None,
        "disk",
    ),
    "a column has no name": (
        {r"Processor(_Total)\% Processor Time": 97, "": 0, r"Memory\Available MBytes": 9000},
        "bottleneck",
        "cpu",
        "cpu",
    ),
    "nothing is saturated, and not all was recorded": (QUIET, "inconclusive", None, "memory"),
}


SHARE = r"SMB Client Shares(\\filer\share)"
FURTHER: dict[str, tuple[dict[str, float], str, str | None]] = {
    # counters -> outcome, name of the saturated resource; None: none
    "a share is slow": (
        {rf"{SHARE}\Avg. sec/Read": 0.35, rf"{SHARE}\Read Requests/sec": 40},
        "bottleneck",
        r"share \\filer\share of HV9",
    ),
    "a share is fast": (
        {rf"{SHARE}\Avg. sec/Read": 0.004, rf"{SHARE}\Read Requests/sec": 40},
        "inconclusive",
        None,
    ),
    "all shares together are none": (
        {r"SMB Client Shares(_Total)\Avg. sec/Read": 0.35, **QUIET},
        "inconclusive",
        None,
    ),
    "a tenth of the segments is sent again": (
        {r"TCPv4\Segments Retransmitted/sec": 900, r"TCPv4\Segments Sent/sec": 9000},
        "inconclusive",
        "network of HV9",
    ),
    "few of many segments are sent again": (
        {r"TCPv4\Segments Retransmitted/sec": 90, r"TCPv4\Segments Sent/sec": 90000},
        "inconclusive",
        None,
    ),
    "the hypervisor took half a core": (
        {r"VM Processor(_Total)\CPU stolen time": 500},
        "inconclusive",
        "CPU of HV9",
    ),
    "the hypervisor took half of four cores": (
        {r"VM Processor(_Total)\CPU stolen time": 2000, r"Processor(0)\% Processor Time": 4, **CORES},
        "bottleneck",
        "CPU of HV9",
    ),
    "the hypervisor took half a core of four": (
        {r"VM Processor(_Total)\CPU stolen time": 500, r"Processor(0)\% Processor Time": 4, **CORES},
        "inconclusive",
        None,
    ),
    "a virtual machine demands more memory than it has": (
        {r"Hyper-V Dynamic Memory VM(sql)\Current Pressure": 128},
        "inconclusive",
        "memory of the virtual machine sql on HV9",
    ),
    "the balloon is full": (
        {r"VM Memory\Memory Ballooned in MB": 4000},
        "inconclusive",
        "memory of virtual machines on HV9",
    ),
    "commits wait for a secondary replica": (
        {r"SQLServer:Database Replica(Sales)\Transaction Delay": 42000},
        "inconclusive",
        "secondary replicas of the database on HV9",
    ),
    "a secondary replica lags": (
        {r"SQLServer:Database Replica(Sales)\Log Send Queue": 900_000},
        "inconclusive",
        "secondary replica of Sales on HV9",
    ),
    "a thread fills a core": (
        {r"Thread(sqlservr/12)\% Processor Time": 99.5, r"Thread(_Total/_Total)\% Processor Time": 800},
        "inconclusive",
        "thread sqlservr/12 of HV9",
    ),
    "a virtual processor is full, the host is not": (
        {
            r"Hyper-V Hypervisor Virtual Processor(sql:Hv VP 0)\% Guest Run Time": 99.5,
            r"Hyper-V Hypervisor Logical Processor(_Total)\% Total Run Time": 40,
        },
        "inconclusive",
        "virtual processor sql:Hv VP 0 of HV9",
    ),
    "a shared volume of a cluster is slow": (
        {r"Cluster CSVFS(Vol1)\Avg. sec/Write": 0.2, r"Cluster CSVFS(Vol1)\Writes/sec": 300},
        "bottleneck",
        "disk Vol1 of HV9",
    ),
    "a virtual disk is slow": (
        {
            r"Hyper-V Virtual Storage Device(sql.vhdx)\Latency": 0.19,
            r"Hyper-V Virtual Storage Device(sql.vhdx)\Queue Length": 40,
        },
        "bottleneck",
        "disk sql.vhdx of HV9",
    ),
    "an adapter is full": (
        {
            r"Network Adapter(nic)\Bytes Sent/sec": 1.2e8,
            r"Network Adapter(nic)\Bytes Received/sec": 1e6,
            r"Network Adapter(nic)\Current Bandwidth": 1e9,
        },
        "bottleneck",
        "network interface nic of HV9",
    ),
    "lock waits, by how many began and how long they took": (
        {
            rf"{WAITS}(Average wait time (ms))\Lock waits": 4500,
            rf"{WAITS}(Waits started per second)\Lock waits": 6,
        },
        "bottleneck",
        "locks of the database on HV9",
    ),
    "requests of ASP.NET 4 are queued": (
        {r"ASP.NET v4.0.30319\Requests Queued": 480},
        "bottleneck",
        "workers of the server on HV9",
    ),
    "a process mostly collects garbage": (
        {r".NET CLR Memory(w3wp)\% Time in GC": 70},
        "inconclusive",
        "memory of the process w3wp on HV9",
    ),
    "a process hardly collects garbage": ({r".NET CLR Memory(w3wp)\% Time in GC": 8}, "inconclusive", None),
    "sessions are blocked, on a German server": (
        {r"MSSQL$BI:Allgemeine Statistik\Blockierte Prozesse": 31},
        "bottleneck",
        "locks of the database on HV9",
    ),
    "queries wait for memory, on a German server": (
        {r"SQLServer:Speicher-Manager\Ausstehende Speicherzuweisungen": 9},
        "bottleneck",
        "query memory of the database server on HV9",
    ),
    "pages stay for seconds, on a French server": (
        {r"SQLServer:Gestionnaire de tampons\Espérance de vie d'une page": 20},
        "inconclusive",
        "buffer of the database server on HV9",
    ),
    "sessions are blocked, on a Spanish server, whatever its object is called": (
        {r"MSSQL$VENTAS:Estadísticas generales\Procesos bloqueados": 23},
        "bottleneck",
        "locks of the database on HV9",
    ),
    "queries wait for memory, on a French server": (
        {r"SQLServer:Gestionnaire de mémoire\Demandes d'allocation mémoire en attente": 12},
        "bottleneck",
        "query memory of the database server on HV9",
    ),
    "sessions wait for a lock, on a German server": (
        {r"SQLServer:Wartestatistik(Aktuell ausgeführte Wartevorgänge)\Sperrenwartevorgänge": 12},
        "bottleneck",
        "locks of the database on HV9",
    ),
    "a second is written seg. in Spanish": (
        {r"SQLServer:Bloqueos(_Total)\Número de interbloqueos/seg.": 3},
        "inconclusive",
        "locks of the database on HV9",
    ),
    "threads of a process wait for its locks": (
        {
            r".NET CLR LocksAndThreads(w3wp)\Current Queue Length": 46,
            r".NET CLR LocksAndThreads(_Global_)\Current Queue Length": 46,
        },
        "bottleneck",
        "locks of the process w3wp on HV9",
    ),
    "a database of Exchange reads slowly": (
        {r"MSExchange Database ==> Instances(Information Store/DB1)\I/O Database Reads Average Latency": 183},
        "inconclusive",
        "disk Information Store/DB1 of HV9",
    ),
    "requests of an application are queued": (
        {r"ASP.NET Applications(__Total__)\Requests In Application Queue": 60},
        "bottleneck",
        "workers of the server on HV9",
    ),
}


@pytest.mark.parametrize("name", FURTHER)
def test_what_lies_around_the_machine_is_judged(name: str, tmp_path: Path) -> None:
    """Shares, lost packets, hypervisor and replicas are named where work waited, else candidates."""
    counters, outcome, subject = FURTHER[name]
    verdict = judged(tmp_path, perfmon({**QUIET, **counters}), places())
    assert verdict["outcome"] == outcome
    assert (subject or "no recorded resource was saturated") in verdict["summary"]


PROCESS = r"Process({})\% Processor Time"
PROCESSES: dict[str, tuple[dict[str, float], str, str]] = {
    "all, with what was idle": (
        {PROCESS.format("_Total"): 800, PROCESS.format("Idle"): 9, PROCESS.format("sqlservr"): 760},
        "bottleneck",
        "CPU of HV9",
    ),
    "one, beside the sum": (
        {PROCESS.format("_Total"): 800, PROCESS.format("sqlservr"): 785},
        "bottleneck",
        "CPU of HV9",
    ),
    "one, of a machine of unknown size": ({PROCESS.format("sqlservr"): 1590}, "inconclusive", "CPU of HV9"),
    "all, mostly idle": (
        {PROCESS.format("_Total"): 800, PROCESS.format("Idle"): 700, PROCESS.format("sqlservr"): 90},
        "inconclusive",
        "no recorded resource was saturated",
    ),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_processes_of_windows_without_the_processor(name: str, tmp_path: Path) -> None:
    """Windows processes add up to the number of cores; without the idle one the use is unknown."""
    counters, outcome, subject = PROCESSES[name]
    verdict = judged(tmp_path, perfmon(counters), places())
    assert (verdict["outcome"], subject in verdict["summary"]) == (outcome, True)
    missing = "no recorded" in subject or outcome == "bottleneck"
    assert missing or "how many cores it has was not recorded" in verdict["summary"]


ESX = {r"Physical Cpu(_Total)\% Util Time": 38, r"Memory\Machine MBytes": 65536, r"Memory\Free MBytes": 21000}
MACHINES: dict[str, tuple[dict[str, float], str | None]] = {
    "waits for cores": (
        {r"Group Cpu(7:sql)\% Ready": 180, r"Group Cpu(7:sql)\% Run": 120, r"Group Cpu(1:idle)\% Ready": 700},
        "CPU of the virtual machine sql on HV9",
    ),
    "hardly waits for cores": ({r"Group Cpu(7:sql)\% Ready": 30, r"Group Cpu(7:sql)\% Run": 700}, None),
    "gave memory back": (
        {r"Group Memory(7:sql)\Memctl MBytes": 8000, r"Memory\Memctl Current MBytes": 8000},
        "memory of the virtual machine sql on HV9",
    ),
    "loses packets": (
        {r"Network Port(vSwitch0:5:sql)\% Inbound Packets Dropped": 8},
        "network interface sql of HV9",
    ),
    "loses no packets": ({r"Network Port(vSwitch0:5:sql)\% Inbound Packets Dropped": 0}, None),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_virtual_machine_of_an_idle_host_is_a_candidate(name: str, tmp_path: Path) -> None:
    """A waiting machine in esxtop on an idle host is a candidate."""
    counters, subject = MACHINES[name]
    verdict = judged(tmp_path, perfmon({**ESX, **counters}), places(), "esxtop.csv")
    assert verdict["outcome"] == "inconclusive"
    assert (subject or "no recorded resource was saturated") in verdict["summary"]


@pytest.mark.parametrize("name", CASES)
def test_what_was_recorded_is_judged(name: str, tmp_path: Path) -> None:
    """A saturated resource is named or a candidate, and a missing one prevents an all-clear."""
    counters, outcome, kind, resource = CASES[name]
    verdict = judged(tmp_path, perfmon(counters), places())
    assert verdict["outcome"] == outcome
    first = verdict["bottleneck"] or verdict["candidates"][0]
    assert first["resource"] == resource
    assert (verdict["bottleneck"] or {}).get("kind") == kind
    assert resource != "network" or "speed for all 5 min, mean of the whole recording 9" in verdict["summary"]


NAMED: dict[str, tuple[float, str, str | None, str]] = {
    # counter of a server named ERP -> value, outcome, kind, resource named or first candidate
    r"General Statistics\Processes blocked": (22, "bottleneck", "lock", "lock"),
    r"Locks(_Total)\Lock Wait Time (ms)": (14000, "bottleneck", "lock", "lock"),
    r"Memory Manager\Memory Grants Pending": (14, "bottleneck", "memory", "memory"),
    r"Buffer Manager\Page life expectancy": (40, "inconclusive", None, "memory"),
    r"Wait Statistics(Waits in progress)\Wait for the worker": (25, "bottleneck", "pool", "pool"),
    r"Wait Statistics(Waits in progress)\Page latch waits": (30, "inconclusive", None, "lock"),
    r"Wait Statistics(Waits in progress)\Network IO waits": (30, "inconclusive", None, "dependency"),
    r"Wait Statistics(Waits in progress)\Log write waits": (30, "inconclusive", None, "disk"),
}


@pytest.mark.parametrize("other", ["SQLServer", "MSSQL$DWH"])
@pytest.mark.parametrize("counter", NAMED)
def test_each_of_several_servers_is_judged(counter: str, other: str, tmp_path: Path) -> None:
    """The waits of a named SQL Server are judged beside another server without waits."""
    value, outcome, kind, resource = NAMED[counter]
    quiet = 90_000 if "life" in counter else 0
    counters = {**QUIET, rf"MSSQL$ERP:{counter}": value, rf"{other}:{counter}": quiet}
    verdict = judged(tmp_path, perfmon(counters), places())
    assert (verdict["outcome"], (verdict["bottleneck"] or {}).get("kind")) == (outcome, kind)
    first = verdict["bottleneck"] or verdict["candidates"][0]
    assert first["resource"] == resource
    assert resource == "disk" or first["instance"].startswith("ERP")
    assert resource == "disk" or "server ERP on HV9" in verdict["summary"]


@pytest.mark.parametrize(("every_s", "rows"), [(1, 300), (5, 60), (10, 30), (15, 20), (60, 5)])
def test_the_interval_of_the_rows_changes_nothing(every_s: int, rows: int, tmp_path: Path) -> None:
    """A CPU at 93 % on average is judged the same for each interval of the rows."""
    mapping = {"cpu": {"metric": "cpu.busy_ratio", "scale": 0.01}}
    seconds = [93 + (each * 7919 % 13 - 6) for each in range(300)]
    means = [sum(seconds[at : at + every_s]) / every_s for at in range(0, 300, every_s)]
    assert len(means) == rows
    begin_s = 1_800_000_000
    text = "time,cpu\n" + "".join(
        f"{begin_s + (at + 1) * every_s},{value}\n" for at, value in enumerate(means)
    )
    file = tmp_path / "map.yaml"
    file.write_text(
        json.dumps({"time": {"column": "time", "format": "unix"}, "host": "h", "columns": mapping})
    )
    source = open_source(written(tmp_path, text), "csv")
    settings = Settings(mapping=read_mapping(file))
    directory = import_as_run([source], settings, places(), TimeSpan(), tmp_path / "runs")
    _, verdict = verdict_of(directory)
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "cpu"


def with_work(rates: list[int], connections: int) -> str:
    """Return one row a minute with transactions per second and connections."""
    head, *rows = perfmon(QUIET, rows=len(rates)).splitlines()
    head += r',"\\HV9\SQLServer:Databases(_Total)\Transactions/sec"'
    head += r',"\\HV9\SQLServer:General Statistics\User Connections"'
    rows = [f'{row},"{rate}","{connections}"' for row, rate in zip(rows, rates, strict=True)]
    return "\r\n".join([head, *rows])


@pytest.mark.parametrize("low", [10, 25])
def test_finished_work_that_collapses_while_sessions_stay_waits_elsewhere(low: int, tmp_path: Path) -> None:
    """Transactions that fall to a tenth with idle CPU and disk and all sessions wait elsewhere."""
    rates = [40 if 20 <= at < 20 + low else 400 for at in range(60)]
    verdict = judged(tmp_path, with_work(rates, 50), places())
    assert (verdict["outcome"], verdict["bottleneck"]["kind"]) == ("bottleneck", "external")
    assert verdict["bottleneck"]["window"][0].startswith("2026-11-20T09:19")


@pytest.mark.parametrize(
    ("begin", "kind"), [(20, "secondary replicas"), (45, "something that HV9 waits for")]
)
def test_what_sessions_wait_for_while_work_collapses_is_no_guess(
    begin: int, kind: str, tmp_path: Path
) -> None:
    """A wait for a replica explains the collapse at the same time, and not at another time."""
    rates = [40 if 20 <= at < 30 else 400 for at in range(60)]
    head, *rows = with_work(rates, 50).splitlines()
    head += r',"\\HV9\SQLServer:Database Replica(Sales)\Transaction Delay"'
    rows = [f'{row},"{30_000 if begin <= at < begin + 10 else 100}"' for at, row in enumerate(rows)]
    verdict = judged(tmp_path, "\r\n".join([head, *rows]), places())
    assert (verdict["outcome"], verdict["bottleneck"]["kind"]) == ("bottleneck", "external")
    assert verdict["summary"].startswith(f"Bottleneck: {kind}")
    assert verdict["bottleneck"]["window"][0].startswith("2026-11-20T09:19")


@pytest.mark.parametrize(
    ("rates", "connections"),
    [([400] * 30 + [int(400 * 0.9**at) for at in range(30)], 50), ([400] * 40 + [40] * 20, 1)],
    ids=["pool", "recorder"],
)
def test_less_load_is_no_collapse(rates: list[int], connections: int, tmp_path: Path) -> None:
    """A slow decline with pooled connections, or the recorder's own session, is no collapse."""
    assert judged(tmp_path, with_work(rates, connections), places())["outcome"] == "inconclusive"


def test_two_causes_at_different_times_are_told_apart(tmp_path: Path) -> None:
    """Eight minutes of waiting elsewhere and ten of a saturated CPU are both listed by minute."""
    head, *rows = with_work([40 if 10 <= at < 18 else 400 for at in range(60)], 50).splitlines()
    rows = [row.replace('"12"', '"98"') if 30 <= at < 40 else row for at, row in enumerate(rows)]
    verdict = judged(tmp_path, "\r\n".join([head, *rows]), places())
    first, then = verdict["bottleneck"], verdict["runner_up"]
    assert [one["kind"] for one in (first, then)] == ["cpu", "external"]
    assert first["window"] == ["2026-11-20T09:29:00Z", "2026-11-20T09:39:00Z"]
    assert then["window"] == ["2026-11-20T09:09:00Z", "2026-11-20T09:17:00Z"]


def test_the_queue_of_a_disk_follows_from_its_rate_and_latency(tmp_path: Path) -> None:
    """Outstanding I/Os follow from rate and latency: 200/s of 62 ms are 12."""
    disk = {r"LogicalDisk(D:)\Avg. Disk sec/Transfer": 0.062, r"LogicalDisk(D:)\Disk Transfers/sec": 200}
    verdict = judged(tmp_path, perfmon({**QUIET, **disk}), places())
    assert (verdict["outcome"], verdict["bottleneck"]["resource"]) == ("bottleneck", "disk")


@pytest.mark.parametrize(("written_bytes", "outcome"), [(3e7, "bottleneck"), (3e8, "inconclusive")])
def test_a_disk_that_mostly_pages_is_a_victim_of_the_memory(
    written_bytes: float, outcome: str, tmp_path: Path
) -> None:
    """A disk whose I/O is mostly paging is attributed to memory, and other I/O is not."""
    short = {
        r"Memory\Available MBytes": 200,
        r"Memory\Pages Input/sec": 5000,
        r"Memory\Pages Output/sec": 5000,
        r"LogicalDisk(D:)\Avg. Disk sec/Transfer": 0.062,
        r"LogicalDisk(D:)\Disk Transfers/sec": 900,
        r"LogicalDisk(D:)\Disk Read Bytes/sec": 3e7,
        r"LogicalDisk(D:)\Disk Write Bytes/sec": written_bytes,
    }
    verdict = judged(tmp_path, perfmon({**QUIET, **short}), places(memory=("HV9=32GiB",)))
    assert verdict["outcome"] == outcome
    assert (verdict["bottleneck"] or verdict["candidates"][0])["resource"] in ("memory", "disk")
    assert outcome != "bottleneck" or verdict["bottleneck"]["resource"] == "memory"


@pytest.mark.parametrize(("full", "outcome"), [(2, "inconclusive"), (8, "bottleneck")])
def test_threads_that_wait_for_a_core_for_a_moment_are_no_limit(
    full: int, outcome: str, tmp_path: Path
) -> None:
    """A run queue of 200 for 10 s is no limit, and one of 40 s is."""
    counters = {**QUIET, **CORES, r"System\Processor Queue Length": 0}
    head, *rows = perfmon(counters, rows=60).splitlines()
    times = [(f":{at:02}:00.000", f":{at // 12:02}:{at % 12 * 5:02}.000") for at in range(60)]
    rows = [row.replace(*time) for time, row in zip(times, rows, strict=True)]
    rows = [f'{row[:-2]}200"' if 20 <= at < 20 + full else row for at, row in enumerate(rows)]
    assert judged(tmp_path, "\r\n".join([head, *rows]), places())["outcome"] == outcome


def test_a_zone_that_was_cut_off_is_utc_and_said(tmp_path: Path) -> None:
    """A zone name that is cut off by the code page is read as UTC, with a message."""
    verdict = judged(
        tmp_path, perfmon({r"Processor(_Total)\% Processor Time": 97}, "(PDH-CSV 4.0) (Mit"), places()
    )
    assert verdict["bottleneck"]["kind"] == "cpu"
    assert any("cannot be read ((Mit)" in each for each in verdict["warnings"])


def iostat(**values: Any) -> dict[str, Any]:
    return {
        "disk_device": "sdb",
        "r/s": 0.0,
        "w/s": 50.0,
        "rkB/s": 0.0,
        "wkB/s": 400.0,
        "r_await": 0.0,
        "w_await": 1.0,
        "aqu-sz": 0.05,
        "util": 4.0,
        **values,
    }


def reports(disk: dict[str, Any], between: str = ",") -> str:
    cpu = {"user": 5.0, "nice": 0.0, "system": 1.0, "iowait": 0.0, "steal": 0.0, "idle": 94.0}
    each = [
        json.dumps({"timestamp": f"2026-11-20T09:{minute:02}:00+0000", "avg-cpu": cpu, "disk": [disk]})
        for minute in range(6)
    ]
    begin = (
        '{"sysstat": {"hosts": [{"nodename": "a{b", "sysname": "Linux", "number-of-cpus": 4, "statistics": ['
    )
    return f"{begin}{between.join(each)}]}}]}}}}"


@pytest.mark.parametrize("fault", ["leading", "missing"])
def test_known_faults_of_sysstats_commas_are_mended(fault: str, tmp_path: Path) -> None:
    """Wrong commas of ``iostat -y`` in some sysstat versions are corrected."""
    text = reports(iostat(w_await=60.0, **{"aqu-sz": 3.0, "util": 99.0}), "\n" if fault == "missing" else ",")
    text = text.replace('"statistics": [', '"statistics": [\n,\n') if fault == "leading" else text
    verdict = judged(tmp_path, text, places(), "iostat.json")
    assert (verdict["bottleneck"]["resource"], verdict["bottleneck"]["instance"]) == ("disk", "sdb")
    assert any("commas were corrected" in each for each in verdict["warnings"])


def test_bytes_that_contradict_requests_and_their_size_are_not_taken(tmp_path: Path) -> None:
    """Bytes that contradict requests and their size are dropped, as some versions scale MB/s wrongly."""
    disk = iostat(**{"wMB/s": 1600.0, "rMB/s": 0.0, "wareq-sz": 16.0, "rareq-sz": 0.0})
    del disk["wkB/s"], disk["rkB/s"]
    verdict = judged(tmp_path, reports(disk), places(), "iostat.json")
    assert any("contradict" in each for each in verdict["warnings"])
    fine = judged(tmp_path, reports(iostat(**{"wareq-sz": 8.0})), places(), "fine.json")
    assert not any("contradict" in each for each in fine["warnings"])


PIDSTAT = "Linux 6.1.0 (db1) \t11/20/2026 \t_x86_64_\t(4 CPU)\n\n"


@pytest.mark.parametrize(
    ("command", "busy", "outcome", "resource"),
    [
        ("|__walwriter", 99.4, "inconclusive", "thread"),
        ("postgres", 388.0, "bottleneck", "cpu"),
        ("postgres", 40.0, "inconclusive", "memory"),
    ],
)
def test_processes_and_threads_without_the_cpu_as_a_whole(
    command: str, busy: float, outcome: str, resource: str, tmp_path: Path
) -> None:
    """Processes without a total show the least CPU use: at the limit, or not known."""
    text = PIDSTAT + "".join(
        f"09:0{minute}:00  UID  TGID  TID  %usr %system %guest %wait %CPU CPU Command\n"
        f"09:0{minute + 1}:00 0 7 - {busy} 0.00 0.00 0.00 {busy} 1 {command}\n\n"
        for minute in range(6)
    )
    verdict = judged(tmp_path, text, places(), "pidstat.txt")
    assert verdict["outcome"] == outcome
    first = verdict["bottleneck"] or verdict["candidates"][0]
    assert first["resource"] == resource


AT = [f"2026-11-20T09:{minute:02}:00Z" for minute in range(20)]


def azure(name: str, value: float, lun: str = "") -> dict[str, Any]:
    of = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm1"
    return {
        "id": f"{of}/providers/Microsoft.Insights/metrics/{name}",
        "type": "Microsoft.Insights/metrics",
        "name": {"value": name},
        "timeseries": [
            {
                "metadatavalues": [{"name": {"value": "LUN"}, "value": lun}] if lun else [],
                "data": [{"timeStamp": at, "average": value} for at in AT]
                + [{"timeStamp": "2026-11-20T09:20Z"}],
            }
        ],
    }


def aws(values: dict[str, float]) -> dict[str, Any]:
    results = [
        {"Id": "m", "Label": name, "Timestamps": AT[::-1], "Values": [value] * len(AT)}
        for name, value in values.items()
    ]
    return {"MetricDataResults": results}


SLOW = {"WriteLatency": 0.09, "WriteIOPS": 300.0, "DiskQueueDepth": 28.0}
CLOUD: dict[str, tuple[Any, str, str]] = {
    # output of a cloud's tool -> outcome, name of the bottleneck or the candidate
    "an Azure machine's CPU": ({"value": [azure("Percentage CPU", 98.0)]}, "bottleneck", "CPU of vm1"),
    "an Azure disk at its limit": (
        {
            "value": [
                azure("Data Disk IOPS Consumed Percentage", share, lun)
                for lun, share in (("0", 4), ("1", 99))
            ]
        },
        "inconclusive",
        "disk LUN 1 of vm1",
    ),
    "an Azure SQL database's log": (
        {"value": [azure("log_write_percent", 99.5), azure("cpu_percent", 10)]},
        "inconclusive",
        "disk log of vm1",
    ),
    "an EC2 machine's CPU": (
        {"Label": "CPUUtilization", "Datapoints": [{"Timestamp": at, "Average": 98.0} for at in AT]},
        "bottleneck",
        "CPU of db5",
    ),
    "the storage of RDS": (aws({"CPUUtilization": 20.0, **SLOW}), "bottleneck", "disk storage of db5"),
    "a volume at its limit": (
        aws({"vol-1 VolumeIOPSExceededCheck": 1.0, "vol-2 VolumeIOPSExceededCheck": 0.0}),
        "inconclusive",
        "disk vol-1 of db5",
    ),
    "the only thread of ElastiCache": (
        aws({"CPUUtilization": 26.0, "EngineCPUUtilization": 99.5}),
        "inconclusive",
        "thread engine of db5",
    ),
    "sessions of RDS wait": (
        aws({"CPUUtilization": 20.0, "DBLoad": 41.0, "DBLoadNonCPU": 39.0}),
        "inconclusive",
        "what sessions wait for in the database on db5",
    ),
    "ElastiCache without room": (
        aws({"EngineCPUUtilization": 20.0, "Evictions": 88000.0}),
        "inconclusive",
        "memory of database servers on db5",
    ),
    "an adapter over its allowance": (
        aws({"bw_out_allowance_exceeded": 41000.0}),
        "inconclusive",
        "network interface bw_out of db5",
    ),
    "all DTU of a database": (
        {"value": [azure("dtu_consumption_percent", 99.8)]},
        "inconclusive",
        "DTU units of the server on vm1",
    ),
    "RDS with hardly any memory": (
        aws({"CPUUtilization": 20.0, "FreeableMemory": 6e7}),
        "inconclusive",
        "memory of db5",
    ),
    "RDS with memory": (
        aws({"CPUUtilization": 20.0, "FreeableMemory": 6e8}),
        "inconclusive",
        "no recorded resource was saturated",
    ),
    "the storage of an Azure PostgreSQL": (
        {"value": [azure("disk_iops_consumed_percentage", 99.5), azure("memory_percent", 61)]},
        "inconclusive",
        "disk storage of vm1",
    ),
    "a machine without CPU credits": (
        aws({"CPUUtilization": 9.8, "CPUCreditBalance": 0.0}),
        "inconclusive",
        "CPU of db5",
    ),
    "a machine with CPU credits": (
        aws({"CPUUtilization": 9.8, "CPUCreditBalance": 288.0}),
        "inconclusive",
        "no recorded resource was saturated",
    ),
    "a volume without credits": (aws({"BurstBalance": 0.0}), "inconclusive", "disk volume of db5"),
    "a volume with credits": (
        aws({"BurstBalance": 60.0, "VolumeQueueLength": 0.2}),
        "inconclusive",
        "no recorded resource was saturated",
    ),
    "RDS with room": (
        aws({"CPUUtilization": 20.0, "WriteLatency": 0.001, "WriteIOPS": 300.0}),
        "inconclusive",
        "no recorded resource was saturated",
    ),
}


@pytest.mark.parametrize("name", CLOUD)
def test_what_a_cloud_measured_is_judged(name: str, tmp_path: Path) -> None:
    """The output of cloud command line tools is judged; CloudWatch names no machine."""
    printed, outcome, subject = CLOUD[name]
    where = places() if "value" in printed else places(host="db5")
    verdict = judged(tmp_path, json.dumps(printed), where, "metrics.json")
    assert (verdict["outcome"], subject in verdict["summary"]) == (outcome, True)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (aws({"Foo": 1.0}), "none of its metrics .Foo.; used: CPUUtilization"),
        (
            {"MetricDataResults": [{"Label": "CPUUtilization", "Timestamps": AT, "Values": [1.0]}]},
            "20 Timestamps",
        ),
        (
            {"MetricDataResults": {"Label": "CPUUtilization"}},
            "found dict .* at MetricDataResults; allowed: a list",
        ),
        (
            {"Label": "CPUUtilization", "Datapoints": [{"Timestamp": "noon"}]},
            "the time 'noon'; allowed: ISO 8601",
        ),
    ],
)
def test_what_is_wrong_with_a_clouds_file_is_said(printed: Any, said: str, tmp_path: Path) -> None:
    """An error in a cloud's file is reported with its place and the remedy."""
    with pytest.raises(InputError, match=said):
        judged(tmp_path, json.dumps(printed), places(host="db5"), "metrics.json")


def views(names: str, each: list[str], grow: list[int], between: str = ",") -> str:
    """Return snapshots one minute apart, with counters that grow by that much."""
    lines = [f"sample_time,{names}"]
    for minute in range(12):
        for row, more in zip(each, grow, strict=True):
            lines.append(f"2026-11-20 09:{minute:02}:00.000,{row.format(500 + minute * more)}")
    return "\n".join(lines).replace(",", between) + "\n"


WAITED = "wait_type,wait_time_ms,waiting_tasks_count"
FILES = "physical_name,num_of_reads,io_stall_read_ms,num_of_writes,io_stall_write_ms"
OF_SERVER: dict[str, tuple[str, str, str]] = {
    # snapshots of a view -> outcome, resource named or first candidate
    "sessions wait for locks": (
        views(WAITED, ["LCK_M_X,{},1", "SLEEP_TASK,{},1"], [900_000, 60_000]),
        "inconclusive",
        "locks of the database on db5",
    ),
    "sessions wait for the log": (
        views(WAITED, ["WRITELOG,{},1", "LCK_M_S,{},1"], [600_000, 10], ";"),
        "inconclusive",
        "disks of db5",
    ),
    "queries wait for memory": (
        views(WAITED, ["RESOURCE_SEMAPHORE,{},1"], [600_000], "\t"),
        "bottleneck",
        "query memory of the database server on db5",
    ),
    "hardly anything waits": (
        views(WAITED, ["WRITELOG,{},1"], [600]),
        "inconclusive",
        "no recorded resource",
    ),
    "a slow file": (
        views(FILES, [r"L:\Log\a.ldf,1,2,{0},{0}0", r"L:\Log\b.ldf,1,2,{0},{0}00"], [6000, 6000], "|"),
        "bottleneck",
        "disk L: of db5",
    ),
    "a slow file of a database": (
        views(
            "database_name,file_id,num_of_reads,io_stall_read_ms,num_of_writes,io_stall_write_ms",
            ["Sales,2,1,2,{0},{0}00", "Sales,1,1,2,{0},{0}"],
            [6000, 6000],
        ).replace("sample_time", "captured_at"),
        "bottleneck",
        "disk Sales 2 of db5",
    ),
    "queries have no memory": (
        views("session_id,granted_memory_kb,wait_time_ms", [f"{at},NULL,900" for at in range(9)], [0] * 9),
        "bottleneck",
        "query memory of the database server on db5",
    ),
    "sessions are blocked": (
        views("session_id,wait_type,blocking_session_id", [f"{at},LCK_M_U,50" for at in range(9)], [0] * 9),
        "inconclusive",
        "locks of the database on db5",
    ),
    "sessions are blocked, by sp_WhoIsActive": (
        views(
            "session_id,wait_info,blocking_session_id",
            [f"{at},(1x: {at + 90}ms)LCK_M_X,50" for at in range(9)],
            [0] * 9,
        ).replace("sample_time", "collection_time"),
        "inconclusive",
        "locks of the database on db5",
    ),
    "PostgreSQL's sessions wait for locks": (
        views(
            "pid,state,wait_event_type,wait_event,query_start",
            [f"{at},active,Lock,transactionid,2026-11-20 08:00:00" for at in range(9)]
            + ["99,idle,Client,ClientRead,2026-11-20 08:00:00", "98,active,,,2026-11-20 08:00:00"],
            [0] * 11,
        ).replace("sample_time", "now"),
        "inconclusive",
        "locks of the database on db5",
    ),
    "PostgreSQL's sessions wait for their clients while idle": (
        views(
            "pid,state,wait_event_type,wait_event",
            [f"{at},idle,Client,ClientRead" for at in range(9)],
            [0] * 9,
        ),
        "inconclusive",
        "no recorded resource",
    ),
    "PostgreSQL's databases are read from": (
        views("datname,numbackends,xact_commit,blk_read_time", ["a,9,7,{}", "b,9,7,{}"], [700_000, 500_000]),
        "inconclusive",
        "disks of db5",
    ),
    "PostgreSQL's databases are in memory": (
        views("datname,numbackends,xact_commit,blk_read_time", ["a,9,7,{}", "b,9,7,{}"], [70, 50]),
        "inconclusive",
        "no recorded resource",
    ),
    "MySQL's sessions wait for locks": (
        views("Variable_name,Value", ["Innodb_row_lock_time,{}", "Questions,{}"], [900_000, 6000], "\t"),
        "inconclusive",
        "locks of the database on db5",
    ),
}


@pytest.mark.parametrize("name", OF_SERVER)
def test_snapshots_of_servers_views_are_judged(name: str, tmp_path: Path) -> None:
    """Snapshots of server views are judged by the growth of their counters."""
    text, outcome, subject = OF_SERVER[name]
    verdict = judged(tmp_path, text, places(host="db5"), "view.csv")
    assert (verdict["outcome"], subject.lower() in verdict["summary"].lower()) == (outcome, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Variable_name,Value,sample_time\nQuestions,9,2026-11-20 09:00\n",
            "a single snapshot, and the views",
        ),
        (
            "sample_time,wait_type,wait_time_ms\nnoon,WRITELOG,9\n",
            "found 'noon' in column sample_time; allowed",
        ),
    ],
)
def test_a_snapshot_alone_says_nothing_of_now(text: str, said: str, tmp_path: Path) -> None:
    """A single snapshot is refused; the remedy is a time column and further snapshots."""
    with pytest.raises(InputError, match=said):
        judged(tmp_path, text, places(host="db5"), "view.csv")


@pytest.mark.parametrize(("share", "outcome"), [(0.6, "bottleneck"), (0.05, "inconclusive")])
def test_a_container_that_is_throttled_is_at_its_limit(share: float, outcome: str, tmp_path: Path) -> None:
    """A mapped CSV with a container's share of throttled periods shows its CPU limit."""
    mapping = {"cpu": {"metric": "cpu.busy_ratio"}, "throttled": {"metric": "cpu.throttled_ratio"}}
    text = "time,cpu,throttled\n" + "".join(f"{1_800_000_000 + 15 * at},0.5,{share}\n" for at in range(20))
    file = tmp_path / "map.yaml"
    file.write_text(
        json.dumps({"time": {"column": "time", "format": "unix"}, "host": "h", "columns": mapping})
    )
    settings = Settings(mapping=read_mapping(file))
    source = open_source(written(tmp_path, text), "csv")
    _, verdict = verdict_of(import_as_run([source], settings, places(), TimeSpan(), tmp_path / "runs"))
    assert verdict.outcome == outcome
    assert outcome != "bottleneck" or (verdict.bottleneck and verdict.bottleneck.kind == "cpu")


def test_processes_that_wait_for_io_are_counted(tmp_path: Path) -> None:
    """``pidstat -d`` with 5 processes waiting for I/O gives a wait without a known disk."""
    text = PIDSTAT + "".join(
        f"09:0{minute}:00 UID PID kB_rd/s kB_wr/s kB_ccwr/s iodelay Command\n"
        + "".join(f"09:0{minute + 1}:00 0 {pid} 0.00 48000.00 0.00 5880 postgres\n" for pid in range(5))
        for minute in range(6)
    )
    verdict = judged(tmp_path, text, places(), "pidstat.txt")
    assert verdict["outcome"] == "inconclusive"
    assert verdict["candidates"][0]["resource"] == "disk"
    assert "work waited for I/O, of any disk, 98 % all the time" in verdict["summary"]
    facts = [fact["fact"] for fact in verdict["candidates"][0]["evidence"]]
    assert any(fact.startswith("threads that waited for I/O: 4.9 all the time") for fact in facts)


def test_pages_that_processes_read_in_are_counted(tmp_path: Path) -> None:
    """``pidstat -r`` with 1,900 major faults/s leaves file reads or memory as the cause."""
    text = PIDSTAT + "".join(
        f"09:0{minute}:00 UID PID minflt/s majflt/s VSZ RSS %MEM Command\n"
        f"09:0{minute + 1}:00 0 7 0.00 1900.00 900000 800000 40.1 postgres\n"
        for minute in range(6)
    )
    verdict = judged(tmp_path, text, places(), "pidstat.txt")
    assert (verdict["outcome"], verdict["candidates"][0]["resource"]) == ("inconclusive", "memory")
    switches = text.replace("minflt/s majflt/s VSZ RSS %MEM", "cswch/s nvcswch/s a b c")
    with pytest.raises(InputError, match="none of its tables; record pidstat"):
        judged(tmp_path, switches, places(), "switches.txt")


def test_a_recording_of_tables_that_are_not_used_is_refused_with_their_names(tmp_path: Path) -> None:
    """A recording of unused tables, such as ``sar -v``, is refused with their names."""
    text = (
        "Linux 6.1.0 (db1) \t2026-11-20 \t_x86_64_\t(4 CPU)\n\n09:00:00 dentunusd file-nr inode-nr pty-nr\n"
    )
    text += "".join(f"09:{minute:02}:00 128000 97900 230000 4\n" for minute in range(1, 8))
    with pytest.raises(
        InputError, match=r"none of its tables .dentunusd file-nr inode-nr pty-nr.; record CPU"
    ):
        judged(tmp_path, text, places(), "sar.txt")
    report = '{"sysstat": {"hosts": [{"nodename": "a", "file-date": "2026-11-20", "statistics": [%s]}]}}'
    stamp = '"timestamp": {"date": "2026-11-20", "time": "09:00:00", "utc": 1, "interval": 60}'
    text = report % f'{{{stamp}, "kernel": {{"file-nr": 97900}}}}'
    with pytest.raises(InputError, match=r"none of its tables .kernel.; export CPU"):
        judged(tmp_path, text, places(), "sadf.json")


@pytest.mark.parametrize(("user", "steal", "resource"), [(45, 50, "cpu"), (30, 26, "cpu"), (45, 4, "memory")])
def test_cpu_time_that_the_hypervisor_took_is_a_limit(
    user: int, steal: int, resource: str, tmp_path: Path
) -> None:
    """CPU time taken by the hypervisor is a limit, however little the machine ran."""
    head = "Linux 6.1.0 (vm3) \t2026-11-20 \t_x86_64_\t(4 CPU)\n\n"
    head += "09:00:00 CPU %user %nice %system %iowait %steal %idle\n"
    rows = [
        f"09:{at:02}:00 all {user}.00 0.00 1.00 0.00 {steal}.00 {99 - user - steal}.00" for at in range(1, 9)
    ]
    verdict = judged(tmp_path, head + "\n".join(rows) + "\n", places(), "sar.txt")
    first = verdict["bottleneck"] or verdict["candidates"][0]
    assert first["resource"] == resource
    assert verdict["outcome"] == ("bottleneck" if resource == "cpu" else "inconclusive")
    assert ("stolen" in verdict["summary"]) is (resource == "cpu")


TABLES: dict[str, tuple[str, str, str | None]] = {
    # sar's table -> a row, outcome, resource named or first candidate; None: none at a limit
    "runq-sz plist-sz ldavg-1 ldavg-5 ldavg-15 blocked": ("38 900 36.2 33.1 22.0 0", "bottleneck", "cpu"),
    "runq-sz plist-sz ldavg-1 ldavg-5 blocked": ("1 900 36.2 33.1 34", "inconclusive", "disk"),
    "runq-sz plist-sz ldavg-1 blocked": ("3 900 3.2 1", "inconclusive", None),
    "pswpin/s pswpout/s": ("1900.20 2450.11", "inconclusive", "memory"),
    "pgpgin/s pgpgout/s fault/s majflt/s": ("64000.00 42000.00 9000.00 1800.00", "inconclusive", "memory"),
    "CPU %user %nice %system %iowait %steal %idle": (
        "all 8.0 0.0 4.0 71.0 0.0 17.0",
        "inconclusive",
        "disk",
    ),
    "atmptf/s estres/s retrans/s isegerr/s orsts/s": ("0.2 1.0 640.0 0.0 2.0", "inconclusive", "network"),
    "call/s retrans/s read/s write/s access/s getatt/s": (
        "800 55 300 400 40 60",
        "inconclusive",
        "dependency",
    ),
    "IFACE rxerr/s txerr/s rxdrop/s txdrop/s": ("eth0 0.0 0.0 4200.0 0.0", "inconclusive", "network"),
}


@pytest.mark.parametrize("table", TABLES)
def test_one_table_of_sar_is_judged_by_what_it_has(table: str, tmp_path: Path) -> None:
    """A single table of sar names a waiting resource or a candidate; its header has the CPUs."""
    row, outcome, resource = TABLES[table]
    text = f"Linux 6.1.0 (db1) \t2026-11-20 \t_x86_64_\t(4 CPU)\n\n09:00:00 {table}\n"
    text += "".join(f"09:{minute:02}:00 {row}\n" for minute in range(1, 8))
    verdict = judged(tmp_path, text, places(), "sar.txt")
    assert verdict["outcome"] == outcome
    first = verdict["bottleneck"] or verdict["candidates"][0]
    assert resource is None or first["resource"] == resource
    assert ("saturated (" in verdict["summary"]) is (resource is not None)


OLD_SERIES: dict[str, tuple[dict[tuple[str, ...], float], str]] = {
    # name, label, its value, mode -> growth per second; the resource named
    "node_exporter 0.15": (
        {
            **{("node_cpu", "cpu", "cpu0", mode): 0.5 for mode in ("idle", "iowait")},
            ("node_disk_reads_completed", "device", "sda"): 200.0,
            ("node_disk_read_time_ms", "device", "sda"): 18000.0,
            ("node_disk_writes_completed", "device", "sda"): 100.0,
            ("node_disk_write_time_ms", "device", "sda"): 9000.0,
            ("node_disk_io_time_ms", "device", "sda"): 990.0,
            ("node_disk_io_time_weighted", "device", "sda"): 27000.0,
        },
        "disk",
    ),
    "wmi_exporter": (
        {
            ("wmi_cpu_time_total", "core", "0,0", "idle"): 0.02,
            ("wmi_cpu_time_total", "core", "0,0", "user"): 0.9,
            ("wmi_cpu_time_total", "core", "0,0", "privileged"): 0.08,
        },
        "cpu",
    ),
}


@pytest.mark.parametrize("name", OLD_SERIES)
def test_series_of_older_exporters_are_the_present_ones(name: str, tmp_path: Path) -> None:
    """Series of node_exporter before 0.16 and of wmi_exporter are read as the present ones."""
    series, resource = OLD_SERIES[name]
    result = [
        {
            "metric": {
                "__name__": of,
                label: value,
                "instance": "db1:9100",
                "mode": "".join(mode),
            },
            "values": [[1_800_000_000 + 15 * at, str(1000 + more * 15 * at)] for at in range(40)],
        }
        for (of, label, value, *mode), more in series.items()
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    verdict = judged(tmp_path, json.dumps(answer), places(), "range.json")
    assert verdict["bottleneck"]["resource"] == resource


ROW_LOCK = "mysql_global_status_innodb_row_lock"
SERVERS: dict[str, tuple[dict[tuple[str, ...], tuple[float, float]], str | None]] = {
    # name, labels -> first value, growth per second; the candidate (None: none at a limit)
    "MySQL, locks": (
        {(f"{ROW_LOCK}_current_waits",): (41, 0), ("mysql_global_status_questions",): (1e6, 90)},
        "lock",
    ),
    "MySQL, locks by their time": ({(f"{ROW_LOCK}_time",): (5e6, 30_000)}, "lock"),
    "MySQL, connections": (
        {
            ("mysql_global_status_threads_connected",): (150, 0),
            ("mysql_global_variables_max_connections",): (151, 0),
            ("mysql_global_status_connection_errors_total", "error=max_connections"): (4000, 5),
        },
        "pool",
    ),
    "MySQL with room": (
        {
            ("mysql_global_status_threads_connected",): (30, 0),
            ("mysql_global_variables_max_connections",): (500, 0),
            (f"{ROW_LOCK}_current_waits",): (0, 0),
            ("mysql_global_status_connection_errors_total", "error=accept"): (4000, 5),
        },
        None,
    ),
    "PostgreSQL, connections of all databases": (
        {
            ("pg_stat_database_numbackends", "datname=shop"): (60, 0),
            ("pg_stat_database_numbackends", "datname=crm"): (38, 0),
            ("pg_settings_max_connections",): (100, 0),
        },
        "pool",
    ),
    "PostgreSQL, locks": (
        {
            ("pg_stat_activity_count", "state=active", "wait_event_type=Lock"): (22, 0),
            ("pg_stat_activity_count", "state=active", "wait_event_type=IO"): (1, 0),
        },
        "lock",
    ),
    "PostgreSQL, reads": ({("pg_stat_database_blk_read_time", "datname=shop"): (9e6, 14_000)}, "disk"),
    "a container whose quota is spent": (
        {
            ("container_cpu_cfs_throttled_periods_total", "pod=api-0", "container=api"): (900, 8.1),
            ("container_cpu_cfs_periods_total", "pod=api-0", "container=api"): (1000, 10),
            ("container_cpu_cfs_throttled_periods_total", "pod=api-0"): (900, 8.1),
            ("container_cpu_cfs_periods_total", "pod=api-0"): (1000, 10),
        },
        "cpu",
    ),
    "a container with quota to spare": (
        {
            ("container_cpu_cfs_throttled_periods_total", "name=api"): (900, 0.4),
            ("container_cpu_cfs_periods_total", "name=api"): (1000, 10),
        },
        None,
    ),
    "Redis, its thread": (
        {("redis_cpu_user_seconds_total",): (900, 0.7), ("redis_cpu_sys_seconds_total",): (300, 0.29)},
        "thread",
    ),
    "Redis with room": (
        {("redis_cpu_user_seconds_total",): (900, 0.2), ("redis_cpu_sys_seconds_total",): (300, 0.1)},
        None,
    ),
}


@pytest.mark.parametrize("name", SERVERS)
def test_series_of_database_servers_are_judged(name: str, tmp_path: Path) -> None:
    """Series of MySQL, PostgreSQL and Redis exporters or cAdvisor are judged without a host's."""
    series, resource = SERVERS[name]
    result = [
        {
            "metric": {
                "__name__": of,
                "instance": "db1:9104",
                **dict(each.partition("=")[::2] for each in labels),
            },
            "values": [[1_800_000_000 + 15 * at, str(first + more * 15 * at)] for at in range(40)],
        }
        for (of, *labels), (first, more) in series.items()
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    verdict = judged(tmp_path, json.dumps(answer), places(), "range.json")
    assert verdict["outcome"] == ("bottleneck" if resource == "cpu" else "inconclusive")
    named = verdict["bottleneck"] or (
        verdict["candidates"][0] if "over its limit" in verdict["summary"] else {}
    )
    assert named.get("resource") == resource
    assert "2 resources" not in verdict["summary"]


@pytest.mark.parametrize("waits", [38, 0])
@pytest.mark.parametrize("is_relative", [True, False])
def test_the_status_of_mysql_table_by_table(is_relative: bool, waits: int, tmp_path: Path) -> None:
    """``mysqladmin extended-status`` is read with and without ``-r``, with intervals from Uptime."""
    line = "+-------------------------------+----------+\n"
    text = ""
    for at in range(20):
        is_more = is_relative and at > 0
        count = 1 if is_more else 1000 + at
        waiting = 0 if is_more else waits
        text += f"{line}| Variable_name                 | Value    |\n{line}"
        text += f"| Innodb_row_lock_current_waits | {waiting:<8} |\n| Questions | {700 * count} |\n"
        text += f"| Rpl_status | AUTH_MASTER |\n| Uptime | {10 * count} |\n{line}\n"
    verdict = judged(tmp_path, text, places(host="db5"), "status.txt")
    first = verdict["candidates"][0]["resource"] if "over its limit" in verdict["summary"] else None
    assert first == ("lock" if waits else None)


def test_dates_of_britain_with_a_clock_of_twelve_hours(tmp_path: Path) -> None:
    """British dates with a 12-hour clock, as sysstat writes them, are read."""
    text = "Linux 2.6.32 (db1) \t18/11/26 \t_x86_64_\t(4 CPU)\n\n"
    text += "09:00:01 AM DEV tps avgqu-sz await svctm %util\n"
    text += "".join(f"09:{minute:02}:01 AM sdb 240.0 31.2 130.0 4.1 98.9\n" for minute in range(1, 9))
    assert judged(tmp_path, text, places(), "sar.txt")["bottleneck"]["resource"] == "disk"


SCREENS: dict[str, tuple[str, str, str, str]] = {
    # CPU percentages, memory lines, task states -> resource; "": none is at a limit
    "its CPU is full": (
        "88.1 us, 10.2 sy,  0.0 ni,  0.9 id,  0.2 wa,  0.0 hi,  0.6 si,  0.0 st",
        (
            "MiB Mem :  32012.0 total,  11020.4 free,   9200.3 used,  11791.3 buff/cache\n"
            "MiB Swap:   8192.0 total,   8192.0 free,      0.0 used.  22100.0 avail Mem"
        ),
        "R",
        "cpu",
    ),
    "its tasks wait for I/O": (
        "2.1%us,  3.3%sy,  0.0%ni, 34.6%id, 60.0%wa,  0.0%hi,  0.0%si,  0.0%st",
        (
            "Mem:  32946636k total,  9946636k used, 23000000k free,   200000k buffers\n"
            "Swap:  8388604k total,        0k used,  8388604k free, 11000000k cached"
        ),
        "D",
        "disk",
    ),
    "its memory is full": (
        "6.0 us, 21.0 sy,  0.0 ni, 60.0 id, 13.0 wa,  0.0 hi,  0.0 si,  0.0 st",
        (
            "KiB Mem :  8008704 total,    94412 free,  7824003 used,    90289 buff/cache\n"
            "KiB Swap:  4194300 total,     1228 free,  4193072 used.    61044 avail Mem"
        ),
        "S",
        "memory",
    ),
    "it has room": (
        "8.0 us,  2.1 sy,  0.0 ni, 89.2 id,  0.5 wa,  0.0 hi,  0.2 si,  0.0 st",
        (
            "MiB Mem :  32012.0 total,  11020.4 free,   9200.3 used,  11791.3 buff/cache\n"
            "MiB Swap:   8192.0 total,   8192.0 free,      0.0 used.  22100.0 avail Mem"
        ),
        "S",
        "",
    ),
}


@pytest.mark.parametrize("name", SCREENS)
def test_screens_of_top_are_judged(name: str, tmp_path: Path) -> None:
    """Screens of several versions of top are judged without a date."""
    cpu, memory, state, resource = SCREENS[name]
    screens = [
        f"top - 23:59:{second:02} up 41 days,  3:12,  2 users,  load average: 2.1, 2.0, 1.9\n"
        f"Tasks: 312 total,   3 running, 309 sleeping,   0 stopped,   0 zombie\n%Cpu(s): {cpu}\n{memory}\n\n"
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
        + "".join(f"   {at} app 20 0 14.1g 6.0g 21000 {state} 12.3 1.2 999:12.11 java x\n" for at in range(4))
        for second in (0, 30)
    ]
    screens += [screen.replace("23:59:", f"00:0{minute}:") for minute in range(4) for screen in screens[:2]]
    verdict = judged(tmp_path, "\n".join(screens), places(host="db1"), "top.txt")
    first = verdict["bottleneck"] or verdict["candidates"][0]
    assert verdict["outcome"] != "not_reached"
    assert ("over" in verdict["summary"] or verdict["bottleneck"] is not None) is bool(resource)
    assert not resource or first["resource"] == resource


def test_threads_of_top_are_judged(tmp_path: Path) -> None:
    """``top -H`` shows a thread that saturates a core."""
    text = "".join(
        f"top - 09:0{minute}:00 up 1 day,  2 users,  load average: 1.1, 1.0, 1.0\n"
        "Threads: 900 total,   2 running\n%Cpu(s): 12.0 us,  1.0 sy,  0.0 ni, 87.0 id,  0.0 wa\n\n"
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
        "   1400 redis 20 0 14.1g 6.0g 21000 R 99.6 1.2 999:12.11 redis-server\n"
        for minute in range(6)
    )
    verdict = judged(tmp_path, text, places(host="cache1"), "top.txt")
    assert [one["instance"] for one in verdict["candidates"]] == ["redis-server"]


@pytest.mark.parametrize(("zone", "idle", "resource"), [(" UTC", 1.5, "cpu"), ("", 80.0, None)])
def test_tables_of_sadf_with_semicolons_are_judged(
    zone: str, idle: float, resource: str | None, tmp_path: Path
) -> None:
    """``sadf -d`` tables with semicolons are judged, in UTC and in local time."""
    text = "# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle\n"
    text += "db3;-1;2026-11-20 09:00:01 UTC;LINUX-RESTART\t(4 CPU)\n"
    for minute in range(5, 60, 5):
        text += f"db3;300;2026-11-20 09:{minute:02}:01{zone};-1;{99.4 - idle};0.00;0.30;0.30;0.00;{idle}\n"
    text += "# hostname;interval;timestamp;dentunusd;file-nr\ndb3;300;2026-11-20 09:05:01 UTC;1;2\n"
    verdict = judged(tmp_path, text, places(), "sa20.csv")
    assert (verdict["bottleneck"] or {}).get("resource") == resource
    head, _, rest = text.partition("# hostname;interval;timestamp;dentunusd")
    assert head
    with pytest.raises(InputError, match=r"none of its tables .dentunusd file-nr."):
        judged(tmp_path, f"# hostname;interval;timestamp;dentunusd{rest}", places(), "none.csv")


def test_counters_as_powershell_prints_them(tmp_path: Path) -> None:
    """PowerShell's printed counters are read, with paths over two lines."""
    text = "\nTimestamp                 CounterSamples\n---------                 --------------\n"
    for minute in range(8):
        text += f"20.11.2026 09:0{minute}:00       \\\\hv9\\prozessor(_total)\\prozessorzeit (%) :\n"
        text += "                          98,41\n\n"
        text += "                          \\\\hv9\\arbeitsspeicher\\verfügbare \n"
        text += "                          mb :\n                          8123\n\n"
    verdict = judged(tmp_path, text, places(), "counters.txt")
    assert (verdict["bottleneck"]["resource"], verdict["bottleneck"]["host"]) == ("cpu", "hv9")


def test_a_machine_without_memory_left_is_read_in_kib(tmp_path: Path) -> None:
    """A machine of 4 GiB that swaps, in KiB, is short of memory."""
    names = "r b swpd free buff cache si so bi bo in cs us sy id wa st UTC"
    row = "2 14 4194300 90000 1200 80000 8800 9400 9000 9600 4000 9000 5 12 3 80 0"
    text = f"procs -----memory----- ---swap--\n{names}\n"
    text += "".join(f"{row} 2026-11-20 09:{minute:02}:00\n" for minute in range(8))
    verdict = judged(tmp_path, text, places(host="db1"), "vmstat.txt")
    assert [one["resource"] for one in verdict["candidates"]] == ["memory", "disk"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [(70, "Bottleneck: disk sdc of db1"), (20, "At its limit in that time: disk sdc of db1")],
)
def test_readings_without_times_are_a_second_apart_at_least(rows: int, said: str, tmp_path: Path) -> None:
    """``iostat -x 5`` without -t is read, and below a minute the candidates are named."""
    report = (
        "Device r/s w/s rkB/s wkB/s await aqu-sz %util\n"
        "sda 0.20 12.00 1.00 90.00 1.90 0.02 1.10\nsdc 180.00 6.00 11000.00 40.00 166.00 31.00 99.90\n\n"
    )
    verdict = judged(tmp_path, f"{PIDSTAT}{report * rows}", places(), "iostat.txt")
    assert said in verdict["summary"]
    assert any("1 s between them was assumed" in each for each in verdict["warnings"])


ONCE: dict[str, tuple[str, str]] = {
    # lines of a single snapshot -> the candidate
    "locks of the database on db5": (
        """
wait_type                 waiting_tasks_count  wait_time_ms
------------------------- -------------------- --------------------
LCK_M_X                   41223                981122310
PAGEIOLATCH_SH            9912333              41223112
LAZYWRITER_SLEEP          9912                 9912331233

(3 rows affected)
""",
        "sessions waited for it, of all the time that they waited: 96 %",
    ),
    "log disk of the database on db5": (
        "\nwait_type,wait_time_s,pct\nWRITELOG,881.2,79\nASYNC_NETWORK_IO,120.1,11\n",
        "sessions waited for it, of all the time that they waited: 88 %",
    ),
    "disk E: of db5": (
        """
database_name,physical_name,num_of_reads,io_stall_read_ms,num_of_writes,io_stall_write_ms
ERP,E:\\erp.mdf,1000,12000,1000,80000
ERP,L:\\erp.ldf,10,20,9000,9900
""",
        "above 25 ms an I/O",
    ),
    "locks of the database": (
        "\nsession_id,blocking_session_id,wait_type\n61,52,LCK_M_X\n62,52,LCK_M_X\n",
        "only 1 s were recorded",
    ),
}
ON_SCREEN: dict[str, tuple[str, str]] = {
    # lines of a reading -> the candidate
    "disk c1t2d0 of db5": (
        """
    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device
    0.1    4.0    1.0   30.0  0.0  0.0    0.0    2.1   0   1 c0t0d0
  140.0   33.0 9100.2  700.4  8.0 30.0   46.0  171.0  88 100 c1t2d0
""",
        "an I/O took 217 ms",
    ),
    "disk da3 of db5": (
        """
device       r/s     w/s     kr/s     kw/s  ms/r  ms/w  ms/o  ms/t qlen  %b
ada0           0      12      1.0    200.0     0     1     0     1    0   1
da3           90     210   2000.0   9000.0    94   188     0   160   41 100
""",
        "a write took 188 ms",
    ),
    "memory of app_1": (
        """
CONTAINER ID   NAME    CPU %     MEM USAGE / LIMIT   MEM %
3f1a9c2b77d1   db_1    31.00%    1.1GiB / 8GiB       13.75%
91bb0c2e11aa   app_1   6.00%     1.99GiB / 2GiB      99.60%
""",
        "0.4 % of memory was available",
    ),
    "CPU of w2": (
        """
NAME   CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%
w1     412m         10%    9012Mi          29%
w2     3990m        99%    11001Mi         35%
""",
        "busy 99 %",
    ),
    "CPU of db5": (
        """
----total-cpu-usage---- -dsk/total- -net/total-
usr sys idl wai stl| read  writ| recv  send
 90   9   1   0   0|  40k  210k|   0     0
""",
        "busy 99 %",
    ),
}


@pytest.mark.parametrize("name", [*ONCE, *ON_SCREEN])
def test_what_stands_on_a_screen_is_judged(name: str, tmp_path: Path) -> None:
    """Some readings without times, or a single snapshot, give the saturated candidate."""
    text, said = ONCE[name] if name in ONCE else ON_SCREEN[name]
    machine = "db5" if "db5" in name or name in ONCE else None
    file = text.lstrip("\n") * (1 if name in ONCE else 20)
    verdict = judged(tmp_path, file, places(host=machine), "screen.txt")
    assert verdict["outcome"] == "inconclusive"
    assert name in verdict["summary"]
    assert said in verdict["summary"]


def test_scrapes_of_an_exporter_are_judged(tmp_path: Path) -> None:
    """Repeated ``/metrics`` scrapes in one file are judged, and a single scrape is refused."""
    scrapes = [
        "# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.\n"
        "# TYPE node_cpu_seconds_total counter\n"
        f'node_cpu_seconds_total{{cpu="0",mode="idle"}} {9e5 + at * 0.3}\n'
        f'node_cpu_seconds_total{{cpu="0",mode="user"}} {4e5 + at * 14.7}\n'
        f"node_time_seconds {1.8e9 + 15 * at}\n"
        for at in range(20)
    ]
    verdict = judged(tmp_path, "".join(scrapes), places(host="db5"), "metrics.txt")
    assert verdict["summary"].startswith("Bottleneck: CPU of db5")
    with pytest.raises(InputError, match="a single scrape"):
        judged(tmp_path, scrapes[0], places(host="db5"), "one.txt")


AWR = """WORKLOAD REPOSITORY report for

DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
PROD          2345678901 PROD1               1 01-Nov-26 03:11 12.1.0.2.0  NO

Host Name        Platform                         CPUs Cores Sockets Memory(GB)
---------------- -------------------------------- ---- ----- ------- ----------
oradb1           Linux x86 64-bit                   16     8       2      125.63

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:     40122 18-Nov-26 09:00:12       312       4.1
  End Snap:     40123 18-Nov-26 10:00:15       330       4.2

Top 10 Foreground Events by Total Wait Time
                                           Total Wait       Wait   % DB Wait
Event                                Waits Time (sec)    Avg(ms)   time Class
------------------------------ ----------- ---------- ---------- ------ --------
{}
DB CPU                                       4321.1              3.9

Host CPU
~~~~~~~~                  Load Average
 CPUs Cores Sockets     Begin       End     %User   %System    %WIO     %Idle
----- ----- ------- --------- --------- --------- --------- ------- ---------
   16     8       2      3.21      3.44      6.1       2.2     9.9      {}
"""
EVENTS: dict[str, tuple[str, float, str]] = {
    # an event and the idle CPU of an hour -> the candidate
    "disks": ("log file sync  1,645,900  98.7K  60.0  89.3 Commit", 91.7, "disks of oradb1"),
    "locks": (
        "enq: TX - row lock contention  9,100  54.1K  5940  71.0 Applicatio",
        91.7,
        "locks of the database",
    ),
    "clients": (
        "SQL*Net more data to client  9,900,100  21.2K  2.1  44.0 Network",
        91.7,
        "what takes the results",
    ),
    "CPU": ("log file sync  900  9.1  10  0.1 Commit", 1.2, "CPU of oradb1"),
    "nothing": ("log file sync  900  9.1  10  0.1 Commit", 91.7, "no recorded resource was saturated"),
}


@pytest.mark.parametrize("name", EVENTS)
def test_a_report_of_oracle_is_judged(name: str, tmp_path: Path) -> None:
    """An Oracle report gives average session waits and the host's CPU."""
    event, idle, candidate = EVENTS[name]
    verdict = judged(tmp_path, AWR.format(event, idle), places(), "awr.txt")
    assert verdict["outcome"] == ("bottleneck" if name == "CPU" else "inconclusive")
    assert candidate in verdict["summary"]
    with pytest.raises(InputError, match="no times of its snapshots"):
        judged(tmp_path, AWR.format(event, idle).replace("End Snap", "Snap"), places(), "cut.txt")


LIST = "| Id | User | Host | db | Command | Time | State | Info |\n" + "".join(
    f"| {at} | app | h | shop | {command} | 9 | {state} | NULL |\n"
    for at, (command, state) in enumerate(
        [("Query", "Waiting for table metadata lock")] * 4 + [("Sleep", ""), ("Query", "Sending data")]
    )
)
MONITOR = (
    "=====\n2026-11-20 09:00:{} 0x7f1 INNODB MONITOR OUTPUT\n=====\n---TRANSACTION 42, ACTIVE 90 sec\n"
    "mysql tables in use 1, locked 1\nLOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)\n"
    "Pending normal aio reads: 0 [0, 0]\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LIST, "only 1 s were recorded"),
        (LIST * 70, "sessions that waited for a lock: 4 all the time"),
        (MONITOR.format("00"), "only 1 s were recorded"),
        (
            "".join(MONITOR.format(at) for at in range(10, 60)),
            "sessions that waited for a lock: 1 all the time",
        ),
    ],
)
def test_sessions_that_mysql_lists_are_judged(text: str, said: str, tmp_path: Path) -> None:
    """MySQL's process list and InnoDB's monitor are judged, once or repeatedly."""
    verdict = judged(tmp_path, text, places(host="db5"), "sessions.txt")
    assert [one["resource"] for one in verdict["candidates"]] == ["lock"]
    assert "locks of the database on db5" in verdict["summary"]
    assert said in verdict["summary"]


@pytest.mark.parametrize(("every_s", "slow"), [(15, 1), (10, 1), (5, 2)])
def test_a_spike_of_seconds_that_lifts_the_mean_of_one_reading_is_no_limit(
    every_s: int, slow: int, tmp_path: Path
) -> None:
    """Writes of 200 ms for 5 s that lift one reading's mean are no limit."""
    rows = 600 // every_s
    mapping = {"w": {"metric": "disk.write_latency_s", "instance": "sdb", "scale": 0.001}}
    at_s = range(1_800_000_000, 1_800_000_000 + 600, every_s)
    text = "time,w\n" + "".join(
        f"{at},{70 if rows // 2 <= number < rows // 2 + slow else 2}\n" for number, at in enumerate(at_s)
    )
    file = tmp_path / "map.yaml"
    file.write_text(
        json.dumps({"time": {"column": "time", "format": "unix"}, "host": "h", "columns": mapping})
    )
    source = open_source(written(tmp_path, text), "csv")
    settings = Settings(mapping=read_mapping(file))
    _, verdict = verdict_of(import_as_run([source], settings, places(), TimeSpan(), tmp_path / "runs"))
    assert "over its limit" not in str(verdict.answer)
    assert verdict.bottleneck is None
