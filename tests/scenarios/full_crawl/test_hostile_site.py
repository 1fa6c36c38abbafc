"""Tests of crawls of unusual, wrong or hostile sites and shares."""

from __future__ import annotations

import gzip
import os
import pwd
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scenarios.full_crawl.folders import crawled, rows
from scenarios.full_crawl.pages import linking
from scenarios.full_crawl_sources.sites import samba
from scenarios.support import Recorder, Reply, Search, Server
from support import disk_folder, missing

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.http import LARGEST_BYTES

Answers = dict[str, Reply | Callable[[Mapping[str, str]], Reply]]


def html(content: bytes | str, **fields: str) -> Reply:
    body = content.encode() if isinstance(content, str) else content
    return 200, {"Content-Type": "text/html", **{k.replace("_", "-"): v for k, v in fields.items()}}, body


def moved(where: str, code: int = 301) -> Reply:
    return code, {"Location": where}, b""


class Odd(Server):
    """A site; ``answers``: path and query -> reply; other paths are 404."""

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[tuple[float, str]] = []

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        self.asked.append((time.monotonic(), target))
        found = self.answers.get(target, (404, {}, b""))
        return found(headers) if callable(found) else found

    @property
    def paths(self) -> list[str]:
        return sorted(path for _, path in self.asked)


@contextmanager
def odd(answers: Answers) -> Iterator[Odd]:
    server = Odd(answers)
    with server.running():
        yield server


class Crawl:
    """A crawl of an unusual site with its results by path."""

    def __init__(self, sql: Endpoint, server: Odd, sessions: int = 2, batch: int = 8, **options: Any) -> None:
        self.search, self.recorder = Search(), Recorder()
        source = {"kind": "web", "name": "site", "url": server.url, **options}
        with self.search.running():
            endpoints = {"sql": sql, "search": self.search.endpoint}
            params = {"sources": [source], "batch": batch, "timeout_s": 10}
            found = crawled(endpoints, params, sessions=sessions, recorder=self.recorder, keep_data=True)
        self.line = found["site"]
        self.indexed = {
            url.removeprefix(server.url): content for url, (_, content) in self.search.documents.items()
        }
        logged = "SELECT url, state, reason FROM history WHERE kind = 'document'"
        self.log = {url.removeprefix(server.url): (state, why) for url, state, why in rows(sql, logged)}
        left = rows(sql, "SELECT count(*) FROM queue")
        assert left == [(0,)]


def test_redirects(sql: Endpoint) -> None:
    """Redirects on the site are followed, others are not; a circle ends, and an empty one is a failure."""
    with odd({}) as elsewhere, odd({}) as server:
        server.answers |= {
            "/": html(linking("/away", "/circle1", "/nowhere", "/chain1", "/self", "/odd")),
            "/away": moved(f"{elsewhere.url}/x"),
            "/circle1": moved("/circle2", 302),
            "/circle2": moved("/circle1", 307),
            "/nowhere": (301, {}, b""),
            "/chain1": moved("chain2"),
            "/chain2": moved("/chain3#part", 308),
            "/chain3": html("end"),
            "/self": moved("/self"),
            "/odd": moved("/gr\u00f6\u00dfe".encode().decode("latin-1")),
            "/gr%C3%B6%C3%9Fe": html("odd"),
        }
        crawl = Crawl(sql, server)
    assert elsewhere.asked == []
    assert set(crawl.indexed) == {"/", "/chain3", "/gr%C3%B6%C3%9Fe"}
    assert crawl.log["/away"] == ("skipped", f"moved to {elsewhere.url}/x")
    assert crawl.log["/nowhere"] == ("failed", "bad_answer")
    assert (crawl.line["count"], crawl.line["failures"], crawl.line["skipped"]) == (3, 1, 7)
    assert all(crawl.recorder.counts()["document:site", outcome] for outcome in ("ok", "skipped"))
    documents = [path for path in server.paths if not path.endswith((".txt", ".xml"))]
    assert len(documents) == len(set(documents)), "asked for twice"


def test_redirects_without_end_are_given_up(sql: Endpoint) -> None:
    """A chain of redirects to new addresses is a failure after twenty."""

    class Maze(Odd):
        def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
            self.asked.append((time.monotonic(), target))
            return moved(f"/?step={len(self.asked)}")

    with Maze({}).running() as server:
        assert isinstance(server, Odd)
        crawl = Crawl(sql, server, robots=False, sitemaps=False, depth=1)
    assert crawl.line["failures_by_kind"] == {"bad_answer": 1}
    assert (len(server.asked), crawl.line["skipped"]) == (21, 20)


def test_pages_that_say_they_are_each_other(sql: Endpoint) -> None:
    """Of pages with canonical addresses in a circle one is indexed; a page that is its own always is."""

    def at(own: str, *links: str) -> Reply:
        return html(f"<link rel=canonical href='{own}'>".encode() + linking(*links))

    with odd({}) as server:
        server.answers |= {
            "/": at("/", "/a", "/x", "/print?id=1", "/off"),
            "/a": at("/b"),
            "/b": at("/a"),
            "/x": at("/y"),
            "/y": at("/z"),
            "/z": at("/x"),
            "/print?id=1": at("/page"),
            "/page": at("/page"),
            "/off": at("http://elsewhere.example/off"),
        }
        crawl = Crawl(sql, server)
    indexed = set(crawl.indexed)
    assert len(indexed & {"/a", "/b"}) == 1
    assert len(indexed & {"/x", "/y", "/z"}) == 1
    assert indexed - set("/abxyz") >= {"/page", "/off"}
    assert "/print?id=1" not in indexed
    assert (crawl.line["count"], crawl.line["skipped"]) == (5, 4)


@pytest.mark.parametrize("code", [429, 503])
def test_a_pause_until_a_date_is_made(sql: Endpoint, code: int) -> None:
    """``Retry-After`` as a date delays requests until then; the refusal counts and the crawl continues."""
    until: list[datetime] = []

    def busy(headers: Mapping[str, str]) -> Reply:
        if not until:
            until.append(datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3))
            return code, {"Retry-After": format_datetime(until[0], usegmt=True)}, b""
        return html("at last")

    names = [f"/p{number}" for number in range(5)]
    with odd({"/": html(linking("/busy")), "/busy": busy}) as server:
        server.answers |= {name: html(name) for name in names}
        server.answers["/busy"] = busy
        crawl = Crawl(sql, server, robots=False, sitemaps=False)
    first, second = [at for at, path in server.asked if path == "/busy"]
    assert second - first > 1.5, "a date has no fractions: at least two whole seconds of three"
    assert (crawl.line["count"], crawl.line["failures"]) == (2, 0)
    assert crawl.recorder.counts(stages=True)["document:site/fetch", f"http_{code}"] == 1


def test_what_is_no_page_is_a_document_without_links(sql: Endpoint) -> None:
    """PDF, Office, text and untyped files are indexed byte by byte, and their content has no links."""
    inside = linking("/not-a-link")
    files: dict[str, tuple[str, bytes]] = {
        "/a.pdf": ("application/pdf", b"%PDF-1.7 " + inside),
        "/b.docx": (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            b"PK" + inside,
        ),
        "/c.txt": ("text/plain; charset=utf-8", inside),
        "/d": ("application/octet-stream", inside),
    }
    with odd({"/": html(linking(*files, "/untyped", "/none"))}) as server:
        server.answers |= {name: (200, {"Content-Type": kind}, body) for name, (kind, body) in files.items()}
        server.answers["/untyped"] = 200, {}, b"<!doctype html>" + linking("/found")
        server.answers["/found"] = html("found")
        server.answers["/none"] = 200, {}, b""
        crawl = Crawl(sql, server)
    for name, (_, body) in files.items():
        assert crawl.indexed[name] == body
    assert "/found" in crawl.indexed
    assert "/not-a-link" not in server.paths
    assert crawl.line["failures"] == 0


def test_links_of_every_kind_and_charset(sql: Endpoint) -> None:
    """Links with fragments, other schemes, entities and charsets lead to one request per page."""
    start = (
        "<a href='/one#a'><a href='/one#b'><a href='/%6fne'><a href='HTTP:/one'><a href=' /one '>"
        "<a href='data:text/html,<a href=/no>'><a href='javascript:go(\"/no\")'><a href='tel:1'><a href='//'>"
        "<a href='/two?b=1&amp;a=2'><a href='/two?a=2&b=1'><a href='?page=2'><a href='/" + "x" * 9_000 + "'>"
        "<a rel='nofollow' href='/hidden'><a href='gr\u00f6\u00dfe'>"
    )
    with odd({"/": html(start.encode("latin-1"), Content_Type="text/html; charset=utf-8")}) as server:
        server.answers["/"] = 200, {"Content-Type": "text/html; charset=ISO-8859-1"}, start.encode("latin-1")
        for path in ("/one", "/two?a=2&b=1", "/?page=2", "/hidden", "/gr%C3%B6%C3%9Fe"):
            server.answers[path] = html(linking(text=path))
        crawl = Crawl(sql, server, robots=False, sitemaps=False)
    assert server.paths == ["/", "/?page=2", "/gr%C3%B6%C3%9Fe", "/one", "/two?a=2&b=1"]
    assert (crawl.line["count"], crawl.line["failures"]) == (5, 0)


ROBOTS = (
    "\ufeff# comment\r\nUSER-AGENT : otherbot\r\nDisallow: /\r\n\r\n"
    "user-agent: Pinchpoint\r\nuser-agent: third\r\n\r\nAllow: /no/but-this\r\nDisallow: /no/ # why\r\n"
    "Disallow: /*.php$\r\nDisallow: /gr%C3%B6%C3%9Fe\r\nNonsense\r\nCrawl-delay: soon\r\nCrawl-delay: -1\r\n"
    "Disallow:\r\n\r\nUser-agent: *\r\nDisallow: /\r\nSitemap: /map.xml\r\nSitemap: http://elsewhere.example/map.xml\r\n"
)


def test_robots_txt_however_it_is_written(sql: Endpoint) -> None:
    """robots.txt works with a byte order mark, any case and spacing, several names and wildcards."""
    links = "/no/x", "/no/but-this", "/a.php", "/a.php5", "/gr\u00f6\u00dfe", "/yes"
    with odd({"/robots.txt": (200, {"Content-Type": "text/plain"}, ROBOTS.encode())}) as server:
        server.answers |= {"/": html(linking(*links)), "/no/but-this": html("this"), "/a.php5": html("5")}
        server.answers |= {"/yes": html("yes"), "/map.xml": (200, {}, b"http://127.0.0.1/outside\n")}
        crawl = Crawl(sql, server)
    assert set(crawl.indexed) == {"/", "/no/but-this", "/a.php5", "/yes"}
    assert [path for path in server.paths if path.startswith(("/no/x", "/gr")) or path.endswith(".php")] == []
    assert crawl.line["failures"] == 0


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        ((404, {}, b""), 2),
        ((403, {}, b"User-agent: *\nDisallow: /"), 2),
        (html("<html>User-agent: *<br>Disallow: /</html>"), 2),
        ((200, {}, b""), 2),
        ((200, {}, b"User-agent: *\nDisallow: /x" + b"\n# filler" * 60_000 + b"\nDisallow: /"), 2),
        ((200, {}, b"User-agent: *\rDisallow: /"), 0),
        (moved("/other/robots.txt", 302), 1),
        (moved("/robots.txt"), 2),
        (moved("http://elsewhere.example/robots.txt"), 2),
        ((500, {}, b""), None),
    ],
)
def test_what_a_host_without_proper_rules_allows(sql: Endpoint, reply: Reply, count: int | None) -> None:
    """Without robots.txt all is allowed; on-site redirects are followed; on errors nothing is (RFC 9309)."""
    with odd({"/robots.txt": reply, "/": html(linking("/p")), "/p": html("p")}) as server:
        server.answers["/other/robots.txt"] = 200, {}, b"User-agent: *\nDisallow: /p"
        crawl = Crawl(sql, server, sitemaps=False)
    if count is None:
        assert crawl.line["count"] == 0
        assert crawl.line["failures_by_kind"] == {"http_500": 1}
        assert "/" not in server.paths
    else:
        assert (crawl.line["count"], crawl.line["failures"]) == (count, 0)


XML = '<?xml version="1.0" encoding="utf-8"?>\n<{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{1}</{0}>'


def test_sitemaps_however_they_are_packed(sql: Endpoint) -> None:
    """Sitemaps work nested, in a circle, and compressed; an invalid one is one failure; hosts are limited."""

    def index(*names: str) -> bytes:
        inside = "".join(f"<sitemap><loc> {name} </loc></sitemap>" for name in names)
        return XML.format("sitemapindex", inside).encode()

    def urls(*names: str) -> bytes:
        return XML.format("urlset", "".join(f"<url><loc>{name}</loc></url>" for name in names)).encode()

    with odd({}) as elsewhere, odd({}) as server:
        away = elsewhere.url
        elsewhere.answers["/map.xml"] = 200, {}, urls(f"{server.url}/from-elsewhere")
        first = gzip.compress(index("/deeper.xml.gz", "/sitemap.xml", f"{away}/map.xml"))
        packed = {"Content-Type": "application/gzip"}
        pages = gzip.compress(urls("/a?x=1&amp;y=2", f"{away}/out", "/b#f"))
        server.answers |= {
            "/sitemap.xml": (200, {}, first),
            "/deeper.xml.gz": (200, packed, gzip.compress(index("/1.xml", "/2.txt", "/3.xml"))),
            "/1.xml": (200, {"Content-Encoding": "gzip"}, pages),
            "/2.txt": (200, {}, f"\ufeff{server.url}/c\r\n\r\nnot an address\r\n".encode()),
            "/3.xml": html("<html><body>Not found, says a page with status 200<br></body>"),
            "/": html("start"),
            "/a?x=1&y=2": html("a"),
            "/b": html("b"),
            "/c": html("c"),
        }
        crawl = Crawl(sql, server)
    assert elsewhere.asked == []
    assert set(crawl.indexed) == {"/", "/a?x=1&y=2", "/b", "/c"}
    assert crawl.line["failures_by_kind"] == {"bad_answer": 1}
    assert server.paths.count("/deeper.xml.gz") == 1


def test_what_is_too_large_is_skipped_however_it_is_sent(sql: Endpoint) -> None:
    """A document that is too large, declared or compressed, is skipped with the reason."""
    huge = b"x" * (LARGEST_BYTES + 1)
    with odd({"/": html(linking("/huge", "/bomb", "/small"))}) as server:
        server.answers["/huge"] = html(huge)
        server.answers["/bomb"] = html(gzip.compress(huge, 1), Content_Encoding="gzip")
        server.answers["/small"] = html(linking(text="small"))
        crawl = Crawl(sql, server, sessions=1, robots=False, sitemaps=False)
    assert set(crawl.indexed) == {"/", "/small"}
    assert crawl.log["/huge"] == crawl.log["/bomb"] == ("skipped", "larger than 64 MiB")


def test_what_is_packed_though_nobody_asked_is_unpacked_whole(sql: Endpoint) -> None:
    """Unrequested gzip is unpacked with several members, extra bytes, or no content; truncated, it fails."""
    parts = gzip.compress(b"<a href=/first>") + gzip.compress(b"<a href=/second>")
    packed = {"/parts": parts, "/behind": parts + b"\0\0", "/nothing": b"", "/cut": parts[:-9]}
    with odd({"/": html(linking(*packed))}) as server:
        server.answers |= {name: html(body, Content_Encoding="gzip") for name, body in packed.items()}
        server.answers |= {"/first": html("1"), "/second": html("2")}
        crawl = Crawl(sql, server, robots=False, sitemaps=False)
    assert set(crawl.indexed) == {"/", "/parts", "/behind", "/nothing", "/first", "/second"}
    assert crawl.indexed["/parts"] == crawl.indexed["/behind"] == b"<a href=/first><a href=/second>"
    assert crawl.line["failures_by_kind"] == {"bad_answer": 1}


def test_a_site_that_has_no_end_is_crawled_to_its_depth(sql: Endpoint) -> None:
    """An endless site is crawled to its depth limit."""

    class Calendar(Odd):
        def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
            self.asked.append((time.monotonic(), target))
            month = int(urlsplit(target).query.partition("=")[2] or 0)
            return html(linking(f"/?month={month + 1}", f"/?month={month + 2}&session={time.monotonic()}"))

    with Calendar({}).running() as server:
        assert isinstance(server, Odd)
        crawl = Crawl(sql, server, robots=False, sitemaps=False, depth=3, exclude=["*session=*"])
    assert server.paths == ["/", "/?month=1", "/?month=2", "/?month=3"]
    assert crawl.line["count"] == 4


NOWHERE = Endpoint("search", "", {"kind": "none"})
USER, PASSWORD = "nobody", "a secret word"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that other users of the system can reach."""
    with tempfile.TemporaryDirectory(prefix=disk_folder(), dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def filled(folder: Path) -> Path:
    """Write two readable files, an unreadable file and an unreadable folder."""
    for name in ("a.txt", "sub/b.txt", "sub/secret.txt", "closed/c.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "sub" / "secret.txt").chmod(0)
    (folder / "closed").chmod(0)
    return folder


def test_a_share_that_nobody_answers_for_is_one_failure(sql: Endpoint) -> None:
    """A share without a server gives one failure, no documents, and no password in the log."""
    files = Endpoint("files", "smb://127.0.0.1:1/docs", {"user": USER, "password": PASSWORD})
    params = {"sources": [{"kind": "files"}], "retries": 1, "timeout_s": 5}
    endpoints = {"sql": sql, "search": NOWHERE, "files": files}
    line = crawled(endpoints, params, sessions=2, keep_data=True)["files"]
    assert (line["count"], line["failures"], line["failures_by_kind"]) == (0, 1, {"unreachable": 1})
    assert line["failed"][0]["attempts"] == 2
    assert PASSWORD not in str(line)
    assert PASSWORD not in str(rows(sql, "SELECT message FROM errors"))


@pytest.mark.root
def test_what_a_share_does_not_let_be_read_is_a_failure_each(sql: Endpoint, open_folder: Path) -> None:
    """An unreadable folder and file of a share are a failure each; the rest is crawled."""
    if os.geteuid() != 0:
        missing("Samba's server needs root to change to the user who logs in")
    if USER not in {each.pw_name for each in pwd.getpwall()}:
        missing(f"the user {USER!r} is not known here")
    share = open_folder / "share"
    share.mkdir()
    filled(share)
    with samba(open_folder, share, USER, PASSWORD) as (url, _):
        files = Endpoint("files", url, {"user": USER, "password": PASSWORD})
        endpoints = {"sql": sql, "search": NOWHERE, "files": files}
        params = {"sources": [{"kind": "files"}], "batch": 4, "timeout_s": 10}
        line = crawled(endpoints, params, sessions=2)["files"]
    assert (line["count"], line["failures_by_kind"]) == (2, {"permission": 2})
    assert sorted(each["url"].removeprefix(url) for each in line["failed"]) == ["/closed", "/sub/secret.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_a_folder_does_not_let_be_read_is_a_failure_each(sql: Endpoint, tmp_path: Path) -> None:
    """As an ordinary user, an unreadable folder or file is a failure; pipes and link cycles are skipped."""
    filled(tmp_path)
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    try:
        params = {"sources": [{"kind": "files", "path": str(tmp_path)}], "batch": 4}
        line = crawled({"sql": sql, "search": NOWHERE}, params, sessions=2)["files"]
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert (line["count"], line["skipped"], line["failures_by_kind"]) == (2, 2, {"permission": 2})
