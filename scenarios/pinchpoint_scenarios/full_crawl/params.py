"""The parameters of full-crawl."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..contract import Params
from ..duration import Seconds


class SourceParams(Params):
    """One content source.

    Attributes:
        kind: ``sharepoint`` (a site's REST API) or ``files`` (a folder).
        name: how results name it; by default the endpoint's name.
        endpoint: which of the farm's endpoints it is; by default the one named like the kind.
        url: of a site, in place of an endpoint (reached without credentials).
        path: of a folder, in place of an endpoint.
    """

    kind: Literal["sharepoint", "files"]
    name: Annotated[str, Field(min_length=1, pattern=r"^[\w.-]+$")] | None = None
    endpoint: str | None = None
    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")] | None = None
    path: Annotated[str, Field(pattern=r"^/")] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> SourceParams:
        fitting = "url" if self.kind == "sharepoint" else "path"
        other = "path" if self.kind == "sharepoint" else "url"
        if getattr(self, other) is not None:
            raise ValueError(f"{other} is not for a source of kind {self.kind}; use {fitting} or endpoint")
        if self.endpoint is not None and getattr(self, fitting) is not None:
            raise ValueError(
                f"both endpoint and {fitting} are given; allowed is one of them: remove the other"
            )
        return self

    @property
    def label(self) -> str:
        """The name results use."""
        return self.name or self.endpoint or self.kind


class FullCrawlParams(Params):
    """``params`` of full-crawl.

    Attributes:
        sources: what is crawled, all at once; empty: every source the farm's endpoints offer.
        retries: how often a failed request is tried again (where that can help at all).
        timeout_s: limit of one whole request.
        page_size: list items asked for at a time.
        batch: queue items a session takes at a time.
    """

    sources: tuple[SourceParams, ...] = ()
    retries: Annotated[int, Field(ge=0, le=100)] = 2
    timeout_s: Seconds = 30.0
    page_size: Annotated[int, Field(ge=1, le=5000)] = 100  # 5,000 is SharePoint's own list view threshold
    batch: Annotated[int, Field(ge=1, le=1000)] = 1

    @model_validator(mode="after")
    def _different_names(self) -> FullCrawlParams:
        labels = [source.label for source in self.sources]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ValueError(f"two sources are named {twice[0]!r}; give each its own name")
        return self

    @property
    def lease_s(self) -> float:
        """How long a session may hold what it has taken.

        Its requests (a fetch and an index request per document), each with its retries and the pauses
        between, can take no longer; so who holds an item beyond that is dead.
        """
        return 3 * self.timeout_s * (self.retries + 1) * self.batch
