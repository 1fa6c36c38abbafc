"""Farms: the embedded one, and the catalogue of disks and machines."""
