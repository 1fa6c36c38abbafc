"""Memory of a capped control group, versions 1 and 2: what is left below the cap, and signs of too little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pinchpoint_collectors.proc.value import Value, rate

_UNLIMITED_BYTES = 2**62
"""Version 1 has no word for "no cap" but the largest number of bytes in whole pages, 2**63 less one page."""


class Memory(NamedTuple):
    """A capped group at one instant; counters are None where the kernel does not keep them.

    Attributes:
        cap_bytes: the most it may use.
        used_bytes: what it uses, its file cache included.
        inactive_file_bytes: of this, file cache that was not used lately: the kernel takes it back first.
        major_faults: page faults that had to read from a disk.
        refaults: pages of file cache that were read again soon after they had been taken away.
        reclaimed: pages that were taken away.
        limit_hits: how often an allocation met the cap, and something had to be taken away first.
    """

    cap_bytes: int
    used_bytes: int
    inactive_file_bytes: int
    major_faults: int | None
    refaults: int | None
    reclaimed: int | None
    limit_hits: int | None

    @property
    def available_bytes(self) -> int:
        """Cap less working set; the working set is what is used less the inactive file cache.

        That is how cAdvisor, and with it Kubernetes, defines ``container_memory_working_set_bytes``.
        """
        return max(0, self.cap_bytes - max(0, self.used_bytes - self.inactive_file_bytes))


def cap_v1(limit: str) -> int | None:
    """Bytes, from version 1's ``memory.limit_in_bytes``; None where there is no cap."""
    return None if int(limit) >= _UNLIMITED_BYTES else int(limit)


def cap_v2(limit: str, high: str) -> int | None:
    """Bytes, the lower of version 2's ``memory.max`` and ``memory.high``; None where both are ``max``."""
    return min((int(text) for text in (limit.strip(), high.strip()) if text != "max"), default=None)


def parse_v1(cap_bytes: int, usage: str, stat: str, failcnt: str, memsw: tuple[str, str] | None) -> Memory:
    """From ``memory.usage_in_bytes``, ``memory.stat`` and ``memory.failcnt``; groups below are included.

    ``memsw`` is limit and failcnt of memory and swap together, None where they are not counted. Where that
    limit is no higher than the cap it is met first, and ``memory.failcnt`` stays 0. Its own failcnt is kept
    by some kernels only (6.18 does not), so that a 0 there says nothing.
    """
    found = _numbers(stat)
    return Memory(
        cap_bytes,
        int(usage),
        found["total_inactive_file"],
        found.get("total_pgmajfault"),
        found.get("total_workingset_refault_file"),
        None,
        int(failcnt) if memsw is None or int(memsw[0]) > cap_bytes else int(memsw[1]) or None,
    )


def parse_v2(cap_bytes: int, current: str, stat: str, events: str) -> Memory:
    """From ``memory.current``, ``memory.stat`` and ``memory.events``; groups below are included."""
    found, told = _numbers(stat), _numbers(events)
    # Before kernel 5.9 file and anonymous pages were not told apart.
    refaults = found.get("workingset_refault_file", found.get("workingset_refault"))
    return Memory(
        cap_bytes,
        int(current),
        found["inactive_file"],
        found.get("pgmajfault"),
        refaults,
        found.get("pgsteal"),
        told["max"] + told["high"],
    )


def values(
    before: Memory | None, after: Memory, interval_s: float, instance: str, page_bytes: int
) -> Iterator[Value]:
    """What is left now and, since ``before``, the signs that it is too little."""
    yield Value("mem.available_bytes", instance, after.available_bytes)
    left = after.available_bytes / after.cap_bytes if after.cap_bytes else 0.0
    yield Value("mem.available_ratio", instance, left)
    if before is None:
        return
    for metric, old, new, unit in (
        ("mem.major_faults_per_s", before.major_faults, after.major_faults, 1),
        ("mem.refaulted_bytes_per_s", before.refaults, after.refaults, page_bytes),
        ("mem.reclaimed_bytes_per_s", before.reclaimed, after.reclaimed, page_bytes),
        ("mem.limit_hits_per_s", before.limit_hits, after.limit_hits, 1),
    ):
        if old is not None and new is not None:
            yield Value(metric, instance, rate(old, new, interval_s, unit))


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}
