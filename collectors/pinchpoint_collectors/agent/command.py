"""Runs the command ``pinchpoint-collect``: reads its configuration, and records until it is stopped."""

from __future__ import annotations

import argparse
import errno
import json
import os
import select
import signal
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, Self

from pinchpoint_collectors.agent.codec import VERSION, Decoder, Encoder, RingReading
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.sampler import Sampler

# A ring stores the last hours of a host's samples in a folder of limited size. The oldest segment is deleted
# first. Each reading is appended as one line, which other processes can read at once. A segment can be
# decoded without the earlier ones. A crash can leave the last line incomplete; it is then ignored.

_ABOUT = "ring.json"
_SEGMENTS = 16
"""Number of segments of a full ring. Deleting one loses a sixteenth of the recorded time."""
_NS_PER_HOUR = 3_600_000_000_000


class Ring:
    """Writes a ring. Only one process at a time may write.

    Args:
        folder: folder of the ring. It is created if missing, and recordings of an earlier process are kept.
        hours: hours for which readings are kept.
        size_bytes: largest total size of all segments in bytes.
        about: facts about the recording for readers, as JSON data.

    Raises:
        OSError: the folder is not writable.
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
        """Store one reading. Raises ``OSError``."""
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
            # An incomplete line must stay the last line of its segment; otherwise later lines could not be
            # read.
            raise OSError(errno.ENOSPC, "no room for a whole reading")
        self._written += len(line)
        self._at_ns = at_ns

    def close(self) -> None:
        """End the segment. A second call does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _turn(self, at_ns: int) -> None:
        """Begin a segment, and delete segments above the limits of age or size."""
        self.close()
        segments = _segments(self._folder)
        number = _number(segments[-1]) + 1 if segments else 1
        # The earlier segments must leave room for the new one, which will grow.
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
        folder: folder of the ring.
        since_ns: position after which readings are wanted; None: only future readings.

    Raises:
        CollectorError: no process records in the folder.
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
        """Position of the oldest reading in the ring; None while the ring is empty."""
        self.dropped = bool(segments) and _number(segments[0]) > 1
        """Whether older readings were deleted to make room."""

    def new(self) -> Iterator[RingReading]:
        """Return all readings since the last call."""
        while True:
            if self._file is not None:
                yield from self._more(self._file)
            following = [path for path in _segments(self._folder) if _number(path) > self._number]
            if self._file is None:
                following = self._without_older(following)
            if not following:
                return
            # Lines that were appended to the old segment between the last read and its end.
            if self._file is not None:
                yield from self._more(self._file)
                self._file.close()
            try:
                self._file = following[0].open("rb", buffering=0)
            except FileNotFoundError:  # deleted meanwhile: continue with the next segment
                self._file = None
            self._number, self._rest, self._decoder = _number(following[0]), b"", Decoder()

    def close(self) -> None:
        """Close the segment. A second call does nothing."""
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
        """Return the segments without those that end before the requested time."""
        while len(segments) > 1 and (at := _first_ns(segments[1])) and at <= self._since_ns:
            segments = segments[1:]
        return segments


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("readings-*.jsonl"), key=_number)


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _first_ns(path: Path) -> int | None:
    """Return the position of a segment's first reading; None if it has no reading yet or was deleted."""
    try:
        with path.open("rb") as file:
            line = file.readline()
    except FileNotFoundError:
        return None
    return Decoder().decode(line.decode()).at_ns if line.endswith(b"\n") else None


def _last_of(path: Path, segments: list[Path]) -> int:
    """Return a lower limit for the end of a segment.

    It is the start of the next segment, or for the last segment its own start.
    """
    following = segments[segments.index(path) + 1 :]
    return next((at for one in [*following[:1], path] if (at := _first_ns(one))), 0)


def _latest_ns(folder: Path) -> int:
    """Return the position of an earlier process's last reading; 0 without one. New positions are larger."""
    latest = 0
    for path in _segments(folder)[-1:]:
        decoder = Decoder()
        for line in path.read_bytes().split(b"\n")[:-1]:
            latest = decoder.decode(line.decode()).at_ns
    return latest


_LOOK_S = 0.1
"""Interval for checking the ring for new readings, in seconds."""


def tail(folder: Path, since_ns: int | None, *, follow: bool) -> None:
    """Print the readings after ``since_ns`` (None: now) to standard output.

    With ``follow`` the command continues until its standard input ends.

    Raises ``CollectorError`` if no process records, ``BrokenPipeError`` if the reader has gone.
    """
    reader = RingReader(folder, since_ns)
    hello = {
        "version": VERSION,
        **reader.about,
        "oldest_ns": reader.oldest_ns,
        "dropped": reader.dropped,
        "now_ns": time.time_ns(),
    }
    _say({"hello": hello})
    encoder, given = Encoder(), b""
    try:
        while True:
            for reading in reader.new():
                sys.stdout.write(encoder.encode(reading))
            sys.stdout.flush()
            if not follow:
                return
            if not select.select([0], [], [], _LOOK_S)[0]:
                continue
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return  # the reader has gone, or the connection was lost
            *lines, given = (given + chunk).split(b"\n")
            for line in lines:
                _say(_answer(json.loads(line), reader.about))
    finally:
        reader.close()


def _answer(asked: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    if "time" in asked:
        return {"time": asked["time"], "ns": time.time_ns(), "cpu_s": time.process_time()}
    wanted = asked["watch"]
    options = {"process": about["process"]} if about.get("process") else {}
    watch = Watch(wanted["host"], wanted["tier"], wanted["disks"], options=options)
    try:
        collector = LocalKind().connect([watch])
        facts = collector.inventory()[watch.host]
        collector.close()
    except CollectorError as error:
        return {"inventory": watch.host, "error": str(error)}
    except Exception as error:  # noqa: BLE001 - who asked is to hear it, not that the tail ended
        return {"inventory": watch.host, "error": f"{type(error).__name__}: {error}"}
    return {"inventory": watch.host, "facts": facts}


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


FOLDER = "/run/pinchpoint-collect"
"""Default folder of the ring. It is in memory, because writes to a watched disk would appear in the
measurement."""
_LEAST_BYTES = 1 << 20
_BOUNDS: dict[str, tuple[float, float]] = {
    "hours": (0.01, 24.0 * 31),
    "size_bytes": (_LEAST_BYTES, 1 << 40),
    "interval_s": (0.1, 60.0),
}
_STALL_S = 2.0


@dataclass(frozen=True, slots=True)
class Config:
    """What is recorded, and for how long it is kept.

    Attributes:
        folder: folder of the ring.
        hours: hours for which readings are kept.
        size_bytes: largest size of the ring in bytes. A reading takes one to four kB.
        interval_s: seconds between two readings.
        disks: devices, or paths on them, that are watched in addition to all whole disks: LVM, RAID, loop
            devices.
        process: names of the tier's processes, as ``ps -e -o comm`` shows them.
    """

    folder: str = FOLDER
    hours: float = 24.0
    size_bytes: int = 128 << 20
    interval_s: float = 1.0
    disks: tuple[str, ...] = ()
    process: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path | None) -> Self:
        """Read a TOML file; None: the defaults. Raises ``CollectorError`` that names file and key."""
        if path is None:
            return cls()
        try:
            given = tomllib.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise CollectorError(f"{path}: {error}; give a TOML file that can be read") from error
        allowed = [field.name for field in fields(cls)]
        if unknown := given.keys() - set(allowed):
            raise CollectorError(
                f"{path}: {', '.join(sorted(unknown))}: unknown; allowed: {', '.join(allowed)}"
            )
        for key, value in given.items():
            _check(path, key, value)
        given.update({key: tuple(given[key]) for key in ("disks", "process") if key in given})
        return cls(**given)


def _check(path: Path, key: str, value: Any) -> None:
    """Raises ``CollectorError`` for a value of a wrong type or out of bounds."""
    if key in ("disks", "process"):
        ok = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
        allowed = "a list of names in quotes"
    elif key == "folder":
        ok, allowed = isinstance(value, str) and value.startswith("/"), "an absolute path"
    else:
        least, most = _BOUNDS[key]
        ok = isinstance(value, int if key == "size_bytes" else (int, float)) and not isinstance(value, bool)
        ok, allowed = ok and least <= value <= most, f"a number from {least:g} to {most:g}"
    if not ok:
        raise CollectorError(f"{path}: {key}: found {value!r}; allowed: {allowed}")


def record(config: Config) -> None:
    """Record this host until SIGTERM or SIGINT. Raises ``CollectorError`` if recording fails."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    options = {"process": list(config.process)} if config.process else {}
    watch = Watch("this", "this", {place: place for place in config.disks}, options=options)
    collector = LocalKind().connect([watch])
    about = {"interval_s": config.interval_s, "process": list(config.process)}
    try:
        ring = Ring(Path(config.folder), config.hours, config.size_bytes, about)
    except (OSError, ValueError) as error:
        raise CollectorError(f"{config.folder}: {error}; give a folder that can be written") from error

    def keep(samples: Sequence[Sample]) -> None:
        ring.append(RingReading(time.time_ns(), samples))

    # The run that fetches a recording checks for impossible values and reports them.
    every_s = config.interval_s
    sampler = Sampler(
        collector, "local", [watch.host], keep, on_event=_say_event, interval_s=every_s, bounded=False
    )
    try:
        with sampler:
            while sampler.error is None and not stop.wait(_STALL_S):
                pass
    finally:
        ring.close()
        collector.close()
    if sampler.error is not None:
        raise CollectorError(f"{config.folder}: {sampler.error}; nothing is recorded any more")


def _say_event(event: str, /, **text: object) -> None:
    print(event, *(f"{key}={value}" for key, value in text.items()), file=sys.stderr, flush=True)  # noqa: T201 - for the journal


def _place(text: str) -> int | None:
    return None if text == "now" else int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return its exit status: 0, 1 after a failure, 2 for wrong arguments."""
    parser = argparse.ArgumentParser("pinchpoint-collect", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="record this host until it is stopped")
    recording.add_argument("--config", type=Path, help="a TOML file; see docs/collectors.md")
    tailing = commands.add_parser("tail", help="print what was recorded, a line of JSON for each reading")
    tailing.add_argument("--folder", type=Path, default=Path(FOLDER), help="where it was recorded")
    tailing.add_argument(
        "--since",
        type=_place,
        default=0,
        metavar="NS",
        help="only what is later: UTC ns since 1970, or `now`",
    )
    tailing.add_argument("--follow", action="store_true", help="go on, until standard input ends")
    given = parser.parse_args(arguments)
    try:
        if given.command == "record":
            record(Config.of(given.config))
        else:
            tail(given.folder, given.since, follow=given.follow)
    except CollectorError as error:
        print(f"pinchpoint-collect: {error}", file=sys.stderr)  # noqa: T201 - a command's own words
        return 1
    except BrokenPipeError:
        # The reader has closed the pipe. Without this, Python would print an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
