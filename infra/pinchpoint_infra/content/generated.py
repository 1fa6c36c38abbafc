"""A corpus for a machine that has none: made up, but the same every time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from pinchpoint_infra.content.corpus import Entry
from pinchpoint_infra.content.document import identify

DOCUMENTS = 400
_FOLDERS = 20
_VOCABULARY = 20_000
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_MODIFIED_S = 1_700_000_000.0
_MEDIAN_WORDS_LOG, _WORDS_LOG_SPREAD = 6.0, 1.0  # half of the documents have more than e^6 = 400 words


@dataclass
class Generated:
    """Plain text and HTML with the word frequencies of natural language (Zipf's law) and its long tail.

    Attributes:
        name: what it is called.
        skipped: reason -> how many were left out.
    """

    name: str = "generated"
    skipped: Counter[str] = field(default_factory=Counter)

    def files(self) -> list[bytes]:
        """All paths, in path order."""
        return sorted(
            b"folder-%02d/document-%04d.%s"
            % (number % _FOLDERS, number, b"html" if number % 4 == 0 else b"txt")
            for number in range(DOCUMENTS)
        )

    def choose(self, paths: list[bytes], limit: int) -> list[bytes]:
        """So many of them."""
        if beyond := max(0, len(paths) - limit):
            self.skipped[f"beyond the limit of {limit:,} documents"] += beyond
        return paths[:limit]

    def documents(self, paths: list[bytes]) -> Iterator[Entry]:
        """The documents with these paths."""
        chance = random.Random(1)  # noqa: S311 -- the same words every time
        words = list(
            dict.fromkeys(
                "".join(chance.choices(_SYLLABLES, k=chance.randint(2, 5))) for _ in range(_VOCABULARY)
            )
        )
        weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))  # Zipf and Mandelbrot
        for path in paths:
            own = random.Random(path)  # noqa: S311 -- so that a document does not depend on those before it
            count = max(20, int(own.lognormvariate(_MEDIAN_WORDS_LOG, _WORDS_LOG_SPREAD)))
            said = own.choices(words, cum_weights=weights, k=count)
            content = (_html(said) if path.endswith(b".html") else _text(said)).encode()
            yield Entry(path, content, identify(content), _MODIFIED_S)


def _paragraphs(words: list[str]) -> list[str]:
    return [" ".join(words[start : start + 60]).capitalize() + "." for start in range(0, len(words), 60)]


def _text(words: list[str]) -> str:
    return "\n\n".join([" ".join(words[:5]).title(), *_paragraphs(words)]) + "\n"


def _html(words: list[str]) -> str:
    title = " ".join(words[:5]).title()
    body = "\n".join(f"<p>{paragraph}</p>" for paragraph in _paragraphs(words))
    head = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head>"
    return f"{head}\n<body><h1>{title}</h1>\n{body}\n</body></html>\n"
