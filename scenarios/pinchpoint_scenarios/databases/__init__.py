"""Drivers for SQL servers, shared by every scenario that needs one."""
