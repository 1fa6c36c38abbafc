"""Caps the kernel's block I/O controller puts on a device, version 1 and 2."""

from __future__ import annotations

import errno
from pathlib import Path

from pinchpoint_infra.disks.record import DiskSpec

_V1 = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}


def limits(spec: DiskSpec) -> dict[str, int]:
    """The caps under version 2's names (``riops``, ``wbps`` ...), reads and writes apart.

    A cap of both together holds for each of them: the controller knows no common one.
    """
    found = {
        "riops": _lowest(spec.iops, spec.read_iops),
        "wiops": _lowest(spec.iops, spec.write_iops),
        "rbps": _lowest(spec.bytes_per_s, spec.read_bytes_per_s),
        "wbps": _lowest(spec.bytes_per_s, spec.write_bytes_per_s),
    }
    return {name: round(value) for name, value in found.items() if value is not None}


def set_v1(root: Path, numbers: str, caps: dict[str, int]) -> None:
    """Cap a device for everybody: in the root group journal and write-back obey too. 0 lifts a cap."""
    for name, file in _V1.items():
        try:
            (root / file).write_text(f"{numbers} {caps.get(name, 0)}")
        except OSError as error:
            if error.errno != errno.ENODEV or name in caps:  # a device that is gone has no caps to lift
                raise


def set_v2(group: Path, numbers: str, caps: dict[str, int]) -> None:
    """Cap a device for one control group; ``max`` lifts a cap."""
    words = [f"{name}={caps.get(name, 'max')}" for name in _V1]
    (group / "io.max").write_text(f"{numbers} {' '.join(words)}")


def _lowest(*values: float | None) -> float | None:
    return min((value for value in values if value is not None), default=None)
