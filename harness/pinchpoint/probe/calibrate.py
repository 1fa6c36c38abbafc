"""A probe's caps written into farm.yaml, as the ``limits`` of a disk that nothing is declared of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from pinchpoint.analysis.disk_types import limits_words
from pinchpoint.analysis.inputs import Limits
from pinchpoint.errors import InputError
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import Verdict


def calibrate(farm_file: Path, probe: Probe, verdict: Verdict) -> str:
    """Write what was found into ``tiers`` of the farm.yaml; what was done, in a sentence.

    Comments and order of the file stay. Nothing is written where no cap was found. Raises InputError where
    the disk is declared already, or the file cannot be written.
    """
    limits = verdict.caps.limits
    disk = str(probe.where.disk)
    if limits is None:
        return f"{farm_file}: no cap of {disk} was found, so nothing was written"
    found = limits_words(limits.iops, limits.bytes_per_s)
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    try:
        content = yaml.load(farm_file.read_text(encoding="utf-8"))
        entry = _entry(content, disk)
        said = [key for key in ("profile", "limits") if entry.get(key) not in (None, "unknown")]
        if said:
            raise InputError(
                f"{farm_file}: {disk} is declared already ({', '.join(said)}); a calibration does not "
                f"overrule that: take it out, or compare it with what was found ({found})"
            )
        entry["limits"] = _figures(limits)
        partial = farm_file.with_name(f".{farm_file.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            yaml.dump(content, file)
        partial.chmod(farm_file.stat().st_mode)
        partial.replace(farm_file)
    except (OSError, YAMLError) as error:
        raise InputError(f"{farm_file}: cannot be changed: {error}") from error
    return f"{farm_file}: {disk} has now limits of {found}, as measured"


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


def _figures(limits: Limits) -> CommentedMap:
    """Three digits: what a measurement carries."""
    found: dict[str, Any] = {}
    if limits.iops:
        found["iops"] = int(float(f"{limits.iops:.3g}")) if limits.iops >= 1 else limits.iops
    if limits.bytes_per_s:
        found["bytes_per_s"] = f"{float(f'{limits.bytes_per_s / 1e6:.3g}'):g}MB/s"
    made = CommentedMap(found)
    made.fa.set_flow_style()
    return made
