"""Which disks of the catalogue behave like the probed one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from pinchpoint.analysis.disk_types import caps_words
from pinchpoint.base import units
from pinchpoint.data.inputs import Limits
from pinchpoint_infra.catalogue import Burst, Profile, catalogue

CLOSE = 0.05
"""A cap is that of a type where it is within 5 % of its figure (our value)."""


@dataclass(frozen=True, slots=True)
class Alike:
    """One type that fits.

    Attributes:
        name: its name in the catalogue.
        stripes: so many of them, striped.
        at: ``caps`` or ``burst``: which of its figures the disk stands at.
        words: those figures.
        source: where they come from.
    """

    name: str
    stripes: int
    at: str
    words: str
    source: str

    @property
    def type(self) -> str:
        """``azure/p30``, ``2 x azure/p30``."""
        return f"{self.stripes} x {self.name}" if self.stripes > 1 else self.name

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return asdict(self)


def alike(
    caps: Limits | None,
    most_iops: float | None,
    most_bytes_per_s: float | None,
    stripes: Iterable[int] = (1,),
) -> tuple[Alike, ...]:
    """The types whose caps are those that were found, and that could do all that was done.

    Args:
        caps: what was found; None: nothing, and so nothing can be said.
        most_iops: the highest rate of any cell.
        most_bytes_per_s: likewise.
        stripes: so many of a type that are asked about: any number of them fits something.
    """
    if caps is None:
        return ()
    found = []
    for entry in catalogue().values():
        if entry.kind != "disk":
            continue
        for count, (at, figures) in product(stripes, (("caps", entry), ("burst", entry.burst))):
            if figures and _fits(figures, count, caps, most_iops, most_bytes_per_s):
                burst = f"burst of {units.iops((figures.iops or 0.0) * count)}"
                words = caps_words(entry, count) if at == "caps" else burst
                found.append(Alike(entry.name, count, at, words, entry.source))
    return tuple(found)


def _fits(
    figures: Profile | Burst,
    count: int,
    caps: Limits,
    most_iops: float | None,
    most_bytes_per_s: float | None,
) -> bool:
    pairs = ((figures.iops, caps.iops, most_iops), (figures.bytes_per_s, caps.bytes_per_s, most_bytes_per_s))
    for of_one, found, most in pairs:
        of_type = of_one and of_one * count
        if found is not None and (of_type is None or abs(found / of_type - 1) > CLOSE):
            return False
        if found is None and of_type is not None and most is not None and most > of_type * (1 + CLOSE):
            return False
    return True
