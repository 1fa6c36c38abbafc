"""Emulated disks: block devices that do what they are told, and no more."""

from pinchpoint_infra.disks.record import Device, DiskError, DiskSpec, WarmUp
from pinchpoint_infra.disks.support import Support, support

__all__ = ["Device", "DiskError", "DiskSpec", "Support", "WarmUp", "support"]
