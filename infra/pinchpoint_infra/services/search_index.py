"""The full-text index: every word of every document, in a folder of its own."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tantivy

from pinchpoint_infra.content.extract import Text

_HEAP_BYTES = 64 * 2**20
_WRITING_THREADS = 1  # the tier is to be one core's work, so that a busy core is seen as one
_WORDS = "words"
# What Python and people's regular expressions call \w: letters, numbers, underscore.
_WORD = r"[\p{L}\p{N}_]+"
_LONGEST_WORD = 16_000
"""An index entry ends at 65,530 bytes, 4 a character; a longer word is indexed in pieces of this length."""
_TOO_LONG = re.compile(rf"(?<!\S)\S{{{_LONGEST_WORD + 1}}}")
_PIECE = re.compile(rf"\S{{{_LONGEST_WORD}}}(?=\S)")

_log = logging.getLogger(__name__)


class IndexFailedError(Exception):
    """The index cannot be written, its disk being full for instance."""


class SearchIndex:
    """Documents by URL. Safe to use from several threads.

    Args:
        directory: where it lies; what is there already is kept.

    Attributes:
        failure: why it cannot be written any more; empty while it can.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(_WORD)).filter(tantivy.Filter.lowercase())
        self._analyzer = words.build()
        self._schema = _schema()
        self._index = tantivy.Index(self._schema, str(directory))
        self._index.register_tokenizer(_WORDS, self._analyzer)
        self._index.config_reader("manual")
        self._writer = self._new_writer()
        self.failure = ""
        self._writing = threading.Lock()
        self._pending = 0
        self._commits = 0
        self._committed_s = time.monotonic()

    @property
    def pending(self) -> int:
        """How many documents were added since the last commit."""
        return self._pending

    @property
    def since_commit_s(self) -> float:
        """How long ago the last commit ended."""
        return time.monotonic() - self._committed_s

    def add(self, url: str, source: str, size_bytes: int, text: Text) -> None:
        """Add a document, in place of the one with the same URL."""
        document = tantivy.Document(url=url, source=source, title=text.title)
        document.add_unsigned("size_bytes", size_bytes)
        document.add_text("visible", _broken(text.visible))
        if text.other:
            document.add_text("other", _broken(text.other))
        with self._write():
            self._writer.delete_documents_by_term("url", url)
            self._writer.add_document(document)
            self._pending += 1

    def remove(self, url: str) -> None:
        """Forget the document with this URL, if there is one."""
        with self._write():
            self._writer.delete_documents_by_term("url", url)
            self._pending += 1

    def commit(self) -> None:
        """Make everything added so far durable and findable."""
        with self._write():
            self._commit()

    def reset(self) -> None:
        """Forget all documents, and any failure."""
        with self._writing:
            if self.failure:
                del self._writer  # it holds the index's lock
                self._writer = self._new_writer()
                self.failure = ""
        with self._write():
            self._writer.delete_all_documents()
            self._commit()

    def close(self) -> None:
        """Commit, and wait until the index's own threads have ended. Nothing may be called afterwards."""
        if self.failure:
            return
        with self._write():
            self._commit()
            self._writer.wait_merging_threads()

    def search(self, words: str, limit: int) -> dict[str, Any]:
        """The documents that contain all these words, the best first.

        What is between two spaces is one group: ``foo-bar`` finds the words foo and bar one after the other.
        Nothing in it has a meaning of its own.

        Returns:
            total, hits: url, source, title, score.
        """
        query = self._query(words)
        searcher = self._index.searcher()
        if query is None or not searcher.num_docs:
            return {"total": 0, "hits": []}
        found: Any = searcher.search(query, min(limit, searcher.num_docs))
        hits = []
        for score, address in found.hits:
            stored = searcher.doc(address)
            hits.append(
                {name: stored.get_first(name) for name in ("url", "source", "title")} | {"score": score}
            )
        return {"total": found.count, "hits": hits}

    def stats(self) -> dict[str, Any]:
        """What is findable (documents, bytes, by source), what is not yet, and what it takes on disk."""
        searcher = self._index.searcher()
        sizes = {"bytes": {"sum": {"field": "size_bytes"}}}
        by_source = {"sources": {"terms": {"field": "source", "size": 10_000}, "aggs": sizes}}
        buckets = searcher.aggregate(tantivy.Query.all_query(), by_source)["sources"]["buckets"]
        return {
            "documents": searcher.num_docs,
            "pending": self._pending,
            "sources": {bucket["key"]: bucket["doc_count"] for bucket in buckets},
            "bytes": sum(int(bucket["bytes"]["value"]) for bucket in buckets),
            "index_bytes": _size_bytes(self._directory),
            "commits": self._commits,
            "segments": searcher.num_segments,
        }

    @contextmanager
    def _write(self) -> Iterator[None]:
        """The writer for oneself. What it cannot write, it cannot take back: it has failed until a reset."""
        with self._writing:
            if self.failure:
                raise IndexFailedError(self.failure)
            try:
                yield
            except (ValueError, OSError) as error:  # how the library reports a writer that has died
                self.failure = f"the index in {self._directory} cannot be written: {error}"
                _log.warning(self.failure)
                raise IndexFailedError(self.failure) from error

    def _new_writer(self) -> tantivy.IndexWriter:
        return self._index.writer(_HEAP_BYTES, _WRITING_THREADS)

    def _commit(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._pending = 0
        self._commits += 1
        self._committed_s = time.monotonic()

    def _query(self, words: str) -> tantivy.Query | None:
        groups = [self._analyzer.analyze(_broken(group)) for group in words.split()]
        needed = [(tantivy.Occur.Must, self._either(group)) for group in groups if group]
        return tantivy.Query.boolean_query(needed) if needed else None

    def _either(self, group: list[str]) -> tantivy.Query:
        fields = ("visible", "other")
        if len(group) == 1:
            queries = [tantivy.Query.term_query(self._schema, name, group[0]) for name in fields]
        else:
            queries = [tantivy.Query.phrase_query(self._schema, name, list(group)) for name in fields]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("source", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("size_bytes", fast=True)
    for name in ("visible", "other"):
        builder.add_text_field(name, tokenizer_name=_WORDS, index_option="position")
    return builder.build()


def _broken(text: str) -> str:
    """The text with words that are too long for the index broken into pieces that are not."""
    if len(text) <= _LONGEST_WORD or not _TOO_LONG.search(text):
        return text
    return _PIECE.sub(r"\g<0> ", text)


def _size_bytes(directory: Path) -> int:
    total = 0
    for path in directory.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # merged away meanwhile
            continue
    return total
