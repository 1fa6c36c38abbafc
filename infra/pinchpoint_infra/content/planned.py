"""What is to be put where: the records between looking at a corpus and loading it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

_LONGEST_NAME_BYTES = 255  # of every file system there is
_LIKE_A_COPY = re.compile(rb"(~+)\d+(?:\.[^./]{1,15})?\Z")
_DIGEST_BYTES = 4


@dataclass(frozen=True, slots=True)
class Found:
    """A document of a corpus, looked at.

    Attributes:
        path: relative to the corpus, as bytes: a name need not be text.
        content_type: media type of the bytes as they are stored.
        size_bytes: how many they are.
        modified_s: seconds since 1970.
    """

    path: bytes
    content_type: str
    size_bytes: int
    modified_s: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A document of the content database.

    Attributes:
        number: its id.
        list_number: the id of its list.
        address: its server-relative path.
        content_type, size_bytes, modified_s: as of the document of the corpus.
        source: that document's path in the corpus.
        copy_of: the id of the document that has the bytes; None: it has its own.
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
    """Which further copies there are of which documents, and what they are called.

    The second of ``a/readme.txt`` is ``a/readme~2.txt``. All documents have a second copy before any has a
    third, so that each list grows alike.

    Args:
        found: the documents.
        wanted: how many there are to be, copies included.
    """

    def __init__(self, found: Sequence[Found], wanted: int) -> None:
        self._found = found
        self.number = max(0, wanted - len(found))
        alike = (_LIKE_A_COPY.search(each.path) for each in found)
        self._mark = b"~" * (1 + max((len(match[1]) for match in alike if match), default=0))

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """(position among the documents, path of the copy), one after the other."""
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
        if len(stem) + len(end) > _LONGEST_NAME_BYTES:  # cut, and so no longer the only one of that name
            digest = hashlib.blake2b(name, digest_size=_DIGEST_BYTES).hexdigest().encode()
            end = digest + end
            stem = stem[: _LONGEST_NAME_BYTES - len(end)]
        return folder + slash + stem + end
