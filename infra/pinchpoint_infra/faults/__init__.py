"""Faults of a farm besides slow disks: too little CPU or memory, delays in front of an endpoint."""
