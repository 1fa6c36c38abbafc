"""What the cells of a probe are held against: what is declared, or what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pinchpoint.analysis.thresholds import CAP_MATCH
from pinchpoint.data.inputs import Limits
from pinchpoint.probe import words
from pinchpoint.probe.caps import Caps
from pinchpoint.probe.falls import Fall
from pinchpoint.probe.figures import Figures
from pinchpoint.probe.record import Declared
from pinchpoint_scenarios.storage_probe import Cell


@dataclass(frozen=True, slots=True)
class Held:
    """What cells are held against.

    Attributes:
        limits: None: nothing is known.
        burst: those on credits.
        which: whether they were ``declared``, ``found``, or ``both``; None where there are none.
    """

    limits: Limits | None
    burst: Limits | None
    which: str | None

    def lowered(self, caps: Caps, reads_ratio: float | None) -> Held:
        """For I/O of which so much is reads: reads or writes may have less, and that was found."""
        limits = caps.lowered(self.limits, reads_ratio)
        return self if limits == self.limits else Held(limits, None, "found")


def held_against(declared: Declared, caps: Caps, contradicted: str | None, fall: Fall | None) -> Held:
    """What is declared, as far as it is and the disk does not contradict it; else what was found."""
    said, found = declared.limits, caps.limits
    before = fall.limits if fall else None
    if said is None or contradicted is not None:
        return Held(found, before, "found") if found else Held(None, None, None)
    rest = found or said
    whole = replace(said, iops=said.iops or rest.iops, bytes_per_s=said.bytes_per_s or rest.bytes_per_s)
    return Held(whole, declared.burst or before, "declared" if whole == said else "both")


def contradicted(declared: Declared, caps: Caps, trusted: Mapping[Cell, Figures]) -> str | None:
    """Why the declared figures are not this disk's: it stands at others, or does more than they allow."""
    limits = declared.limits
    if limits is None:
        return None
    unit = limits.io_unit_bytes
    as_bytes = limits.iops * unit if limits.iops and unit else None
    for name, cap, allowed in (
        ("iops", caps.iops, (limits.iops, declared.burst and declared.burst.iops)),
        (
            "bytes_per_s",
            caps.bytes_per_s,
            (limits.bytes_per_s, declared.burst and declared.burst.bytes_per_s, as_bytes),
        ),
    ):
        known = [value for value in allowed if value]
        if cap and known and all(abs(cap.value / value - 1) > CAP_MATCH.value for value in known):
            return words.contradiction(name, known[0], cap.value, cap.why)
        done = most(trusted, name)
        if done and known and done > max(known) * (1 + CAP_MATCH.value):
            return words.exceeded(name, max(known), done)
    return None


def most(found: Mapping[Cell, Figures], name: str) -> float | None:
    """The highest of ``iops`` or ``bytes_per_s``."""
    means = [getattr(one, name) for one in found.values()]
    return max((mean.middle for mean in means if mean is not None), default=None)
