"""Tests of what is read from a page, against literals and a second parser."""

from __future__ import annotations

import random

import pytest
from selectolax.lexbor import LexborHTMLParser

from pinchpoint_scenarios.fastpath.http import Response
from pinchpoint_scenarios.full_crawl.http import HttpAnswer
from pinchpoint_scenarios.full_crawl.sources.web import PageContent, is_page, reading

HTML = "text/html"
URL = "http://h/a/p.html"


def read(body: bytes, *fields: str, content_type: str = HTML, agent: str = "pinchpoint") -> PageContent:
    head = "".join(f"{field}\r\n" for field in ("HTTP/1.1 200 OK", *fields)).encode("latin-1")
    answer = HttpAnswer(200, body, Response(200, head + b"\r\n", body), 0, 0)
    return reading(answer, content_type, URL, agent)


@pytest.mark.parametrize(
    ("body", "links"),
    [
        (b"<a href=x.html>", ["http://h/a/x.html"]),
        (b"<A HREF = 'x.html'>", ["http://h/a/x.html"]),
        (b"<a\nhref\n=\n\"/x?b=2&amp;a=1#part\"\n>", ["http://h/x?a=1&b=2"]),
        (b"<a title='<a href=no>' href=yes>", ["http://h/a/yes"]),
        (b"<!-- <a href=no> --><a href=yes>", ["http://h/a/yes"]),
        (b"<script>document.write('<a href=no>')</script><a href=yes>", ["http://h/a/yes"]),
        (b"<style>a{content:'<a href=no>'}</style><textarea><a href=no></textarea><a href=yes>",
         ["http://h/a/yes"]),
        (b"<title><a href=no></title><a href=yes>", ["http://h/a/yes"]),
        (b"<noscript><a href=yes></a></noscript>", ["http://h/a/yes"]),
        (b"<p>a < b and <a href=yes>c", ["http://h/a/yes"]),
        (b"<map><area href=one></map><iframe src=two></iframe>", ["http://h/a/one", "http://h/a/two"]),
        (b"<frameset><frame src=one><frame src=two></frameset>", ["http://h/a/one", "http://h/a/two"]),
        (b"<a href=x><a href=./x><a href='x#2'><a href=' x '>", ["http://h/a/x"]),
        (b"<a href='data:text/html,<a href=no>'><a href='javascript:void(0)'><a href='mailto:a@b'>", []),
        (b"<a href=''><a href='#top'><a href><a name=x>", []),
        (b"<a href='ftp://h/x'><a href='http://'><a href='http://[::1'><a href='//'>", []),
        (b"<img src=no.png><link href=no.css rel=stylesheet><form action=no>", []),
        (b"<base href='/b/'><a href=x>", ["http://h/b/x"]),
        (b"<a href=x><base href='http://other.example/b/'><base href=/c/>", ["http://other.example/b/x"]),
        (b"<base target=_top><a href=x>", ["http://h/a/x"]),
        (b"<meta http-equiv=Refresh content='0; URL=/next'>", ["http://h/next"]),
        (b"<meta http-equiv=refresh content=\"5;url='next'\">", ["http://h/a/next"]),
        (b"<meta http-equiv=refresh content=30>", []),
        (b"", []),
        (b"   \n", []),
        (b"no markup at all", []),
        (b"<!-- only a comment", []),
        (b"\0<a href=x>\0", ["http://h/a/x"]),
        (b"<a href=x", []),
    ],
)  # fmt: skip
def test_links(body: bytes, links: list[str]) -> None:
    """Links are resolved as a browser resolves them."""
    assert list(read(body).links) == links


@pytest.mark.parametrize(
    ("body", "content_type", "link"),
    [
        ("<a href=/ä>".encode(), HTML, "http://h/%C3%A4"),
        ("<a href=/ä>".encode(), "text/html; charset=utf-8", "http://h/%C3%A4"),
        ("<a href=/ä>".encode("latin-1"), "text/html; charset=iso-8859-1", "http://h/%C3%A4"),
        ("<meta charset=windows-1252><a href=/ä>".encode("cp1252"), HTML, "http://h/%C3%A4"),
        ("<a href=/ж>".encode("cp1251"), 'text/html; charset="windows-1251"', "http://h/%D0%B6"),
        ("<a href=/ä>".encode("utf-16"), HTML, "http://h/%C3%A4"),
        ("<a href=/x>".encode("utf-16-le"), "text/html; charset=utf-16le", "http://h/x"),
        ("\ufeff<a href=/ä>".encode(), "text/html; charset=iso-8859-1", "http://h/%C3%A4"),
        ("<p>\xe4<a href=/x>".encode("latin-1"), "text/html; charset=utf-8", "http://h/x"),
        ("<p>ä<a href=/ä>".encode(), "text/html; charset=made-up", "http://h/%C3%A4"),
        ("<p>ä<a href=/ä>".encode(), "text/html; charset=rot13", "http://h/%C3%A4"),
        ("<p>ä<a href=/ä>".encode(), "text/html; charset=idna", "http://h/%C3%A4"),
        ("<meta charset=undefined><a href=/ä>".encode(), HTML, "http://h/%C3%A4"),
        ("<a href=/日>".encode("shift-jis"), "text/html; charset=Shift_JIS", "http://h/%E6%97%A5"),
    ],
)
def test_charsets(body: bytes, content_type: str, link: str) -> None:
    """The charset comes from the byte order mark, the server or the page, in this order; bad bytes pass."""
    assert read(body, content_type=content_type).links == (link,)


def test_what_may_not_be_followed() -> None:
    """A nofollow link is not followed, unless the same link exists without it; robots forbid all."""
    body = b"<a rel='ugc NoFollow' href=no><a rel=nofollow href=yes><a rel=me href=yes>"
    body += b"<a rel=nofollower href=too>"
    said = read(body)
    assert said.links == ("http://h/a/no", "http://h/a/yes", "http://h/a/too")
    assert said.follow == ("http://h/a/yes", "http://h/a/too")
    for words in ("nofollow", "NOINDEX, NoFollow", "none"):
        said = read(b"<meta name=ROBOTS content='" + words.encode() + b"'>" + body)
        assert (len(said.links), said.follow) == (3, ())
    assert read(b"<a href=p.html#there><a href=x>").follow == ("http://h/a/x",), "itself is no news"


@pytest.mark.parametrize(
    ("fields", "noindex"),
    [
        ([], False),
        (["X-Robots-Tag: noindex"], True),
        (["x-robots-tag: nofollow, NOINDEX"], True),
        (["X-Robots-Tag: otherbot: noindex, nofollow"], False),
        (["X-Robots-Tag: Pinchpoint: noindex"], True),
        (["X-Robots-Tag: otherbot: noindex", "X-Robots-Tag: none"], True),
        (["X-Robots-Tag: unavailable_after: 25 Jun 2030 15:00:00 GMT"], False),
        (["X-Robots-Tag: max-snippet: 20, noindex"], True),
    ],
)
def test_what_the_server_says_of_indexing(fields: list[str], noindex: bool) -> None:
    """An X-Robots-Tag counts for all crawlers or this one, not for others."""
    assert read(b"<a href=x>", *fields).noindex is noindex


def test_the_address_a_page_says_is_its_own() -> None:
    """A page's own address is its first valid canonical link, relative to its base."""
    assert read(b"<link rel='alternate' href=no><LINK REL='next Canonical' HREF='/c?b&a'>").canonical == (
        "http://h/c?a=&b="
    )
    assert read(b"<base href=/b/><link rel=canonical href=c>").canonical == "http://h/b/c"
    assert read(b"<link rel=canonical href='javascript:x'>").canonical == ""
    assert read(b"<link rel=canonical>").canonical == ""


def test_a_listing_without_end_is_read_to_a_limit() -> None:
    """Of a long listing 10,000 links are read, and deep nesting is no problem."""
    body = b"".join(b"<a href=%d>" % number for number in range(12_000))
    assert len(read(body).links) == 10_000
    assert read(b"<div>" * 50_000 + b"<a href=deep>").links == ("http://h/a/deep",)


@pytest.mark.parametrize(
    ("content_type", "body", "page"),
    [
        ("text/html", b"", True),
        ("Text/HTML;charset=x", b"", True),
        ("application/xhtml+xml", b"", True),
        ("text/plain", b"<html>", False),
        ("application/pdf", b"%PDF", False),
        ("", b"\n<!DOCTYPE HTML><p>", True),
        ("", b"<html>", True),
        ("", b"<?xml", False),
        ("", b"%PDF-1.7", False),
    ],
)
def test_what_is_a_page(content_type: str, body: bytes, page: bool) -> None:
    """A reply is a page by its content type, or by its beginning without one."""
    assert is_page(content_type, body) is page


PIECES = (
    "<a href=/{n}>", "<a href='/{n}'>", '<a class="x" href="/{n}" id=y>', "</a>", "<p>", "</p>", "more",
    "<div title='>'>", "</div>", "<!-- c -->", "<br/>", "<li>", "<table><tr><td>", "</table>", "<h1>",
    "<script>if (a<b) '<a href=/{n}>'</script>", "<style>p>a{{}}</style>", "<b><i></b></i>", "<em>",
    "<select><option>x</select>", "<textarea><a href=/{n}></textarea>", "<svg><a href=/{n}></a></svg>",
    "<A HREF=/{n} REL=x>", "<area href=/{n}>", "<x-y a=b>", "&lt;a href=/{n}&gt;", "</form>", "</ul>",
    "< a href=/{n}>", "<form>", "<ul>",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_the_links_are_those_another_parser_finds(seed: int) -> None:
    """Random pages, valid and invalid, have the links of an HTML5 parser's tree."""
    chance = random.Random(seed)
    for _ in range(60):
        body = "".join(piece.format(n=number) for number, piece in enumerate(chance.choices(PIECES, k=25)))
        tree = LexborHTMLParser(body)
        found = [node.attributes.get("href") for tag in ("a", "area") for node in tree.tags(tag)]
        hrefs = [href for href in found if href]
        assert set(read(body.encode()).links) == {f"http://h{href}" for href in hrefs}, body
