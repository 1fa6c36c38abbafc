"""Which disks of the catalogue behave like the probed one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pinchpoint.analysis.disk_types import caps_words
from pinchpoint.analysis.inputs import Limits
from pinchpoint_infra.catalogue import Burst, Profile, catalogue

CLOSE = 0.05
"""A cap is that of a type where it is within 5 % of its figure (our value)."""


@dataclass(frozen=True, slots=True)
class Alike:
    """One type that fits.

    Attributes:
        name: its name in the catalogue.
        at: ``caps`` or ``burst``: which of its figures the disk stands at.
        words: those figures.
        source: where they come from.
    """

    name: str
    at: str
    words: str
    source: str

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return asdict(self)


def alike(caps: Limits | None, most_iops: float | None, most_bytes_per_s: float | None) -> tuple[Alike, ...]:
    """The types whose caps are those that were found, and that could do all that was done.

    Args:
        caps: what was found; None: nothing, and so nothing can be said.
        most_iops: the highest rate of any cell.
        most_bytes_per_s: likewise.
    """
    if caps is None:
        return ()
    found = []
    for entry in catalogue().values():
        if entry.kind != "disk":
            continue
        for at, figures in (("caps", entry), ("burst", entry.burst)):
            if figures and _fits(figures, caps, most_iops, most_bytes_per_s):
                words = caps_words(entry) if at == "caps" else f"burst of {figures.iops:,.0f} IOPS"
                found.append(Alike(entry.name, at, words, entry.source))
    return tuple(found)


def _fits(
    figures: Profile | Burst, caps: Limits, most_iops: float | None, most_bytes_per_s: float | None
) -> bool:
    pairs = ((figures.iops, caps.iops, most_iops), (figures.bytes_per_s, caps.bytes_per_s, most_bytes_per_s))
    for of_type, found, most in pairs:
        if found is not None and (of_type is None or abs(found / of_type - 1) > CLOSE):
            return False
        if found is None and of_type is not None and most is not None and most > of_type * (1 + CLOSE):
            return False
    return True
