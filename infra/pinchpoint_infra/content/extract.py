"""Extracts the text of a document as a reader and a search engine use it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from selectolax.lexbor import LexborHTMLParser

from pinchpoint_infra.content.document import Document, NotADocumentError
from pinchpoint_infra.content.errors import CostlyError
from pinchpoint_infra.content.office import OfficeForm, UnreadableError, read
from pinchpoint_infra.content.processes import apart

_UNSEEN = ["script", "style", "template"]
_SPOKEN_ATTRIBUTES = ("alt", "title", "placeholder", "aria-label", "label", "summary")
_SPOKEN_META = 'meta[name="description" i], meta[name="keywords" i], meta[name="author" i]'
# <b>W</b>ord is one word, but two table cells are two words: spaces separate the text of all other elements.
_BETWEEN_BLOCKS = re.compile(
    r"<(?=/?(?!(?:a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|mark|nobr|q|s|samp|small"
    r"|span|strike|strong|sub|sup|time|tt|u|var|wbr)\b)[a-z])",
    re.IGNORECASE,
)
_DEEPEST = 5_000
"""Deepest nesting that is parsed. The time grows with the square of the depth: 0.03 s at this depth, 90 s at
200,000 elements."""
# Elements without closing tags are not counted: thousands of them make a document long but not deep.
_NESTING_TAG = re.compile(
    r"<(/?)(?!(?:area|base|br|col|dd|dt|embed|hr|img|input|li|link|meta|option|p|source|td|th|tr|track|wbr)\b)[a-z]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Text:
    """A document's text.

    Attributes:
        title: title of the document, or its first line with text; may be empty.
        visible: text that a reader sees, with attributes and descriptions.
        other: other readings of the text: the markup of HTML, and its text with all elements separated; for a
            guessed encoding, the UTF-8 and Latin 1 texts. Empty if there is only one reading.
    """

    title: str
    visible: str
    other: str


def extract(document: Document) -> Text:
    """Extract the text of a document.

    Raises:
        NotADocumentError: the document is damaged, or takes too much time or memory.
    """
    if document.form != "text" and document.form != "html":  # noqa: PLR1714 - by these mypy knows what is left
        return _office(document, document.form)
    text, guessed = document.text()
    readable = document.form == "html" and not _too_deep(text)
    result = _page(text) if readable else Text(_first_line(text), text, "")
    if not guessed:
        return result
    readings = [document.plain.decode("utf-8", "replace"), document.plain.decode("latin-1")]
    return replace(result, other="\n".join([result.other, *readings]))


def _page(markup: str) -> Text:
    try:
        return apart(_html, markup)
    except CostlyError as error:
        raise NotADocumentError(f"HTML document {error}") from error


def _office(document: Document, form: OfficeForm) -> Text:
    try:
        title, text = read(form, document.plain)
    except UnreadableError as error:
        raise NotADocumentError(f"damaged {form.upper()} document") from error
    except CostlyError as error:
        raise NotADocumentError(f"{form.upper()} document {error}") from error
    return Text(title or _first_line(text), text, "")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text[:2000].splitlines() if line.strip()), "")[:200]


def _html(markup: str) -> Text:
    page = LexborHTMLParser(_BETWEEN_BLOCKS.sub(" <", markup))
    spoken = _spoken(page)
    head = page.css_first("title")
    title = " ".join(head.text().split()) if head is not None else ""
    page.strip_tags(_UNSEEN)
    return Text(title, "\n".join([page.text(), *spoken]), f"{page.text(separator=' ')}\n{markup}")


def _too_deep(markup: str) -> bool:
    """Return whether elements are nested so deeply that parsing would take too long."""
    if markup.count("<") <= _DEEPEST:
        return False
    depth = deepest = 0
    for closing in _NESTING_TAG.findall(markup):
        depth = max(0, depth + (-1 if closing else 1))
        deepest = max(deepest, depth)
    return deepest > _DEEPEST


def _spoken(page: LexborHTMLParser) -> list[str]:
    result = [node.attributes.get("content") for node in page.css(_SPOKEN_META)]
    for name in _SPOKEN_ATTRIBUTES:
        result += [node.attributes.get(name) for node in page.css(f"[{name}]")]
    return [words for words in result if words]
