"""Perfmon logs of a farm with two servers, over some hours or a day."""

from __future__ import annotations

# ruff: noqa: DTZ001 -- perfmon writes local times
from collections.abc import Callable
from datetime import datetime, timedelta

from collectors.imports.logs import line, stamp

BEGIN = datetime(2026, 11, 20, 0, 0)
ZONE = "(PDH-CSV 4.0) (W. Europe Standard Time)(-60)"

SQL = r"\\SQL1"
APP = r"\\APP3"

At = Callable[[float], float]
"""Function from hours since the begin to a value."""


def _at(shape: At | float, hour: float) -> float:
    return shape(hour) if callable(shape) else shape


def between(first_h: float, last_h: float, inside: float, outside: float) -> At:
    return lambda hour: inside if first_h <= hour < last_h else outside


def day(
    *,
    hours: float = 24.0,
    every_s: float = 60.0,
    sql_cpu: At | float = 20.0,
    app_cpu: At | float | None = 20.0,
    log_write_s: At | float = 0.002,
    data_write_s: At | float = 0.008,
    data_read_s: At | float = 0.008,
    free_mb: At | float = 8000.0,
    pages_in: At | float = 0.0,
    complete: bool = False,
) -> str:
    """Return a log of ``SQL1`` with log disk ``L:`` and data disk ``M:``; with a CPU, also of ``APP3``.

    ``complete``: with both networks, memory, a disk of ``APP3``, and the finished work of ``SQL1``.
    """
    columns: list[tuple[str, At | float]] = [
        (rf"{SQL}\Processor(_Total)\% Processor Time", sql_cpu),
        (rf"{SQL}\Memory\Available MBytes", free_mb),
        (rf"{SQL}\Memory\Pages Input/sec", pages_in),
    ]
    for drive, write_s, read_s in (("L:", log_write_s, 0.0), ("M:", data_write_s, data_read_s)):
        disk = rf"{SQL}\LogicalDisk({drive})"
        reads = 0.0 if drive == "L:" else 100.0
        columns += [
            (rf"{disk}\Avg. Disk sec/Write", write_s),
            (rf"{disk}\Avg. Disk sec/Read", read_s),
            (rf"{disk}\Disk Writes/sec", 200.0),
            (rf"{disk}\Disk Reads/sec", reads),
            (rf"{disk}\Avg. Disk Queue Length", 1.5),
        ]
    if app_cpu is not None:
        columns.append((rf"{APP}\Processor(_Total)\% Processor Time", app_cpu))
    if complete:
        for host in (SQL, APP):
            nic = rf"{host}\Network Interface(nic)"
            columns += [
                (rf"{nic}\Bytes Received/sec", 1e6),
                (rf"{nic}\Bytes Sent/sec", 2e6),
                (rf"{nic}\Current Bandwidth", 1e9),
            ]
        columns += [
            (rf"{SQL}\SQLServer:SQL Statistics\Batch Requests/sec", 50.0),
            (rf"{APP}\Memory\Available MBytes", 8000.0),
            (rf"{APP}\Memory\Pages Input/sec", 0.0),
            (rf"{APP}\LogicalDisk(C:)\Avg. Disk sec/Write", 0.002),
            (rf"{APP}\LogicalDisk(C:)\Disk Writes/sec", 20.0),
        ]
    rows = [line([ZONE, *(path for path, _ in columns)])]
    for number in range(int(hours * 3600 / every_s) + 1):
        hour = number * every_s / 3600
        cells = [" " if number == 0 else f"{_at(shape, hour):.9f}" for _, shape in columns]
        rows.append(line([stamp(BEGIN + timedelta(hours=hour)), *cells]))
    return "".join(rows)
