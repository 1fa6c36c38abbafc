"""Content sources of full-crawl, one file per kind, behind one contract."""

from __future__ import annotations

from ...contract import Endpoint
from ..params import FullCrawlParams, SourceParams
from .contract import Item, Kind, Source
from .files import Files
from .sharepoint import SharePoint

__all__ = ["KINDS", "Item", "Kind", "Source", "make"]

KINDS: dict[str, Kind] = {"sharepoint": SharePoint, "files": Files}
"""``kind`` in a plan, which is also the endpoint it uses by default -> how it is made."""


def make(source: SourceParams, endpoint: Endpoint, params: FullCrawlParams) -> Source:
    """The source of one entry of a plan."""
    return KINDS[source.kind](endpoint, params)
