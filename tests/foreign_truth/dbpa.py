"""Convert the public recordings of github.com/hjhhsy120/DBPA_dataset (MySQL, every 5 s) to labelled ones.

``python -m foreign_truth.dbpa CHECKOUT UNPACKED FOLDER``, where UNPACKED is the content of an archive
(``mysql_32_128.7z``). The labels are causes, such as a missing index; for most of them the data do not show a
limiting resource.
"""

from __future__ import annotations

import csv
import json
import pickle
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from foreign_truth.written import write_labels, write_rows

ANSWERS = {"normal": "healthy", "lock_waits": "lock"}
"""Answers of some labels; each other label means a limit whose resource is not known for sure."""
_COLUMNS = {
    "total cpu usage/idl": {"metric": "cpu.busy_ratio", "scale": -0.01, "offset": 1.0},
    "total cpu usage/wai": {"metric": "cpu.wait_ratio", "scale": 0.01},
    "procs/run": {"metric": "cpu.run_queue"},
    "dsk/total/read": {"metric": "disk.read_bytes_per_s", "instance": "_Total"},
    "dsk/total/writ": {"metric": "disk.write_bytes_per_s", "instance": "_Total"},
    "io/total/read": {"metric": "disk.reads_per_s", "instance": "_Total"},
    "io/total/writ": {"metric": "disk.writes_per_s", "instance": "_Total"},
    "net/total/recv": {"metric": "net.received_bytes_per_s", "instance": "total"},
    "net/total/send": {"metric": "net.sent_bytes_per_s", "instance": "total"},
    "memory usage/free": {"metric": "mem.available_bytes"},
    "paging/in": {"metric": "mem.paged_in_bytes_per_s"},
    "paging/out": {"metric": "mem.paged_out_bytes_per_s"},
    "mysql5 conn/Act": {"metric": "db.sessions_active"},
    "mysql5 locks/Locks": {"metric": "db.lock_waiters"},
    "mysql5 all/comm": {"metric": "db.commits_per_s"},
}


class _Plain(pickle.Unpickler):
    """An unpickler for lists, numbers, text and times only, because a pickle could run any code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("datetime", "datetime"):
            return datetime
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def main(checkout: Path, unpacked: Path, folder: Path) -> None:
    """Write the folder of labelled recordings."""
    names = _names(checkout / "metrics_mysql.csv")
    labels = []
    for path in sorted(unpacked.glob("*_data.pickle")):
        what = path.stem.removesuffix("_data")
        with path.open("rb") as file:
            cases = _Plain(file).load()
        for number, (rows, *_) in enumerate(cases):
            case = f"{what}-{number}"
            at = {name: names.index(name) for name in _COLUMNS}
            write_rows(
                folder / what / f"{case}.csv",
                [
                    {"Time": row[0].isoformat(), **{name: row[where] for name, where in at.items()}}
                    for row in rows
                ],
            )
            labels.append(
                {
                    "case": f"{unpacked.name}-{case}",
                    "set": f"{unpacked.name} {what}",
                    "file": f"{what}/{case}.csv",
                    "map": "map.yaml",
                    "answer": ANSWERS.get(what, "worse"),
                }
            )
    mapping = {"time": {"column": "Time"}, "host": "mysql", "interval": "5s", "columns": _COLUMNS}
    (folder / "map.yaml").write_text(json.dumps(mapping, indent=1), encoding="utf-8")
    write_labels(folder, labels)


def _names(path: Path) -> list[str]:
    """Return GROUP/COLUMN of each column; the file names a group only at its first column."""
    with path.open(newline="", encoding="utf-8") as file:
        groups, names, *_ = csv.reader(file)
    found, group = [], ""
    for above, name in zip(groups, names, strict=True):
        group = above or group
        found.append(f"{group}/{name}")
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
