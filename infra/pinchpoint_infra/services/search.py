"""The ``search`` tier: extracts the text of documents, indexes it, and answers queries.

``python -m pinchpoint_infra.services.search CONFIG.json`` with
``{"port": n, "token": text, "directory": path}``. Every request needs ``Authorization: Bearer TOKEN``: what
was crawled may be private.

=====================================  ==================================================================
``POST /documents?url=&source=``       its body -> ``{url, form, words}``; 415 ``{reason}``: no document
``POST /remove?url=``                  forget one document
``POST /commit``, ``POST /reset``      make findable what was added; forget everything
``GET /query?q=&limit=``               ``{total, hits: [{url, source, title, score}]}``
``GET /stats``, ``GET /health``        what the index holds; whether the service is ready
=====================================  ==================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pinchpoint_infra.content import processes
from pinchpoint_infra.content.document import LARGEST_BYTES, TOO_LARGE, NotADocumentError, identify
from pinchpoint_infra.content.extract import extract
from pinchpoint_infra.services.process import configuration, serve
from pinchpoint_infra.services.search_index import IndexFailedError, SearchIndex

_COMMIT_EVERY_S = 2.0
_THREADS = 4  # they take turns on one interpreter: more would only hold more documents in memory
_AT_A_TIME = 2**20
_DEFAULT_LIMIT, _LARGEST_LIMIT = 10, 100_000


_P = ParamSpec("_P")
_T = TypeVar("_T")


class SearchService:
    """The requests, on one index."""

    def __init__(self, index: SearchIndex, token: str) -> None:
        self._index = index
        self._bearer = f"Bearer {token}".encode()
        self._threads = CapacityLimiter(_THREADS)

    def app(self) -> ASGIApp:
        """The application, for who has the token."""
        return self._admitting(self._app())

    def _admitting(self, app: ASGIApp) -> ASGIApp:
        refusal = JSONResponse(
            {"reason": "a bearer token is needed: Authorization: Bearer TOKEN"},
            401,
            {"WWW-Authenticate": "Bearer", "Connection": "close"},
        )

        async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
            given = Headers(scope=scope).get("authorization", "") if scope["type"] == "http" else ""
            refused = scope["type"] == "http" and not hmac.compare_digest(
                given.encode("latin-1"), self._bearer
            )
            await (refusal if refused else app)(scope, receive, send)

        return admitted

    def _app(self) -> Starlette:
        routes = [
            Route("/documents", self.add, methods=["POST"]),
            Route("/remove", self.remove, methods=["POST"]),
            Route("/commit", self.commit, methods=["POST"]),
            Route("/reset", self.reset, methods=["POST"]),
            Route("/query", self.query),
            Route("/stats", self.stats),
            Route("/health", self.health),
        ]
        handlers = {HTTPException: _refusal, IndexFailedError: _failure, ClientDisconnect: _gone}
        return Starlette(routes=routes, lifespan=self._life, exception_handlers=handlers)

    async def add(self, request: Request) -> Response:
        """Understand and index one document."""
        url, source = request.query_params.get("url"), request.query_params.get("source")
        if not url or not source:
            raise HTTPException(400, "name the document: /documents?url=URL&source=NAME")
        content = await _body(request)
        try:
            answer = await self._aside(self._add, url, source, content)
        except NotADocumentError as reason:
            return JSONResponse({"url": url, "reason": str(reason)}, 415)
        return JSONResponse(answer)

    async def remove(self, request: Request) -> Response:
        """Forget one document, if it is there."""
        url = request.query_params.get("url")
        if not url:
            raise HTTPException(400, "name the document: /remove?url=URL")
        await self._aside(self._index.remove, url)
        return JSONResponse({"url": url})

    async def commit(self, request: Request) -> Response:
        """Make everything added findable."""
        await self._aside(self._index.commit)
        return await self.stats(request)

    async def reset(self, request: Request) -> Response:
        """Empty the index."""
        await self._aside(self._index.reset)
        return await self.stats(request)

    async def query(self, request: Request) -> Response:
        """Find documents by plain words."""
        words, limit = (
            request.query_params.get("q", ""),
            request.query_params.get("limit", str(_DEFAULT_LIMIT)),
        )
        if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit) <= _LARGEST_LIMIT):
            raise HTTPException(400, f"limit: a whole number from 1 to {_LARGEST_LIMIT} is needed")
        return JSONResponse(await self._aside(self._index.search, words, int(limit)))

    async def stats(self, _: Request) -> Response:
        """What the index holds."""
        return JSONResponse(await self._aside(self._index.stats))

    async def health(self, _: Request) -> Response:
        """Whether documents can be added and found."""
        if self._index.failure:
            return JSONResponse({"ready": False, "reason": self._index.failure}, 503)
        return JSONResponse({"ready": True})

    async def _aside(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do work in a thread, so that other requests are taken meanwhile."""
        return await run_sync(partial(work, *args, **kwargs), limiter=self._threads)

    def _add(self, url: str, source: str, content: bytes) -> dict[str, object]:
        document = identify(content)
        text = extract(document)
        self._index.add(url, source, len(content), text)
        return {"url": url, "form": document.form, "words": _words(text.visible)}

    @contextlib.asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        committing = asyncio.create_task(self._commit_now_and_then())
        try:
            yield
        finally:
            committing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await committing
            await self._aside(self._index.close)
            processes.close()

    async def _commit_now_and_then(self) -> None:
        """So that the index's disk is written to while documents come, as a real crawl's is."""
        while True:
            await asyncio.sleep(_COMMIT_EVERY_S / 4)
            if self._index.pending and self._index.since_commit_s >= _COMMIT_EVERY_S:
                with contextlib.suppress(IndexFailedError):  # it is logged, and every request says so
                    await self._aside(self._index.commit)


def _words(text: str) -> int:
    """How many there are; a list of all of them would take more memory than the largest text."""
    count = 0
    for start in range(0, len(text), _AT_A_TIME):
        part = text[start : start + _AT_A_TIME]
        count += len(part.split())
        if start and not part[0].isspace() and not text[start - 1].isspace():
            count -= 1  # one word, cut in two
    return count


async def _body(request: Request) -> bytes:
    parts = []
    size = 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > LARGEST_BYTES:
            raise HTTPException(413, TOO_LARGE)
    return b"".join(parts)


def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 -- registered for it alone
    return JSONResponse({"reason": error.detail}, error.status_code)


def _gone(_: Request, error: Exception) -> Response:
    """A crawler was killed in the middle of a document: this is not read, and nothing is wrong here."""
    del error
    return Response(status_code=400)


def _failure(_: Request, error: Exception) -> Response:
    return JSONResponse({"reason": str(error)}, 507)


def main() -> None:
    """Serve until SIGTERM."""
    config = configuration({"port", "token", "directory"})
    index = SearchIndex(Path(config["directory"]))
    serve(SearchService(index, config["token"]).app(), "pp-search", config["port"])


if __name__ == "__main__":
    main()
