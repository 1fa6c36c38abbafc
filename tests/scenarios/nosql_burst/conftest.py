"""One keyspace for all Cassandra tests of this folder."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from cassandra.cluster import Cluster
from serverprocess import ServerProcess

from pinchpoint_scenarios.contract import Endpoint

REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture(scope="session")
def cassandra_endpoint(cassandra_server: ServerProcess) -> Endpoint:
    """Yield a real Cassandra 5 with a keyspace of this folder."""
    url = urlsplit(cassandra_server.url)
    with Cluster([url.hostname], port=url.port, protocol_version=4) as cluster:
        cluster.connect().execute(f"CREATE KEYSPACE burst WITH replication = {REPLICATION}")
    return Endpoint("nosql", f"cassandra://127.0.0.1:{url.port}/burst")  # it ends with the server
