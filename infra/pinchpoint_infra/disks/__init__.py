"""Emulated disks: block devices with chosen limits and latency."""

from pinchpoint_infra.disks.record import Device, DiskError, DiskSpec, WarmUp
from pinchpoint_infra.disks.support import Support, support

__all__ = ["Device", "DiskError", "DiskSpec", "Support", "WarmUp", "support"]
