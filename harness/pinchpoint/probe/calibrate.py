"""What a probe found written into farm.yaml, as the ``limits`` of a disk that nothing is declared of."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from pinchpoint.analysis.disk_types import limits_words
from pinchpoint.analysis.inputs import Limits
from pinchpoint.analysis.resources import COMMIT_ROLES
from pinchpoint.errors import InputError
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import Verdict
from pinchpoint_scenarios.storage_probe import Cell

_PAGE = 8192
_READS = 0.7


def calibrate(farm_file: Path, probe: Probe, verdict: Verdict) -> str:
    """Write what was found into ``tiers`` of the farm.yaml; what was done, in a sentence.

    Caps, where there are any, and the latency over outstanding I/Os. Comments and order of the file stay.
    Raises InputError where the disk is declared already, or the file cannot be written.
    """
    limits, curve = verdict.caps.limits, latency_curve(probe)
    disk = str(probe.where.disk)
    if limits is None and not curve:
        return f"{farm_file}: neither a cap of {disk} nor its latency was found, so nothing was written"
    yaml, content = undeclared(farm_file, disk)
    try:
        _entry(content, disk)["limits"] = _figures(limits, curve)
        partial = farm_file.with_name(f".{farm_file.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            yaml.dump(content, file)
        partial.chmod(farm_file.stat().st_mode)
        partial.replace(farm_file)
    except OSError as error:
        raise InputError(f"{farm_file}: cannot be changed: {error.strerror}") from error
    written = [f"limits of {limits_words(limits.iops, limits.bytes_per_s)}"] if limits else []
    written += [f"its latency over {len(curve)} depth{'s' * (len(curve) != 1)}"] if curve else []
    none = "" if limits else "; no cap was found"
    return f"{farm_file}: {disk} has now {', and '.join(written)}, as measured{none}"


def undeclared(farm_file: Path, disk: str) -> tuple[YAML, CommentedMap]:
    """A farm.yaml, read so that it can be written as it was.

    Raises InputError where the disk is declared already, or the file cannot be read or changed.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    try:
        content = yaml.load(farm_file.read_text(encoding="utf-8"))
    except (OSError, YAMLError) as error:
        raise InputError(f"{farm_file}: cannot be read: {error}") from error
    if not (os.access(farm_file, os.W_OK) and os.access(farm_file.parent, os.W_OK)):
        raise InputError(
            f"{farm_file}: you may not change it, and --calibrate writes into it; leave --calibrate out, or "
            "copy the file to a folder of your own"
        )
    said = [key for key in ("profile", "limits") if _entry(content, disk).get(key) not in (None, "unknown")]
    if said:
        raise InputError(
            f"{farm_file}: {disk} is declared already ({', '.join(said)}); a calibration does not overrule "
            "that: take it out, or probe without --calibrate, which holds the disk against what is declared"
        )
    return yaml, content


def latency_curve(probe: Probe) -> tuple[tuple[int, float], ...]:
    """(outstanding, mean latency) of the workload most like the disk's role; empty where none was measured.

    Of a log small writes, each on the disk before the next; of any other role 8 KiB, at random, 70 % of them
    reads, or what is nearest to that.
    """
    log = str(probe.where.disk).rpartition(".")[2] in COMMIT_ROLES
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


def _apart(cell: Cell, *, log: bool) -> tuple[float, float]:
    """How far a workload is from what such a disk is asked for: by kind, then by size."""
    kind = abs((cell.read_ratio or 0.0) - (0.0 if log else _READS)) + abs(
        (cell.random_ratio or 0.0) - (not log)
    )
    return kind, abs(math.log2((cell.block_bytes or _PAGE) / (_PAGE / 2 if log else _PAGE)))


def _entry(content: CommentedMap, disk: str) -> CommentedMap:
    """The disk's mapping; made where an embedded farm's file does not mention it."""
    tier, *host, role = disk.split(".")
    hosts = _within(_within(_within(content, "tiers"), tier), "hosts")
    name = host[0] if host else next(iter(hosts), f"{tier}1")
    return _within(_within(_within(hosts, name), "disks"), role)


def _within(mapping: CommentedMap, key: str) -> CommentedMap:
    if mapping.get(key) is None:
        made = CommentedMap()
        made.fa.set_flow_style()
        mapping[key] = made
    found: CommentedMap = mapping[key]
    return found


def _figures(limits: Limits | None, curve: Sequence[tuple[int, float]]) -> CommentedMap:
    """Three digits: what a measurement carries."""
    found: dict[str, Any] = {}
    if limits and limits.iops:
        found["iops"] = int(float(f"{limits.iops:.3g}")) if limits.iops >= 1 else limits.iops
    if limits and limits.bytes_per_s:
        found["bytes_per_s"] = f"{float(f'{limits.bytes_per_s / 1e6:.3g}'):g}MB/s"
    if limits and limits.io_unit_bytes:
        found["io_unit"] = f"{round(limits.io_unit_bytes / 1024)}KiB"
    if curve:
        latencies = CommentedMap({depth: f"{latency_s * 1000:.3g}ms" for depth, latency_s in curve})
        latencies.fa.set_flow_style()
        found["latency"] = latencies
    made = CommentedMap(found)
    made.fa.set_flow_style()
    return made
