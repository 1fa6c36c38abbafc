"""Drivers of nosql-burst, one file per kind of store, behind one contract."""

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
"""URL scheme -> the module of its driver, imported at its first use: no run needs all of them."""


def store(endpoint: Endpoint, name: str, params: NosqlBurstParams) -> Store:
    """The store of an endpoint, by its URL's scheme.

    Args:
        endpoint: its endpoint.
        name: the scenario's name in the plan, which is part of its data's names.
        params: the scenario's.

    Raises:
        ScenarioError: the scheme is unknown.
    """
    scheme = urlsplit(endpoint.url).scheme
    if scheme not in SCHEMES:
        raise ScenarioError(f"endpoint {endpoint.name}: {unknown('URL scheme', scheme, SCHEMES)}")
    driver = import_module(f".{SCHEMES[scheme]}", __package__)
    made: Store = driver.open_store(endpoint, name, params)
    return made
