"""Stores the last hours of a host's samples in a folder of bounded size; the oldest segment is deleted first.

A line is appended for each reading and is there for others at once. A segment can be read without those
before it. What is torn by a crash is a last line without an end: it is left out.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pinchpoint_collectors.agent.codec import Decoder, Encoder, RingReading
from pinchpoint_collectors.errors import CollectorError

_ABOUT = "ring.json"
_SEGMENTS = 16
"""This many of them fill the ring: dropping one loses a sixteenth of what is kept."""
_NS_PER_HOUR = 3_600_000_000_000


class Ring:
    """Writes a ring. One process at a time does.

    Args:
        folder: is made where it is not there; what it holds of an earlier process is kept.
        hours: how long readings are kept.
        size_bytes: how much all segments may take up together.
        about: notes on the recording for readers, JSON-ready.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, folder: Path, hours: float, size_bytes: int, about: Mapping[str, Any]) -> None:
        self._folder = folder
        self._span_ns = round(hours * _NS_PER_HOUR)
        self._segment_ns = self._span_ns // _SEGMENTS
        self._size_bytes = size_bytes
        self._segment_bytes = size_bytes // _SEGMENTS
        self._file: IO[bytes] | None = None
        self._begun_ns = self._written = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._at_ns = _latest_ns(folder)
        new = folder / f"{_ABOUT}.new"
        new.write_text(json.dumps({**about, "hours": hours, "size_bytes": size_bytes}))
        new.replace(folder / _ABOUT)

    def append(self, reading: RingReading) -> None:
        """Keep one reading. Raises ``OSError``."""
        at_ns = max(reading.at_ns, self._at_ns + 1)
        if (
            self._file is None
            or self._written >= self._segment_bytes
            or at_ns - self._begun_ns >= self._segment_ns
        ):
            self._turn(at_ns)
        assert self._file is not None  # noqa: S101 - the turn opened it; shows the type checker
        line = self._encoder.encode(reading._replace(at_ns=at_ns)).encode()
        if self._file.write(line) != len(line):
            # Half a line must stay the last one of its segment, or what follows could not be read.
            raise OSError(errno.ENOSPC, "no room for a whole reading")
        self._written += len(line)
        self._at_ns = at_ns

    def close(self) -> None:
        """End the segment. Safe to call twice."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _turn(self, at_ns: int) -> None:
        """Begin a segment, and drop those that are too old or too much."""
        self.close()
        segments = _segments(self._folder)
        number = _number(segments[-1]) + 1 if segments else 1
        # The new one will grow, too: all others together leave room for it.
        while segments and (
            sum(path.stat().st_size for path in segments) > self._size_bytes - 2 * self._segment_bytes
            or at_ns - _last_of(segments[0], segments) > self._span_ns
        ):
            segments.pop(0).unlink()
        self._file = (self._folder / f"readings-{number:08d}.jsonl").open("wb", buffering=0)
        self._encoder = Encoder()
        self._begun_ns, self._written = at_ns, 0


class RingReader:
    """Reads a ring while it is written.

    Args:
        folder: the ring's.
        since_ns: only readings after this place; None: only those that are still to come.

    Raises:
        CollectorError: nothing records there.
    """

    def __init__(self, folder: Path, since_ns: int | None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._number = 0
        self._rest = b""
        self._decoder = Decoder()
        try:
            self.about: dict[str, Any] = json.loads((folder / _ABOUT).read_text())
        except FileNotFoundError as error:
            raise CollectorError(
                f"nothing is recorded in {folder}; start it there: systemctl start pinchpoint-collect"
            ) from error
        except (OSError, ValueError) as error:
            raise CollectorError(
                f"{folder / _ABOUT} cannot be read: {error}; the user must be in the group of that folder"
            ) from error
        self._since_ns = _latest_ns(folder) if since_ns is None else since_ns
        segments = _segments(folder)
        self.oldest_ns = next((at for path in segments if (at := _first_ns(path))), None)
        """The place of the oldest reading that is kept; None where there is none yet."""
        self.dropped = bool(segments) and _number(segments[0]) > 1
        """Whether older ones have been dropped to make room."""

    def new(self) -> Iterator[RingReading]:
        """All that came since it was asked before."""
        while True:
            if self._file is not None:
                yield from self._more(self._file)
            following = [path for path in _segments(self._folder) if _number(path) > self._number]
            if self._file is None:
                following = self._without_older(following)
            if not following:
                return
            # What was appended to the old one between our last look and the turn.
            if self._file is not None:
                yield from self._more(self._file)
                self._file.close()
            try:
                self._file = following[0].open("rb", buffering=0)
            except FileNotFoundError:  # dropped meanwhile: the next one is looked for
                self._file = None
            self._number, self._rest, self._decoder = _number(following[0]), b"", Decoder()

    def close(self) -> None:
        """Close the segment. Safe to call twice."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _more(self, file: IO[bytes]) -> Iterator[RingReading]:
        while chunk := file.read(1 << 16):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                reading = self._decoder.decode(line.decode())
                if reading.at_ns > self._since_ns:
                    self._since_ns = reading.at_ns
                    yield reading

    def _without_older(self, segments: list[Path]) -> list[Path]:
        """Without those at the beginning that end before the requested time."""
        while len(segments) > 1 and (at := _first_ns(segments[1])) and at <= self._since_ns:
            segments = segments[1:]
        return segments


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("readings-*.jsonl"), key=_number)


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _first_ns(path: Path) -> int | None:
    """The place of a segment's first reading; None where it has none yet, or is gone."""
    try:
        with path.open("rb") as file:
            line = file.readline()
    except FileNotFoundError:
        return None
    return Decoder().decode(line.decode()).at_ns if line.endswith(b"\n") else None


def _last_of(path: Path, segments: list[Path]) -> int:
    """Not before when a segment ended: when the next one began; of the last one, when it began itself."""
    following = segments[segments.index(path) + 1 :]
    return next((at for one in [*following[:1], path] if (at := _first_ns(one))), 0)


def _latest_ns(folder: Path) -> int:
    """The place of the last reading of an earlier process, so that ours come after it; 0 without one."""
    latest = 0
    for path in _segments(folder)[-1:]:
        decoder = Decoder()
        for line in path.read_bytes().split(b"\n")[:-1]:
            latest = decoder.decode(line.decode()).at_ns
    return latest
