"""Convert the public recordings of github.com/IntelligentDDS/Nezha (pods, one row a minute).

``python -m foreign_truth.nezha CHECKOUT FOLDER``. A case lasts from two minutes before a fault to seven
minutes after it, with all pods in one file. CPU faults have a resource. For the other faults (network delay,
exception, wrong result) the data show none.
"""

from __future__ import annotations

import csv
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foreign_truth.written import write_labels, write_rows

BEFORE_S, AFTER_S = 120, 400
FAULT_S = 300
_COLUMNS = {
    "CpuUsageRate(%)": {"metric": "cpu.busy_ratio", "scale": 0.01},
    "MemoryUsageRate(%)": {"metric": "mem.available_ratio", "scale": -0.01, "offset": 1.0},
    "NetworkReceiveBytes": {"metric": "net.received_bytes_per_s", "instance": "eth0"},
    "NetworkTransmitBytes": {"metric": "net.sent_bytes_per_s", "instance": "eth0"},
    "PodServerLatencyP95(s)": {"metric": "db.request_latency_s"},
    "PodWorkload(Ops)": {"metric": "db.requests_per_s"},
}


def main(checkout: Path, folder: Path) -> None:
    """Write the folder of labelled recordings."""
    labels = []
    for day in sorted((checkout / "rca_data").iterdir()):
        pods = [_rows(path) for path in sorted(day.glob("metric/*_metric.csv"))]
        [faults] = day.glob("*fault_list.json")
        for fault in (each for hour in json.loads(faults.read_text()).values() for each in hour):
            begin_s = int(fault["inject_timestamp"])
            case = f"{fault['inject_type']}-{begin_s}"
            inside = [
                {
                    "TimeStamp": row["TimeStamp"],
                    "PodName": row["PodName"],
                    **{name: row[name] for name in _COLUMNS},
                }
                for rows in pods
                for row in rows
                if begin_s - BEFORE_S <= int(row["TimeStamp"]) <= begin_s + AFTER_S
            ]
            inside.sort(key=lambda row: int(row["TimeStamp"]))
            if not inside:
                continue  # the data set has no recording of this time
            write_rows(folder / f"{case}.csv", inside)
            labels.append(_label(case, fault, begin_s))
    mapping = {
        "time": {"column": "TimeStamp", "format": "unix"},
        "host_column": {"column": "PodName"},
        "interval": "60s",
        "columns": _COLUMNS,
    }
    (folder / "map.yaml").write_text(json.dumps(mapping, indent=1), encoding="utf-8")
    write_labels(folder, labels)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _label(case: str, fault: dict[str, Any], begin_s: int) -> dict[str, str]:
    of_cpu = fault["inject_type"].startswith("cpu")
    times = (
        datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()
        for at in (begin_s, begin_s + FAULT_S)
    )
    begin, end = times if of_cpu else ("", "")
    return {
        "case": case,
        "set": f"Nezha {fault['inject_type']}",
        "file": f"{case}.csv",
        "map": "map.yaml",
        "answer": "cpu" if of_cpu else "worse",
        "host": fault["inject_pod"] if of_cpu else "",
        "from": begin,
        "to": end,
    }


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
