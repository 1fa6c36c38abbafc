"""A simulated Windows machine that answers a request with the script's lines.

The growth of its counters per second is known, so each metric is known. The counter types are those of
Windows' classes (learn.microsoft.com/previous-versions/aa394307(v=vs.85) and its neighbours). As a program it
is ``powershell`` at the other end of ssh.
"""

from __future__ import annotations

import base64
import json
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pinchpoint_collectors.windows.openssh import LOADER
from pinchpoint_collectors.windows.script import script

PERF_PER_S = 10_000_000
BEGUN = 5_000_000_000_000
EPOCH = 116_444_736_000_000_000
RAW, LARGE_RAW, RATE, BULK = 65536, 65792, 272696320, 272696576
AVERAGE, AVERAGE_BASE, IDLE_TIMER = 805438464, 1073939458, 558957824
QUEUE, PRECISION, PRECISION_BASE = 5571840, 542573824, 1073939712
FRACTION, FRACTION_BASE = 537003264, 1073939712

Grows = tuple[int, int, int]
"""(counter type, initial value, growth per second)"""

DISK: Mapping[str, Grows] = {
    "AvgDiskQueueLength": (QUEUE, 7_000_000_000, 6_000_000),  # 0.2 s of reads and 0.4 s of writes
    "AvgDisksecPerRead": (AVERAGE, 1_000, 2_000_000),  # 100 reads of 2 ms
    "AvgDisksecPerRead_Base": (AVERAGE_BASE, 40_000, 100),
    "AvgDisksecPerWrite": (
        AVERAGE,
        2**32 - 6_000_000,
        4_000_000,
    ),  # 50 writes of 8 ms; wraps in the next second
    "AvgDisksecPerWrite_Base": (AVERAGE_BASE, 2**32 - 25, 50),
    "CurrentDiskQueueLength": (RAW, 1, 0),
    "DiskReadBytesPersec": (BULK, 2**40, 819_200),
    "DiskReadsPersec": (RATE, 40_000, 100),
    "DiskWriteBytesPersec": (BULK, 2**33, 3_276_800),
    "DiskWritesPersec": (RATE, 2**32 - 25, 50),
    "PercentIdleTime": (PRECISION, 9_000_000_000, 4_000_000),  # of 10,000,000: a busy ratio of 0.6
    "PercentIdleTime_Base": (PRECISION_BASE, 133_000_000_000_000_000, 10_000_000),
}
CLASSES: Mapping[str, tuple[tuple[str | None, ...], Mapping[str, Grows]]] = {
    "PerfDisk_LogicalDisk": (("C:", "L:", "C:\\mnt\\tempdb", "HarddiskVolume1", "_Total"), DISK),
    "PerfDisk_PhysicalDisk": (("0 C:", "1 L:", "2", "_Total"), DISK),
    "Counters_ProcessorInformation": (
        ("0,0", "0,1", "0,_Total", "_Total"),
        {"PercentProcessorTime": (IDLE_TIMER, 3_000_000_000, 7_500_000)},
    ),
    "PerfOS_Processor": (("0", "_Total"), {"PercentProcessorTime": (IDLE_TIMER, 0, 0)}),
    "PerfOS_Memory": (
        (None,),
        {
            "AvailableBytes": (LARGE_RAW, 4 * 2**30, 0),
            "AvailableKBytes": (LARGE_RAW, 4 * 2**20, 0),
            "AvailableMBytes": (LARGE_RAW, 4 * 2**10, 0),
            "PagesInputPersec": (RATE, 2**32 - 1, 256),
            "PagesOutputPersec": (RATE, 5, 0),
        },
    ),
    "PerfOS_System": ((None,), {"ProcessorQueueLength": (RAW, 3, 0)}),
    "Tcpip_NetworkInterface": (
        ("vmxnet3 Ethernet Adapter", "isatap.{1E7A-0001}"),
        {
            "BytesReceivedPersec": (BULK, 2**34, 125_000),
            "BytesSentPersec": (BULK, 2**35, 250_000),
            "CurrentBandwidth": (LARGE_RAW, 10_000_000_000, 0),
            "PacketsReceivedErrors": (RAW, 7, 2),
            "PacketsOutboundErrors": (RAW, 9, 1),
        },
    ),
    "MSSQLSERVER_SQLServerBufferManager": (
        (None,),
        {
            "Buffercachehitratio": (FRACTION, 950, 0),
            "Buffercachehitratio_Base": (FRACTION_BASE, 1000, 0),
            "Pagelifeexpectancy": (LARGE_RAW, 3600, 0),
            "LazywritesPersec": (BULK, 10, 4),
        },
    ),
    "MSSQLSERVER_SQLServerDatabases": (
        ("orders", "_Total"),
        {"LogFlushesPersec": (BULK, 100, 20), "LogBytesFlushedPersec": (BULK, 2**33, 81_920)},
    ),
    "MSSQLSERVER_SQLServerDatabasesMirroring": ((None,), {"LogFlushesPersec": (BULK, 1, 1)}),
}
START = 133_000_000_000_000_000
PROCESS_TYPES = {
    "IDProcess": RAW,
    "CreatingProcessID": RAW,
    "ElapsedTime": 807666944,
    "PercentProcessorTime": 542180608,
    "ThreadCount": RAW,
}
PROCESSES: Mapping[str, tuple[int, int, int, int]] = {
    "_Total": (0, 0, 0, 0),
    "Idle": (0, 0, 0, 15_000_000),
    "System": (4, 0, START, 100_000),
    "services": (600, 500, START + 10, 0),  # its parent has ended
    "sqlservr": (1433, 600, START + 100, 4_000_000),  # 0.4 s of CPU per second
    "conhost": (1500, 1433, START + 110, 1_000_000),
    "w3wp": (2000, 700, START + 200, 500_000),
    "w3wp#1": (2001, 700, START + 210, 3_000_000),
    "late": (2100, 1433, START + 90, 700_000),  # older than 1433, which was another process's id at that time
}
"""Name -> (id, parent's id, start in 100 ns, growth of CPU time per second)."""
FOUND: Mapping[tuple[str, str], str] = {
    ("service", "MSSQLSERVER"): "1433",
    ("command_line", '-ap "SharePoint - 80"'): "2001",
}
HOST = {
    "hostname": "SQL1",
    "os": "Microsoft Windows Server 2022 Standard",
    "kernel": "10.0.20348",
    "started": 133_000_000_000_000_000,
    "uuid": "4C4C4544-0042",
    "cpu_model": "Intel(R) Xeon(R) Gold 6130 CPU @  2.10GHz",
    "cores": 2,
    "memory_kib": 8 * 2**20,
    "paging_mib": 1024,
    "manufacturer": "VMware, Inc.",
    "model": "VMware7,1",
    "hypervisor": True,
}
VOLUME = "\\\\?\\Volume{%s}\\"
ADAPTER = "Integrated : Adapter %d : Port 0 : Target 0 : LUN %d"
CLOUD: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("cloud", {"region": "westeurope", "zone": "2", "machine_type": "Standard_E8ds_v5"}),
    ("cloud_disk", {"lun": 0, "type": "Premium_LRS", "size_gib": 1024}),
    ("cloud_disk", {"lun": 1, "type": "Premium_LRS", "size_gib": 64}),
)
"""Further lines of an Azure machine."""
FACTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("host", HOST),
    (
        "volume",
        {
            "volume": VOLUME % "c",
            "letter": "C:",
            "file_system": "NTFS",
            "block_bytes": 4096,
            "size_bytes": 10**11,
        },
    ),
    (
        "volume",
        {
            "volume": VOLUME % "log",
            "letter": "L:",
            "file_system": "NTFS",
            "block_bytes": 65536,
            "size_bytes": 2 * 10**11,
        },
    ),
    (
        "volume",
        {
            "volume": VOLUME % "t",
            "letter": None,
            "file_system": "ReFS",
            "block_bytes": 65536,
            "size_bytes": 10**10,
        },
    ),
    ("mount", {"volume": VOLUME % "c", "path": "C:\\"}),
    ("mount", {"volume": VOLUME % "log", "path": "L:\\"}),
    ("mount", {"volume": VOLUME % "t", "path": "C:\\mnt\\tempdb"}),
    (
        "disk",
        {"number": 0, "model": "VMware Virtual disk", "size_bytes": 10**11, "location": ADAPTER % (0, 0)},
    ),
    ("disk", {"number": 1, "model": "INTEL SSDPE2KX010T8", "size_bytes": 2 * 10**11, "location": None}),
    (
        "disk",
        {"number": 2, "model": "VMware Virtual disk", "size_bytes": 10**10, "location": ADAPTER % (1, 0)},
    ),
    ("media", {"number": "0", "media": 0}),
    ("media", {"number": "1", "media": 4}),
    ("media", {"number": "2", "media": 3}),
    ("access", {"number": 2, "path": "C:\\mnt\\tempdb\\"}),
    ("access", {"number": 2, "path": VOLUME % "t"}),
    ("cache", {"number": "1", "enabled": False}),
    (
        "sql_server",
        {
            "instance": "MSSQLSERVER",
            "version": "15.0.2000.5",
            "edition": "Standard Edition",
            "data": "C:\\mnt\\tempdb\\DATA",
            "log": "L:\\LOG",
            "tempdb": "C:\\mnt\\tempdb\\DATA\\tempdb.mdf",
        },
    ),
    ("unknown", {"what": "caches", "why": "Access denied"}),
)


@dataclass
class Machine:
    """A simulated machine.

    Attributes:
        ahead_s: offset of its clock from this machine's, in seconds.
        failing: classes that cannot be read.
        without: classes that it lacks.
        asked: requests so far.
        processes: its processes, as in ``PROCESSES``.
        found: results of searches for processes, as in ``FOUND``.
        facts: its facts.
    """

    ahead_s: float = 0.0
    failing: set[str] = field(default_factory=set)
    without: set[str] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)
    processes: dict[str, tuple[int, int, int, int]] = field(default_factory=lambda: dict(PROCESSES))
    found: dict[tuple[str, str], str] = field(default_factory=lambda: dict(FOUND))
    facts: tuple[tuple[str, Mapping[str, Any]], ...] = FACTS
    classes: dict[str, list[str]] = field(default_factory=dict)
    readings: int = 0
    cpu_s: float = 0.5

    def utc(self) -> int:
        """Its time in 100 ns since 1601."""
        return EPOCH + int((time.time() + self.ahead_s) * 1e7)

    def hello(self, request: str) -> Iterator[str]:
        """Yield the lines before the first reading."""
        asked = json.loads(request)
        self.asked.append(asked)
        for kind, facts in self.facts:
            yield line(kind, **facts)
        self.classes = {}
        for one in asked["classes"]:
            if one["pattern"] == "PerfProc_Process" and one["pattern"] not in self.without:
                columns = one["properties"].split(",")
                self.classes[one["pattern"]] = columns
                types = ",".join(str(PROCESS_TYPES[column]) for column in columns)
                shown = {"class": one["pattern"], "pattern": one["pattern"]}
                yield line("class", **shown, columns=",".join(columns), types=types)
            for name, (_, counters) in CLASSES.items():
                if name in self.without or not fnmatchcase(name, one["pattern"]):
                    continue
                columns = [column for column in one["properties"].split(",") if column in counters]
                columns += [f"{column}_Base" for column in columns if f"{column}_Base" in counters]
                if columns:
                    self.classes[name] = columns
                    types = ",".join(str(counters[column][0]) for column in columns)
                    shown = {"class": name, "pattern": one["pattern"]}
                    yield line("class", **shown, columns=",".join(columns), types=types)
        if asked["interval_ms"]:
            yield line("ready", utc=self.utc())

    def reading(self) -> Iterator[str]:
        """Yield one reading, which is one second after the previous one regardless of the real time."""
        if self.readings % 10 == 0:
            for one in self.asked[-1]["find"]:
                ids = self.found.get((one["what"], one["text"]), "")
                yield line("found", what=one["what"], text=one["text"], processes=ids, why=None)
        for name, columns in self.classes.items():
            if name in self.failing:
                yield line("failed", **{"class": name}, utc=self.utc(), why="Generic failure")
                continue
            if name == "PerfProc_Process":
                yield line("rows", **{"class": name}, utc=self.utc(), rows=self._processes(columns))
                continue
            instances, counters = CLASSES[name]
            stamps = [BEGUN + self.readings * PERF_PER_S, self.utc(), PERF_PER_S]
            cells = [self._value(counters[column]) for column in columns]
            rows = [[instance or "", *stamps, *cells] for instance in instances]
            # Processor times are in the 100 ns of their stamps, so the stamps must be a second apart too.
            for row in rows:
                row[2] = BEGUN + self.readings * 10_000_000
            yield line("rows", **{"class": name}, utc=self.utc(), rows=rows)
        self.readings += 1
        self.cpu_s += 0.02
        yield line("reading", number=self.readings, utc=self.utc(), cpu_s=self.cpu_s)

    def time(self, asked: str) -> str:
        """Return the reply to "time N"."""
        return line("time", asked=int(asked), utc=self.utc())

    def _processes(self, columns: list[str]) -> list[list[Any]]:
        stamps = [BEGUN + self.readings * PERF_PER_S, BEGUN + self.readings * 10_000_000, PERF_PER_S]
        rows = []
        for name, (pid, parent, start, growth) in self.processes.items():
            cells = dict(zip(PROCESS_TYPES, (pid, parent, start, 7 + self.readings * growth, 3), strict=True))
            rows.append([name, *stamps, *(cells[column] for column in columns)])
        return rows

    def _value(self, grows: Grows) -> int:
        kind, begin, growth = grows
        value = begin + self.readings * growth
        return value if kind & 0x100 else value % 2**32


def line(kind: str, /, **fields: Any) -> str:
    """Return a line as the script writes it."""
    return json.dumps({"kind": kind, **fields}, ensure_ascii=True, separators=(",", ":"))


def serve(every_s: float) -> None:
    """Act as ``powershell -Command -`` with the loader, the script and a request as input."""
    machine = Machine()
    loader, sent, request = (sys.stdin.buffer.readline().decode().strip() for _ in range(3))
    if loader != LOADER or base64.b64decode(sent).decode() != script():
        print(line("end", why=f"the stand-in was given another loader or script: {loader}"), flush=True)
        return
    print("Welcome to SQL1\r\n{ not json\r\n[1, 2]\r")  # as a profile prints
    for text in machine.hello(request):
        print(text, end="\r\n", flush=True)
    if json.loads(request)["interval_ms"] == 0:
        print(line("end", why=None), flush=True)
        return
    waiting = b""
    while True:
        for text in machine.reading():
            print(text, end="\r\n", flush=True)
        if select.select([sys.stdin], [], [], every_s)[0]:
            data = os.read(sys.stdin.fileno(), 4096)  # unbuffered, so that Python holds no input back
            if not data:
                return
            waiting += data
            while b"\n" in waiting:
                said, _, waiting = waiting.partition(b"\n")
                print(machine.time(said.decode().split()[1]), end="\r\n", flush=True)


if __name__ == "__main__":
    serve(float(sys.argv[1]))
