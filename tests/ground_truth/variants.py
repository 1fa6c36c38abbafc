"""The declared limits of disks: as they are, withheld, or wrong by a factor of two.

All variants have the same measurements. The confidence may decrease, but the answer may not change (METHOD
3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

Manifest = Mapping[str, Any]

FIGURES = ("iops", "bytes_per_s")
"""The limits that are wrong in a wrong declaration; the unit of I/Os stays right."""


def blind(manifest: Manifest) -> dict[str, Any]:
    """Return a copy without the description of the embedded farm."""
    copy = deepcopy(dict(manifest))
    copy.get("farm", {}).pop("embedded", None)
    return copy


def withheld(manifest: Manifest) -> dict[str, Any]:
    """Return a copy without the declared limits of disks and machines."""
    copy = blind(manifest)
    for host in _hosts(copy):
        host.pop("machine", None)
        host["disks"] = {
            role: {key: value for key, value in disk.items() if key in ("device", "path")}
            for role, disk in (host.get("disks") or {}).items()
        }
    return copy


def declared_times(manifest: Manifest, factor: float) -> dict[str, Any]:
    """Return a copy with declared limits times ``factor``; a profile becomes its figures."""
    copy = blind(manifest)
    for host in _hosts(copy):
        for disk in (host.get("disks") or {}).values():
            limits = disk.get("resolved_limits") or disk.get("limits")
            if isinstance(limits, dict):
                wrong = {key: v * factor if key in FIGURES else v for key, v in limits.items()}
                disk.pop("profile", None)
                disk["limits"], disk["resolved_limits"] = dict(wrong), wrong
    return copy


VARIANTS: Mapping[str, Callable[[Manifest], dict[str, Any]]] = {
    "declared": blind,
    "withheld": withheld,
    "declared x2": lambda manifest: declared_times(manifest, 2.0),
    "declared /2": lambda manifest: declared_times(manifest, 0.5),
}
"""The variants of each run by name; ``declared`` is first."""


def _hosts(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    tiers = (manifest.get("farm") or {}).get("tiers") or {}
    return [host for tier in tiers.values() for host in (tier.get("hosts") or {}).values()]
