"""Write binary logs of the Performance Monitor in the format of public logs from Windows Vista and 8."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from uuid import UUID

PDH = UUID("933f3bb3-943e-490d-9ced-3cbb14c14479").bytes_le
SIZE = 8192
START = 134_000_000_000_000_000
"""2025-08-18 14:13:20 UTC in units of 100 ns since 1601."""
CATALOGUE, DATA, NAMES = 0x20, 0x22, 0x24
PER_S = 10_000_000


def trace(events: Sequence[bytes], *, bias: int = 0, pointers: int = 8, order: Sequence[int] = ()) -> bytes:
    """Return a file of buffers; ``order`` is the order of writing in a circular log."""
    zone = struct.pack("<i64s16si64s16si", bias, b"", b"", 0, b"", b"", -60)
    header = struct.pack("<HBBHHIIqII", 0, 2, 0xC0, 32 + 56 + 2 * pointers + 172, 0, 1, 1, START, 0, 0)
    header += struct.pack("<IIIIqIIIIIIII", SIZE, 1, 1, 1, 0, 156_250, 0, 0, 1, 1, pointers, 0, 1)
    header += b"\0" * 2 * pointers + zone.ljust(172, b"\0") + struct.pack("<qqq", 0, PER_S, START)
    buffers, now = [header], b""
    for event in events:
        if len(now) + len(event) + 72 > SIZE:
            buffers, now = [*buffers, now], b""
        now += event.ljust(-(-len(event) // 8) * 8, b"\0")
    buffers.append(now)
    return b"".join(_buffer(each, number) for number, each in enumerate(buffers))


def _buffer(content: bytes, number: int) -> bytes:
    head = struct.pack("<IIIIqqqqI", SIZE, 0, 0, 0, 0, number, 0, 0, 72 + len(content))
    return (head.ljust(72, b"\0") + content).ljust(SIZE, b"\xff")


def event(
    kind: int, body: bytes, second: float = 0.0, *, bias: int = 0, part: tuple[int, int] = (1, 1)
) -> bytes:
    """Return an event of the counters' provider at a local time."""
    local = START - bias * 60 * PER_S + round(second * PER_S)
    content = PDH + struct.pack("<II", 0, 0) + b"\x01" * 16 + struct.pack("<II", *part) + body
    return struct.pack("<HBBBBHIIq", 24 + len(content), 0x14, 0xC0, kind, 0, 60, 1, 1, local) + content


def parted(kind: int, body: bytes, second: float, pieces: int) -> list[bytes]:
    """Return one reading as several events."""
    step = -(-len(body) // pieces)
    return [
        event(kind, body[at * step : (at + 1) * step], second, part=(at + 1, pieces)) for at in range(pieces)
    ]


def _utf16(text: str) -> bytes:
    return (text + "\0").encode("utf-16-le")


def record(
    type_: int, host: str, object_: str, instance: str | None, counter: str, per_s: int = PER_S
) -> bytes:
    """Return one counter of the catalogue."""
    texts, places = b"", []
    for text in (f"\\\\{host}", object_, instance, counter):
        places.append(-1 if text is None else len(texts))
        texts += b"" if text is None else _utf16(text)
    size = -(-(52 + len(texts)) // 8) * 8
    place = (places[0], places[1], places[2], -1, 0, places[3])
    return (struct.pack("<IIIIqiiiiiii", size, 0, 0, type_, per_s, 0, *place) + texts).ljust(size, b"\0")


def catalogue(*records: bytes) -> bytes:
    return event(CATALOGUE, b"\xff\x06\0\0\x08\0\x02\0" + b"".join(records))


def names(pairs: Mapping[int, str]) -> bytes:
    texts = ["\\\\SQL1", *(text for index, name in pairs.items() for text in (str(index), name))]
    return event(NAMES, b"".join(map(_utf16, texts)))


def one(first: int, second: int, status: int = 0) -> bytes:
    """Return a raw value."""
    return b"BL\x03\x01" + struct.pack("<IIqiqqII", 48, status, 0, 0, first, second, 1, 0)


def instances(values: Mapping[str, tuple[int, int]]) -> bytes:
    """Return the values of all instances; ``NAME|`` gives a name a second time."""
    head, texts = b"", b""
    for name, (first, second) in values.items():
        head += struct.pack("<IIqq", 24 + 24 * len(values) + len(texts), 1, first, second)
        texts += _utf16(name.rstrip("|"))
    size = -(-(8 + 24 + len(head) + len(texts)) // 8) * 8
    body = struct.pack("<IIIIq", size - 8, len(values), 0, 0, 0) + head + texts
    return (b"BL\x03\x02" + struct.pack("<I", size) + body).ljust(size, b"\0")


def whole(
    object_: int, counters: Sequence[tuple[int, int]], rows: Mapping[str | None, Sequence[int]], at_s: float
) -> bytes:
    """Return a ``PERF_DATA_BLOCK`` of one object.

    ``counters`` has (index, type) of each counter; ``rows`` has the 64-bit values by instance.
    """
    definitions = b"".join(
        struct.pack("<IIIIIiIIII", 40, index, 0, 0, 0, 0, 0, type_, 8, 8 + 8 * at)
        for at, (index, type_) in enumerate(counters)
    )
    blocks = b""
    for name, values in rows.items():
        block = struct.pack("<II", 8 + 8 * len(values), 0) + b"".join(
            struct.pack("<Q", each) for each in values
        )
        if name is not None:
            text = _utf16(name)
            blocks += struct.pack("<IIIiII", 24 + len(text), 0, 0, -1, 24, len(text)) + text
        blocks += block
    many = -1 if None in rows else len(rows)
    defined = 64 + len(definitions)
    body = struct.pack(
        "<IIIIIIIIIiiIqq",
        defined + len(blocks),
        defined,
        64,
        object_,
        0,
        0,
        0,
        0,
        len(counters),
        0,
        many,
        0,
        0,
        PER_S,
    )
    host = "SQL1".encode("utf-16-le")
    ticks = START + round(at_s * PER_S)
    head = "PERF".encode("utf-16-le") + struct.pack("<IIIIII", 1, 1, 1, 0, 96, 1)
    head += struct.pack("<i16s4xqqqII", 0, b"", round(at_s * PER_S), PER_S, ticks, len(host), 88) + host
    content = head.ljust(96, b"\0") + body + definitions + blocks
    size = -(-(8 + len(content)) // 8) * 8
    return (b"BL\x03\x05" + struct.pack("<I", size) + content).ljust(size, b"\0")


def reading(*items: bytes) -> bytes:
    return b"BL\x03\0" + struct.pack("<I", 8 + sum(map(len, items))) + b"".join(items)
