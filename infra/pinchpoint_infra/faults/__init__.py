"""Emulates faults other than slow disks: too little CPU or memory, and delays in front of an endpoint."""
