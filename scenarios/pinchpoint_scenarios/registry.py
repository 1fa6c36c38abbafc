"""Every scenario, by the name a plan uses for it."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any

from pinchpoint_collectors.common.names import unknown

from .contract import Scenario
from .errors import ScenarioError


class Scenarios(UserDict[str, Any]):
    """``use`` -> scenario. A module is imported when its scenario is asked for: drivers take long."""

    def __getitem__(self, use: str) -> type[Scenario]:
        if isinstance(self.data[use], str):
            module, _, name = self.data[use].partition(":")
            self.data[use] = getattr(import_module(module, __package__), name)
        found: type[Scenario] = self.data[use]
        return found


SCENARIOS = Scenarios(
    {
        "full-crawl": ".full_crawl:FullCrawl",
        "sql-mix": ".sql_mix:SqlMix",
        "nosql-burst": ".nosql_burst:NosqlBurst",
        "storage-probe": ".storage_probe.scenario:StorageProbe",
        "sql-script": ".sql_script:SqlScript",
        "sql-replay": ".sql_replay:SqlReplay",
    }
)


def scenario(use: str) -> type[Scenario]:
    """The scenario a plan names; raises ``ScenarioError`` listing all names and the nearest."""
    if use not in SCENARIOS:
        raise ScenarioError(unknown("scenario", use, SCENARIOS))
    return SCENARIOS[use]
