"""``python -m golden.keep RUN...``, from ``tests/``: copy runs of real farms to ``golden_runs/real/``.

Names of the machine and of folders are replaced; files that no command reads are left out.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from golden.groups import RUNS

TEXTS = ("manifest.json", "events.jsonl")
OF_THE_MACHINE: dict[str, Callable[[str], str]] = {
    "machine_id": lambda _: "machine-a",
    "hostname": lambda _: "farm-machine",
    "kernel": lambda _: "6.1.0",
    "mount_options": lambda _: "rw,relatime",
    "identity": lambda path: f"/farms/{Path(path).parent.name}.yaml",
}
"""Key in a manifest -> function that returns its replacement value."""
OURS = (
    "postgres",
    "python",
    "python3",
    "pinchpoint",
    "valkey-server",
    "nginx",
    "bash",
    "make",
    "pytest",
    "mypy",
    "ruff",
)
"""Programs whose names do not identify the machine."""
FARM = re.compile(r"/pinchpoint/farms/[0-9a-f]+")


def keep(run: Path, folder: Path) -> Path:
    """Copy a run without names of its machine; return the copy's path."""
    place = folder / run.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copyfile(run / "operations.parquet", place / "operations.parquet")
    _copy_samples(run / "samples.parquet", place / "samples.parquet")
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    texts = (
        json.dumps(_scrubbed(manifest), indent=1) + "\n",
        (run / "events.jsonl").read_text(encoding="utf-8"),
    )
    for name, text in zip(TEXTS, texts, strict=True):
        (place / name).write_text(FARM.sub("/pinchpoint/farms/0", text), encoding="utf-8")
    return place


def _copy_samples(source: Path, target: Path) -> None:
    """Copy samples; other processes on the host get numbers instead of names."""
    table = pq.read_table(source)
    names = sorted({name for name in table["instance"].to_pylist() if name.startswith("process:")})
    others = [name for name in names if name.removeprefix("process:") not in OURS]
    new = {name: f"process:other{number}" for number, name in enumerate(others, 1)}
    instances = pa.array([new.get(name, name) for name in table["instance"].to_pylist()], pa.string())
    table = table.set_column(table.schema.get_field_index("instance"), "instance", instances)
    pq.write_table(table, target, compression="zstd", write_page_checksum=True, store_schema=False)


def _scrubbed(value: Any) -> Any:
    if isinstance(value, list):
        return [_scrubbed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: OF_THE_MACHINE[key](each) if key in OF_THE_MACHINE and isinstance(each, str) else _scrubbed(each)
        for key, each in value.items()
    }


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(keep(Path(given), RUNS / "real"))
