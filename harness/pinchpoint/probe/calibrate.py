"""What a probe found written into farm.yaml, as the ``limits`` of a disk that nothing is declared of."""

from __future__ import annotations

import codecs
import math
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pinchpoint.analysis.disk_types import limits_words
from pinchpoint.analysis.inputs import Limits
from pinchpoint.analysis.resources import COMMIT_ROLES
from pinchpoint.base.errors import InputError
from pinchpoint.plan.document import read_document
from pinchpoint.plan.insertion import Shared, inserted
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import Verdict
from pinchpoint_scenarios.storage_probe import Cell

_PAGE = 8192
_READS = 0.7


def calibrate(farm_file: Path, probe: Probe, verdict: Verdict) -> str:
    """Write what was found into ``tiers`` of the farm.yaml; what was done, in a sentence.

    Caps, where there are any, and the latency over outstanding I/Os; nothing else of the file changes. Of a
    log, which is written, a cap of writes alone counts; of other disks ``limits`` have no place for it.
    Raises InputError where the disk is declared already, or the file cannot be written.
    """
    disk, caps, curve = str(probe.where.disk), verdict.caps, latency_curve(probe)
    limits = caps.lowered(caps.limits, 0.0) if _is_log(disk) else caps.limits
    if limits is None and not curve:
        return f"{farm_file}: neither a cap of {disk} nor its latency was found, so nothing was written"
    path = undeclared(farm_file, disk)
    said = _figures(limits, curve)
    try:
        _write(farm_file.resolve(), [*path, "limits"], said)
    except Shared as error:
        raise InputError(
            f"{farm_file}: what it says of {disk} stands for other places as well (an alias or a merge), so "
            f"nothing was written; write there yourself: limits: {said}"
        ) from error
    except OSError as error:
        raise InputError(f"{farm_file}: cannot be changed: {error.strerror}") from error
    written = [f"limits of {limits_words(limits.iops, limits.bytes_per_s)}"] if limits else []
    written += [f"its latency over {len(curve)} depth{'s' * (len(curve) != 1)}"] if curve else []
    none = "" if limits else "; no cap of reads and writes together was found"
    return f"{farm_file}: {disk} has now {', and '.join(written)}, as measured{none}"


def undeclared(farm_file: Path, disk: str) -> tuple[str, ...]:
    """Where a farm.yaml says of a disk what it can do: the keys, from the outermost on.

    Raises InputError where the disk is declared already, or the file cannot be read or changed.
    """
    content = read_document(farm_file)
    if content.problems:
        raise InputError("\n".join(map(content.sentence, content.problems)))
    file = farm_file.resolve()
    if not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        raise InputError(
            f"{farm_file}: you may not change it, and --calibrate writes into it; leave --calibrate out, or "
            "copy the file to a folder of your own"
        )
    tier, *host, role = disk.split(".")
    hosts = content.mapping("tiers", tier, "hosts")
    path = ("tiers", tier, "hosts", host[0] if host else next(iter(hosts), f"{tier}1"), "disks", role)
    said = [key for key in ("profile", "limits") if content.mapping(*path).get(key) not in (None, "unknown")]
    if said:
        raise InputError(
            f"{farm_file}: {disk} is declared already ({', '.join(said)}); a calibration does not overrule "
            "that: take it out, or probe without --calibrate, which holds the disk against what is declared"
        )
    return path


def _write(file: Path, path: Sequence[str], figures: Mapping[str, Any]) -> None:
    """Whole or not at all. Raises Shared, OSError."""
    raw = file.read_bytes()
    mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    text = inserted(raw.removeprefix(mark).decode("utf-8"), path, figures)
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_bytes(mark + text.encode("utf-8"))
        partial.chmod(file.stat().st_mode)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def latency_curve(probe: Probe) -> tuple[tuple[int, float], ...]:
    """(outstanding, mean latency) of the workload most like the disk's role; empty where none was measured.

    Of a log small writes, each on the disk before the next; of any other role 8 KiB, at random, 70 % of them
    reads, or what is nearest to that.
    """
    log = _is_log(str(probe.where.disk))
    by_workload: dict[str, list[Cell]] = {}
    found = figures(probe)
    for cell, one in found.items():
        if one.mean_s and cell.outstanding and cell.block_bytes and (cell.role == "log") == log:
            by_workload.setdefault(cell.workload, []).append(cell)
    if not by_workload:
        return ()
    chosen = min(by_workload.values(), key=lambda cells: _apart(cells[0], log=log))
    pairs = ((cell.outstanding or 1, found[cell].mean_s or 0.0) for cell in chosen)
    return tuple(sorted(pairs))


def _is_log(disk: str) -> bool:
    return disk.rpartition(".")[2] in COMMIT_ROLES


def _apart(cell: Cell, *, log: bool) -> tuple[float, float]:
    """How far a workload is from what such a disk is asked for: by kind, then by size."""
    kind = abs((cell.read_ratio or 0.0) - (0.0 if log else _READS)) + abs(
        (cell.random_ratio or 0.0) - (not log)
    )
    return kind, abs(math.log2((cell.block_bytes or _PAGE) / (_PAGE / 2 if log else _PAGE)))


def _figures(limits: Limits | None, curve: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """Three digits: what a measurement carries."""
    found: dict[str, Any] = {}
    if limits and limits.iops:
        found["iops"] = int(float(_digits(limits.iops))) if limits.iops >= 1 else limits.iops
    if limits and limits.bytes_per_s:
        found["bytes_per_s"] = f"{_digits(limits.bytes_per_s / 1e6)}MB/s"
    if limits and limits.io_unit_bytes:
        found["io_unit"] = f"{round(limits.io_unit_bytes / 1024)}KiB"
    if curve:
        found["latency"] = {depth: f"{_digits(latency_s * 1000)}ms" for depth, latency_s in curve}
    return found


def _digits(value: float) -> str:
    """Three digits, without an exponent, which no unit can follow: ``2050``, ``0.0823``."""
    return format(Decimal(f"{value:.3g}"), "f")
