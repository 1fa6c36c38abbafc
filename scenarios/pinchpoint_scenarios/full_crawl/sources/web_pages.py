"""What an HTML page says to a crawler: its links, its address, whether it wants to be indexed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree  # type: ignore[import-untyped] # it ships no types
from w3lib.encoding import html_to_unicode

from ..http import HttpAnswer
from ..urls import Page

_HTML = ("text/html", "application/xhtml+xml")
_BEGINNINGS = (b"<!doctype html", b"<html")
_LINKS = frozenset({"a", "area", "frame", "iframe"})
_OTHERS = frozenset({"base", "link", "meta"})
_REFRESH = re.compile(r"[\d.\s]*[;,]\s*(?:url\s*=)?\s*[\"']?([^\"']+)", re.IGNORECASE)
_ADDRESSED = re.compile(r"\s*([\w.*/-]+)\s*:\s*(.*)")  # X-Robots-Tag: otherbot: noindex
_WITH_VALUES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_MOST_LINKS = 10_000
"""Of one page; what comes behind them is a listing that has no end."""
_READ_BYTES = 2 * 2**20
"""This much of a page is read for links: 64 MiB of tags would stop the generator's load for 20 s."""


class PageContent(NamedTuple):
    """What a page says.

    Attributes:
        links: canonical addresses it links to, each once, in order.
        follow: those of them that may be followed, but not its own.
        canonical: the address it says is its own; "" where it says none.
        noindex: whether it asks not to be indexed.
    """

    links: tuple[str, ...]
    follow: tuple[str, ...]
    canonical: str
    noindex: bool


@dataclass(slots=True)
class _PageTags:
    """What stands in a page, as it stands there."""

    hrefs: dict[str, bool] = field(default_factory=dict)  # and whether one of its links may be followed
    choosy: bool = False  # whether there is one that may not
    base: str = ""
    canonical: str = ""
    words: set[str] = field(default_factory=set)  # of robots


class _PageReader:
    """Takes the tags of a page as libxml2 meets them: no tree is built, however deep it is nested."""

    def __init__(self) -> None:
        self._said = _PageTags()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _LINKS:
            href = attributes.get("href") or attributes.get("src")
            hrefs = self._said.hrefs
            if href and len(hrefs) < _MOST_LINKS:
                rel = attributes.get("rel")
                if not rel or "nofollow" not in rel.lower().split():
                    hrefs[href] = True
                else:
                    hrefs.setdefault(href, False)
                    self._said.choosy = True
        elif tag in _OTHERS:
            _note(tag, attributes, self._said)

    def close(self) -> _PageTags:
        said, self._said = self._said, _PageTags()
        return said


_PARSER = etree.HTMLParser(encoding="utf-8", target=_PageReader(), huge_tree=True)
"""One for all: what is not UTF-8 is made so before."""


def is_page(content_type: str, body: bytes) -> bool:
    """Whether an answer is HTML: by its type; without a type, by its beginning."""
    if content_type:
        return content_type.lower().startswith(_HTML)
    return body[:100].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_BEGINNINGS)


def reading(answer: HttpAnswer, content_type: str, url: str, user_agent: str) -> PageContent:
    """What a page says to a crawler of that name; ``url`` is its canonical address."""
    said = _said(_utf8(answer.body[:_READ_BYTES], content_type))
    if answer.response.header(b"x-robots-tag"):
        said.words |= _header_words(answer, user_agent)
    page = Page((said.base and Page(url).link(said.base)) or url)
    found = page.links(said.hrefs)
    links = follow = dict.fromkeys(filter(None, found))
    if said.words and said.words & {"nofollow", "none"}:
        follow = {}
    elif said.choosy:
        pairs = zip(found, said.hrefs.values(), strict=True)
        follow = dict.fromkeys(link for link, followed in pairs if link and followed)
    return PageContent(
        tuple(links),
        tuple([link for link in follow if link != url]),
        (said.canonical and page.link(said.canonical)) or "",
        bool(said.words and said.words & {"noindex", "none"}),
    )


def _said(body: bytes) -> _PageTags:
    try:
        said: _PageTags = etree.fromstring(body, _PARSER)
    except etree.XMLSyntaxError:  # nothing in it that could be an element
        return _PageTags()
    return said


def _note(tag: str, attributes: Mapping[str, str], said: _PageTags) -> None:
    """Note what something says that is no link: the first ``base`` and ``canonical``, every ``meta``."""
    if tag == "base":
        said.base = said.base or attributes.get("href", "")
    elif tag == "link":
        if "canonical" in attributes.get("rel", "").lower().split():
            said.canonical = said.canonical or attributes.get("href", "")
    elif attributes.get("name", "").strip().lower() == "robots":
        said.words |= _words(attributes.get("content", ""))
    elif attributes.get("http-equiv", "").strip().lower() == "refresh":
        leads = _REFRESH.match(attributes.get("content", ""))
        if leads:
            said.hrefs[leads[1].strip()] = True


def _utf8(body: bytes, content_type: str) -> bytes:
    """A page in UTF-8, whatever it came in: its byte order mark, its server, then itself say what."""
    if body.isascii() and b"\0" not in body:
        return body
    try:
        text: str = html_to_unicode(content_type or None, body)[1]
    except (LookupError, UnicodeError):  # a codec of Python's that is no charset: rot13, idna
        text = body.decode("utf-8", "replace")
    return text.encode("utf-8", "replace")


def _header_words(answer: HttpAnswer, user_agent: str) -> set[str]:
    """What ``X-Robots-Tag`` says to everybody, or to a crawler of this name; a field may name another."""
    words = set()
    for name, value in answer.response.headers:
        if name.lower() != b"x-robots-tag":
            continue
        text = value.decode("latin-1")
        addressed = _ADDRESSED.match(text)
        if addressed and addressed[1].lower() not in _WITH_VALUES:
            if not user_agent.lower().startswith(addressed[1].lower()):
                continue
            text = addressed[2]
        words |= _words(text)
    return words


def _words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}
