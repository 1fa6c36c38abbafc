"""Unpacks gzip or zlib data of a server, with limits on size and number of members."""

from __future__ import annotations

import zlib

_GZIP = b"\x1f\x8b"
_STEP_BYTES = 2**14
_MOST_MEMBERS = 20_000
"""Each member costs 10 µs; tools that write several (bgzip, pigz) put at least some KB into one."""


class UnpackError(Exception):
    """It cannot be unpacked; the message says why."""


class TooMuchError(UnpackError):
    """It unpacks to more than is allowed."""


def unpacked(packed: bytes, largest_bytes: int) -> bytes:
    """What was packed, of all gzip members one behind the other (RFC 1952, 2.2), without what else follows.

    Raises:
        UnpackError: it is damaged, cut off, or has more than 20,000 members.
        TooMuchError: see there.
    """
    parts: list[bytes] = []
    left_bytes, at = largest_bytes + 1, 0
    if not packed:
        return b""
    for _ in range(_MOST_MEMBERS):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, whichever it is
        while not unpacker.eof:
            # A step at a time: what is left of a member's last step is copied for the next one.
            step = packed[at : at + _STEP_BYTES]
            if not step:
                raise UnpackError("it is cut off")
            at += len(step)
            try:
                parts.append(unpacker.decompress(step, left_bytes))
            except zlib.error as error:
                raise UnpackError(str(error)) from error
            left_bytes -= len(parts[-1])
            if left_bytes <= 0:
                raise TooMuchError(f"it unpacks to more than {largest_bytes // 2**20} MiB")
        at -= len(unpacker.unused_data)
        if packed[at : at + 2] != _GZIP:
            return b"".join(parts)
    raise UnpackError(f"it has more than {_MOST_MEMBERS:,} members")
