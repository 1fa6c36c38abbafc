"""Write the files of a folder of labelled recordings."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from foreign_truth.labels import LABELS

COLUMNS = ("case", "set", "file", "kind", "map", "disks", "answer", "host", "from", "to")


def write_labels(folder: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write ``labels.csv``."""
    with (folder / LABELS).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write a CSV whose columns are the keys of its first row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
