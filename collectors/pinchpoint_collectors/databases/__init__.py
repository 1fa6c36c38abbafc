"""Servers watched from within: what a database says of its own waits, disks and locks."""
