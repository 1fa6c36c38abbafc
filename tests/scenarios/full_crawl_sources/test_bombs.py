"""Tests of hostile replies: each is a named failure or harmless, with little time and memory."""

from __future__ import annotations

import gzip
import multiprocessing
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.fastpath.http import Response
from pinchpoint_scenarios.full_crawl import http
from pinchpoint_scenarios.full_crawl.destinations import service
from pinchpoint_scenarios.full_crawl.failures import Failure, Skipped
from pinchpoint_scenarios.full_crawl.http import Http, HttpAnswer
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources import repository, web
from pinchpoint_scenarios.full_crawl.sources.web import entries, reading

MIB = 2**20
HEAD = b"HTTP/1.1 200 OK\r\n"
_CPU_S, _MEMORY_BYTES = 10, 2**30
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
NOTHING = gzip.compress(b"", mtime=0)
CHAIN = b"".join(b'<!ENTITY e%d "&e%d;">' % (at, at - 1) for at in range(1, 60_000))

SITEMAPS: dict[str, Callable[[], bytes]] = {
    "entities": lambda: b'<!DOCTYPE u [<!ENTITY e0 "x">' + CHAIN + b"]><u>&e59999;</u>",
    "entities in UTF-16": lambda: ('<!DOCTYPE u [<!ENTITY e0 "x">' + CHAIN.decode() + "]><u/>").encode(
        "utf-16"
    ),
    "external entity": lambda: b'<!DOCTYPE u SYSTEM "file:///etc/passwd"><u/>',
    "packed": lambda: gzip.compress(b"<u>" + b" " * (300 * MIB), 1),
    "empty members": lambda: NOTHING * (8 * MIB // len(NOTHING)),
    "elements": lambda: b"<u>" + b"<a/>" * (8 * MIB // 4),
    "many elements": lambda: b"<u>" + b"<a/>" * (60 * MIB // 4),
    "deep": lambda: b"<a>" * (20 * MIB),
    "attribute": lambda: b"<u x='" + b"y" * (60 * MIB) + b"'/>",
    "entries": lambda: b"<u>" + b"<url><loc>http://h/a</loc></url>" * (60 * MIB // 33),
    "lines": lambda: b"\n" * (60 * MIB),
    "damaged": lambda: gzip.compress(b"<u/>")[:-3],
}
PAGES: dict[str, Callable[[], bytes]] = {
    "deep": lambda: b"<html>" + b"<div>" * 100_000,
    "deeper": lambda: b"<html>" + b"<b><p>" * (8 * MIB),
    "tables": lambda: b"<html>" + b"<table><tr><td>" * (4 * MIB),
    "links": lambda: b"<html>" + b"<a href=x>" * (6 * MIB),
    "elements": lambda: b"<html>" + b"<a/>" * (8 * MIB),
    "attribute": lambda: b"<html><a href='" + b"x" * (60 * MIB) + b"'>",
    "attributes": lambda: b"<html><a " + b"".join(b"a%d=1 " % at for at in range(2 * MIB)) + b">",
    "brackets": lambda: b"<html>" + b"<" * (60 * MIB),
    "comments": lambda: b"<html>" + b"<!--" * (15 * MIB),
    "wrong charset": lambda: b"<html><meta charset=utf-7>" + b"+AAA-\xff" * (8 * MIB),
    "UTF-16": lambda: ("<html>" + "\ud7ff" * (20 * MIB)).encode("utf-16"),
}
JSONS = {
    "lists": b"[" * 200_000,
    "objects": b'{"d":' * 200_000,
    "number": b'{"d": ' + b"9" * 100_000 + b"}",
}


def _held(make: Callable[[], bytes], read: Callable[[bytes], None]) -> None:
    """Make a bomb and read it in a child process with limits of memory and CPU time.

    The memory limit is relative to the child's memory after the bomb is made.
    """

    def child() -> None:
        bomb = make()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + _MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        begun_s = time.process_time()
        read(bomb)
        assert time.process_time() - begun_s < _CPU_S

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(120)
    if process.is_alive():
        process.kill()
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize("bomb", SITEMAPS)
def test_a_sitemap(bomb: str) -> None:
    """A sitemap bomb is a failure that names it."""

    def read(content: bytes) -> None:
        with pytest.raises(Failure, match=r"^bad_answer: /sitemap.xml (is no sitemap|cannot be unpacked): "):
            entries(content, "/sitemap.xml")

    _held(SITEMAPS[bomb], read)


@pytest.mark.parametrize("bomb", PAGES)
def test_a_page(bomb: str) -> None:
    """Of a page bomb only the beginning is read, with at most 10,000 links."""

    def read(body: bytes) -> None:
        answer = HttpAnswer(200, body, Response(200, HEAD + b"\r\n", body), 0, 0)
        assert len(reading(answer, "text/html", "http://h/", "test").links) <= 10_000

    _held(PAGES[bomb], read)


def test_a_packed_body_of_many_empty_members() -> None:
    """A page whose gzip has 400,000 empty members is a failure at once; with two it is read."""
    head = HEAD + b"Content-Encoding: gzip\r\n\r\n"
    begun_s = time.process_time()
    with pytest.raises(Failure, match="more than 20,000 members"):
        http._decoded(Response(200, head, NOTHING * 400_000))
    assert time.process_time() - begun_s < _CPU_S
    two = gzip.compress(b"one, ") + gzip.compress(b"two")
    assert http._decoded(Response(200, head, two + b"\0\0")) == b"one, two"


def test_robots_txt_of_100_mib_whose_patterns_begin_anew_everywhere() -> None:
    """Of robots.txt 500 KiB are read, and a pattern of many wildcards takes no longer than others."""
    begun_s = time.process_time()
    content = b"User-agent: *\n" + b"Disallow: /*a*a*a*a*a*a*a*a*b$\n" * (100 * MIB // 32)
    assert web.parsed(content, "test").allow("http://h/" + "a" * 8_000)
    assert time.process_time() - begun_s < _CPU_S


@contextmanager
def saying(*parts: bytes, every_s: float = 0.0, endless: bytes = b"") -> Iterator[str]:
    """Run a server that answers with these bytes, then with an endless repetition; yield its URL."""
    ended = threading.Event()

    def talk(one: socket.socket) -> None:
        with suppress(OSError), one:
            one.recv(2**16)
            for part in parts:
                one.sendall(part)
            while endless and not ended.wait(every_s):
                one.sendall(endless)

    def listen(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=listen, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    ("parts", "every_s", "endless", "why"),
    [
        ((HEAD + b"Content-Length: 900\r\n\r\n",), 0.05, b"x", "timeout"),
        ((HEAD,), 0.05, b"x", "timeout"),
        ((HEAD + CHUNKED,), 0.05, b"1\r\nx\r\n", "timeout"),
        ((HEAD + CHUNKED,), 0.0, b"7fff\r\n" + b"x" * 32767 + b"\r\n", "larger"),
        ((HEAD + b"\r\n",), 0.0, b"x" * 65536, "larger"),
        ((HEAD,), 0.0, b"x: " + b"y" * 65536 + b"\r\n", "bad_answer"),
        ((HEAD + b"x:",), 0.0, b"y" * 65536, "bad_answer"),
        ((b"HTTP/1.1 100 Continue\r\n\r\n",), 0.0, b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "bad_answer"),
        ((HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",), 0.0, b"x", "bad_answer"),
    ],
    ids=[
        "slow body",
        "slow head",
        "slow chunks",
        "endless chunks",
        "endless body",
        "many fields",
        "large field",
        "interim answers",
        "length",
    ],
)
def test_an_answer_without_end(parts: tuple[bytes, ...], every_s: float, endless: bytes, why: str) -> None:
    """An endless reply ends at the time limit of the request, or at the size limit of head or body."""
    with saying(*parts, every_s=every_s, endless=endless) as url:
        client = Http(url, timeout_s=2 if every_s else 60, headers={})
        begun_s = time.monotonic()
        with pytest.raises((Failure, Skipped), match=why):
            client.request("GET", "/")
        client.close()
    assert time.monotonic() - begun_s < (5 if every_s else 60)


@pytest.mark.parametrize("kind", ["sharepoint", "profiles", "opensearch", "pinchpoint"])
@pytest.mark.parametrize("content", JSONS)
def test_json_that_nobody_can_read(kind: str, content: str) -> None:
    """JSON nested 200,000 deep, or with a number of 100,000 digits, is a failure in each reader."""
    body = JSONS[content]
    answer = HEAD + b"Connection: close\r\nContent-Type: application/json\r\nContent-Length: "
    with saying(answer + f"{len(body)}\r\n\r\n".encode() + body) as url:
        if kind in ("opensearch", "pinchpoint"):
            index = service(Endpoint("search", f"{url}/x", {"kind": kind}), "crawl", 10).connect()
            with pytest.raises(Failure, match="bad_answer"):
                index.check()
            index.close()
            return
        source = SourceParams.model_validate({"kind": kind, "url": url})
        found = repository(source, Endpoint("sharepoint", url), FullCrawlParams(timeout_s=10)).connect()
        with pytest.raises(Failure, match="bad_answer"):
            found.check()
        found.close()
