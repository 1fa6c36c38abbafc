"""Compare the crawl's HTTP client with wrk, and a whole web crawl with Scrapy, on one nginx."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.generator import SCENARIO, closed, generate
from bench.load import LIMIT_S, BenchError, Load, cores, figures, measured_run
from bench.pairs import interleaved
from bench.rows import Row
from bench.spider import SPIDER
from scenarios.full_crawl_sources.sites import nginx
from scenarios.support import made
from servers import postgres

from pinchpoint_infra.ports import free_port
from pinchpoint_scenarios.contract import Endpoint

CONNECTIONS = 20
USERS = 16
BATCH = 64
PAGES = 30_000
LINKS = 10
_PAGE_BYTES = 1024
_SECONDS = 3
_CRAWL_GOAL_US = 100.0
_SIZES = {"1 KiB": 2**10, "100 KiB": 100 * 2**10}
_GOALS = {"1 KiB": 1.15, "100 KiB": 1.0}
_TLS_GOAL = 1.3
_OURS = Path(__file__).with_name("fetching.py")
_PEER, _SCRAPY = "wrk", "Scrapy"
_CRAWL = "client CPU per page of a web crawl, all of it"
_NUMBER = re.compile(r"(\d+) requests in ")
_RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
_ERRORS = re.compile(r"(Socket errors|Non-2xx).*")


def rows() -> Iterator[Row]:
    """Yield the rows of the HTTP client, then those of the crawl."""
    for program, package in ((_PEER, "wrk"), ("nginx", "nginx-light"), ("openssl", "openssl")):
        if shutil.which(program) is None:
            raise BenchError(f"needs {program} (Debian: {package})")
    with site() as served:
        for name, size in _SIZES.items():
            yield _fetched(f"client CPU per document of {name}", size, _GOALS[name], served.url)
        for name, size in _SIZES.items():
            tls = served.tls_url, served.certificate
            yield _fetched(f"client CPU per document of {name}, TLS", size, _TLS_GOAL, *tls)
        yield from _crawled(served)


@dataclass(frozen=True, slots=True)
class Site:
    """A site served by nginx: one file ``/SIZE.bin`` per size, and linked pages.

    Attributes:
        url: the site's URL without TLS.
        tls_url: the site's URL with TLS.
        certificate: path of the certificate to trust.
    """

    url: str
    tls_url: str
    certificate: Path


@contextmanager
def site(pages: int = PAGES) -> Iterator[Site]:
    """Serve the site on the server's cores, without a limit on the age of connections."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = folder / "site"
        root.mkdir()
        for size in _SIZES.values():
            (root / f"{size}.bin").write_bytes(b"x" * size)
        for number in range(pages):
            (root / _name(number)).write_bytes(page(number, pages))
        certificate, key, port = *_certificate(folder), free_port()
        extra = (
            "keepalive_requests 1000000000; keepalive_timeout 300s; sendfile on; tcp_nopush on; "
            f"listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key};"
        )
        with on(cores()[0]), nginx(folder, root, extra) as url:
            yield Site(url, f"https://127.0.0.1:{port}", certificate)


def page(number: int, pages: int) -> bytes:
    """Return a page of 1 KiB.

    Half of its links are on every page, the other half lead deeper into the site.
    """
    near = [2 * number + 1, 2 * number + 2, number + 1, number + 2, number + 3]
    links = [*range(LINKS - len(near)), *(each % pages for each in near)]
    body = "".join(f'<a href="/{_name(each) if each else ""}">page {each}</a>\n' for each in links)
    head = f"<!doctype html><html><head><title>Page {number}</title></head><body>{body}<p>"
    return (head + "word " * _PAGE_BYTES)[: _PAGE_BYTES - 4].encode() + b"</p>"


@contextmanager
def on(chosen: Sequence[int]) -> Iterator[None]:
    """Run programs that start inside the block on these cores."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, chosen)
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def fetched(url: str, size: int, seconds: float, certificate: Path | None = None) -> Load:
    """Measure Pinchpoint's HTTP client in a process of its own."""
    command = [sys.executable, str(_OURS), url, f"/{size}.bin", str(CONNECTIONS), str(seconds)]
    trusted = {"SSL_CERT_FILE": str(certificate)} if certificate else {}
    said, _ = measured_run(command, trusted)
    return figures(*json.loads(said))


def wrk(url: str, size: int, seconds: int) -> Load:
    """Measure wrk with the same document and connections."""
    said, cpu_s = measured_run(
        [_PEER, "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", f"{url}/{size}.bin"], within_s=seconds + LIMIT_S
    )
    number, rate, errors = _NUMBER.search(said), _RATE.search(said), _ERRORS.search(said)
    if number is None or rate is None or errors:
        raise BenchError(f"wrk measured nothing: {errors[0] if errors else said.strip()[-300:]}")
    return figures(float(rate[1]), cpu_s / int(number[1]) * 1e6)


def crawled(served: Site, seconds: int) -> Load:
    """Measure Pinchpoint's crawl: a real generator process crawls into a crawl database, without an index."""
    with on(cores()[0]), postgres() as url:
        endpoints = {
            "sql": Endpoint("sql", url),
            "search": Endpoint("search", "", {"kind": "none"}),
            "web": Endpoint("web", served.url),
        }
        params = {"sources": [{"kind": "web", "sitemaps": False}], "batch": BATCH}
        scenario = made("full-crawl", endpoints, params, name=SCENARIO)
        scenario.prepare(lambda _: None)
        try:
            load, core = closed(USERS), cores()[1]
            return generate(
                load,
                seconds=seconds,
                cores=core,
                use="full-crawl",
                params=params,
                endpoints=list(endpoints.values()),
            )
        finally:
            scenario.finish(keep_data=False)


def scrapy(served: Site, pages: int) -> Load:
    """Measure Scrapy: a spider that follows all links."""
    command = [sys.executable, "-c", SPIDER, served.url, str(pages), str(USERS)]
    said, _ = measured_run(command)
    return figures(*json.loads(said.splitlines()[-1]))


def _fetched(name: str, size: int, goal: float, url: str, certificate: Path | None = None) -> Row:
    found = interleaved(lambda: fetched(url, size, _SECONDS, certificate), lambda: wrk(url, size, _SECONDS))
    ours, its, ratio = found.medians(lambda load: load.cpu_us)
    return Row(name, ours, "us", _PEER, its, ratio, goal, met=ratio <= goal)


def _crawled(served: Site) -> Iterator[Row]:
    if importlib.util.find_spec("scrapy") is None:
        ours = crawled(served, _SECONDS).cpu_us
        yield Row(_CRAWL, ours, "us", goal=_CRAWL_GOAL_US, met=ours <= _CRAWL_GOAL_US)
        note = "needs Scrapy: uv sync --inexact --group bench"
        yield Row(f"{_CRAWL}, beside Scrapy", None, "us", _SCRAPY, met=False, note=note)
        return
    found = interleaved(lambda: crawled(served, _SECONDS), lambda: scrapy(served, 1_000), pairs=3)
    ours, its, ratio = found.medians(lambda load: load.cpu_us)
    yield Row(_CRAWL, ours, "us", goal=_CRAWL_GOAL_US, met=ours <= _CRAWL_GOAL_US)
    yield Row(f"{_CRAWL}, beside Scrapy", ours, "us", _SCRAPY, its, ratio)


def _certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    more = ["-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *more], check=True, capture_output=True, timeout=LIMIT_S)
    return certificate, key


def _name(number: int) -> str:
    return "index.html" if number == 0 else f"page{number}.html"
