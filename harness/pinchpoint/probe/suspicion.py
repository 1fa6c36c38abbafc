"""Reads that may not come from the disk: faster than its type allows, or faster once they were read before.

The guest's page cache takes no part (direct I/O, or dropped before): what remembers is below it, on the host.
"""

from __future__ import annotations

from collections.abc import Mapping

from pinchpoint.analysis.thresholds import CAP_MATCH
from pinchpoint.probe import words
from pinchpoint.probe.caps import Caps, find_caps
from pinchpoint.probe.course import Change
from pinchpoint.probe.figures import Figures
from pinchpoint.probe.record import Declared
from pinchpoint_scenarios.storage_probe import Cell


def reads_above(found: Mapping[Cell, Figures], declared: Declared) -> dict[Cell, str]:
    """Cells that read more than the declared type allows, with the reason, where no write does.

    Where writes do too, it is the declaration that does not fit.
    """
    above = {cell: why for cell, one in found.items() if (why := _above(cell, one, declared))}
    if any(cell.read_ratio == 0 for cell in above):
        return {}
    return {cell: why for cell, why in above.items() if cell.read_ratio}


def _above(cell: Cell, one: Figures, declared: Declared) -> str | None:
    for name, mean in (("iops", one.iops), ("bytes_per_s", one.bytes_per_s)):
        allowed = [getattr(each, name) for each in (declared.limits, declared.burst) if each]
        known = [value for value in allowed if value]
        if mean and known and mean.middle > max(known) * (1 + CAP_MATCH.value):
            return words.above(cell, name, mean.middle, max(known), declared.profile)
    return None


def caps_but_of_reads(found: Mapping[Cell, Figures], caps: Caps) -> tuple[Caps, tuple[str, ...]]:
    """The caps of all that writes, pure or mixed with reads, where reads alone do more; and that, in words.

    Those caps as they are, and nothing said, where there are no such ones.
    """
    written = find_caps({cell: one for cell, one in found.items() if cell.read_ratio != 1})
    for name, cap in written:
        ratios = {cell.read_ratio for cell in cap.cells}
        if name in ("iops", "bytes_per_s") and len(ratios) > 1:
            rates = {
                cell: mean.middle
                for cell, one in found.items()
                if cell.read_ratio == 1 and (mean := getattr(one, name))
            }
            most = max(rates, key=lambda cell: rates[cell], default=None)
            if most is not None:
                return written, (words.reads_apart(most, name, rates[most], cap.value),)
    return caps, ()


def reads_of_memory(reads: Change | None, writes: Change | None) -> tuple[str, ...]:
    """Why what is read gets faster from repetition to repetition, and is no warming up: writes do not."""
    if reads is None or reads.move != "rose" or (writes is not None and writes.move == "rose"):
        return ()
    return (words.remembered(reads, writes),)
