"""The ``web`` tier: a SharePoint-style site, served out of the content database.

``python -m pinchpoint_infra.services.web CONFIG.json``: ``{"port": n, "token": text, "database_url": URL}``;
there may be ``"people": n`` (how many users there are) and, to have what comes too fast refused,
``"throttle": {"requests_per_s": x, "retry_after_s": n}``.

Every request but ``/health`` needs ``Authorization: Bearer TOKEN``. Paths are taken in any case, also below
``/sites/corpus``; answers are JSON, light or verbose as the ``Accept`` header asks.

==========================================================  =================================================
``POST /_api/contextinfo``                                  the form digest clients ask for first
``/_api/web``, ``/_api/web/webs``, ``/_api/web/lists``      the site, its sub-sites (none), its libraries
``.../lists/getbytitle('T')``, ``lists(guid'...')``         one of them
``.../items``, ``.../items(1)``                             its documents, by page: ``$top $skiptoken $select
                                                            $filter $expand $orderby``
``.../roleassignments``                                     who may do what with a list or an item
``.../getfilebyserverrelativeurl('/path')/$value``          a document's bytes; ``...path(decodedurl=@p)`` too
``.../getfolderbyserverrelativeurl('/path')/files``         what lies in a folder; ``/folders`` too
``/_api/site``, ``POST /_api/site/getchanges``              change tokens, and what changed since one
``/_api/web/siteusers``, ``POST /_api/web/ensureuser``      users
``/_api/sp.userprofiles.peoplemanager/getpropertiesfor``    their profiles
``/_api/search/query``, ``POST /_api/search/postquery``     documents and people by name
``/``, ``/robots.txt``, ``/sitemap.xml``                    the same documents, for a web crawler
==========================================================  =================================================
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from pinchpoint_infra.content.database import SITE
from pinchpoint_infra.services.odata import Call, RefusalError, collection, entity, parse, refusal
from pinchpoint_infra.services.process import configuration, serve
from pinchpoint_infra.services.throttle import Throttle
from pinchpoint_infra.services.web_changes import ChangeLog
from pinchpoint_infra.services.web_lists import Lists
from pinchpoint_infra.services.web_pages import Pages
from pinchpoint_infra.services.web_people import People, list_access
from pinchpoint_infra.services.web_search import Search
from pinchpoint_infra.services.web_store import SITE_ID, WEB_ID, Store

_TITLE = "Corpus"
_DIGEST_VALID_S = 1_800
_HEALTH_WITHIN_S = 1.0
_DEFAULT_PEOPLE = 500

Answers = Mapping[str, Callable[[Call], Awaitable[Response]]]


class Site:
    """The requests, on one content database.

    Args:
        database_url: ``postgresql://`` URL of a database that ``ingest`` has filled.
        token: what a client must bear.
        people: how many users there are.
        throttle: refuses what comes too fast; None: nothing is refused.
    """

    def __init__(
        self,
        database_url: str,
        token: str,
        *,
        people: int = _DEFAULT_PEOPLE,
        throttle: Throttle | None = None,
    ) -> None:
        self._token = token
        self._throttle = throttle
        self._store = Store(database_url)
        self._log = ChangeLog(self._store)
        self._pages = Pages(self._store)
        self._answers = self._table(Lists(self._store), People(self._store, people))

    def app(self) -> Starlette:
        """The application."""
        app = Starlette(routes=[Route("/health", self._health)], lifespan=lambda _: self._store.open())
        app.router.default = request_response(self.answer)  # no pattern: a path may hold a line feed
        return app

    async def answer(self, request: Request) -> Response:
        """Any request but that for its health."""
        try:
            self._admit(request)
            if request.method == "GET" and "/_api/" not in request.url.path.casefold():
                page = await self._pages.answer(request)
                if page is not None:
                    return page
            call = await parse(request, SITE)
            return await self._answers.get(call.steps, _nothing)(call)
        except RefusalError as error:
            return refusal(error)
        except (psycopg.OperationalError, PoolTimeout) as error:
            return refusal(RefusalError(503, f"the content database does not answer: {error}"))

    def _table(self, lists: Lists, people: People) -> Answers:
        search = Search(self._store, people)
        answers: dict[str, Callable[[Call], Awaitable[Response]]] = {
            "contextinfo": self._context,
            "web": self._web,
            "web/webs": _none,
            "web/lists": lists.all,
            "web/roleassignments": self._access,
            "web/currentuser": people.me,
            "web/siteusers": people.users,
            "web/ensureuser": people.ensure,
            "web/ensureuser()": people.ensure,
            "web/getchanges": self._log.changes,
            "site": self._site,
            "site/rootweb": self._web,
            "site/getchanges": self._log.changes,
            "site/openwebbyid()": self._web,
            "sp.userprofiles.peoplemanager/getpropertiesfor()": people.profile,
            "sp.userprofiles.peoplemanager/getmyproperties": people.my_profile,
            "search/query": search.query,
            "search/postquery": search.query,
            "microsoft.office.server.search.rest.searchservice/query()": search.query,
            "microsoft.office.server.search.rest.searchservice/postquery": search.query,
        }
        for name in ("web/lists/getbytitle()", "web/lists/getbyid()", "web/lists()"):
            answers |= {
                name: lists.one,
                f"{name}/items": lists.items,
                f"{name}/roleassignments": lists.access,
                f"{name}/rootfolder": lists.root_folder,
            }
            for item in (f"{name}/items()", f"{name}/items/getbyid()", f"{name}/getitembyid()"):
                answers |= {
                    item: lists.item,
                    f"{item}/roleassignments": lists.item_access,
                    f"{item}/file": lists.item_file,
                    f"{item}/file/$value": lists.item_content,
                }
        for way in ("serverrelativeurl", "serverrelativepath", "id"):
            file = f"web/getfileby{way}()"
            answers |= {
                file: lists.file,
                f"{file}/$value": lists.file_content,
                f"{file}/listitemallfields": lists.file_item,
            }
        for way in ("url", "path"):
            folder = f"web/getfolderbyserverrelative{way}()"
            answers |= {
                folder: lists.folder,
                f"{folder}/files": lists.files,
                f"{folder}/folders": lists.folders,
            }
        return answers

    def _admit(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            raise RefusalError(401, "a bearer token is needed: Authorization: Bearer TOKEN")
        if request.method not in {"GET", "POST"}:
            raise RefusalError(405, f"{request.method}: the site is read only")
        if self._throttle is not None:
            self._throttle.admit()

    async def _health(self, _: Request) -> Response:
        try:
            await self._store.rows("SELECT FROM lists", within_s=_HEALTH_WITHIN_S)
        except (psycopg.Error, PoolTimeout) as error:
            return JSONResponse({"ready": False, "reason": str(error)}, 503)
        return JSONResponse({"ready": True})

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
        return entity(call, fields | await self._current_token(call))

    async def _site(self, call: Call) -> Response:
        fields: dict[str, Any] = {"Id": SITE_ID, "Url": call.origin, "ServerRelativeUrl": "/"}
        return entity(call, fields | await self._current_token(call))

    async def _current_token(self, call: Call) -> dict[str, Any]:
        """The change token, where it is asked for by name: the log begins with that."""
        wanted = "currentchangetoken" in call.names("$select")
        return {"CurrentChangeToken": await self._log.token()} if wanted else {}

    async def _access(self, call: Call) -> Response:
        return collection(call, list_access(""))


async def _none(call: Call) -> Response:
    return collection(call, [])


async def _nothing(call: Call) -> Response:
    raise RefusalError(404, f"there is no /_api/{call.steps}")


def main() -> None:
    """Serve until SIGTERM."""
    config = configuration({"port", "token", "database_url"}, optional={"people", "throttle"})
    throttle = Throttle(**config["throttle"]) if "throttle" in config else None
    site = Site(
        config["database_url"],
        config["token"],
        people=config.get("people", _DEFAULT_PEOPLE),
        throttle=throttle,
    )
    serve(site.app(), "pp-web", config["port"])


if __name__ == "__main__":
    main()
