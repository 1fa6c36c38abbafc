"""Writes to standard output and error, also if their reader has left (``| head -1``) or lacks characters."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _BrokenPipe(io.FileIO):
    """A pipe: what is no longer read is lost, and nothing else is."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write it, or lose it."""
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader has stopped reading; our exit status is about our work
            return len(memoryview(data))


def outlive_readers() -> None:
    """Let the process go on, to its own exit status, when a reader of its output has left.

    A run is not ended by a reader that only wanted its first line.
    """
    sys.stdout, sys.stderr = _outliving(sys.stdout), _outliving(sys.stderr)


def _outliving(stream: TextIO) -> TextIO:
    # None: the process was started without it. A terminal is no pipe.
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if stream.isatty():
        stream.reconfigure(errors=_errors(stream.encoding))
        return stream
    pipe = io.BufferedWriter(_BrokenPipe(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(pipe, stream.encoding, _errors(stream.encoding), line_buffering=True)


def _errors(encoding: str) -> str:
    """How letters are written that the encoding lacks; bytes of names that are no text stay as they are."""
    return "surrogateescape" if codecs.lookup(encoding).name == "utf-8" else "backslashreplace"
