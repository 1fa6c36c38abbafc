"""Writes to standard output and error, also if the reader has gone (``| head -1``)."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _BrokenPipe(io.FileIO):
    """Drops output to a closed pipe, without an error."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the text, or drop it if the pipe is closed."""
        try:
            return super().write(data)
        # the reader has stopped reading, but the exit status is about the command's work
        except BrokenPipeError:
            return len(memoryview(data))


def outlive_readers() -> None:
    """Let the process continue when the reader of its output has gone, so that it ends with its own status.

    A reader that needs only the first line must not end a run.
    """
    sys.stdout, sys.stderr = _outliving(sys.stdout), _outliving(sys.stderr)


def _outliving(stream: TextIO) -> TextIO:
    # None: the process has no such stream. A terminal is no pipe.
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if stream.isatty():
        stream.reconfigure(errors=_errors(stream.encoding))
        return stream
    pipe = io.BufferedWriter(_BrokenPipe(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(pipe, stream.encoding, _errors(stream.encoding), line_buffering=True)


def _errors(encoding: str) -> str:
    """Return the error handler for letters outside of the encoding. Undecodable bytes of names are kept."""
    return "surrogateescape" if codecs.lookup(encoding).name == "utf-8" else "backslashreplace"
