"""Faults a farm can be given besides slow disks: too little CPU or memory, a long way to an endpoint."""
