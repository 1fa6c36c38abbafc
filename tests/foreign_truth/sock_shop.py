"""Convert the public recordings of github.com/azamikram/rcd (Sock Shop: 13 containers, every 1 s).

``python -m foreign_truth.sock_shop CHECKOUT FOLDER``. Each fault saturates the CPU of one container; so do
the faults named after memory, because the program that fills the memory uses the CPU. The recordings without
a fault are left out: in 27 of 50 the database of the carts saturates its only core, without a label.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path

from foreign_truth.written import write_labels

_PARTS = {
    "cpu": ("cpu.busy_ratio", 0.01),
    "lod": ("db.requests_per_s", 1.0),
    "lat_90": ("db.request_latency_s", 1.0),
}


def main(checkout: Path, folder: Path) -> None:
    """Write the folder of labelled recordings."""
    rows = []
    for path in sorted((checkout / "sock-shop-data").glob("*/*/anomalous.csv")):
        fault, number = path.parts[-3:-1]
        case = f"{fault}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / f"{case}.csv")
        mapping = folder / f"{case}.yaml"
        mapping.write_text(json.dumps(_mapping(path), indent=1), encoding="utf-8")
        rows.append(
            {
                "case": case,
                "set": "sock-shop",
                "file": f"{case}.csv",
                "map": mapping.name,
                "answer": "cpu",
                "host": fault.rpartition("-")[0],
            }
        )
    write_labels(folder, rows)


def _mapping(path: Path) -> dict[str, object]:
    with path.open(newline="", encoding="utf-8") as file:
        header = next(csv.reader(file))
    columns = {}
    for name in header[1:]:
        service, _, part = name.partition("_")
        if part in _PARTS:
            metric, scale = _PARTS[part]
            columns[name] = {"metric": metric, "host": service, "scale": scale}
    return {"time": {"column": "time", "format": "unix"}, "interval": "1s", "columns": columns}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
