"""Provides the command ``pinchpoint-collect``, which records a host, and the collector of its recordings."""
