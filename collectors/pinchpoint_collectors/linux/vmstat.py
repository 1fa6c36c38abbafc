"""Parses /proc/vmstat: paging."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pinchpoint_collectors.value import Value, rate

_SWAP = re.compile(r"^(pswpin|pswpout) (\d+)$", re.MULTILINE)
"""Two of some 180 lines, because parsing all of them each second would cost more than the rest of a
reading."""


def parse(text: str) -> dict[str, int]:
    """Return pages by name: pages written to swap and read from it."""
    return {name: int(number) for name, number in _SWAP.findall(text)}


def values(
    before: Mapping[str, int] | None, after: Mapping[str, int], interval_s: float, page_bytes: int
) -> Iterator[Value]:
    """Yield memory written to swap and read from it.

    ``pgpgin``/``pgpgout`` are not used: despite their names they count all block I/O.
    """
    for metric, name in (("mem.paged_in_bytes_per_s", "pswpin"), ("mem.paged_out_bytes_per_s", "pswpout")):
        if before is not None and name in after and name in before:
            yield Value(metric, "", rate(before[name], after[name], interval_s, page_bytes))
