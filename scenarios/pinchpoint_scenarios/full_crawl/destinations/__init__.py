"""Lists the destinations of crawled documents, one module per kind."""

from __future__ import annotations

from pinchpoint_collectors.common.names import unknown

from ...contract import Endpoint
from ...errors import ScenarioError
from .contract import Destination, Kind, Service
from .nowhere import NoIndex
from .opensearch import OpenSearch
from .pinchpoint import Pinchpoint

__all__ = ["KINDS", "Destination", "Kind", "Service", "service"]

KINDS: dict[str, Kind] = {"pinchpoint": Pinchpoint, "opensearch": OpenSearch, "none": NoIndex}
"""``kind`` of ``endpoints.search`` -> its service."""


def service(endpoint: Endpoint, scenario: str, timeout_s: float) -> Service:
    """Return the destination of a crawl, for all sessions of this process.

    Raises:
        ScenarioError: the kind of the destination is unknown, or its options are invalid.
    """
    kind = endpoint.options.get("kind", "pinchpoint")
    if kind not in KINDS:
        raise ScenarioError(f"endpoint {endpoint.name}: {unknown('kind', kind, KINDS)}")
    return KINDS[kind](endpoint, scenario, timeout_s)
