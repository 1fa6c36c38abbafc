"""What an HTML page says to a crawler: its links, its address, whether it wants to be indexed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..http import Answer
from ..urls import Page

_HTML = ("text/html", "application/xhtml+xml")
_FOLLOWED = ("a", "area", "frame", "iframe")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_MOST_LINKS = 10_000
"""Of one page; what comes behind them is a listing that has no end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says.

    Attributes:
        links: canonical addresses it links to, each once, in order.
        follow: those of them that may be followed.
        canonical: the address it says is its own; "" where it says none.
        noindex: whether it asks not to be indexed.
    """

    links: tuple[str, ...]
    follow: tuple[str, ...]
    canonical: str
    noindex: bool


def is_page(answer: Answer) -> bool:
    """Whether an answer is HTML."""
    return answer.header("Content-Type").lower().startswith(_HTML)


def reading(answer: Answer, url: str) -> Reading:
    """What a page says; ``url`` is its canonical address."""
    tree = LexborHTMLParser(_text(answer))
    # A question to the tree costs as much as some links: none is asked that the bytes can answer.
    names = answer.body.lower()
    page = _base(tree, url) if b"<base" in names else Page(url)
    said = _robots_said(tree if b"robots" in names else None, answer)
    links: dict[str, bool] = {}
    for node in (each for tag in _FOLLOWED if b"<" + tag.encode() in names for each in tree.tags(tag)):
        attributes = node.attributes
        href = attributes.get("href") or attributes.get("src")
        link = page.link(href) if href else None
        if link is not None:
            rel = attributes.get("rel")
            followed = not rel or "nofollow" not in rel.lower()
            links[link] = links.get(link, False) or followed
            if len(links) >= _MOST_LINKS:
                break
    follow = () if said & {"nofollow", "none"} else tuple(link for link, ok in links.items() if ok)
    own = _canonical(tree, page) if b"canonical" in names else ""
    return Reading(tuple(links), follow, own, bool(said & {"noindex", "none"}))


def _text(answer: Answer) -> bytes | str:
    """The bytes, which the parser takes for UTF-8; text where another encoding is named."""
    found = _CHARSET.search(answer.header("Content-Type"))
    if found is None and b"charset" in answer.body[:1024].lower():
        found = _CHARSET.search(answer.body[:1024].decode("latin-1"))
    encoding = found[1].lower() if found else "utf-8"
    if encoding in {"utf-8", "utf8"}:
        return answer.body
    try:
        return answer.body.decode(encoding, "replace")
    except LookupError:
        return answer.body


def _base(tree: LexborHTMLParser, url: str) -> Page:
    node = tree.css_first("base[href]")
    href = node.attributes.get("href") if node is not None else None
    return Page((Page(url).link(href) if href else None) or url)


def _canonical(tree: LexborHTMLParser, page: Page) -> str:
    node = tree.css_first('link[rel~="canonical" i][href]')
    href = node.attributes.get("href") if node is not None else None
    return (page.link(href) if href else None) or ""


def _robots_said(tree: LexborHTMLParser | None, answer: Answer) -> set[str]:
    nodes: list[LexborNode] = tree.css('meta[name="robots" i]') if tree is not None else []
    said = [node.attributes.get("content") or "" for node in nodes]
    said.append(answer.header("X-Robots-Tag"))
    return {word.strip().lower() for text in said for word in text.split(",")}
