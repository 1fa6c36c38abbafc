"""Tests that a login is sent only to its own scheme, host and port, on servers with TLS."""

from __future__ import annotations

import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from collectors.prometheus_servers import certificate
from httpserver import http_served

from pinchpoint_collectors.common.powershell import LinkLost
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters.server import Server
from pinchpoint_collectors.windows import winrm as windows_winrm
from pinchpoint_collectors.windows.options import WinRm
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl import http
from pinchpoint_scenarios.full_crawl.destinations import service
from pinchpoint_scenarios.full_crawl.failures import Failure, Skipped
from pinchpoint_scenarios.full_crawl.native.winrm import CrawlWinRmLink
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources import Item, Repository, repository

SECRET = "c4n4ry"
LOGINS: dict[str, dict[str, str]] = {
    "basic": {"auth": "basic", "user": "loader", "password": SECRET},
    "bearer": {"auth": "bearer", "token": SECRET},
    "cookies": {"auth": "cookies", "cookies": f"FedAuth={SECRET}"},
    "ntlm": {"auth": "ntlm", "user": "FARM\\loader", "password": SECRET},
}
_LOGIN_FIELDS = ("authorization", "cookie", "x-requestdigest")


class Recording:
    """An HTTP server with given replies that records the logins it receives."""

    def __init__(self, answer: Callable[[str], tuple[int, Mapping[str, str], bytes]]) -> None:
        self.paths: list[str] = []
        self.logins: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.paths.append(self.path)
                server.logins += [self.headers[name] for name in _LOGIN_FIELDS if name in self.headers]
                status, fields, body = answer(self.path)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **fields}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - http.server's names

            def log_message(self, *_: Any) -> None:
                """Discard the log message."""

        self.handler = Handler


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ssl.SSLContext, Path]]:
    """Yield a server's TLS context and its certificate, which the clients trust."""
    crt, key = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(crt))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(crt))
    http._tls.cache_clear()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)
    yield context, crt
    http._tls.cache_clear()


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept the certificate of 127.0.0.1 for other addresses, so that servers can use default ports."""
    made = ssl.create_default_context

    def any_name(*given: Any, **named: Any) -> ssl.SSLContext:
        context = made(*given, **named)
        context.check_hostname = False
        return context

    monkeypatch.setattr(ssl, "create_default_context", any_name)


def _address() -> str:
    """Return an address of this machine on which the default ports are free."""
    host = f"127.{random.randrange(1, 255)}.{random.randrange(255)}.{random.randrange(2, 255)}"
    try:
        for port in (80, 443):
            with socket.socket() as one:
                one.bind((host, port))
    except OSError as error:
        pytest.skip(f"missing: the right to listen on ports 80 and 443 ({error})")
    return host


def crawl_all(site: Repository) -> None:
    """Follow every link of the site, as a crawl does, at most 50 items."""
    source = site.connect()
    try:
        waiting, known = [source.root()], set[str]()
        while waiting and len(known) < 50:
            item = waiting.pop()
            known.add(item.url)
            try:
                found: list[Item] = (
                    list(source.enumerate(item))
                    if item.kind == "container"
                    else list(source.fetch(item).found)
                )
            except (Failure, Skipped):
                continue
            waiting += [each for each in found if each.url not in known]
    finally:
        source.close()


@pytest.mark.parametrize("login", ["basic", "bearer", "cookies"])
@pytest.mark.parametrize("first", ["https", "http"])
@pytest.mark.parametrize("default_ports", [True, False])
@pytest.mark.usefixtures("no_names")
def test_a_site_that_points_elsewhere_gets_the_login_for_itself_alone(
    login: str, first: str, default_ports: bool, trusted: tuple[ssl.SSLContext, Path]
) -> None:
    """Redirects, links, sitemaps, base and canonical addresses to other servers get no login, on any port."""
    elsewhere = ""

    def pointing(path: str) -> tuple[int, Mapping[str, str], bytes]:
        if path == "/robots.txt":
            return 200, {}, f"User-agent: *\nSitemap: {elsewhere}/map.xml\nSitemap: /own.xml\n".encode()
        if path == "/own.xml":
            return 200, {}, f"<urlset><url><loc>{elsewhere}/mapped</loc></url></urlset>".encode()
        if path == "/away":
            return 302, {"Location": f"{elsewhere}/moved"}, b""
        page = f'<html><a href="/away">a</a><a href="{elsewhere}/linked">b</a><a href="/based">c</a>'
        if path == "/based":
            page = (
                f'<html><base href="{elsewhere}/x/"><a href="y"><link rel="canonical" href="{elsewhere}/own">'
            )
        return 200, {"Content-Type": "text/html"}, page.encode()

    near, far = Recording(pointing), Recording(lambda _: (200, {"Content-Type": "text/html"}, b"<html>far"))
    host = _address() if default_ports else "127.0.0.1"
    second = {"https": "http", "http": "https"}[first]
    ports = {"https": 443, "http": 80} if default_ports else {"https": 0, "http": 0}
    tls: dict[str, ssl.SSLContext | None] = {"https": trusted[0], "http": None}
    with (
        http_served(near.handler, host, ports[first], tls[first]) as near_port,
        http_served(far.handler, host, ports[second], tls[second]) as far_port,
    ):
        elsewhere = f"{second}://{host}" + ("" if default_ports else f":{far_port}")
        url = f"{first}://{host}" + ("" if default_ports else f":{near_port}")
        hosts = [f"{host}:{far_port}", host]
        source = SourceParams.model_validate({"kind": "web", "url": url, "hosts": hosts})
        crawl_all(repository(source, Endpoint("web", url, LOGINS[login]), FullCrawlParams(timeout_s=10)))
    assert near.logins
    assert {"/moved", "/linked", "/mapped", "/map.xml", "/robots.txt"} <= set(far.paths)
    assert far.logins == []


def test_a_start_that_moves_to_another_origin_says_what_to_write(
    trusted: tuple[ssl.SSLContext, Path],
) -> None:
    """A start page that redirects to another origin gets no login there, and the check names the origin."""
    far = Recording(lambda _: (200, {}, b""))
    with http_served(far.handler, "127.0.0.1", 0, trusted[0]) as far_port:
        to = f"https://127.0.0.1:{far_port}/home"
        near = Recording(lambda path: (302, {"Location": to}, b"") if path == "/" else (404, {}, b""))
        with http_served(near.handler, "127.0.0.1", 0, None) as port:
            url = f"http://127.0.0.1:{port}/"
            source = SourceParams.model_validate({"kind": "web", "url": url})
            site = repository(source, Endpoint("web", url, LOGINS["basic"]), FullCrawlParams()).connect()
            with pytest.raises(Failure, match=f"write url: {to} in farm.yaml"):
                site.check()
            site.close()
    assert far.paths == []


@pytest.mark.parametrize("kind", ["sharepoint", "profiles"])
@pytest.mark.parametrize("login", LOGINS)
def test_sharepoint_redirects_and_links_get_no_login(
    kind: Any, login: str, trusted: tuple[ssl.SSLContext, Path]
) -> None:
    """SharePoint redirects and links to next pages on another server are not followed with the login."""
    far = Recording(lambda _: (200, {}, b"{}"))
    with http_served(far.handler, "127.0.0.1", 0, None) as far_port:
        elsewhere = f"http://127.0.0.1:{far_port}"

        def page(path: str) -> tuple[int, Mapping[str, str], bytes]:
            if len(near.paths) % 2 and "contextinfo" not in path:
                return 302, {"Location": f"{elsewhere}{path}"}, b""
            return 200, {}, f'{{"value": [], "odata.nextLink": "{elsewhere}/next"}}'.encode()

        near = Recording(page)
        with http_served(near.handler, "127.0.0.1", 0, trusted[0]) as port:
            url = f"https://127.0.0.1:{port}"
            source = SourceParams.model_validate({"kind": kind, "url": url})
            end = Endpoint("sharepoint", url, LOGINS[login])
            for _ in range(4):
                crawl_all(repository(source, end, FullCrawlParams(timeout_s=10)))
    assert near.logins
    assert far.paths == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_search_service_that_redirects_gets_no_second_request(
    status: int, trusted: tuple[ssl.SSLContext, Path]
) -> None:
    """Neither kind of index follows a redirect."""
    far = Recording(lambda _: (200, {}, b"{}"))
    with http_served(far.handler, "127.0.0.1", 0, None) as far_port:
        near = Recording(lambda path: (status, {"Location": f"http://127.0.0.1:{far_port}{path}"}, b""))
        with http_served(near.handler, "127.0.0.1", 0, trusted[0]) as port:
            for kind in ("opensearch", "pinchpoint"):
                options = {"kind": kind, "user": "loader", "password": SECRET}
                end = Endpoint("search", f"https://127.0.0.1:{port}/index", options)
                index = service(end, "crawl", 10).connect()
                with pytest.raises(Failure):
                    index.check()
                index.close()
    assert near.paths
    assert far.paths == []


@pytest.mark.parametrize("options", [{"token": SECRET}, {"user": "loader", "password": SECRET}])
def test_prometheus_that_redirects_gets_no_second_request(
    options: dict[str, str], trusted: tuple[ssl.SSLContext, Path]
) -> None:
    """Prometheus' login stays with the configured address, and the message names the new one."""
    far = Recording(lambda _: (200, {}, b"{}"))
    with http_served(far.handler, "127.0.0.1", 0, None) as far_port:
        elsewhere = f"http://127.0.0.1:{far_port}"
        near = Recording(lambda path: (302, {"Location": f"{elsewhere}{path}"}, b""))
        with http_served(near.handler, "127.0.0.1", 0, trusted[0]) as port:
            server = Server("sql1", f"https://127.0.0.1:{port}", {**options, "ca": str(trusted[1])})
            with pytest.raises(CollectorError, match=f"write url: {elsewhere} in farm.yaml"):
                server.clock()
            server.close()
    assert near.logins
    assert far.paths == []


@pytest.mark.parametrize("auth", ["basic", "ntlm"])
@pytest.mark.parametrize("status", [302, 307])
def test_winrm_that_redirects_gets_no_second_request(
    auth: str, status: int, trusted: tuple[ssl.SSLContext, Path]
) -> None:
    """A server to which WinRM is redirected gets no login, from a crawl or from a collector."""
    far = Recording(lambda _: (401, {"WWW-Authenticate": "Negotiate"}, b""))
    with http_served(far.handler, "127.0.0.1", 0, None) as far_port:
        near = Recording(lambda path: (status, {"Location": f"http://127.0.0.1:{far_port}{path}"}, b""))
        with http_served(near.handler, "127.0.0.1", 0, trusted[0]) as port:
            options = {"auth": auth, "user": "loader", "password": SECRET, "ca": str(trusted[1])}
            with pytest.raises(LinkLost, match="redirect"):
                CrawlWinRmLink(Endpoint("crawler", f"winrm://127.0.0.1:{port}", options), 5)
            watched = WinRm("127.0.0.1", port, True, auth, "loader", SECRET, str(trusted[1]))
            with pytest.raises(LinkLost, match="redirect"):
                windows_winrm.WinRmLink(watched, "{}", threading.Event())
    assert near.paths
    assert far.paths == []
