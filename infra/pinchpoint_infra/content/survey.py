"""Lists the documents of a corpus, and decides where each is stored."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count

from pinchpoint_infra.content.corpus import Folder
from pinchpoint_infra.content.document import CostlyDocumentError, NotADocumentError
from pinchpoint_infra.content.generated import Generated
from pinchpoint_infra.content.processes import Workers, parts

_EVERY_S = 1.0


class Progress:
    """Reports progress at most once per second.

    Args:
        progress: receives sentences.
    """

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._at_s = time.monotonic()

    def say_if_due(self, words: Callable[[], str]) -> None:
        """Report a text if a second has passed since the last report."""
        if time.monotonic() - self._at_s > _EVERY_S:
            self._at_s = time.monotonic()
            self._progress(words())


_LONGEST_NAME_BYTES = 255  # smallest limit of all file systems
_LIKE_A_COPY = re.compile(rb"(~+)\d+(?:\.[^./]{1,15})?\Z")
_DIGEST_BYTES = 4


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """A document of a corpus after its check.

    Attributes:
        path: path relative to the corpus, as bytes, because a file name need not be text.
        content_type: media type of the stored bytes.
        size_bytes: size of the stored bytes.
        modified_s: modification time in seconds since 1970.
    """

    path: bytes
    content_type: str
    size_bytes: int
    modified_s: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A document of the content database.

    Attributes:
        number: id of the document.
        list_number: id of its list.
        address: server-relative path. The fields content_type, size_bytes and modified_s are those of the
            document in the corpus.
        source: path in the corpus.
        copy_of: id of the document that has the bytes; None: this document has them.
    """

    number: int
    list_number: int
    address: str
    content_type: str
    size_bytes: int
    modified_s: float
    source: bytes
    copy_of: int | None


class Copies:
    """Names for further copies of documents.

    The second copy of ``a/readme.txt`` is ``a/readme~2.txt``. No document has a third copy before all have a
    second one, so that all lists grow at the same rate.

    Args:
        found: documents.
        wanted: number of documents, including copies.
    """

    def __init__(self, value: Sequence[CorpusDocument], wanted: int) -> None:
        self._found = value
        self.number = max(0, wanted - len(value))
        like_copies = (_LIKE_A_COPY.search(each.path) for each in value)
        self._mark = b"~" * (1 + max((len(match[1]) for match in like_copies if match), default=0))

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield the index of each document and the path of its copy."""
        left = self.number
        for which in count(2):
            for position, each in enumerate(self._found[:left]):
                yield position, self._path(each.path, which)
            left -= len(self._found)
            if left <= 0:
                return

    def _path(self, path: bytes, which: int) -> bytes:
        folder, slash, name = path.rpartition(b"/")
        stem, suffix = os.path.splitext(name)  # noqa: PTH122 -- names are bytes
        end = self._mark + b"%d" % which + suffix
        if len(stem) + len(end) > _LONGEST_NAME_BYTES:  # a shortened name may exist already
            digest = hashlib.blake2b(name, digest_size=_DIGEST_BYTES).hexdigest().encode()
            end = digest + end
            stem = stem[: _LONGEST_NAME_BYTES - len(end)]
        return folder + slash + stem + end


_FILES_IN_A_PART = 100
_WORTH_PROCESSES = 2_000
"""Number of files from which processes are used. Starting a process costs half a second of CPU time."""

Source = Folder | Generated


def documents(
    source: Source, limit: int | None, workers: Workers, progress: Callable[[str], None]
) -> list[CorpusDocument]:
    """Return at most a given number of documents in path order. Other files are counted as skipped."""
    paths = source.files()
    order = paths if limit is None else source.shuffled(paths)
    result: list[CorpusDocument] = []
    looked_at, answer = 0, Progress(progress)

    def words() -> str:
        return f"content: looked at {looked_at:,} of {len(paths):,} files, {len(result):,} are documents"

    work = ((source, part) for part in parts(order, _FILES_IN_A_PART))
    with closing(workers.each(classified, work, worth_it=len(paths) > _WORTH_PROCESSES)) as outcomes:
        for outcome in (each for part in outcomes for each in part):
            if len(result) == limit:
                break
            looked_at += 1
            if isinstance(outcome, CorpusDocument):
                result.append(outcome)
            else:
                source.skipped[outcome] += 1
            answer.say_if_due(words)
    if beyond := len(paths) - looked_at:
        source.skipped[f"beyond the limit of {limit:,} documents"] += beyond
    return sorted(result, key=lambda each: each.path)


def classified(part: tuple[Source, list[bytes]]) -> list[CorpusDocument | str]:
    """Return for each file of a part its document, or the reason why it is not a document."""
    source, paths = part
    outcomes: list[CorpusDocument | str] = []
    for path in paths:
        try:
            entry = source.entry(path)
        except NotADocumentError as reason:
            named = (
                f": {path.decode('utf-8', 'backslashreplace')}"
                if isinstance(reason, CostlyDocumentError)
                else ""
            )
            outcomes.append(f"{reason}{named}")
        else:
            size_bytes = len(entry.content)
            outcomes.append(CorpusDocument(path, entry.document.content_type, size_bytes, entry.modified_s))
    return outcomes
