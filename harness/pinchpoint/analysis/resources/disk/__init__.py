"""Disks: a device, all disks of a machine together, or what a database counts of one nobody looks at."""
