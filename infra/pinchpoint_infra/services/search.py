"""The ``search`` tier: extracts the text of documents, indexes it, and answers queries.

``python -m pinchpoint_infra.services.search CONFIG.json`` with
``{"port": n, "token": text, "directory": path}``. Every request needs ``Authorization: Bearer TOKEN``: what
was crawled may be private.

=====================================  ==================================================================
``POST /documents?url=&source=``       its body -> ``{url, form, words}``; 415 ``{reason}``: no document
``POST /remove?url=``                  forget one document
``POST /commit``, ``POST /reset``      make findable what was added; forget everything
``GET /query?q=&limit=``               ``{total, hits: [{url, source, title, score}]}``
``GET /added?after_ns=&limit=``        when findable documents were added, by time: ``{url: ns since 1970}``
``GET /stats``, ``GET /health``        what the index holds; whether the service is ready
=====================================  ==================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from heapq import nsmallest
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import tantivy
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
from pinchpoint_infra.content.extract import Text, extract
from pinchpoint_infra.services.process import configuration, serve

# The full-text index: every word of every document, in its own folder.

_HEAP_BYTES = 64 * 2**20
_WRITING_THREADS = 1  # the tier uses one core, so that a saturated core shows as one
_WORDS = "words"
# The same as \w in Python and common regular expressions: letters, numbers, underscore.
_WORD = r"[\p{L}\p{N}_]+"
_LONGEST_WORD = 16_000
"""An index entry has at most 65,530 bytes, 4 per character; a longer word is indexed in pieces of this
length."""
_TOO_LONG = re.compile(rf"(?<!\S)\S{{{_LONGEST_WORD + 1}}}")
_PIECE = re.compile(rf"\S{{{_LONGEST_WORD}}}(?=\S)")

_log = logging.getLogger(__name__)


class IndexFailedError(Exception):
    """The index cannot be written, for example because its disk is full."""


class SearchIndex:
    """Documents by URL. Safe to use from several threads.

    Args:
        directory: folder of the index; its present content is kept.

    Attributes:
        failure: why the index cannot be written; empty if it can.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(_WORD)).filter(tantivy.Filter.lowercase())
        self._analyzer = words.build()
        self._schema = _schema()
        self._index = tantivy.Index(self._schema, str(directory))
        self._index.register_tokenizer(_WORDS, self._analyzer)
        self._index.config_reader("manual")
        self._writer = self._new_writer()
        self.failure = ""
        self._writing = threading.Lock()
        self._pending = 0
        self._added_ns = 0
        self._commits = 0
        self._committed_s = time.monotonic()

    @property
    def pending(self) -> int:
        """Number of documents added since the last commit."""
        return self._pending

    @property
    def since_commit_s(self) -> float:
        """Seconds since the end of the last commit."""
        return time.monotonic() - self._committed_s

    def add(self, url: str, source: str, size_bytes: int, text: Text) -> None:
        """Add a document; it replaces one with the same URL."""
        document = tantivy.Document(url=url, source=source, title=text.title)
        document.add_unsigned("size_bytes", size_bytes)
        document.add_text("visible", _broken(text.visible))
        if text.other:
            document.add_text("other", _broken(text.other))
        with self._write():
            self._added_ns = max(time.time_ns(), self._added_ns + 1)  # no two documents have the same time
            document.add_unsigned("added_ns", self._added_ns)
            self._writer.delete_documents_by_term("url", url)
            self._writer.add_document(document)
            self._pending += 1

    def remove(self, url: str) -> None:
        """Remove the document with this URL, if it exists."""
        with self._write():
            self._writer.delete_documents_by_term("url", url)
            self._pending += 1

    def commit(self) -> None:
        """Make all added documents durable and findable."""
        with self._write():
            self._commit()

    def reset(self) -> None:
        """Forget all documents, and any failure."""
        with self._writing:
            if self.failure:
                del self._writer  # the writer holds the index's lock
                self._writer = self._new_writer()
                self.failure = ""
        with self._write():
            self._writer.delete_all_documents()
            self._commit()

    def close(self) -> None:
        """Commit, and wait for the end of the index's threads. No method may be called afterwards."""
        if self.failure:
            return
        with self._write():
            self._commit()
            self._writer.wait_merging_threads()

    def search(self, words: str, limit: int) -> dict[str, Any]:
        """The documents with all these words, the best first.

        Text between two spaces is one group: ``foo-bar`` finds the words foo and bar in sequence. No
        character is an operator.

        Returns:
            total, hits: url, source, title, score.
        """
        query = self._query(words)
        searcher = self._index.searcher()
        if query is None or not searcher.num_docs:
            return {"total": 0, "hits": []}
        result: Any = searcher.search(query, min(limit, searcher.num_docs))
        hits = []
        for score, address in result.hits:
            stored = searcher.doc(address)
            hits.append(
                {name: stored.get_first(name) for name in ("url", "source", "title")} | {"score": score}
            )
        return {"total": result.count, "hits": hits}

    def added(self, after_ns: int, limit: int) -> dict[str, int]:
        """The first findable documents that were added after a time: URL -> ns since 1970."""
        searcher = self._index.searcher()
        if not searcher.num_docs:
            return {}
        every: Any = searcher.search(tantivy.Query.all_query(), searcher.num_docs, count=False)
        documents = (searcher.doc(address) for _, address in every.hits)
        times = ((int(one.get_first("added_ns") or 0), str(one.get_first("url"))) for one in documents)
        first = nsmallest(limit, (one for one in times if one[0] > after_ns))
        return {url: added_ns for added_ns, url in first}

    def stats(self) -> dict[str, Any]:
        """Findable documents (number, bytes, by source), uncommitted documents, and the space on disk."""
        searcher = self._index.searcher()
        sizes = {"bytes": {"sum": {"field": "size_bytes"}}}
        by_source = {"sources": {"terms": {"field": "source", "size": 10_000}, "aggs": sizes}}
        buckets = searcher.aggregate(tantivy.Query.all_query(), by_source)["sources"]["buckets"]
        return {
            "documents": searcher.num_docs,
            "pending": self._pending,
            "sources": {bucket["key"]: bucket["doc_count"] for bucket in buckets},
            "bytes": sum(int(bucket["bytes"]["value"]) for bucket in buckets),
            "index_bytes": _size_bytes(self._directory),
            "commits": self._commits,
            "segments": searcher.num_segments,
        }

    @contextmanager
    def _write(self) -> Iterator[None]:
        """Lock the writer. A failed write cannot be undone: the index fails until a reset."""
        with self._writing:
            if self.failure:
                raise IndexFailedError(self.failure)
            try:
                yield
            except (ValueError, OSError) as error:  # the library's error for a writer that has died
                self.failure = f"the index in {self._directory} cannot be written: {error}"
                _log.warning(self.failure)
                raise IndexFailedError(self.failure) from error

    def _new_writer(self) -> tantivy.IndexWriter:
        return self._index.writer(_HEAP_BYTES, _WRITING_THREADS)

    def _commit(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._pending = 0
        self._commits += 1
        self._committed_s = time.monotonic()

    def _query(self, words: str) -> tantivy.Query | None:
        groups = [self._analyzer.analyze(_broken(group)) for group in words.split()]
        needed = [(tantivy.Occur.Must, self._either(group)) for group in groups if group]
        return tantivy.Query.boolean_query(needed) if needed else None

    def _either(self, group: list[str]) -> tantivy.Query:
        fields = ("visible", "other")
        if len(group) == 1:
            queries = [tantivy.Query.term_query(self._schema, name, group[0]) for name in fields]
        else:
            queries = [tantivy.Query.phrase_query(self._schema, name, list(group)) for name in fields]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("source", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("size_bytes", fast=True)
    builder.add_unsigned_field("added_ns", stored=True)
    for name in ("visible", "other"):
        builder.add_text_field(name, tokenizer_name=_WORDS, index_option="position")
    return builder.build()


def _broken(text: str) -> str:
    """The text with words that are too long for the index split into pieces."""
    if len(text) <= _LONGEST_WORD or not _TOO_LONG.search(text):
        return text
    return _PIECE.sub(r"\g<0> ", text)


def _size_bytes(directory: Path) -> int:
    total = 0
    for path in directory.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # merged away meanwhile
            continue
    return total


_COMMIT_EVERY_S = 2.0
_THREADS = 4  # threads share one interpreter: more would only hold more documents in memory
_AT_A_TIME = 2**20
_DEFAULT_LIMIT, _LARGEST_LIMIT = 10, 100_000


_P = ParamSpec("_P")
_T = TypeVar("_T")


class SearchService:
    """The requests of one index."""

    def __init__(self, index: SearchIndex, token: str) -> None:
        self._index = index
        self._bearer = f"Bearer {token}".encode()
        self._threads = CapacityLimiter(_THREADS)

    def app(self) -> ASGIApp:
        """The application, for requests with the token."""
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
            Route("/added", self.added),
            Route("/stats", self.stats),
            Route("/health", self.health),
        ]
        handlers = {HTTPException: _refusal, IndexFailedError: _failure, ClientDisconnect: _gone}
        return Starlette(routes=routes, lifespan=self._life, exception_handlers=handlers)

    async def add(self, request: Request) -> Response:
        """Extract and index one document."""
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
        """Remove one document, if it exists."""
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
        limit = _number(request, "limit", 1, _LARGEST_LIMIT, _DEFAULT_LIMIT)
        words = request.query_params.get("q", "")
        return JSONResponse(await self._aside(self._index.search, words, limit))

    async def added(self, request: Request) -> Response:
        """When documents were added."""
        after_ns = _number(request, "after_ns", 0, 2**63)
        limit = _number(request, "limit", 1, _LARGEST_LIMIT, _LARGEST_LIMIT)
        return JSONResponse(await self._aside(self._index.added, after_ns, limit))

    async def stats(self, _: Request) -> Response:
        """The statistics of the index."""
        return JSONResponse(await self._aside(self._index.stats))

    async def health(self, _: Request) -> Response:
        """Whether documents can be added and found."""
        if self._index.failure:
            return JSONResponse({"ready": False, "reason": self._index.failure}, 503)
        return JSONResponse({"ready": True})

    async def _aside(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Work in a thread, so that other requests are served meanwhile."""
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
        """Commit regularly, so that the index's disk is written during the crawl, as in a real one."""
        while True:
            await asyncio.sleep(_COMMIT_EVERY_S / 4)
            if self._index.pending and self._index.since_commit_s >= _COMMIT_EVERY_S:
                # the failure is logged, and every request reports it
                with contextlib.suppress(IndexFailedError):
                    await self._aside(self._index.commit)


def _number(request: Request, name: str, least: int, most: int, default: int = 0) -> int:
    """A parameter of the query; refuses what is no whole number in these limits."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most):
        raise HTTPException(400, f"{name}: a whole number from {least} to {most} is needed")
    return int(text)


def _words(text: str) -> int:
    """The number of words; a list of words would take more memory than the largest text."""
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
    """A crawler was killed while sending a document: the document is dropped, without an error."""
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
