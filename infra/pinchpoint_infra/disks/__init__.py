"""Emulates disks: block devices with chosen limits and latency."""

from pinchpoint_infra.disks.record import Device, DiskError, DiskSpec, SlowStart
from pinchpoint_infra.disks.support import DiskSupport, support

__all__ = ["Device", "DiskError", "DiskSpec", "DiskSupport", "SlowStart", "support"]
