"""Chooses how a disk is emulated on this machine."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pinchpoint_infra.disks.record import DiskSpec
from pinchpoint_infra.disks.support import DiskSupport

# The functions below set the limits of a device with the kernel's block I/O controller, version 1 and 2.

_V1 = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}


def limits(spec: DiskSpec) -> dict[str, int]:
    """Return the limits as in version 2 (``riops``, ``wbps`` ...), with separate limits of reads and writes.

    A common limit of reads and writes is set for each of them, because the controller has no common limit.
    """
    result = {
        "riops": _lowest(spec.iops, spec.read_iops),
        "wiops": _lowest(spec.iops, spec.write_iops),
        "rbps": _lowest(spec.bytes_per_s, spec.read_bytes_per_s),
        "wbps": _lowest(spec.bytes_per_s, spec.write_bytes_per_s),
    }
    return {name: round(value) for name, value in result.items() if value is not None}


def set_v1(root: Path, numbers: str, caps: dict[str, int]) -> None:
    """Limit a device for all processes.

    The root group also limits journal and write-back. 0 removes a limit.
    """
    for name, file in _V1.items():
        try:
            (root / file).write_text(f"{numbers} {caps.get(name, 0)}")
        except OSError as error:
            if error.errno != errno.ENODEV or name in caps:  # a removed device has no limits to lift
                raise


def set_v2(group: Path, numbers: str, caps: dict[str, int]) -> None:
    """Limit a device for one control group. ``max`` removes a limit."""
    words = [f"{name}={caps.get(name, 'max')}" for name in _V1]
    (group / "io.max").write_text(f"{numbers} {' '.join(words)}")


def _lowest(*values: float | None) -> float | None:
    return min((value for value in values if value is not None), default=None)


MODEL_IO_PER_S = 6000
"""Largest rate of the model per second (5,000 measured at depths 1 and 32, at 0.1 ms CPU time per I/O)."""
_USUAL_IO_BYTES = 8192


@dataclass(frozen=True, slots=True)
class DiskStack:
    """The layers that an emulated disk is built from.

    Attributes:
        model: properties of the device that the time model imitates; None: no model.
        throttle: version of the control groups that limit the device; None: no limits.
        notes: sentences on differences from the requested disk.
    """

    model: DiskSpec | None
    throttle: Literal["v1", "v2"] | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = {
            "v1": "blkio of control groups v1 (root group)",
            "v2": "io of control groups v2 (tier's group)",
        }
        parts = ["FUSE time model"] if self.model else []
        parts += [words[self.throttle]] if self.throttle else []
        return " + ".join(parts) or "a device of its own, without limits"


def choose(spec: DiskSpec, support: DiskSupport) -> DiskStack | str:
    """Return how to build a disk, or a sentence that names what this machine lacks."""
    if not support.loop:
        return support.missing["loop"]
    controller: Literal["v1", "v2"] | None = "v1" if support.v1 else "v2" if support.v2 else None
    capped = bool(limits(spec))
    by_model = _only_model(spec)
    caps_by_model = capped and (by_model or _rate(spec) <= MODEL_IO_PER_S) and _common(spec)
    timed = by_model or bool(spec.latency_s or spec.jitter_s or spec.device)
    if not support.fuse and timed:
        return support.missing["model"]
    if (caps_by_model and not support.fuse) or (capped and not caps_by_model and controller is None):
        caps_by_model = not caps_by_model  # the other method can do it less exactly
        if (caps_by_model and not support.fuse) or (not caps_by_model and controller is None):
            return support.missing["throttle"]
    return _assembled(spec, controller if capped and not caps_by_model else None, timed, caps_by_model)


def _assembled(
    spec: DiskSpec, throttle: Literal["v1", "v2"] | None, timed: bool, caps_by_model: bool
) -> DiskStack:
    notes = []
    if caps_by_model and _rate(spec) > MODEL_IO_PER_S:
        notes.append(
            f"its cap of {_rate(spec):,.0f} I/O per second may be out of the time model's reach "
            f"(about {MODEL_IO_PER_S:,})"
        )
    if throttle and _common(spec):
        notes.append(
            "its cap holds for reads and for writes apart: the block I/O controller has no common one"
        )
    if not (timed or caps_by_model):
        return DiskStack(None, throttle, tuple(notes))
    return DiskStack(spec if caps_by_model else without_caps(spec), throttle, tuple(notes))


def without_caps(spec: DiskSpec) -> DiskSpec:
    """Return the same disk without its limits."""
    return replace(
        spec,
        iops=None,
        bytes_per_s=None,
        read_iops=None,
        write_iops=None,
        read_bytes_per_s=None,
        write_bytes_per_s=None,
        burst=None,
    )


def _only_model(spec: DiskSpec) -> bool:
    """Return whether the disk needs something that no block I/O controller can do."""
    return bool(spec.burst or spec.warm_up or spec.io_unit_bytes or spec.stripes > 1 or spec.host_cache_bytes)


def _common(spec: DiskSpec) -> bool:
    return spec.iops is not None or spec.bytes_per_s is not None or _only_model(spec)


def _rate(spec: DiskSpec) -> float:
    """Return the I/Os per second that the limits allow. Limits in bytes count at the usual I/O size."""
    burst = spec.burst
    by_count = max(spec.iops or 0, burst.iops if burst else 0) or float("inf")
    by_bytes = max(spec.bytes_per_s or 0, burst.bytes_per_s if burst else 0) or float("inf")
    return spec.stripes * min(by_count, by_bytes / _USUAL_IO_BYTES)
