"""Writes and reads the append-only journal of a process during a run.

A journal consists of segments, ``<writer>-<number>.ppj``: a magic line, then frames. A frame is the length
and the CRC-32 of its payload (two little-endian 32-bit numbers) and the payload, one msgpack array:

    ["series", id, host, metric, instance]             names a series once per segment
    ["samples", time_ns, interval_s, [id], [value], [weight]]
    ["operations", [[the columns of OPERATIONS_SCHEMA], ...]]

Every frame reaches the kernel in one write, so a process killed with SIGKILL loses at most the frame being
written. A reader stops at the first frame that is short, has length 0 (after a power cut a file may end in
unwritten zeros) or does not match its checksum.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import msgpack

from pinchpoint_collectors.common import legible
from pinchpoint_collectors.record import Sample

MAGIC = b"pinchpoint journal 1\n"
SUFFIX = ".ppj"
_HEADER = struct.Struct("<II")
_MAX_FRAME_BYTES = 64 * 1024 * 1024  # a larger length is damage


class JournalWriter:
    """Appends frames to the segments of one writing process; not thread-safe.

    Args:
        directory: the run's journal folder.
        writer: name of the writing process, unique in the run (``controller``, ``generator1``).
        segment_s: seconds after which a segment is closed; the controller may then compact the segment.
    """

    def __init__(self, directory: Path, writer: str, segment_s: float = 60.0) -> None:
        self._directory = directory
        self._writer = writer
        self._segment_s = segment_s
        self._number = 0
        self._opened_ns = 0
        self._file = -1
        self._series: dict[tuple[str, str, str], int] = {}

    def write_samples(self, samples: Iterable[Sample]) -> None:
        """Append samples; samples with the same time and interval share a frame. Raises OSError."""
        batch = list(samples)
        if not batch:
            return
        # Open the segment before names get numbers, because a segment must contain all names that it uses.
        self._open_for(max(sample.time_ns for sample in batch))
        frames: dict[tuple[int, float], tuple[list[int], list[float | None], list[float | None]]] = {}
        for sample in batch:
            ids, values, weights = frames.setdefault((sample.time_ns, sample.interval_s), ([], [], []))
            ids.append(self._id(sample.host, sample.metric, sample.instance))
            values.append(sample.value)
            weights.append(sample.weight)
        for (time_ns, interval_s), columns in frames.items():
            self._append(["samples", time_ns, interval_s, *columns])

    def write_operations(self, rows: Sequence[Sequence[Any]], now_ns: int) -> None:
        """Append rows of the operations table. Raises OSError."""
        if rows:
            self._open_for(now_ns)
            self._append(["operations", rows])

    def close(self) -> None:
        """Close the open segment. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open_for(self, now_ns: int) -> None:
        if self._file >= 0 and now_ns - self._opened_ns < self._segment_s * 1e9:
            return
        self.close()
        self._number += 1
        path = self._directory / f"{self._writer}-{self._number:06d}{SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._opened_ns = now_ns
        self._series.clear()
        os.write(self._file, MAGIC)

    def _id(self, *name: str) -> int:
        host, metric, instance = name
        known = self._series.get((host, metric, instance))
        if known is None:
            known = self._series[host, metric, instance] = len(self._series)
            self._append(["series", known, *map(legible.text, (host, metric, instance))])
        return known

    def _append(self, record: list[Any]) -> None:
        payload = msgpack.packb(record)
        frame = _HEADER.pack(len(payload), zlib.crc32(payload)) + payload
        written = os.write(self._file, frame)
        if written != len(frame):
            raise OSError(f"the journal took {written} of {len(frame)} bytes: is the disk full?")


def read_frames(path: Path) -> Iterator[list[Any]]:
    """The frames of one segment, up to the first incomplete or damaged frame."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, checksum = _HEADER.unpack(header)
            # zeros would match the checksum: CRC-32 of an empty payload is 0
            if not 0 < length <= _MAX_FRAME_BYTES:
                return
            payload = file.read(length)
            if len(payload) != length or zlib.crc32(payload) != checksum:
                return
            try:
                frame = msgpack.unpackb(payload)
            except ValueError:  # a damaged frame may match a 32-bit checksum by chance
                return
            yield frame


def segments(directory: Path) -> list[Path]:
    """All segments of all writers, sorted by name, which keeps each writer's segments in order."""
    return sorted(path for path in directory.glob(f"*{SUFFIX}") if path.is_file())
