"""Helpers of the scenarios' tests: contexts, a recorder, two small HTTP servers with faults."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from httpserver import http_served

from pinchpoint_scenarios.contract import Endpoint, Scenario, ScenarioContext
from pinchpoint_scenarios.registry import scenario

Reply = tuple[int, dict[str, str], bytes]


class Recorded(NamedTuple):
    """One call of ``Record``."""

    operation: str
    outcome: str
    start_ns: int
    end_ns: int
    size_bytes: int


@dataclass
class Recorder:
    """A thread-safe ``Record`` that keeps all calls."""

    rows: list[Recorded] = field(default_factory=list)

    def __call__(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        assert start_ns <= end_ns <= time.perf_counter_ns()
        self.rows.append(Recorded(operation, outcome, start_ns, end_ns, size_bytes))

    def counts(self, *, stages: bool = False) -> Counter[tuple[str, str]]:
        """Return (operation, outcome) -> count, of operations or of stages."""
        return Counter((row.operation, row.outcome) for row in self.rows if ("/" in row.operation) == stages)


@dataclass
class Events:
    """Collects a run's events."""

    lines: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, event: str, **fields: Any) -> None:
        json.dumps(fields)  # events.jsonl needs JSON
        self.lines.append({"event": event, **fields})

    def named(self, event: str) -> list[dict[str, Any]]:
        """Return all events of this name."""
        return [line for line in self.lines if line["event"] == event]


def made(
    use: str,
    endpoints: Mapping[str, Endpoint],
    params: Mapping[str, Any] | None = None,
    *,
    name: str = "test",
    repeat_s: float | None = 0,
    event: Callable[..., None] = lambda *_, **__: None,
    worker: int = 0,
    workers: int = 1,
    take_over: bool = False,
) -> Scenario:
    """Return a scenario as the harness creates it in one of its workers."""
    kind = scenario(use)
    return kind(
        ScenarioContext(
            name=name,
            endpoints=endpoints,
            params=kind.params_model.model_validate(params or {}),
            seed=1,
            worker=worker,
            workers=workers,
            repeat_s=repeat_s,
            event=event,
            take_over=take_over,
        )
    )


def quiet(sentence: str) -> None:
    """Assert that a ``progress`` message is not empty."""
    assert sentence


def crawl(driver: Scenario, sessions: int, recorder: Recorder, *, limit_s: float = 60) -> None:
    """Crawl with ``sessions`` threads until each reports the end."""
    deadline = time.monotonic() + limit_s
    errors: list[BaseException] = []

    def work(number: int) -> None:
        session = driver.session(number)
        try:
            while session.perform(recorder):
                assert time.monotonic() < deadline, "the crawl did not end"
        except BaseException as error:  # noqa: BLE001 - raised again by the test's own thread
            errors.append(error)
        finally:
            session.close()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()) + 5)
    assert not errors, errors
    assert not any(thread.is_alive() for thread in threads), "a session did not end"


class Server:
    """A small HTTP server with replies by ``answer``. ``failing``: path -> faults of its next requests."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.failing: dict[str, list[Callable[[BaseHTTPRequestHandler], bool]]] = {}
        self.delay_s = 0.0
        self.connections = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet, to avoid delayed ACKs

            def setup(self) -> None:
                server.connections += 1
                super().setup()

            def log_message(self, *_: Any) -> None:
                """Discard the log message."""

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with server._lock:
                    server.requests.append(self.path)
                    waiting = server.failing.get(unquote(urlsplit(self.path).path), [])
                    fault = waiting.pop(0) if waiting else None
                time.sleep(server.delay_s)
                if fault is not None and fault(self):
                    return
                status, headers, content = server.answer(self.command, self.path, dict(self.headers), body)
                reply(self, status, headers, content)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - http.server's names

        self._handler = Handler
        self.url = ""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Return the reply to a request without a fault."""
        raise NotImplementedError

    @contextmanager
    def running(self) -> Iterator[Server]:
        """Serve until the end of the block."""
        with http_served(self._handler) as port:
            self.url = f"http://127.0.0.1:{port}"
            yield self


def reply(handler: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], content: bytes) -> None:
    """Send a reply."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)


def status(code: int, headers: Mapping[str, str] | None = None) -> Callable[[BaseHTTPRequestHandler], bool]:
    """Return a fault that replies with this status."""

    def fault(handler: BaseHTTPRequestHandler) -> bool:
        reply(handler, code, headers or {}, b"")
        return True

    return fault


def cut(handler: BaseHTTPRequestHandler) -> bool:
    """Send half a body, as a fault."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x" * 500)
    handler.close_connection = True
    return True


def stalled(seconds: float) -> Callable[[BaseHTTPRequestHandler], bool]:
    """Return a fault that delays the reply."""

    def fault(_: BaseHTTPRequestHandler) -> bool:
        time.sleep(seconds)
        return False

    return fault


def dripping(handler: BaseHTTPRequestHandler) -> bool:
    """Send a byte now and then without an end, as a fault."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        handler.close_connection = True
    return True


class Site(Server):
    """A SharePoint-style site: list title -> file name -> bytes; subsites; an optional bearer token."""

    def __init__(
        self,
        lists: Mapping[str, Mapping[str, bytes]],
        webs: Mapping[str, Site] | None = None,
        token: str = "",
    ) -> None:
        super().__init__()
        self.lists = lists
        self.webs = webs or {}
        self.token = token

    @property
    def endpoint(self) -> Endpoint:
        """The site as an endpoint of farm.yaml."""
        return Endpoint("sharepoint", self.url, {"auth": "bearer", "token": self.token} if self.token else {})

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer a REST request."""
        del method, body
        if self.token and headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {}, b""
        return self._answer("", target)

    def _answer(self, web: str, target: str) -> Reply:
        parts = urlsplit(target)
        path = unquote(parts.path).removeprefix(web)
        for name, below in self.webs.items():
            if path.startswith(f"/{name}/"):
                return below._answer(f"{web}/{name}", target)
        if path.lower() == "/_api/contextinfo":
            digest = {"FormDigestValue": "a digest", "FormDigestTimeoutSeconds": 1800}
            return _json({"d": {"GetContextWebInformation": digest}})
        if path == "/_api/web":
            return _json({"Title": "Test"})
        if path == "/_api/web/webs":
            return _json({"value": [{"ServerRelativeUrl": f"{web}/{name}"} for name in self.webs]})
        if path == "/_api/web/lists":
            return _json(
                {"value": [{"Title": title, "Hidden": False, "BaseType": 1} for title in self.lists]}
            )
        if path.endswith("/roleassignments"):
            return 403, {}, b""
        if path.startswith("/_api/web/lists/getbytitle('"):
            title = path.partition("('")[2].rpartition("')/items")[0].replace("''", "'")
            return self._page(web, title, parse_qs(parts.query))
        if path.startswith("/_api/web/getfilebyserverrelativeurl('"):
            file = path.partition("('")[2].rpartition("')/$value")[0].replace("''", "'")
            title, _, name = file.removeprefix(web + "/").partition("/")
            found = self.lists.get(title, {}).get(name)
            return (404, {}, b"") if found is None else (200, {}, found)
        return 404, {}, b""

    def _page(self, web: str, title: str, query: Mapping[str, list[str]]) -> Reply:
        size, start = int(query["$top"][0]), int(query.get("$skiptoken", ["0"])[0])
        names = list(self.lists[title])
        items: list[dict[str, Any]] = [
            {"Id": at, "FileRef": f"{web}/{title}/{name}", "FileSystemObjectType": 0}
            for at, name in list(enumerate(names))[start : start + size]
        ]
        page: dict[str, Any] = {"value": items}
        if start + size < len(names):
            where = quote(f"{web}/_api/web/lists/getbytitle('{title.replace(chr(39), chr(39) * 2)}')/items")
            page["odata.nextLink"] = f"http://elsewhere.example{where}?$top={size}&$skiptoken={start + size}"
        return _json(page)


class Search(Server):
    """A search tier that stores its documents; content that begins like a PNG is refused."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[str, tuple[str, bytes]] = {}
        self.given: Counter[str] = Counter()
        self.added_ns: dict[str, int] = {}
        self.resets = self.commits = 0

    @property
    def endpoint(self) -> Endpoint:
        """The search tier as an endpoint of farm.yaml."""
        return Endpoint("search", self.url, {"kind": "pinchpoint"})

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer an HTTP API request."""
        del headers
        parts = urlsplit(target)
        with self._lock:
            match method, parts.path:
                case "POST", "/reset":
                    self.documents.clear()
                    self.resets += 1
                case "POST", "/commit":
                    self.commits += 1
                case "POST", "/documents" if body.startswith(b"\x89PNG"):
                    return 415, {}, json.dumps({"reason": "PNG image"}).encode()
                case "POST", "/documents":
                    query = parse_qs(parts.query)
                    self.documents[query["url"][0]] = (query["source"][0], body)
                    self.added_ns[query["url"][0]] = time.time_ns()
                    self.given[query["url"][0]] += 1
                case "POST", "/remove":
                    self.documents.pop(parse_qs(parts.query)["url"][0], None)
                case "GET", "/added":
                    after_ns = int(parse_qs(parts.query)["after_ns"][0])
                    times = {url: self.added_ns[url] for url in self.documents}
                    return _json({url: ns for url, ns in times.items() if ns > after_ns})
                case "GET", "/stats":
                    return _json({"documents": len(self.documents)})
                case _:
                    return 404, {}, b""
        return _json({})


def _json(content: Any) -> Reply:
    return 200, {"Content-Type": "application/json"}, json.dumps(content).encode()
