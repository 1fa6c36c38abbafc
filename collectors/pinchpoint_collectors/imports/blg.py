"""Reads the Performance Monitor's binary log (``.blg``) of Windows Vista and later, circular or not.

The log is an event trace: buffers of one size, each with a header (``WMI_BUFFER_HEADER``) and events. The
first event describes the trace (``TRACE_LOGFILE_HEADER``); the provider ``_PDH`` has four kinds of events:

* the catalogue: a record for each counter that was asked for, with its path, type and time base;
* names: the system's counter names in its language, by their index in the registry;
* data: for each record of the catalogue one raw value (``PDH_RAW_COUNTER``), those of all instances, or the
  whole object as the registry hands it out (``PERF_DATA_BLOCK`` of winperf.h);
* a summary at the end, which is not needed.

Microsoft documents the trace, the structures of the registry, the raw counters and their formulas, but not
their arrangement in the file. It was derived from logs of Windows Vista and 8. Raw values are converted to
those in relog's CSV by the formulas of ``windows.reading``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import BinaryIO, NamedTuple
from uuid import UUID

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.perfmon import CounterColumn, columns_of, samples
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.times import LocalClock, ReadingTimes
from pinchpoint_collectors.record import Sample
from pinchpoint_collectors.windows.counters import INDICES, folded
from pinchpoint_collectors.windows.reading import TYPES, Raw

_PDH = UUID("933f3bb3-943e-490d-9ced-3cbb14c14479").bytes_le
_BUFFER = 72
"""Length of a buffer's header in bytes."""
_EVENT = 72
"""Length of an event's header in bytes. It ends with the number of its part and the number of parts."""
_CATALOGUE, _DATA, _NAMES = 0x20, 0x22, 0x24
_TRACED, _SYSTEM = 0xC0, (1, 2)
_ONE, _INSTANCES, _OBJECT = 1, 2, 5
"""Kinds of data items: one value, all instances, a whole object."""
_RECORD, _ITEM, _INSTANCE = 52, 8, 24
_LEAST_BUFFER, _MOST_BUFFER = 1024, 16 * 2**20
_MOST_PARTS = 4096
"""Largest number of parts of a file. Windows makes parts of 8 to 64 KiB."""
_MOST_PATHS = 1_000_000
_EPOCH = datetime(1601, 1, 1)  # noqa: DTZ001 -- local times: the trace's header says how far from UTC
_WITHOUT_INSTANCES = -1
_VALID = (0, 1)
"""Valid values of PDH's status: PDH_CSTATUS_VALID_DATA, PDH_CSTATUS_NEW_DATA."""
_DAMAGED = (
    "the binary log is damaged ({why}); convert it on Windows, which may repair it: relog LOG.blg -f csv -o "
    "LOG.csv"
)


class _Value(NamedTuple):
    """A logged counter: the number of its type, and its raw values."""

    type: int
    raw: Raw


class _Record(NamedTuple):
    """A requested counter. ``counter`` and ``instance`` may be ``*``."""

    type: int
    per_s: int
    host: str
    object: str
    instance: str | None
    counter: str


@dataclass(slots=True)
class _Log:
    """The information in a log before its data.

    Attributes:
        minutes: minutes to add to its local times for UTC.
        records: catalogue.
        names: index -> name of the counter in the system's language.
    """

    minutes: float = 0.0
    records: list[_Record] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    def name(self, index: int) -> str | None:
        """Return the name in the system's language, or else in English; None if the counter is not used."""
        return self.names.get(index) or _ENGLISH.get(index)


_ENGLISH = {index: name for name, index in INDICES.items()}


class Blg:
    """Import format ``blg``."""

    name = "blg"
    says = "the Performance Monitor's binary log (.blg), of Windows Vista and later"

    def begins(self, head: bytes) -> bool:
        """Return whether a file is a trace with counter events."""
        return _is_trace(head) and _PDH in head

    def read(self, file: BinaryIO, settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per known counter and reading (see ``BinaryFormat.read``)."""
        log = _Log()
        paths: dict[str, None] = {}
        for _, values in _readings(file, log, facts):
            paths |= dict.fromkeys(values)
            _check_many(paths)
        if not paths:
            raise ForeignFileError("the binary log has no reading of a counter; record for longer")
        names: dict[str, set[int]] = {}
        for index, name in log.names.items():
            names.setdefault(folded(name), set()).add(index)
        known = settings.names or {name: frozenset(indices) for name, indices in names.items()}
        columns = columns_of(list(paths), known, facts)
        used = _renumbered(columns, list(paths))
        pace = ReadingTimes()
        if settings.zone is None:
            facts.utc_offset_s = round(-60 * log.minutes)
        clock = LocalClock(settings.zone, 60.0 * log.minutes, pace, facts)
        yield from samples(columns, _rows(file, used, facts), clock, pace, facts)


def _check_many(paths: Sized) -> None:
    """Raises ForeignFileError if the file has too many parts."""
    if len(paths) > _MOST_PATHS:
        raise ForeignFileError(
            f"it has more than {_MOST_PATHS:,} counters; allowed: fewer. Take a part of it: relog LOG.blg -c "
            "COUNTERS -f csv -o LOG.csv"
        )


def _is_trace(head: bytes) -> bool:
    """Return whether the file begins with a trace header of the same buffer size."""
    if len(head) < _BUFFER + 36 or head[_BUFFER + 3] != _TRACED or head[_BUFFER + 2] not in _SYSTEM:
        return False
    return head[:4] == head[_BUFFER + 32 : _BUFFER + 36]


def _renumbered(columns: list[CounterColumn], paths: list[str]) -> dict[str, int]:
    """Return path -> position in a row, for used columns only. The columns get these positions."""
    needed = dict.fromkeys(at for one in columns for at in (one.at, one.weight_at) if at is not None)
    places = {at: place for place, at in enumerate(needed, 1)}
    for one in columns:
        one.at = places[one.at]
        one.weight_at = None if one.weight_at is None else places[one.weight_at]
    return {paths[at - 1]: place for at, place in places.items()}


def _rows(
    file: BinaryIO, used: Mapping[str, int], facts: FileFacts
) -> Iterator[tuple[int, datetime, list[str]]]:
    """Yield number, local time and cells (as in relog's CSV) of each reading."""
    before: dict[str, _Value] = {}
    for number, (local, values) in enumerate(_readings(file, _Log(), facts), 1):
        row = [""] * (len(used) + 1)
        for path, place in used.items():
            now, then = values.get(path), before.get(path)
            type_ = TYPES.get(now.type) if now else None
            if now is None or type_ is None or (type_.difference and then is None):
                continue
            value = type_.cook((then or now).raw, now.raw, type_.large).value
            mean_of_nothing = value is None and type_.name == "PERF_AVERAGE_TIMER"
            row[place] = "0" if mean_of_nothing else "" if value is None else repr(value)
        before = {path: values[path] for path in used if path in values}
        yield number, local, row


# ---- the trace ---------------------------------------------------------------------------------------------


def _readings(file: BinaryIO, log: _Log, facts: FileFacts) -> Iterator[tuple[datetime, Mapping[str, _Value]]]:
    """Yield local time and path -> value of each reading, and fill ``log``. Raises ForeignFileError."""
    first_s: float | None = None
    try:
        start, biases = _header(file)
        for kind, ticks, body in _events(file, facts):
            if kind == _NAMES:
                log.names |= _names(body)
            elif kind == _CATALOGUE:
                log.records = list(_records(body))
            elif kind == _DATA:
                local = _EPOCH + timedelta(microseconds=ticks // 10)
                if first_s is None:
                    first_s = ticks / 1e7
                    ahead = (start / 1e7 - first_s) / 60
                    log.minutes = float(min(biases, key=lambda bias: abs(bias - ahead)))
                yield local, _values(body, log)
    except (struct.error, IndexError) as error:
        raise ForeignFileError(_DAMAGED.format(why="a record ends too early")) from error
    except OverflowError as error:
        raise ForeignFileError(_DAMAGED.format(why="a time is impossible")) from error


def _header(file: BinaryIO) -> tuple[int, tuple[int, int]]:
    """Return the start of the trace in 100 ns since 1601, and minutes to add for UTC.

    There is one number of minutes without and one with summer time.
    """
    file.seek(0)
    head = file.read(_BUFFER + 512)
    pointers = 2 * struct.unpack_from("<I", head, _BUFFER + 32 + 44)[0]
    if pointers not in (8, 16):
        raise ForeignFileError(_DAMAGED.format(why="its header names no size of pointers"))
    zone = _BUFFER + 32 + 56 + pointers
    bias, standard, daylight = (struct.unpack_from("<i", head, zone + at)[0] for at in (0, 84, 168))
    start = struct.unpack_from("<q", head, _BUFFER + 16)[0]
    return start, (bias + standard, bias + daylight)


def _events(file: BinaryIO, facts: FileFacts) -> Iterator[tuple[int, int, bytes]]:
    """Yield kind, local time in 100 ns, and content of the counters' events in order, with parts joined."""
    parts: dict[int, list[bytes]] = {}
    for buffer in _buffers(file, facts):
        for event in _events_of(buffer):
            kind, ticks = event[4], struct.unpack_from("<q", event, 16)[0]
            part, of = struct.unpack_from("<II", event, 64)
            if part == 1:
                parts[kind] = []
            if kind not in parts or part != len(parts[kind]) + 1:
                continue  # its first part was overwritten or lost
            if part > _MOST_PARTS:
                raise ForeignFileError(_DAMAGED.format(why="a reading is too large"))
            parts[kind].append(event[_EVENT:])
            if part == of:
                yield kind, ticks, b"".join(parts.pop(kind))


def _events_of(buffer: bytes) -> Iterator[bytes]:
    """Yield the counters' events of a buffer."""
    at = _BUFFER
    while at + 8 <= len(buffer):
        size, type_, flags = struct.unpack_from("<HBB", buffer, at)
        if type_ in _SYSTEM:
            size = struct.unpack_from("<H", buffer, at + 4)[0]
        if flags != _TRACED or size < 8 or at + size > len(buffer):
            return
        if size >= _EVENT and type_ not in _SYSTEM and buffer[at + 24 : at + 40] == _PDH:
            yield buffer[at : at + size]
        at += -(-size // 8) * 8


def _buffers(file: BinaryIO, facts: FileFacts) -> Iterator[bytes]:
    """Yield the filled part of each buffer in the order of writing.

    A circular log starts over at the front.
    """
    file.seek(0, 2)
    end = file.tell()
    file.seek(0)
    size = struct.unpack("<I", file.read(4))[0]
    if not _LEAST_BUFFER <= size <= _MOST_BUFFER:
        raise ForeignFileError(_DAMAGED.format(why=f"its buffers have {size:,} bytes"))
    order = []
    for place in range(0, end - size + 1, size):
        file.seek(place)
        head = file.read(_BUFFER)
        its, filled = struct.unpack_from("<I", head, 0)[0], struct.unpack_from("<I", head, 48)[0]
        if its == size and _BUFFER < filled <= size:
            order.append((struct.unpack_from("<q", head, 24)[0], place, filled))
        elif its:
            facts.note("a part of the binary log is damaged and was ignored")
    if end % size:
        facts.note("the end of the binary log is truncated and was ignored")
    for _, place, filled in sorted(order):
        file.seek(place)
        yield file.read(filled)


# ---- what the events hold ----------------------------------------------------------------------------------


def _names(body: bytes) -> dict[int, str]:
    """Return the name of the host, then alternating indexes and names of objects."""
    texts = body.decode("utf-16-le", "replace").split("\0")[1:]
    pairs = zip(texts[0::2], texts[1::2], strict=False)
    return {int(index): name for index, name in pairs if index.isdecimal() and len(index) < 10 and name}


def _records(body: bytes) -> Iterator[_Record]:
    at = _ITEM
    while at + _RECORD <= len(body):
        size, _, _, type_, per_s, _, host, object_, instance, parent, index, counter = struct.unpack_from(
            "<IIIIqiiiiiii", body, at
        )
        if size < _RECORD:
            raise ForeignFileError(_DAMAGED.format(why="a counter has no path"))
        texts = body[at + _RECORD : at + size]
        yield _Record(
            type=type_,
            per_s=per_s,
            host=_text(texts, host).lstrip("\\"),
            object=_text(texts, object_),
            instance=_instance(texts, parent, instance, index),
            counter=_text(texts, counter),
        )
        at += size


def _instance(texts: bytes, parent: int, instance: int, index: int) -> str | None:
    """Return ``PARENT/NAME#2``; None for an object without instances."""
    if instance < 0:
        return None
    name = _text(texts, instance)
    name = f"{_text(texts, parent)}/{name}" if parent >= 0 else name
    return f"{name}#{index}" if index > 0 else name


def _text(texts: bytes, at: int) -> str:
    """Return the text from a position to the next 0."""
    if not 0 <= at <= len(texts):
        raise ForeignFileError(_DAMAGED.format(why="a name lies outside of its record"))
    return texts[at : len(texts) - (len(texts) - at) % 2].decode("utf-16-le", "replace").partition("\0")[0]


def _values(body: bytes, log: _Log) -> dict[str, _Value]:
    """Return path -> value of one reading, with an item for each record of the catalogue."""
    values: dict[str, _Value] = {}
    at, number = 0, 0
    while at + _ITEM <= len(body):
        mark, version, kind, size = struct.unpack_from("<2sBBI", body, at)
        if mark != b"BL":
            raise ForeignFileError(_DAMAGED.format(why="a reading has no items"))
        if version != 3:
            raise ForeignFileError(
                f"version {version} of the binary log is not supported; allowed: version 3, of Windows Vista "
                "and later. Convert it on Windows: relog LOG.blg -f csv -o LOG.csv"
            )
        if kind == 0:  # the structure around all items
            at += _ITEM
            continue
        if size < _ITEM:
            raise ForeignFileError(_DAMAGED.format(why="an item has no size"))
        content = body[at + _ITEM : at + size]
        if kind == _OBJECT:
            values |= _of_object(content, log)
        elif number < len(log.records):
            record = log.records[number]
            if kind == _ONE:
                values |= _of_one(content, record)
            elif kind == _INSTANCES:
                values |= _of_instances(content, record)
        at += size
        number += 1
    return values


def _path(host: str, object_: str, instance: str | None, counter: str) -> str:
    of = f"({instance})" if instance is not None else ""
    return f"\\\\{host}\\{object_}{of}\\{counter}"


def _logged(record: _Record, first: int, second: int) -> _Value:
    """Return a value with its divisor.

    PDH logs the divisor beside it: its base, or the base of both times.
    """
    return _Value(record.type, Raw(first, second, second, second, max(1, record.per_s)))


def _of_one(content: bytes, record: _Record) -> dict[str, _Value]:
    status, first, second = struct.unpack_from("<I12xqq", content, 0)
    if status not in _VALID:
        return {}
    path = _path(record.host, record.object, record.instance, record.counter)
    return {path: _logged(record, first, second)}


def _of_instances(content: bytes, record: _Record) -> dict[str, _Value]:
    """Yield the values of a counter for all instances. A repeated name gets a number, as in PDH."""
    _, many, status = struct.unpack_from("<III", content, 0)
    values: dict[str, _Value] = {}
    if status not in _VALID:
        return values
    seen: dict[str, int] = {}
    for number in range(min(many, len(content) // _INSTANCE)):
        name_at, _, first, second = struct.unpack_from("<IIqq", content, 24 + number * _INSTANCE)
        name = _numbered(_text(content, name_at), seen)
        values[_path(record.host, record.object, name, record.counter)] = _logged(record, first, second)
    return values


def _numbered(name: str, seen: dict[str, int]) -> str:
    number = seen[name] = seen.get(name, -1) + 1
    return f"{name}#{number}" if number else name


# ---- objects as the registry hands them out (winperf.h) ---------------------------------------------------


class _Definition(NamedTuple):
    """The definition of a counter in an object. The next definition may be its base."""

    name: str | None
    type: int
    size: int
    at: int


def _of_object(content: bytes, log: _Log) -> dict[str, _Value]:
    """Parse ``PERF_DATA_BLOCK``: a host, its times, and its objects."""
    header, objects = struct.unpack_from("<II", content, 24)
    perf_time, per_s, sys_time, _, host_at = struct.unpack_from("<qqqII", content, 56)
    host = _text(content[:header], host_at)
    values: dict[str, _Value] = {}
    at = header
    for _ in range(min(objects, len(content) // 64)):
        size, defined, its_header, index = struct.unpack_from("<IIII", content, at)
        counters, _, instances = struct.unpack_from("<Iii", content, at + 32)
        name = log.name(index)
        if name is not None:
            all_ = list(_definitions(content, at + its_header, min(counters, len(content) // 40), log))
            based: dict[str | None, tuple[_Definition, _Definition | None]] = {}
            for one, base in zip(all_, [*all_[1:], None], strict=True):
                based.setdefault(one.name, (one, base))  # a base has the name of its counter
            for instance, block in _blocks(content, at + defined, min(instances, len(content) // 24)):
                for counter, (one, base) in based.items():
                    if counter is None or one.type not in TYPES:
                        continue
                    raw = Raw(
                        _number(content, block, one),
                        _number(content, block, base) if base else None,
                        perf_time,
                        sys_time,
                        max(1, per_s),
                    )
                    values[_path(host, name, instance, counter)] = _Value(one.type, raw)
                _check_many(values)
        if size < 64:
            raise ForeignFileError(_DAMAGED.format(why="an object has no size"))
        at += size
    return values


def _definitions(content: bytes, at: int, many: int, log: _Log) -> Iterator[_Definition]:
    for _ in range(many):
        size, index = struct.unpack_from("<II", content, at)
        type_, length, place = struct.unpack_from("<III", content, at + 28)
        yield _Definition(log.name(index), type_, length, place)
        if size < 40:
            raise ForeignFileError(_DAMAGED.format(why="a counter's definition has no size"))
        at += size


def _blocks(content: bytes, at: int, instances: int) -> Iterator[tuple[str | None, int]]:
    """Yield instance (None for an object without instances) and position of its counters."""
    if instances == _WITHOUT_INSTANCES:
        yield None, at
        return
    seen: dict[str, int] = {}
    for _ in range(instances):
        size, _, _, _, name_at, length = struct.unpack_from("<IIIiII", content, at)
        name = content[at + name_at : at + name_at + length].decode("utf-16-le", "replace").partition("\0")[0]
        block = at + size
        yield _numbered(name, seen), block
        at = block + struct.unpack_from("<I", content, block)[0]
        if at <= block:
            raise ForeignFileError(_DAMAGED.format(why="an instance has no counters"))


def _number(content: bytes, block: int, definition: _Definition) -> int:
    code = "<Q" if definition.size == 8 else "<I"
    return int(struct.unpack_from(code, content, block + definition.at)[0])
