"""Lists the content sources of full-crawl, one module per kind."""

from __future__ import annotations

from ...contract import Endpoint
from ..params import FullCrawlParams, SourceParams
from .contract import Changes, Fetched, Grant, Item, ItemKind, Kind, Repository, Source
from .files import FileRepository
from .profiles import Profiles
from .sharepoint import SharePoint
from .web import WebRepository

__all__ = [
    "KINDS",
    "Changes",
    "Fetched",
    "Grant",
    "Item",
    "ItemKind",
    "Kind",
    "Repository",
    "Source",
    "repository",
]

KINDS: dict[str, Kind] = {
    "sharepoint": SharePoint,
    "web": WebRepository,
    "files": FileRepository,
    "profiles": Profiles,
}
"""``kind`` in a plan -> its repository."""


def repository(source: SourceParams, endpoint: Endpoint, params: FullCrawlParams) -> Repository:
    """Return the repository of one entry of a plan, for all sessions of this process.

    Raises:
        ScenarioError: the options of the endpoint or of the source are invalid together.
    """
    return KINDS[source.kind](endpoint, source, params)
