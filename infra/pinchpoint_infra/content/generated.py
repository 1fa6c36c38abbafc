"""Generates a corpus for a machine that has none. The corpus is the same every time."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

from pinchpoint_infra.content.corpus import CorpusEntry
from pinchpoint_infra.content.document import identify

DOCUMENTS = 400
MOST_DOCUMENTS = 20_000
"""Number of documents above which further documents are copies. Generating one takes a millisecond."""
_FOLDERS = 20
_VOCABULARY = 20_000
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_MODIFIED_S = 1_700_000_000.0
_MEDIAN_WORDS_LOG, _WORDS_LOG_SPREAD = 6.0, 1.0  # half of the documents have more than e^6 = 400 words


@dataclass
class Generated:
    """A corpus of plain text and HTML with the word frequencies of natural language (Zipf's law).

    Attributes:
        count: number of documents.
        name: name of the corpus.
        skipped: reason -> number of skipped files.
    """

    count: int = DOCUMENTS
    name: str = "generated"
    skipped: Counter[str] = field(default_factory=Counter)

    def files(self) -> list[bytes]:
        """Return all paths in path order."""
        return sorted(
            b"folder-%02d/document-%04d.%s"
            % (number % _FOLDERS, number, b"html" if number % 4 == 0 else b"txt")
            for number in range(self.count)
        )

    @staticmethod
    def shuffled(paths: list[bytes]) -> list[bytes]:
        """Return the documents in path order, which is already random."""
        return paths

    def entry(self, path: bytes) -> CorpusEntry:
        """Return the document with a path."""
        words, weights = _vocabulary()
        own = random.Random(path)  # noqa: S311 -- so that a document does not depend on those before it
        count = max(20, int(own.lognormvariate(_MEDIAN_WORDS_LOG, _WORDS_LOG_SPREAD)))
        answer = own.choices(words, cum_weights=weights, k=count)
        content = (_html(answer) if path.endswith(b".html") else _text(answer)).encode()
        return CorpusEntry(path, content, identify(content), _MODIFIED_S)

    def content(self, path: bytes) -> bytes:
        """Return the bytes of a document."""
        return self.entry(path).content


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Return words and their cumulative weights."""
    chance = random.Random(1)  # noqa: S311 -- the same words every time
    made = ("".join(chance.choices(_SYLLABLES, k=chance.randint(2, 5))) for _ in range(_VOCABULARY))
    words = list(dict.fromkeys(made))
    return words, list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))  # Zipf and Mandelbrot


def _paragraphs(words: list[str]) -> list[str]:
    return [" ".join(words[start : start + 60]).capitalize() + "." for start in range(0, len(words), 60)]


def _text(words: list[str]) -> str:
    return "\n\n".join([" ".join(words[:5]).title(), *_paragraphs(words)]) + "\n"


def _html(words: list[str]) -> str:
    title = " ".join(words[:5]).title()
    body = "\n".join(f"<p>{paragraph}</p>" for paragraph in _paragraphs(words))
    head = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head>"
    return f"{head}\n<body><h1>{title}</h1>\n{body}\n</body></html>\n"
