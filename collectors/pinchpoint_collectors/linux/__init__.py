"""Reads this Linux machine: files, devices and tests. ``proc`` has the parsers."""
