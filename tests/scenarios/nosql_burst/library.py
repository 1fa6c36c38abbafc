"""Cassandra by its driver's library, which the fast path is held against."""

from __future__ import annotations

from pinchpoint_scenarios.nosql_burst.stores.cassandra import Cassandra
from pinchpoint_scenarios.nosql_burst.stores.cassandra.library import LibraryConnection


def by_library(store: Cassandra, session: int) -> LibraryConnection:
    """What ``Cassandra.connect`` gives a session, by the library."""
    del session  # it reaches all nodes
    return LibraryConnection(store._shared, store._statements, prepared=True)
