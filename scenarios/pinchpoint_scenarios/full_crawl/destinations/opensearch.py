"""``kind: opensearch``: fills an index of OpenSearch or Elasticsearch by ``_bulk`` requests.

=====================  ===================================================================================
document               ``_id``: the item's key; ``url``, ``source``, ``size_bytes``, and its content
content                ``content`` where it is text (UTF-8), as it is; else ``data``, in base64, which is kept
                       and not searchable
with ``pipeline``      always ``data``: an ingest pipeline of the server makes text of it (its attachment
                       processor), as the server's own work
=====================  ===================================================================================

The requests follow the servers' REST references: bulk, create index, delete index, refresh, count.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

import urllib3

from ...contract import OK, Endpoint
from ...errors import ScenarioError
from ..failures import Failure
from ..http import Http
from ..records import key_of
from .contract import Request

# Documents of many sessions are sent in few requests. While requests are in progress, documents of other
# sessions queue, and the next request takes all of them. Batches therefore grow with the latency of the
# destination, no session waits for a timer, and no thread is needed: one of the waiting sessions sends the
# batch.

T = TypeVar("T")

REQUESTS = 4
"""Number of simultaneous requests of one process."""
_LONGEST = 500
_LARGEST_BYTES = 8 * 2**20  # a request is usually limited to 100 MB; 5 to 15 MB are recommended for speed


@dataclass(slots=True, eq=False)
class _Waiting(Generic[T]):
    """The entry of one session. Its ``turn`` comes when the entry is done, or when it must send ``batch``."""

    entry: T
    size_bytes: int
    turn: threading.Event = field(default_factory=threading.Event)
    batch: list[_Waiting[T]] = field(default_factory=list)
    failure: Failure | None = None


class Batches(Generic[T]):
    """Collects entries in batches.

    Args:
        send: sends a batch and returns the failure of each entry, or None, in the same order. Raises
            ``Failure`` if the whole request failed.
        requests: largest number of simultaneous requests.
    """

    def __init__(
        self, send: Callable[[Sequence[T]], Sequence[Failure | None]], requests: int = REQUESTS
    ) -> None:
        self._send = send
        self._free = requests
        self._queue: deque[_Waiting[T]] = deque()
        self._lock = threading.Lock()

    def add(self, entry: T, size_bytes: int) -> None:
        """Send an entry. Returns when it was accepted. Raises its ``Failure``."""
        mine = _Waiting(entry, size_bytes)
        with self._lock:
            self._queue.append(mine)
            if self._free:
                self._free -= 1
                self._appoint()
        mine.turn.wait()
        if mine.batch:
            self._lead(mine.batch)
        if mine.failure is not None:
            raise mine.failure

    def _appoint(self) -> None:
        """Let the first waiting session send the batch. The caller has the lock, and an entry is waiting."""
        first = self._queue[0]
        size_bytes = 0
        while self._queue and len(first.batch) < _LONGEST:
            size_bytes += self._queue[0].size_bytes
            if first.batch and size_bytes > _LARGEST_BYTES:
                break
            first.batch.append(self._queue.popleft())
        first.turn.set()

    def _lead(self, batch: list[_Waiting[T]]) -> None:
        try:
            for waiting, failure in zip(batch, self._send([each.entry for each in batch]), strict=True):
                waiting.failure = failure
        except Failure as failure:
            for waiting in batch:
                waiting.failure = failure
        except BaseException as error:  # the session that should send the batch has ended
            for waiting in batch:
                waiting.failure = Failure("connection_lost", f"{type(error).__name__}: {error}")
            raise
        finally:
            with self._lock:
                if self._queue:
                    self._appoint()
                else:
                    self._free += 1
            for waiting in batch:
                waiting.turn.set()


MARKER = "pinchpoint.owned/1: made by a load test, which may delete it"
"""Mark in ``_meta`` of an index. Only an index with the mark is ever deleted."""
_NAME_LONGEST_BYTES = 255
_NOT_IN_A_NAME = frozenset('\\/*?"<>| ,#:')
_CREATED = {
    "dynamic": False,
    "_meta": {"owner": MARKER},
    "properties": {
        "url": {"type": "keyword", "ignore_above": 8191},
        "source": {"type": "keyword"},
        "size_bytes": {"type": "long"},
        "content": {"type": "text"},
        "data": {"type": "binary"},
        "attachment": {"properties": {"content": {"type": "text"}, "title": {"type": "text"}}},
    },
}
_MISSING = 404
_TOO_MANY = 429
_TOO_LARGE = "http_413"
_PERMANENT_FROM, _PERMANENT_TO = 400, 500


class OpenSearch:
    """One index. All sessions of a process share its bulk requests.

    Args:
        endpoint: endpoint of the server. A path in its URL names the index (``http://os1:9200/crawl``).
            Options are ``user`` and ``password``, ``token`` (a bearer token) or ``api_key``, and
            ``pipeline``.
        scenario: name of the scenario; without a path in the URL, the index is ``pinchpoint_NAME``.
        timeout_s: time limit of a whole request in seconds.
    """

    limit = REQUESTS

    def __init__(self, endpoint: Endpoint, scenario: str, timeout_s: float) -> None:
        parts = urlsplit(endpoint.url)
        prefix, _, named = parts.path.strip("/").rpartition("/")
        self.index = named or f"pinchpoint_{scenario}".lower()
        _check_name(endpoint, self.index)
        self._url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], prefix, "", ""))
        self._headers = {"Content-Type": "application/json", **_login(endpoint)}
        self._timeout_s = timeout_s
        self._pipeline = endpoint.options.get("pipeline", "")
        self._batches: Batches[bytes] = Batches(self._send)
        self._bulk: list[Http] = []
        self._reported: deque[Request] = deque()

    def connect(self) -> OpenSearchIndex:
        """Return a session's connection to the shared index."""
        return OpenSearchIndex(self)

    def http(self) -> Http:
        """Return a new HTTP connection."""
        return Http(self._url, timeout_s=self._timeout_s, headers=self._headers)

    def index_document(self, source: str, url: str, content: bytes) -> None:
        """Index one document, in a batch with those of other sessions."""
        document: dict[str, Any] = {"url": url, "source": source, "size_bytes": len(content)}
        text = None if self._pipeline else _text(content)
        if text is None:
            document["data"] = base64.b64encode(content).decode()
        else:
            document["content"] = text
        action = {"index": {"_id": key_of(source, url)}}
        self._add(_line(action) + _line(document))

    def delete_document(self, source: str, url: str) -> None:
        """Delete one document, in a batch with those of other sessions."""
        self._add(_line({"delete": {"_id": key_of(source, url)}}))

    def _add(self, lines: bytes) -> None:
        self._batches.add(lines, len(lines))

    def _send(self, entries: Sequence[bytes]) -> list[Failure | None]:
        """Send a batch as one request, or as several if the server or a proxy refuses its size."""
        try:
            return self._sent(entries)
        except Failure as failure:
            if failure.kind != _TOO_LARGE or len(entries) == 1:
                raise
        half = len(entries) // 2
        return self._parts(entries[:half]) + self._parts(entries[half:])

    def _parts(self, entries: Sequence[bytes]) -> list[Failure | None]:
        """Send a part of a batch. If its request fails, each of its entries has the failure."""
        try:
            return self._send(entries)
        except Failure as failure:
            return [failure] * len(entries)

    def _sent(self, entries: Sequence[bytes]) -> list[Failure | None]:
        # At most REQUESTS calls run at a time, so there are never more connections.
        http = self._bulk.pop() if self._bulk else self.http()
        outcome, start_ns = OK, time.perf_counter_ns()
        try:
            query = "?" + urlencode({"pipeline": self._pipeline}) if self._pipeline else ""
            body = b"".join(entries)
            answer = http.request("POST", f"/{quote(self.index)}/_bulk{query}", body=body)
        except Failure as failure:
            outcome = failure.kind
            raise
        finally:
            self._bulk.append(http)
            self._reported.append(Request(outcome, start_ns, time.perf_counter_ns()))
        return _failures(answer.body, len(entries))

    def requests(self) -> Iterator[Request]:
        """Return the bulk requests that have ended, each once."""
        while self._reported:
            yield self._reported.popleft()

    def close(self) -> None:
        """Close the connections for unused bulk requests. A second call does nothing."""
        while self._bulk:
            self._bulk.pop().close()


class OpenSearchIndex:
    """One session's connection to the shared index."""

    takes_documents = True

    def __init__(self, shared: OpenSearch) -> None:
        self._shared = shared
        self._path = "/" + quote(shared.index)
        self._http = shared.http()

    def check(self) -> Mapping[str, Any]:
        """Return server and version. Raises ``Failure`` if the index belongs to another program."""
        about = _object(self._http.request("GET", "/").body)
        version = about.get("version") or {}
        self._may_be_ours()
        return {
            "server": str(version.get("distribution") or "elasticsearch"),
            "version": str(version.get("number", "")),
            "index": self._shared.index,
        }

    def reset(self) -> None:
        """Delete the index, if it exists and has the mark, and create it again."""
        if self._may_be_ours():
            self._http.request("DELETE", self._path, accept=(_MISSING,))
        body = json.dumps({"mappings": _CREATED}).encode()
        self._http.request("PUT", self._path, body=body)

    def add(self, source: str, url: str, content: bytes) -> None:
        """Index one document."""
        self._shared.index_document(source, url, content)

    def remove(self, source: str, url: str) -> None:
        """Delete one document."""
        self._shared.delete_document(source, url)

    def commit(self) -> None:
        """Make all added documents searchable."""
        self._http.request("POST", f"{self._path}/_refresh")

    def requests(self) -> Iterator[Request]:
        return self._shared.requests()

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        self._http.close()
        self._shared.close()

    def _may_be_ours(self) -> bool:
        """Return whether the index exists and has the mark.

        Raises ``Failure`` if it exists without the mark.
        """
        answer = self._http.request("GET", f"{self._path}/_mapping", accept=(_MISSING,))
        if answer.status == _MISSING:
            return False
        result = _object(answer.body)
        mappings = [(each or {}).get("mappings") or {} for each in result.values()]
        if any((mapping.get("_meta") or {}).get("owner") != MARKER for mapping in mappings):
            raise Failure(
                "not_ours",
                f"the index {self._shared.index!r} is there already and was not made by Pinchpoint",
                permanent=True,
            )
        return True


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=True).encode() + b"\n"


def _text(content: bytes) -> str | None:
    """Return the content if it is text, else None."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _object(body: bytes) -> dict[str, Any]:
    try:
        result = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Failure("bad_answer", "the answer is no JSON", permanent=True) from error
    if not isinstance(result, dict):
        raise Failure("bad_answer", "the answer is no JSON object", permanent=True)
    return result


def _failures(body: bytes, entries: int) -> list[Failure | None]:
    """Return the failure of each entry of a bulk request, or None."""
    items = _object(body).get("items")
    if not isinstance(items, list) or len(items) != entries:
        raise Failure("bad_answer", f"the bulk answer has not {entries} items", permanent=True)
    return [_failure(item) for item in items]


def _failure(item: Any) -> Failure | None:
    try:
        ((action, done),) = item.items()
        status = int(done["status"])
    except (AttributeError, ValueError, KeyError, TypeError):
        return Failure("bad_answer", "an item of the bulk answer has no status", permanent=True)
    if 200 <= status < 300 or (action == "delete" and status == _MISSING):
        return None
    error = done.get("error")
    detail = f"{error.get('type')}: {error.get('reason')}" if isinstance(error, dict) else str(error)
    permanent = _PERMANENT_FROM <= status < _PERMANENT_TO and status != _TOO_MANY
    return Failure(f"http_{status}", detail, permanent=permanent)


def _login(endpoint: Endpoint) -> dict[str, str]:
    options = endpoint.options
    if options.get("api_key"):
        return {"Authorization": f"ApiKey {options['api_key']}"}
    if options.get("token"):
        return {"Authorization": f"Bearer {options['token']}"}
    parts = urlsplit(endpoint.url)
    user = options.get("user") or unquote(parts.username or "")
    password = options.get("password") or unquote(parts.password or "")
    return dict(urllib3.make_headers(basic_auth=f"{user}:{password}")) if user else {}


def _check_name(endpoint: Endpoint, name: str) -> None:
    """Raises if the name of an index is not lower-case, or has special characters that are not allowed."""
    broken = name != name.lower() or name[0] in "-_+" or name in (".", "..") or _NOT_IN_A_NAME & set(name)
    if broken or len(name.encode()) > _NAME_LONGEST_BYTES:
        raise ScenarioError(
            f"endpoint {endpoint.name}: {name!r} is no name of an index; allowed: lower-case letters, "
            "digits, -, _ and ., up to 255 bytes, the first a letter or a digit: http://HOST:9200/NAME"
        )
