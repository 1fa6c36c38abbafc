"""Disks: a device, all disks of a machine together, or a disk known only by the counters of its database."""
