"""Reads cloud platforms: the shares of their limits that disks and machines used."""
