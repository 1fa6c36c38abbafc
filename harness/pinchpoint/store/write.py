"""Writes a run directory: first the manifest, then journals and events; one step finishes the run."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from pinchpoint.base.errors import FarmUnavailable, InputError, NotEvidenceError, PinchpointError
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.redact import masked, masked_value
from pinchpoint.store import compact
from pinchpoint.store.coarse import step_s
from pinchpoint.store.journal import JournalWriter
from pinchpoint.store.schema import EVENTS, JOURNAL, MANIFEST, OPERATIONS, RUN_SCHEMA, SAMPLES
from pinchpoint_collectors.bounds import sentences
from pinchpoint_collectors.common import legible
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.record import Sample

IN_FULL = 1_000
"""The number of events of one name that are all written; further ones may share lines."""
EVERY_S = 60.0
"""Further events of one name within this many seconds share a line."""


class EventLog:
    """Writes events.jsonl; after many events of one name, at most one line a minute with their number.

    A host that answers late every second would otherwise fill the file, and the report, for hours. A shared
    line contains the latest event and ``stands_for``, the number of events since the line before.

    Args:
        path: path of events.jsonl.
        clock: returns monotonic seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        # Without a buffer a failed write raises at once, and not again when the file is closed.
        self._file = path.open("ab", buffering=0)
        self._clock = clock
        self._written: Counter[str] = Counter()
        self._last_s: dict[str, float] = {}
        self._held: dict[str, tuple[int, JsonObject]] = {}

    def add(self, event: JsonObject) -> None:
        """Add one event; its fields include ``time`` and its name, ``event``. Raises OSError."""
        name = event["event"]
        count = 1 + self._held.pop(name, (0, event))[0]
        now_s = self._clock()
        if self._written[name] >= IN_FULL and now_s - self._last_s[name] < EVERY_S:
            self._held[name] = count, event
        else:
            self._write(name, count, event)
            self._last_s[name] = now_s

    def close(self) -> None:
        """Write the delayed events and close the file. Safe to call twice. Raises OSError."""
        if self._file.closed:
            return
        try:
            while self._held:
                name, (count, event) = self._held.popitem()
                self._write(name, count, event)
        finally:
            self._file.close()

    def _write(self, name: str, count: int, event: JsonObject) -> None:
        line = {**event, "stands_for": count} if count > 1 else event
        self._append(json.dumps(legible.content(line), allow_nan=False, default=str).encode() + b"\n")
        self._written[name] += 1

    def _append(self, line: bytes) -> None:
        """Write the whole line or nothing, because a partial line would also damage the next event."""
        begun = os.fstat(self._file.fileno()).st_size
        if self._file.write(line) < len(line):  # a disk that becomes full writes only the part that fits
            self._file.truncate(begun)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


LOCK = "lock"
_FIRST = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EMFILE: "allow this user more open files (ulimit -n 4096)",
    errno.ENOMEM: "end other programs",
}
"""Error number of a failed write -> the remedy; the default remedy is to make the folder writable."""
_FAILED_DISK = (errno.EROFS, errno.EIO)
"""Errors of a file system that may have lost data, because the kernel had not yet written them to the
disk."""


def free_path(parent: Path, name: str, at_s: float | None = None) -> Path:
    """The path of a new directory ``NAME-20260101T000000Z`` for the time ``at_s``, by default now.

    If the directory exists, the path ends in a number.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at_s))
    first = wanted = parent / f"{name}-{stamp}"
    number = 1
    while wanted.exists():  # two runs may start in the same second
        number += 1
        wanted = first.with_name(f"{first.name}-{number}")
    return wanted


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` while ``path`` is written into an InputError with the remedy."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader sees a partial file, even after a kill. Raises OSError."""
    # A lone surrogate (in a file name that is not text) has no UTF-8 form; the file contains \udcXX.
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, content: object) -> None:
    """Write a JSON file so that no reader sees a partial file, even after a kill. Raises OSError."""
    write_file(path, f"{json.dumps(legible.content(content), indent=1, allow_nan=False)}\n")


class RunWriter:
    """Writes the directory of one run, in the controller.

    Args:
        directory: path of the run directory, which must not exist; the constructor creates it.
        manifest: initial content of the manifest; the constructor adds ``schema`` and ``state``.
        segment_s: seconds after which a journal segment is closed and may be compacted.

    Every method raises ``NotEvidenceError`` if the directory cannot be written any more (disk full), because
    an incomplete record is no evidence. After the measurement the error is ``FarmUnavailable``, because the
    journal has all measurements.

    Attributes:
        measured: whether the measurement has ended and is complete in the journal.
    """

    def __init__(self, directory: Path, manifest: JsonObject, segment_s: float = 60.0) -> None:
        self.directory = directory
        self.measured = False
        self.journal = directory / JOURNAL
        self.manifest: dict[str, Any] = {"schema": RUN_SCHEMA, "state": "running", **manifest}
        with self._writing(), ExitStack() as failed:
            directory.mkdir(parents=True)
            failed.callback(shutil.rmtree, directory, ignore_errors=True)
            self.journal.mkdir()
            self._lock = failed.enter_context((self.journal / LOCK).open("w"))
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._events = failed.enter_context(closing(EventLog(directory / EVENTS)))
            self.save_manifest()
            with (directory / MANIFEST).open("rb") as written:
                os.fsync(
                    written.fileno()
                )  # if the disk fails later, the manifest still gives access to the journal
            failed.pop_all()
        self._samples = JournalWriter(self.journal, "controller", segment_s)
        # collectors, readers of generators and the main thread all write through this object
        self._guard = threading.Lock()

    def save_manifest(self) -> None:
        """Write the current manifest to manifest.json."""
        with self._writing():
            write_json(self.directory / MANIFEST, self.manifest)

    def samples(self, samples: Iterable[Sample]) -> None:
        """Append samples to the controller's journal."""
        with self._writing(), self._guard:
            self._samples.write_samples(samples)

    def event(self, event: str, /, **fields: Any) -> None:
        """Append one event to events.jsonl; ``EventLog`` combines frequent events."""
        with self._writing(), self._guard:
            self._events.add({"time": utc(), "event": event, **masked_value(fields)})

    def warn(self, sentence: str, **about: Any) -> None:
        """Record a warning for the report; ``about`` is data for the event, such as the rule concerned."""
        sentence = masked(sentence)
        self.manifest.setdefault("warnings", []).append(sentence)
        self.event("warning", sentence=sentence, **about)

    def compact(self) -> None:
        """Turn closed journal segments into Parquet parts."""
        with self._writing():
            result = compact.compact_closed(self.journal, step_s(self.manifest, utc()))
        for sentence in sentences(result.found.values()):
            self.warn(sentence)

    def finish(self, state: str) -> None:
        """Merge the journals into the run's two files and write the final state to the manifest."""
        with self._writing():
            self._samples.close()
            self._events.close()
            finish(self.directory, self.manifest, state, utc())
        self.close()

    def close(self) -> None:
        """Close all files and release the lock; the journal stays recoverable. Safe to call twice."""
        with self._writing(), self._guard:
            self._samples.close()
            self._events.close()
            self._lock.close()

    def discard(self) -> None:
        """Remove the directory of a run in which nothing was measured."""
        self.close()
        with self._writing(), suppress(FileNotFoundError):
            shutil.rmtree(self.directory)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except MemoryError as error:
            raise self._cannot(OSError(errno.ENOMEM, "too little memory")) from error
        except OSError as error:
            raise self._cannot(error) from error

    def _cannot(self, error: OSError) -> PinchpointError:
        why, kept = error.strerror or str(error), what_is_kept(self.directory, error)
        if self.measured:
            return FarmUnavailable(f"{self.directory}: the run's files cannot be written: {why}. {kept}")
        return NotEvidenceError(
            f"{self.directory}: the recorder failed: {why}; the run is not valid evidence. {kept}"
        )


def what_is_kept(directory: Path, error: OSError | None = None) -> str:
    """A sentence about what remains of a run whose files could not be written or read, with the remedy."""
    journal = directory / JOURNAL
    try:
        recorded = (directory / OPERATIONS).exists() or any(file.name != LOCK for file in journal.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        recorded = False
    except OSError:  # the journal exists, but no file descriptor is left to read it
        recorded = True
    number = error.errno if error is not None else None
    first = _FIRST.get(number or 0, "make it writable")
    if not (recorded and (directory / MANIFEST).exists()):
        first = "make sure the folder stays" if number == errno.ENOENT or not number else first
        return f"Nothing of this run is kept there; {first}, then run it again"
    what = "What had reached the disk" if number in _FAILED_DISK else "What was measured"
    return f"{what} is kept there: {first}, then `pinchpoint analyse {directory}`"


def finish(directory: Path, manifest: dict[str, Any], state: str, ended: str) -> None:
    """Turn a journal into a finished run; the journal is deleted last. Raises OSError."""
    journal = directory / JOURNAL
    result = compact.merge(journal, directory / OPERATIONS, directory / SAMPLES, step_s(manifest, ended))
    manifest.update(state=state, ended=ended)
    if answer := sentences(result.found.values()):
        manifest["warnings"] = [*(manifest.get("warnings") or ()), *answer]
    write_json(directory / MANIFEST, manifest)
    shutil.rmtree(journal)


def is_being_written(directory: Path) -> bool:
    """Whether a live process still writes this run, which then holds the lock."""
    try:
        lock = os.open(directory / JOURNAL / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
