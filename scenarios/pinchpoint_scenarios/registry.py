"""Registry of all scenarios, by the name that a plan uses."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from pinchpoint_collectors.common.names import unknown
from pinchpoint_collectors.common.plugins import PlugIn, PlugInError, plug_ins

from .contract import Scenario
from .errors import ScenarioError

GROUP = "pinchpoint.scenarios"
"""Group of the entry points of packages that add scenarios: ``use = module:Class``."""


class Scenarios(UserDict[str, Any]):
    """``use`` -> scenario.

    A module is imported when its scenario is requested, because drivers load slowly.
    """

    def __getitem__(self, use: str) -> type[Scenario]:
        there = self.data[use]
        if isinstance(there, str):
            module, _, name = there.partition(":")
            self.data[use] = getattr(import_module(module, __package__), name)
        elif isinstance(there, PlugIn):
            try:
                self.data[use] = there.load("use")
            except PlugInError as error:
                raise ScenarioError(f"scenario {error}") from error
        result: type[Scenario] = self.data[use]
        return result

    def usable(self) -> Iterator[tuple[str, type[Scenario]]]:
        """Return all scenarios except those of packages that cannot be imported."""
        for use in self:
            with suppress(ScenarioError):
                yield use, self[use]


_OWN = {
    "full-crawl": ".full_crawl:FullCrawl",
    "sql-mix": ".sql_mix:SqlMix",
    "nosql-burst": ".nosql_burst:NosqlBurst",
    "storage-probe": ".storage_probe.scenario:StorageProbe",
    "sql-script": ".sql_script:SqlScript",
    "sql-replay": ".sql_replay:SqlReplay",
}
SCENARIOS = Scenarios(_OWN | plug_ins(GROUP, _OWN))


def scenario(use: str) -> type[Scenario]:
    """Return the scenario with a name. Raises ``ScenarioError`` that lists all names and the nearest one."""
    if use not in SCENARIOS:
        raise ScenarioError(unknown("scenario", use, SCENARIOS))
    return SCENARIOS[use]
