"""Lists the drivers of nosql-burst, one module per kind of store."""

from __future__ import annotations

from importlib import import_module
from urllib.parse import urlsplit

from pinchpoint_collectors.common import valkey_urls
from pinchpoint_collectors.common.names import unknown

from ...contract import Endpoint
from ...errors import ScenarioError
from ..params import NosqlBurstParams
from .contract import Store, StoreConnection

__all__ = ["SCHEMES", "Store", "StoreConnection", "store"]

SCHEMES = {
    **dict.fromkeys(valkey_urls.SCHEMES, "valkey"),
    "cassandra": "cassandra",
    "scylla": "cassandra",
    "mongodb": "mongodb",
    "mongodb+srv": "mongodb",
}
"""URL scheme -> module of the driver. It is imported at its first use, because no run needs all drivers."""


def store(endpoint: Endpoint, name: str, params: NosqlBurstParams) -> Store:
    """Return the store of an endpoint, by the scheme of its URL.

    Args:
        endpoint: endpoint of the store.
        name: name of the scenario in the plan, which is part of the names of its data.
        params: parameters of the scenario.

    Raises:
        ScenarioError: the scheme is unknown.
    """
    scheme = urlsplit(endpoint.url).scheme
    if scheme not in SCHEMES:
        raise ScenarioError(f"endpoint {endpoint.name}: {unknown('URL scheme', scheme, SCHEMES)}")
    driver = import_module(f".{SCHEMES[scheme]}", __package__)
    made: Store = driver.open_store(endpoint, name, params)
    return made
