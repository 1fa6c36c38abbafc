"""Exports and recordings as a production server's administrator creates them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from pinchpoint.fit.fit import fit
from pinchpoint.plan import load_plan

BEFORE = "2026-11-21 20:00:00+00"
LATER = "2026-11-21 20:01:40.5+00"
STATEMENT = {
    "captured_at": BEFORE,
    "userid": 10,
    "dbid": 5,
    "toplevel": "t",
    "queryid": 1,
    "query": "INSERT INTO t VALUES ($1)",
    "calls": 0,
    "rows": 0,
    "shared_blks_hit": 0,
    "shared_blks_read": 0,
    "temp_blks_written": 0,
    "wal_bytes": 0,
}


def table(path: Path, *rows: dict[str, Any]) -> str:
    """Return a CSV of these rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def statements(path: Path, at: str, *rows: dict[str, Any]) -> str:
    """Return an export of pg_stat_statements."""
    return table(path, *({**STATEMENT, "queryid": n, **row, "captured_at": at} for n, row in enumerate(rows)))


def pair(folder: Path, *rows: dict[str, Any]) -> list[str]:
    """Return two exports 100.5 s apart, between which the rows were added."""
    nothing = [{"query": row["query"]} for row in rows]
    before = statements(folder / "before.csv", BEFORE, *nothing)
    return [before, statements(folder / "after.csv", LATER, *rows)]


def fitted(folder: Path, *sources: str, zone: tzinfo | None = None) -> tuple[dict[str, Any], str]:
    """Return the fitted plan as data and as text."""
    text = fit(sources, 1, lambda _: None, zone)
    (folder / "plan.yaml").write_text(text, encoding="utf-8")
    return load_plan(folder / "plan.yaml").to_json(), text


def comments(text: str) -> str:
    """Return a plan's comments as one line."""
    return " ".join(line.strip().lstrip("#").strip() for line in text.splitlines() if "#" in line)


DISK = ("Disk Reads/sec", "Disk Writes/sec", "Disk Read Bytes/sec", "Disk Write Bytes/sec")


def log_of(
    path: Path, host: str, counters: Sequence[str], minutes: int, cells: Callable[[int], Sequence[float]]
) -> str:
    """Return a perfmon log from midnight, one reading a minute, with UTC times and the zone stated."""
    head = ["(PDH-CSV 4.0) (UTC)(0)", *(f"\\\\{host}\\{name}" for name in counters)]
    lines = [",".join(f'"{cell}"' for cell in head)]
    for minute in range(minutes):
        at = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(minutes=minute)
        row = (f"{at:%m/%d/%Y %H:%M:%S}.000", *cells(minute))
        lines.append(",".join(f'"{cell}"' for cell in row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def perfmon(
    path: Path, *, peak_hour: int, bursts: bool = False, host: str = "SQL1", minutes: int = 24 * 60
) -> str:
    """Return a day of one disk with three times the load in one hour, in bursts or evenly."""

    def cells(minute: int) -> list[float]:
        rate = 300.0 if minute // 60 % 24 == peak_hour else 100.0
        if bursts and minute // 60 % 24 == peak_hour:
            rate = 900.0 if minute % 10 < 2 else 150.0
        return [rate * 0.4, rate * 0.6, rate * 0.4 * 8192, rate * 0.6 * 16384]

    return log_of(path, host, [f"LogicalDisk(L:)\\{name}" for name in DISK], minutes, cells)
