"""Cassandra and ScyllaDB: the driver's library, and past it where every operation goes."""

from __future__ import annotations

from .store import Cassandra, open_store

__all__ = ["Cassandra", "open_store"]
