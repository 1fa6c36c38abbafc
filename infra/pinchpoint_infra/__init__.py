"""Runs the embedded farm, emulates disks and faults, and has the catalogue of disks and machines."""
