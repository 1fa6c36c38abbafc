"""The parameters of full-crawl."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..contract import Params
from ..units import Seconds
from .native.params import NativeParams
from .source_params import SourceParams

__all__ = ["FullCrawlParams", "NativeParams", "SourceParams"]


class FullCrawlParams(Params):
    """``params`` of full-crawl.

    Attributes:
        drive: ``pinchpoint``: the crawl is made here; ``native``: a SharePoint farm makes it itself.
        native: of a crawl that the farm makes itself, which takes none of what follows.
        mode: ``full``: the index is reset and everything crawled; ``incremental``: only what has changed
            since the last crawl, whose crawl database was kept (``run --keep-data``).
        sources: what is crawled, all at once; empty: every source the farm's endpoints offer.
        retries: how often a failed request is tried again (where that can help at all).
        timeout_s: limit of one whole request.
        page_size: list items asked for at a time.
        batch: queue items a session takes, and hands in as done, at a time.
    """

    drive: Literal["pinchpoint", "native"] = "pinchpoint"
    native: NativeParams | None = None
    mode: Literal["full", "incremental"] = "full"
    sources: tuple[SourceParams, ...] = ()
    retries: Annotated[int, Field(ge=0, le=100)] = 2
    timeout_s: Seconds = 30.0
    page_size: Annotated[int, Field(ge=1, le=5000)] = 100  # 5,000 is SharePoint's own list view threshold
    batch: Annotated[int, Field(ge=1, le=1000)] = 1

    def paths(self) -> tuple[str, ...]:
        """The folders among the sources; a share is no file of this machine."""
        return tuple(source.path for source in self.sources if source.path and source.path.startswith("/"))

    @model_validator(mode="after")
    def _of_one_drive(self) -> FullCrawlParams:
        if self.drive == "pinchpoint" and self.native is not None:
            raise ValueError("native: only where the farm itself crawls; add drive: native, or remove it")
        wrong = sorted(self.model_fields_set - {"drive", "native"}) if self.drive == "native" else []
        if wrong:
            raise ValueError(
                f"{', '.join(wrong)}: only where Pinchpoint itself crawls; with drive: native it is the "
                "farm's search administration that says what is crawled and how: remove them"
            )
        return self

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
