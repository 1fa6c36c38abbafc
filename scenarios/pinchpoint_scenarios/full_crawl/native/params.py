"""Defines the parameters of a crawl by a SharePoint farm's own crawler."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from ...contract import Params
from ...units import Seconds

_Name = Annotated[str, Field(min_length=1)]


class NativeParams(Params):
    """``params: {drive: native, native: {...}}`` of full-crawl.

    Attributes:
        application: the search service application; None: the only one the farm has.
        content_sources: the content sources that are crawled at the same time; empty: all sources.
        poll: how often the farm is asked for the progress of its crawls.
        start_within: a crawl that does not begin within this time has failed.
        stop_within: how long is waited for crawls that were stopped to be idle.
        reset_within: how long emptying the index may take.
        reconnect_within: after this time without a link the crawl is no longer watched, and its results are
            lost.
    """

    application: _Name | None = None
    content_sources: tuple[_Name, ...] = ()
    poll: Seconds = 5.0
    start_within: Seconds = 600.0
    stop_within: Seconds = 600.0
    reset_within: Seconds = 1800.0
    reconnect_within: Seconds = 600.0

    @field_validator("content_sources")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the content source {twice[0]!r} is named twice; name each once")
        return names
