"""The CPU that a tier's processes use on a host that runs more than that tier."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pinchpoint_collectors.proc import process
from pinchpoint_collectors.proc.process import Process, children, tree, used_ticks
from pinchpoint_collectors.proc.value import Value

_KERNEL_NAME_LETTERS = 15
_STAT = re.compile(r"^\d+ \(.*\) \S( -?\d+){40,}$", re.MULTILINE)
"""A process may give itself a name with a line break: such a one is not recognised, and nobody's tier."""


def parse_all(text: str) -> dict[int, Process]:
    """Every process of a reading, by its id."""
    return {one.pid: one for one in (process.parse(found[0]) for found in _STAT.finditer(text))}


def kernel_names(names: Iterable[str]) -> set[str]:
    """As the kernel cuts them."""
    return {each[:_KERNEL_NAME_LETTERS] for each in names}


class NamedTier:
    """One tier: the processes of some names, and all that descend from them.

    Args:
        name: the tier's.
        names: of its processes.
        cores: how many cores there are for it.
        ticks_per_s: the host's clock ticks.
    """

    def __init__(self, name: str, names: tuple[str, ...], cores: int, ticks_per_s: int) -> None:
        self._instance = f"tier:{name}"
        self._names = kernel_names(names)
        self._cores = cores
        self._ticks_per_s = ticks_per_s
        self._members: dict[int, Process] = {}

    def values(
        self, before: Mapping[int, Process] | None, table: Mapping[int, Process], interval_s: float
    ) -> Iterator[Value]:
        """CPU since the reading before.

        Args:
            before: every process of the host then; None at the first reading.
            table: every process now.
            interval_s: seconds between the two.
        """
        members_before = self._members
        known = (
            table[pid]
            for pid, old in members_before.items()
            if pid in table and table[pid].start == old.start
        )
        named = (each for each in table.values() if each.name in self._names)
        self._members = tree([*known, *named], children(table.values()))
        yield Value("cpu.cores", self._instance, float(self._cores) if self._members else None)
        if before is None or not interval_s:
            return
        used = used_ticks(before, members_before, self._members)
        possible = self._cores * interval_s * self._ticks_per_s
        yield Value("cpu.busy_ratio", self._instance, used / possible if self._members else None)
