"""Defines the parameters of full-crawl."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..contract import Params
from ..units import Seconds
from .native.params import NativeParams

# The parameters of one content source of full-crawl.

SourceKind = Literal["sharepoint", "web", "files", "profiles"]

_PLACE = {"sharepoint": "url", "web": "url", "files": "path", "profiles": "url"}
_ONLY_WEB = ("hosts", "include", "exclude", "depth", "sitemaps", "robots", "user_agent")


class SourceParams(Params):
    """One content source.

    Attributes:
        kind: ``sharepoint`` (a site's REST API), ``web`` (pages and their links), ``files`` (a folder or an
            SMB share), ``profiles`` (the user profiles of a SharePoint server).
        name: its name in results; by default the endpoint's name, for profiles their kind's.
        endpoint: the farm's endpoint; by default the one with the kind's name, for profiles ``sharepoint``.
        url: of a site, in place of an endpoint.
        path: of a folder, or ``smb://HOST/SHARE``, in place of an endpoint.
        login: the farm's endpoint whose credentials are used at ``url`` or ``path``; None: no login.
        workers: largest number of the crawl's sessions that work on it at once; None: all of them.
        delay: pause between the starts of two requests to one host, in each process that crawls; None: no
            pause except that of the host's robots.txt.
        per_host: largest number of simultaneous requests to one host, in each process; None: no separate
            limit.
        access: whether access lists are read, which needs further requests.
        hosts: web: further hosts of the source; ``*.example`` means all below example.
        include: web: only addresses that match one of these patterns are crawled. ``*`` matches anything; a
            pattern that begins with ``/`` is compared with path and query, any other with the whole URL.
        exclude: web: addresses that match one of these patterns are not crawled, even if ``include`` matches.
        depth: web: largest number of links from the start, or from a sitemap; None: unlimited.
        sitemaps: web: whether sitemaps named by robots.txt, else ``/sitemap.xml``, are crawled.
        robots: web: whether robots.txt is obeyed; False is only for a site of your own.
        user_agent: web: the crawler's name in requests.
    """

    kind: SourceKind
    name: Annotated[str, Field(min_length=1, pattern=r"^[\w.-]+$")] | None = None
    endpoint: str | None = None
    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+")] | None = None
    path: Annotated[str, Field(pattern=r"^(/|smb://[^/\s]+/[^/\s]+)")] | None = None
    login: str | None = None
    workers: Annotated[int, Field(ge=1, le=10_000)] | None = None
    delay: Seconds | None = None
    per_host: Annotated[int, Field(ge=1, le=10_000)] | None = None
    access: bool = True
    hosts: tuple[Annotated[str, Field(pattern=r"^(\*\.)?[^\s/*:]+(:\d+)?$")], ...] = ()
    include: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    exclude: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    depth: Annotated[int, Field(ge=0, le=1_000)] | None = None
    sitemaps: bool = True
    robots: bool = True
    user_agent: Annotated[str, Field(pattern=r"^[\x21-\x7e][\x20-\x7e]*$")] = "pinchpoint"

    @model_validator(mode="after")
    def _one_place(self) -> SourceParams:
        fitting = _PLACE[self.kind]
        other = "path" if fitting == "url" else "url"
        if getattr(self, other) is not None:
            raise ValueError(f"{other} is not for a source of kind {self.kind}; use {fitting} or endpoint")
        if self.endpoint is not None and getattr(self, fitting) is not None:
            raise ValueError(
                f"both endpoint and {fitting} are given; allowed is one of them: remove the other"
            )
        if self.login is not None and getattr(self, fitting) is None:
            raise ValueError(
                f"login is for a source with a {fitting} of its own; an endpoint has a login: remove it"
            )
        return self

    @model_validator(mode="after")
    def _web_alone(self) -> SourceParams:
        wrong = sorted(self.model_fields_set.intersection(_ONLY_WEB)) if self.kind != "web" else []
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: only for a source of kind web; this one is {self.kind}")
        return self

    @property
    def endpoint_name(self) -> str:
        """Return the endpoint of a source without an address of its own."""
        return self.endpoint or ENDPOINT_OF[self.kind]

    @property
    def label(self) -> str:
        """Return the name of the source in results."""
        return self.name or (self.kind if self.kind == "profiles" else self.endpoint or self.kind)


ENDPOINT_OF: dict[SourceKind, str] = {
    "sharepoint": "sharepoint",
    "web": "web",
    "files": "files",
    "profiles": "sharepoint",
}
"""Kind of source -> its default endpoint."""


__all__ = ["FullCrawlParams", "NativeParams", "SourceParams"]


class FullCrawlParams(Params):
    """``params`` of full-crawl.

    Attributes:
        drive: ``pinchpoint``: Pinchpoint crawls; ``native``: a SharePoint farm's own crawler does.
        native: parameters of a crawl by the farm itself, which uses none of the following ones.
        mode: ``full``: the index is reset and everything crawled; ``incremental``: only changes since the
            last crawl, whose crawl database was kept (``run --keep-data``).
        sources: the sources, crawled at the same time; empty: every source of the farm's endpoints.
        retries: number of retries of a failed request, if a retry can help.
        timeout_s: time limit of one whole request.
        page_size: list items per request.
        batch: number of queue items that a session takes, and reports as done, at a time.
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
        """Return the folders among the sources. A share is not a file of this machine."""
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
        """Return the seconds for which a session may keep its items.

        The requests of a session (a fetch and an index request per document), with retries and pauses, cannot
        take longer. A session that keeps an item for longer is therefore dead.
        """
        return 3 * self.timeout_s * (self.retries + 1) * self.batch
