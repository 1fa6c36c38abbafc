"""Small files in the formats of other tools, with their forms of lines, numbers and names."""

# ruff: noqa: DTZ001, E501 -- perfmon writes local times; other tools write long lines
from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pinchpoint_collectors.imports.record import CsvMapping, MappedColumn

RECORDED = Path(__file__).parents[2] / "golden_runs" / "imports"


def recorded(name: str) -> str:
    """Return the text of a recorded file."""
    return (RECORDED / name).read_bytes().decode()


HEADER = "(PDH-CSV 4.0) (W. Europe Standard Time)(-60)"

DISK = r"\LogicalDisk(L:)"
COUNTERS = (
    r"\Processor(_Total)\% Processor Time",
    r"\Processor(0)\% Processor Time",
    r"\Processor(1)\% Processor Time",
    r"\System\Processor Queue Length",
    r"\Memory\Available MBytes",
    r"\Memory\Pages Input/sec",
    rf"{DISK}\Disk Writes/sec",
    rf"{DISK}\Disk Reads/sec",
    rf"{DISK}\Avg. Disk sec/Write",
    rf"{DISK}\Avg. Disk sec/Read",
    rf"{DISK}\Avg. Disk Queue Length",
    rf"{DISK}\% Idle Time",
    rf"{DISK}\Disk Write Bytes/sec",
    rf"{DISK}\Disk Read Bytes/sec",
    r"\PhysicalDisk(1 L:)\Disk Writes/sec",
    r"\LogicalDisk(_Total)\Disk Writes/sec",
    r"\Process(sqlservr)\% Processor Time",
)


def line(cells: Sequence[str], delimiter: str = ",") -> str:
    """Return one line of a perfmon log."""
    return delimiter.join(f'"{cell}"' for cell in cells) + "\r\n"


def stamp(moment: datetime) -> str:
    """Return a time in perfmon's format."""
    return f"{moment:%m/%d/%Y %H:%M:%S}.{moment.microsecond // 1000:03d}"


def perfmon(
    rows: Sequence[Sequence[str]],
    counters: Sequence[str] = COUNTERS,
    host: str = r"\\SQL1",
    header: str = HEADER,
    begin: datetime = datetime(2026, 11, 20, 9, 0, 0, 123000),
    every_s: float = 15.0,
    delimiter: str = ",",
) -> str:
    """Return a perfmon log; its first row has blanks, as for counters that need two readings."""
    lines = [line([header, *(host + counter for counter in counters)], delimiter)]
    first = [" "] * len(counters)
    for number, row in enumerate([first, *rows]):
        moment = begin + timedelta(seconds=every_s * number)
        lines.append(line([stamp(moment), *row], delimiter))
    return "".join(lines)


def row(cpu: float = 10.0, write_s: float = 0.002, writes: float = 200.0) -> list[str]:
    """Return a row for ``COUNTERS``; one value is padded, as perfmon does."""
    return [
        f"{cpu:.15f}", f"{cpu:.6f}", f"{cpu:.6f}", "3", " 2048", "0",
        f"{writes}", "0", f"{write_s}", "0", f"{writes * write_s}", "60.5", f"{writes * 8192}", "0",
        "199", "200", "37.2",
    ]  # fmt: skip


SADF = """{"sysstat": {
  "hosts": [
    {
      "nodename": "db1", "sysname": "Linux", "release": "6.1.0-18-amd64", "machine": "x86_64",
      "number-of-cpus": 2, "file-date": "2026-11-20", "file-utc-time": "00:00:01", "timezone": "CET",
      "statistics": [
        {
          "timestamp": {"date": "2026-11-20", "time": "00:10:01", "utc": 1, "interval": 600},
          "cpu-load": [
            {"cpu": "all", "user": 20.00, "nice": 0.00, "system": 5.00, "iowait": 10.00, "steal": 0.50, "idle": 64.50},
            {"cpu": "0", "user": 40.00, "nice": 0.00, "system": 10.00, "iowait": 0.00, "steal": 0.00, "idle": 50.00}
          ],
          "swap-pages": {"pswpin": 2.00, "pswpout": 0.00},
          "memory": {"memfree": 400000, "avail": 1000000, "memused": 3000000, "memused-percent": 75.00},
          "queue": {"runq-sz": 3, "plist-sz": 200, "ldavg-1": 0.50, "ldavg-5": 0.40, "ldavg-15": 0.30, "blocked": 0},
          "disk": [
            {"disk-device": "sda", "tps": 120.00, "rkB": 10.00, "wkB": 960.00, "dkB": 0.00, "areq-sz": 8.00,
             "aqu-sz": 1.80, "await": 15.00, "util-percent": 88.00},
            {"disk-device": "sdb", "tps": 0.00, "rkB": 0.00, "wkB": 0.00, "dkB": 0.00, "areq-sz": 0.00,
             "aqu-sz": 0.00, "await": 0.00, "util-percent": 0.00}
          ],
          "network": {
            "net-dev": [{"iface": "eth0", "rxpck": 10.0, "txpck": 9.0, "rxkB": 2.00, "txkB": 1.00,
                         "rxcmp": 0.0, "txcmp": 0.0, "rxmcst": 0.0, "ifutil-percent": 0.0}],
            "net-edev": [{"iface": "eth0", "rxerr": 1.00, "txerr": 0.50, "coll": 0.0, "rxdrop": 0.0}]
          },
          "psi": {"psi-cpu": {"some_avg10": 0.0, "some_avg60": 0.1, "some_avg300": 0.1, "some_avg": 12.50}}
        }
      ],
      "restarts": []
    }
  ]
}}
"""

IOSTAT = """{"sysstat": {
  "hosts": [
    {
      "nodename": "db1", "sysname": "Linux", "release": "6.1.0", "machine": "x86_64", "number-of-cpus": 2,
      "date": "11/20/2026",
      "statistics": [
        {"timestamp": "2026-11-20T09:00:00+0100",
         "avg-cpu": {"user": 50.0, "nice": 0.0, "system": 20.0, "iowait": 0.0, "steal": 0.0, "idle": 30.0},
         "disk": [{"disk_device": "sda", "r/s": 99.0, "w/s": 99.0, "r_await": 9.0, "w_await": 9.0, "util": 9.0}]},
        {"timestamp": "2026-11-20T09:00:05+0100",
         "avg-cpu": {"user": 10.0, "nice": 0.0, "system": 5.0, "iowait": 4.0, "steal": 1.0, "idle": 80.0},
         "disk": [
           {"disk_device": "sda", "r/s": 0.00, "w/s": 100.00, "d/s": 0.0, "f/s": 20.00, "rkB/s": 0.00,
            "wkB/s": 800.00, "dkB/s": 0.0, "rrqm/s": 0.0, "wrqm/s": 0.0, "drqm/s": 0.0, "rrqm": 0.0, "wrqm": 0.0,
            "drqm": 0.0, "r_await": 0.00, "w_await": 4.00, "d_await": 0.0, "f_await": 6.00, "rareq-sz": 0.0,
            "wareq-sz": 8.0, "dareq-sz": 0.0, "aqu-sz": 0.52, "util": 31.50},
           {"disk_device": "sda1", "r/s": 0.00, "w/s": 100.00, "wkB/s": 800.00, "rkB/s": 0.0, "w_await": 4.00,
            "r_await": 0.0, "aqu-sz": 0.52, "util": 31.50}
         ]}
      ]
    }
  ]
}}
"""

CRAWL_HISTORY = """#TYPE System.Data.DataRow
"ContentSourceName","CrawlType","CrawlStartTime","CrawlEndTime","CrawlDuration","Successes","Warnings","Errors","TopLevelErrors","Deletes","NotModified","AverageCrawlRate","AverageRepositoryTime"
"Local SharePoint sites","1","11/20/2026 9:00:00 AM","11/20/2026 9:19:28 AM","00:19:28","13534","0","12","0","0","0","12.8","381"
"File share","1","11/20/2026 9:00:00 AM","","00:00:00","0","0","0","0","0","0","0","0"
"User profiles","1","11/20/2026 9:00:00 AM","11/20/2026 9:19:28 AM","00:19:28","11611","0","0","0","0","0","9.9","149"
"""

CRAWL_ITEMS = """"FullUrl","TimeStampUtc","ErrorID","ErrorLevel","ErrorDesc","ContentSourceID"
"https://intranet/a","2026-11-20 09:00:10","0","0","Crawled","3"
"https://intranet/b","2026-11-20 09:00:50","0","0","Crawled","3"
"https://intranet/c","2026-11-20 09:01:05","5","2","Access denied","3"
"https://intranet/d","2026-11-20 09:02:30","0","0","Crawled","3"
"""

T = 1763629200


def matrix(*results: tuple[dict[str, str], list[float]]) -> str:
    """Return a reply of Prometheus with a scrape every 15 s."""
    found: list[dict[str, Any]] = [
        {
            "metric": {"instance": "db1:9100", "job": "node", **labels},
            "values": [[T + 15 * at, str(value)] for at, value in enumerate(values)],
        }
        for labels, values in results
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}})


def named(name: str, **labels: str) -> dict[str, str]:
    return {"__name__": name, **labels}


MAPPING = CsvMapping(
    time="time",
    time_format="%d.%m.%Y %H:%M:%S",
    columns={
        "cpu idle": MappedColumn("cpu.busy_ratio", scale=-0.01, offset=1.0),
        "write ms": MappedColumn("disk.write_latency_s", "vol1", scale=0.001, weight="writes"),
    },
    host_column="server",
    delimiter=";",
    decimal=",",
)
CSV = """time;server;cpu idle;write ms;writes
20.11.2026 09:00:00;a;90;1;1
20.11.2026 09:00:00;b;90;1;1
20.11.2026 09:00:10;a;25,5;12,5;1.000
20.11.2026 09:00:10;b;;0;0
"""
