"""Formats the limits that a probe found as lines for farm.yaml."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ruamel.yaml import YAML

from pinchpoint.data.inputs import COMMIT_ROLES, Limits
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint_scenarios.storage_probe import Cell

_PAGE = 8192
_READS = 0.7


def calibration(probe: Probe, verdict: ProbeVerdict) -> str:
    """``limits`` of the probed disk as one line for farm.yaml, below a comment that names the disk.

    The line contains the caps that were found, and the latency by queue depth. For a log disk only a cap on
    writes counts; for other disks ``limits`` cannot express such a cap.
    """
    disk, caps, curve = str(probe.where.disk), verdict.caps, latency_curve(probe)
    if probe.state != "finished":
        return (
            f"--calibrate: the suite is not finished, so the limits of {disk} are not known yet; "
            "continue with --resume"
        )
    limits = caps.lowered(caps.limits, 0.0) if _is_log(disk) else caps.limits
    if limits is None and not curve:
        return f"--calibrate: neither a limit of {disk} nor its latency was found"
    none = "" if limits else "; no common limit of reads and writes was found"
    text = io.StringIO()
    flow = YAML()
    flow.default_flow_style, flow.width = True, 10_000
    flow.dump({"limits": _figures(limits, curve)}, text)
    return f"# {disk}, as measured{none}:\n{text.getvalue().strip()[1:-1]}"


def latency_curve(probe: Probe) -> tuple[tuple[int, float], ...]:
    """(queue depth, mean latency in s) of the workload most like the disk's use; empty if not measured.

    A log disk is used for small synchronous writes, any other disk for random I/O of 8 KiB with 70 % reads;
    the nearest measured workload is taken.
    """
    log = _is_log(str(probe.where.disk))
    by_workload: dict[str, list[Cell]] = {}
    result = figures(probe)
    for cell, one in result.items():
        if one.mean_s and cell.outstanding and cell.block_bytes and (cell.role == "log") == log:
            by_workload.setdefault(cell.workload, []).append(cell)
    if not by_workload:
        return ()
    chosen = min(by_workload.values(), key=lambda cells: _apart(cells[0], log=log))
    pairs = ((cell.outstanding or 1, result[cell].mean_s or 0.0) for cell in chosen)
    return tuple(sorted(pairs))


def _is_log(disk: str) -> bool:
    return disk.rpartition(".")[2] in COMMIT_ROLES


def _apart(cell: Cell, *, log: bool) -> tuple[float, float]:
    """The distance of a workload from the disk's use: kind of I/O first, then block size."""
    kind = abs((cell.read_ratio or 0.0) - (0.0 if log else _READS)) + abs(
        (cell.random_ratio or 0.0) - (not log)
    )
    return kind, abs(math.log2((cell.block_bytes or _PAGE) / (_PAGE / 2 if log else _PAGE)))


def _figures(limits: Limits | None, curve: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """The fields of ``limits``, rounded to three digits, which is the precision of a measurement."""
    result: dict[str, Any] = {}
    if limits and limits.iops:
        result["iops"] = int(float(_digits(limits.iops))) if limits.iops >= 1 else limits.iops
    if limits and limits.bytes_per_s:
        result["bytes_per_s"] = f"{_digits(limits.bytes_per_s / 1e6)}MB/s"
    if limits and limits.io_unit_bytes:
        result["io_unit"] = f"{round(limits.io_unit_bytes / 1024)}KiB"
    if curve:
        result["latency"] = {depth: f"{_digits(latency_s * 1000)}ms" for depth, latency_s in curve}
    return result


def _digits(value: float) -> str:
    """A value with three digits and without an exponent, because a unit follows it: ``2050``, ``0.0823``."""
    return format(Decimal(f"{value:.3g}"), "f")
