"""Every scenario, by the name a plan uses for it."""

from __future__ import annotations

from collections.abc import Iterable

from .contract import Scenario
from .errors import ScenarioError
from .full_crawl import FullCrawl
from .names import unknown
from .nosql_burst import NosqlBurst
from .sql_mix import SqlMix
from .sql_replay import SqlReplay
from .sql_script import SqlScript
from .storage_probe.scenario import StorageProbe


def table(scenarios: Iterable[type[Scenario]]) -> dict[str, type[Scenario]]:
    """``use`` -> scenario; two of one name raise ``ValueError``."""
    by_use: dict[str, type[Scenario]] = {}
    for each in scenarios:
        if each.use in by_use:
            raise ValueError(
                f"two scenarios are named {each.use!r}: {by_use[each.use].__name__}, {each.__name__}"
            )
        by_use[each.use] = each
    return by_use


SCENARIOS: dict[str, type[Scenario]] = table(
    (FullCrawl, SqlMix, NosqlBurst, StorageProbe, SqlScript, SqlReplay)
)


def scenario(use: str) -> type[Scenario]:
    """The scenario a plan names; raises ``ScenarioError`` listing all names and the nearest."""
    if use not in SCENARIOS:
        raise ScenarioError(unknown("scenario", use, SCENARIOS))
    return SCENARIOS[use]
