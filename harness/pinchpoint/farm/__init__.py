"""Prepares a farm for load: a declared farm, or an embedded one that is started on this machine."""
