"""Every suite, by the name ``pinchpoint probe --suite`` takes."""

from __future__ import annotations

from collections.abc import Iterable

from pinchpoint_collectors.common.names import unknown

from ..errors import ScenarioError
from .suite import Suite
from .suites import bonnie, crystaldiskmark, database, iometer, sequential, stability


def table(suites: Iterable[Suite]) -> dict[str, Suite]:
    """Name -> suite; two of one name raise ``ValueError``."""
    found: dict[str, Suite] = {}
    for each in suites:
        if each.name in found:
            raise ValueError(f"two suites are named {each.name!r}")
        found[each.name] = each
    return found


SUITES: dict[str, Suite] = table(
    (
        crystaldiskmark.SUITE,
        iometer.SHORT,
        iometer.FULL,
        database.SUITE,
        sequential.SUITE,
        bonnie.SUITE,
        stability.SUITE,
    )
)


def suite(name: str) -> Suite:
    """The suite of that name; raises ``ScenarioError`` that lists all names and the nearest."""
    if name not in SUITES:
        raise ScenarioError(unknown("suite", name, SUITES))
    return SUITES[name]
