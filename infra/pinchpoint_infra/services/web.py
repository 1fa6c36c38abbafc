"""The ``web`` tier: a SharePoint-style site, served out of the content database.

``python -m pinchpoint_infra.services.web CONFIG.json``: ``{"port": n, "token": text, "database_url": URL}``;
there may be ``"people": n`` (how many users there are) and, to have what comes too fast refused from the
beginning on, ``"throttle": {"requests_per_s": x, "retry_after_s": n, "status": 429}``.

Every request but ``/health`` needs ``Authorization: Bearer TOKEN``. Paths are taken in any case, also below
``/sites/corpus``; answers are JSON as the ``Accept`` header asks: ``odata=nometadata``, ``odata=verbose``, or
what lies between where it says no more than JSON. An unknown option is refused, not ignored.

==========================================================  =================================================
``POST /_api/contextinfo``                                  the form digest clients ask for first
``/_api/web``, ``/_api/web/webs``, ``/_api/web/lists``      the site, its sub-sites (none), its libraries
``.../lists/getbytitle('T')``, ``lists(guid'...')``,        one of them
``getlist('/sites/corpus/T')``
``.../items``, ``.../items(1)``                             its documents, by page: ``$top $skiptoken $select
                                                            $filter $expand $orderby``
``.../roleassignments``                                     who may do what with a list or an item
``.../getfilebyserverrelativeurl('/path')/$value``          a document's bytes; ``...path(decodedurl=@p)`` too
``.../getfolderbyserverrelativeurl('/path')/files``         what lies in a folder; ``/folders`` too
``POST /_api/site/getchanges``, ``web``'s, a list's         change tokens, and what changed since one
``/_api/web/siteusers``, ``sitegroups``, ``ensureuser``     users and groups
``/_api/sp.userprofiles.peoplemanager/getpropertiesfor``    their profiles
``/``, ``/robots.txt``, ``/sitemap.xml``                    the same documents, for a web crawler
``/throttle``                                               how it refuses, and what it counted; POST sets it
==========================================================  =================================================
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from pinchpoint_infra.content.database import SITE
from pinchpoint_infra.faults.throttle import ThrottledEndpoint
from pinchpoint_infra.services.odata import Call, RefusalError, parse, received
from pinchpoint_infra.services.odata_answer import Entity, entity, refusal
from pinchpoint_infra.services.process import configuration, serve
from pinchpoint_infra.services.throttle import RequestGate
from pinchpoint_infra.services.web_changes import ChangeLog
from pinchpoint_infra.services.web_pages import WebPages
from pinchpoint_infra.services.web_store import SITE_ID, WEB_ID, ContentStore
from pinchpoint_infra.services.web_table import answers, nothing, plain

_TITLE = "Corpus"
_DIGEST_VALID_S = 1_800
_HEALTH_WITHIN_S = 1.0
_DEFAULT_PEOPLE = 500
_METHODS = {"GET", "POST"}


class Site:
    """The requests, on one content database.

    Args:
        database_url: ``postgresql://`` URL of a database that ``ingest`` has filled.
        token: what a client must bear.
        people: how many users there are.
        throttle: refuses what comes too fast from the beginning on; None: nothing is refused.
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
        """The application."""
        routes = [
            Route("/health", self._health),
            Route("/throttle", self._throttle, methods=["GET", "POST"]),
        ]
        app = Starlette(routes=routes, lifespan=lambda _: self._store.open())
        app.router.default = request_response(self.answer)  # no pattern: a path may hold a line feed
        return app

    async def answer(self, request: Request) -> Response:
        """Any request but that for its health and that for its throttle."""
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
        """What the gate is set to and counted; POST sets it (``ThrottledEndpoint`` in JSON, null: none)."""
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
        """The change token, where it is asked for by name: the log begins with that."""
        wanted = "currentchangetoken" in call.selected
        return {"CurrentChangeToken": await self._log.token()} if wanted else {}


async def _refusals_reported(answer: Awaitable[Response]) -> Response:
    """An answer, or the refusal in its place."""
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
