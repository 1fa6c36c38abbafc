"""The site for browsers and web crawlers: pages that link, files by their address, robots.txt, sitemaps."""

from __future__ import annotations

import gzip
import html
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from pinchpoint_infra.content.database import SITE, address
from pinchpoint_infra.services.odata import RefusalError, origin
from pinchpoint_infra.services.web_files import CONTENT, DOCUMENTS
from pinchpoint_infra.services.web_store import ContentStore, storable

_ON_A_PAGE = 200
_IN_A_SITEMAP = 5_000
_MAPS = '<?xml version="1.0" encoding="UTF-8"?>\n<{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{1}</{0}>'
_LISTING = "/forms/allitems.aspx"


class WebPages:
    """What is not the API's."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store

    async def answer(self, request: Request) -> Response | None:
        """The answer to a GET outside of ``/_api/``; None where there is no such page."""
        raw = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
        path = unquote(raw, errors="replace")
        lower = path.casefold()
        if lower == "/robots.txt":
            return _robots(origin(request))
        if lower == "/sitemap.xml":
            return await self._sitemaps(origin(request))
        if lower.startswith("/sitemap-") and lower.endswith(".xml.gz"):
            return await self._sitemap(
                origin(request), lower.removeprefix("/sitemap-").removesuffix(".xml.gz")
            )
        if lower in {"/", SITE, f"{SITE}/"}:
            return await self._home()
        if lower.startswith(f"{SITE}/") and lower.endswith(_LISTING):
            title = path[len(SITE) + 1 : -len(_LISTING)]
            return await self._listing(title, request.query_params.get("after", "0"))
        return await self._file(path, request.headers) if lower.startswith(f"{SITE}/") else None

    async def _home(self) -> Response:
        rows = await self._store.rows("SELECT title, documents FROM lists ORDER BY id")
        links = [(f"{SITE}/{title}/Forms/AllItems.aspx", f"{title} ({count})") for title, count in rows]
        return _page("Corpus", links)

    async def _listing(self, title: str, after: str) -> Response | None:
        if not (after.isascii() and after.isdecimal() and len(after) < 10):
            raise RefusalError(400, "after: a whole number is needed")
        rows = await self._store.rows(
            "SELECT documents.id, path FROM documents JOIN lists ON lists.id = list_id"
            " WHERE title = %s AND documents.id > %s ORDER BY documents.id LIMIT %s",
            (storable(title), int(after), _ON_A_PAGE),
        )
        if not rows:
            return None
        links = [(path, path.rpartition("/")[2]) for _, path in rows]
        more = f"{SITE}/{title}/Forms/AllItems.aspx", f"after={rows[-1][0]}"
        return _page(title, links, more if len(rows) == _ON_A_PAGE else None)

    async def _file(self, path: str, headers: Mapping[str, str]) -> Response | None:
        rows = await self._store.rows(
            f"SELECT documents.content_type, documents.modified, {CONTENT} FROM {DOCUMENTS}"  # noqa: S608 - made of our own words
            " WHERE documents.address = %s ORDER BY documents.path = %s DESC LIMIT 1",
            (address(path), storable(path)),
            binary=True,
        )
        if not rows:
            return None
        ((content_type, modified, content),) = rows
        tag = f'"{int(modified.timestamp() * 1e6):x}-{len(content):x}"'
        fields = {
            "Content-Type": content_type,
            "ETag": tag,
            "Last-Modified": format_datetime(modified.astimezone(UTC), usegmt=True),
        }
        if headers.get("if-none-match") == tag or (
            "if-none-match" not in headers and _since(headers.get("if-modified-since", ""), modified)
        ):
            return Response(status_code=304, headers=fields)
        return Response(content, headers=fields)

    async def _sitemaps(self, site: str) -> Response:
        ((last,),) = await self._store.rows("SELECT coalesce(max(id), 0) FROM documents")
        count = -(-last // _IN_A_SITEMAP)
        parts = (f"<sitemap><loc>{site}/sitemap-{number}.xml.gz</loc></sitemap>" for number in range(count))
        return Response(_MAPS.format("sitemapindex", "".join(parts)), media_type="application/xml")

    async def _sitemap(self, site: str, number: str) -> Response | None:
        if not (number.isascii() and number.isdecimal() and len(number) < 6):
            return None
        first = int(number) * _IN_A_SITEMAP
        rows = await self._store.rows(
            "SELECT path, modified FROM documents WHERE id > %s AND id <= %s ORDER BY id",
            (first, first + _IN_A_SITEMAP),
        )
        entries = "".join(
            f"<url><loc>{html.escape(site + quote(path))}</loc><lastmod>{_iso(modified)}</lastmod></url>"
            for path, modified in rows
        )
        content = gzip.compress(_MAPS.format("urlset", entries).encode(), 1, mtime=0)
        return Response(content, media_type="application/gzip") if rows else None


def _robots(site: str) -> Response:
    lines = (
        "User-agent: *",
        "Disallow: /_api/",
        "Disallow: /_layouts/",
        "",
        f"Sitemap: {site}/sitemap.xml",
        "",
    )
    return Response("\n".join(lines), media_type="text/plain")


def _page(title: str, links: list[tuple[str, str]], more: tuple[str, str] | None = None) -> Response:
    entries = "".join(f'<li><a href="{quote(where)}">{html.escape(name)}</a>\n' for where, name in links)
    following = f'<p><a rel="next" href="{quote(more[0])}?{more[1]}">More</a>' if more else ""
    return Response(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        f'<meta name=robots content="noindex"><h1>{html.escape(title)}</h1><ul>\n{entries}</ul>{following}'
        "</html>",
        media_type="text/html",
    )


def _since(given: str, modified: datetime) -> bool:
    """Whether nothing changed since the time a client names."""
    try:
        return bool(given) and modified.replace(microsecond=0) <= parsedate_to_datetime(given)
    except (ValueError, TypeError):
        return False


def _iso(time: Any) -> str:
    return str(time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
