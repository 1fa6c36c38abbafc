"""Writes to standard output and error, also without a reader (``| head -1``)."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _BrokenPipe(io.FileIO):
    """A closed pipe: further output is dropped, without other effects."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the text, or drop it."""
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader has stopped reading; our exit status is about our work
            return len(memoryview(data))


def outlive_readers() -> None:
    """Let the process continue to its own exit status when a reader of its output has left.

    A reader that only needs the first line must not end a run.
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
    """Treatment of letters outside of the encoding; undecodable bytes of names stay unchanged."""
    return "surrogateescape" if codecs.lookup(encoding).name == "utf-8" else "backslashreplace"
