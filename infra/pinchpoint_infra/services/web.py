"""Runs the ``web`` tier: a SharePoint-style site from the content database.

``python -m pinchpoint_infra.services.web CONFIG.json`` reads ``{"port": n, "token": text, "database_url":
URL}``. Optional keys are ``"people": n`` (number of users) and ``"throttle": {"requests_per_s": x,
"retry_after_s": n, "status": 429}`` (refuse requests above a rate from the start).

Every request except ``/health`` needs ``Authorization: Bearer TOKEN``. Paths are accepted in any case, also
below ``/sites/corpus``. The ``Accept`` header selects the form of the JSON: ``odata=nometadata``,
``odata=verbose``, or the form between these if it only says JSON. An unknown option is refused and not
ignored.

==========================================================  =================================================
``POST /_api/contextinfo``                                  the form digest clients ask for first
``/_api/web``, ``/_api/web/webs``, ``/_api/web/lists``      the site, its sub-sites (none), its libraries
``.../lists/getbytitle('T')``, ``lists(guid'...')``,        one of them
``getlist('/sites/corpus/T')``
``.../items``, ``.../items(1)``                             its documents, by page: ``$top $skiptoken $select
                                                            $filter $expand $orderby``
``.../roleassignments``                                     the access list of a list or an item
``.../getfilebyserverrelativeurl('/path')/$value``          a document's bytes; ``...path(decodedurl=@p)`` too
``.../getfolderbyserverrelativeurl('/path')/files``         the files in a folder; ``/folders`` too
``POST /_api/site/getchanges``, ``web``'s, a list's         change tokens, and what changed since one
``/_api/web/siteusers``, ``sitegroups``, ``ensureuser``     users and groups
``/_api/sp.userprofiles.peoplemanager/getpropertiesfor``    their profiles
``/``, ``/robots.txt``, ``/sitemap.xml``                    the same documents, for a web crawler
``/throttle``                                               how it refuses, and what it counted; POST sets it
==========================================================  =================================================
"""

from __future__ import annotations

import gzip
import hmac
import html
import time
from collections.abc import Awaitable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote

import psycopg
from psycopg_pool import PoolTimeout
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from pinchpoint_infra.content.database import SITE, address
from pinchpoint_infra.faults.throttle import ThrottledEndpoint
from pinchpoint_infra.services.odata import Call, RefusalError, origin, parse, received
from pinchpoint_infra.services.odata_answer import Entity, entity, refusal
from pinchpoint_infra.services.process import configuration, serve
from pinchpoint_infra.services.web_changes import ChangeLog
from pinchpoint_infra.services.web_files import CONTENT, DOCUMENTS
from pinchpoint_infra.services.web_store import SITE_ID, WEB_ID, ContentStore, storable
from pinchpoint_infra.services.web_table import answers, nothing, plain

# The pages for browsers and web crawlers: pages with links, files by address, robots.txt, sitemaps.

_ON_A_PAGE = 200
_IN_A_SITEMAP = 5_000
_MAPS = '<?xml version="1.0" encoding="UTF-8"?>\n<{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{1}</{0}>'
_LISTING = "/forms/allitems.aspx"


class WebPages:
    """Serves the pages outside of the API."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store

    async def answer(self, request: Request) -> Response | None:
        """Return the answer to a GET outside of ``/_api/``; None if there is no such page."""
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
    """Return whether nothing changed since the time of the client."""
    try:
        return bool(given) and modified.replace(microsecond=0) <= parsedate_to_datetime(given)
    except (ValueError, TypeError):
        return False


def _iso(time: Any) -> str:
    return str(time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


# Requests above a rate are refused as by SharePoint: 429 or 503, with ``Retry-After``.


class RequestGate:
    """Lets requests pass at a limited rate, and counts passed and refused requests.

    It is a token bucket for one second of requests: requests not made in one second may come at once in the
    next.

    Args:
        throttle: rate, and how requests above it are refused; None: no limit.
    """

    def __init__(self, throttle: ThrottledEndpoint | None) -> None:
        self.admitted = self.refused = 0
        self.set(throttle)

    def set(self, throttle: ThrottledEndpoint | None) -> None:
        """Set the rate and fill the bucket."""
        self._throttle = throttle
        self._left = self._most = max(1.0, throttle.requests_per_s) if throttle else 0.0
        self._at = time.monotonic()

    def admit(self) -> None:
        """Count one request. Raises ``RefusalError`` above the rate."""
        throttle = self._throttle
        if throttle is not None:
            now = time.monotonic()
            self._left = min(self._most, self._left + (now - self._at) * throttle.requests_per_s)
            self._at = now
            if self._left < 1:
                self.refused += 1
                sentence = "too many requests; wait as Retry-After says"
                raise RefusalError(throttle.status, sentence, throttle.retry_after_s)
            self._left -= 1
        self.admitted += 1

    def describe(self) -> Mapping[str, Any]:
        """Return the setting, and the counts since the start of the service."""
        throttle = asdict(self._throttle) if self._throttle else None
        return {"throttle": throttle, "admitted": self.admitted, "refused": self.refused}


_TITLE = "Corpus"
_DIGEST_VALID_S = 1_800
_HEALTH_WITHIN_S = 1.0
_DEFAULT_PEOPLE = 500
_METHODS = {"GET", "POST"}


class Site:
    """Handles the requests for one content database.

    Args:
        database_url: ``postgresql://`` URL of a database that ``ingest`` has filled.
        token: the bearer token that clients must send.
        people: the number of users.
        throttle: how requests above a rate are refused from the start; None: no request is refused.
    """

    def __init__(
        self,
        database_url: str,
        token: str,
        *,
        people: int = _DEFAULT_PEOPLE,
        throttle: ThrottledEndpoint | None = None,
    ) -> None:
        self._bearer = f"Bearer {token}".encode()
        self._gate = RequestGate(throttle)
        self._store = ContentStore(database_url)
        self._log = ChangeLog(self._store)
        self._pages = WebPages(self._store)
        self._answers = answers(self._store, self._log, people) | {
            "contextinfo": self._context,
            "web": plain(self._web),
            "site": plain(self._site),
            "site/rootweb": plain(self._web),
            "site/openwebbyid()": plain(self._web),
        }

    def app(self) -> Starlette:
        """Return the application."""
        routes = [
            Route("/health", self._health),
            Route("/throttle", self._throttle, methods=["GET", "POST"]),
        ]
        app = Starlette(routes=routes, lifespan=lambda _: self._store.open())
        # the path is no pattern, because it may contain a line feed
        app.router.default = request_response(self.answer)
        return app

    async def answer(self, request: Request) -> Response:
        """Answer any request except ``/health`` and ``/throttle``."""
        return await _refusals_reported(self._admitted(request))

    async def _admitted(self, request: Request) -> Response:
        self._admit(request)
        if request.method == "GET" and "/_api/" not in request.scope["path"].casefold():
            self._gate.admit()
            page = await self._pages.answer(request)
            if page is None:
                raise RefusalError(404, f"there is no {request.scope['path']}; the API is below /_api/")
            return page
        if request.method not in _METHODS:
            raise RefusalError(405, f"{request.method}: the site is read only")
        call = parse(await received(request), SITE)
        self._gate.admit()
        return await self._answers.get(call.steps, nothing)(call)

    def _admit(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, self._bearer):
            raise RefusalError(401, "a bearer token is needed: Authorization: Bearer TOKEN")

    async def _health(self, _: Request) -> Response:
        try:
            await self._store.rows("SELECT FROM lists LIMIT 1", within_s=_HEALTH_WITHIN_S)
        except (psycopg.Error, PoolTimeout) as error:
            return JSONResponse({"ready": False, "reason": str(error)}, 503)
        return JSONResponse({"ready": True})

    async def _throttle(self, request: Request) -> Response:
        """Return the setting and the counts of the gate.

        POST sets the gate (``ThrottledEndpoint`` in JSON, null: none).
        """
        return await _refusals_reported(self._set_throttle(request))

    async def _set_throttle(self, request: Request) -> Response:
        self._admit(request)
        if request.method == "POST":
            try:
                given = await request.json()
                self._gate.set(ThrottledEndpoint(**given) if given is not None else None)
            except (ValueError, TypeError, RecursionError) as error:
                raise RefusalError(400, f"no throttle, and not null: {error}") from error
        return JSONResponse(self._gate.describe())

    async def _context(self, call: Call) -> Response:
        fields = {
            "FormDigestTimeoutSeconds": _DIGEST_VALID_S,
            "FormDigestValue": "0xPINCHPOINT",
            "LibraryVersion": "16.0.0.0",
            "SiteFullUrl": call.origin,
            "WebFullUrl": call.origin,
        }
        return entity(call, fields, "GetContextWebInformation")

    async def _web(self, call: Call) -> Response:
        fields: dict[str, Any] = {
            "Id": WEB_ID, "Title": _TITLE, "Url": call.origin, "ServerRelativeUrl": "/", "WebTemplate": "STS",
            "Language": 1033,
        }  # fmt: skip
        return entity(call, Entity("SP.Web", "Web", fields | await self._current_token(call)))

    async def _site(self, call: Call) -> Response:
        fields: dict[str, Any] = {"Id": SITE_ID, "Url": call.origin, "ServerRelativeUrl": "/"}
        return entity(call, Entity("SP.Site", "Site", fields | await self._current_token(call)))

    async def _current_token(self, call: Call) -> dict[str, Any]:
        """Return the change token if the request selects it by name.

        The first such request starts the log.
        """
        wanted = "currentchangetoken" in call.selected
        return {"CurrentChangeToken": await self._log.token()} if wanted else {}


async def _refusals_reported(answer: Awaitable[Response]) -> Response:
    """Return the answer. A refusal is also returned as an answer."""
    try:
        return await answer
    except RefusalError as error:
        return refusal(error)
    except (psycopg.OperationalError, PoolTimeout) as error:
        return refusal(RefusalError(503, f"the content database does not answer: {error}"))


def main() -> None:
    """Serve until SIGTERM."""
    config = configuration({"port", "token", "database_url"}, optional={"people", "throttle"})
    throttle = ThrottledEndpoint(**config["throttle"]) if "throttle" in config else None
    site = Site(
        config["database_url"],
        config["token"],
        people=config.get("people", _DEFAULT_PEOPLE),
        throttle=throttle,
    )
    serve(site.app(), "pp-web", config["port"])


if __name__ == "__main__":
    main()
