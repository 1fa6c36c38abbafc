"""What may be claimed: that the studied factor caused what changed, or only that both came together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pinchpoint.base import wording
from pinchpoint.comparison.confounders import Confounder
from pinchpoint.comparison.manifests import Difference
from pinchpoint.comparison.sides import Sides
from pinchpoint.comparison.work import Work

Kind = Literal["caused_by", "associated_with"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed, and why no more.

    Attributes:
        kind: None: nothing is claimed, as a run is no valid evidence.
        because: what it rests on, or what weakens it; sentences without an end.
    """

    kind: Kind | None
    because: tuple[str, ...]


def claim(
    sides: Sides,
    factors: Sequence[str],
    studied: Sequence[Difference],
    found: Sequence[Confounder],
    work: Sequence[Work],
) -> Claim:
    """METHOD 4.1: the factor is the cause only where nothing else that touches a blamed resource differs.

    Args:
        sides: both sides' runs.
        factors: the areas that are studied.
        studied: the differences in them.
        found: all other differences.
        work: what was done; other work weakens the claim as well.
    """
    invalid = [
        f"{run.directory} ({side.label}) is no valid evidence: {run.verdict['summary']}".rstrip(".")
        for side in sides
        for run in side.runs
        if not run.is_evidence
    ]
    if invalid:
        return Claim(None, tuple(invalid))
    against = []
    if not factors:
        against.append("no factor was named (--factor), so nothing was studied as the cause")
    missing = [name for name in factors if not any(one.area == name for one in studied)]
    against += [f"the manifests show no difference in {name}" for name in missing]
    if sides.same_runs:
        against.append("the same run stands on both sides")
    areas: dict[str, None] = dict.fromkeys(one.difference.area for one in found if one.matters)
    if areas:
        against.append(
            f"the sides also differ in {wording.listed(list(areas))}, which may act upon what gives way first"
        )
    unlike = [one.name for one in work if one.unlike]
    if unlike:
        against.append(f"the sides did not do the same work ({', '.join(unlike)})")
    if against:
        return Claim("associated_with", tuple(against))
    named = wording.listed(list(factors))
    that = " that touches a blamed resource" if found else ""
    return Claim("caused_by", (f"nothing but {named} differs{that}",))
