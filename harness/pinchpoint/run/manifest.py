"""Builds manifest.json: plan, farm and versions of a run (keys: docs/run-directory.md)."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pinchpoint.base.redact import masked_value
from pinchpoint.farm.ready import ReadyFarm
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.plan import Farm, Plan
from pinchpoint.run.preflight import Connected
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.linux.inventory import machine_id

INTERVAL_S = 1.0
"""Interval of the readings of collectors in seconds."""

_DISTRIBUTIONS = (
    "pinchpoint",
    "pinchpoint-scenarios",
    "pinchpoint-collectors",
    "pinchpoint-infra",
    "locust",
    "psycopg",
    "valkey",
    "cassandra-driver",
    "pymongo",
    "urllib3",
    "psutil",
)


def first_manifest(
    farm: Farm,
    plan: Plan,
    live: ReadyFarm,
    endpoints: Mapping[str, Any],
    collectors: Sequence[Connected],
    assignments: Sequence[Assignment],
) -> dict[str, Any]:
    """Return the manifest before the first sample. Phases and warnings are added later.

    Args:
        farm: farm file; its secrets are removed here.
        plan: plan file.
        live: farm that is used.
        endpoints: scenario -> facts about its servers.
        collectors: connected collectors of the farm.
        assignments: assignments of the load generators.
    """
    hosts: dict[str, Any] = {}
    intervals_s = []
    for connected in collectors:
        result = connected.inventory
        # The interval of an exporter is that of its scraper.
        reported = (inventory.get("scrape_interval_s") for inventory in result.values())
        intervals_s.append(next((seconds for seconds in reported if seconds), INTERVAL_S))
        for host, inventory in masked_value(result).items():
            known = hosts.setdefault(host, {})
            missing = [*known.get("not_measured", ()), *inventory.get("not_measured", ())]
            known |= {**inventory, "not_measured": missing}  # a host may have several collectors
    placed = list(declared_places(hosts, farm))
    here = machine_id()
    return {
        "name": plan.name,
        "seed": plan.seed,
        "started": utc(),
        "ended": None,
        "plan": plan.shown(),
        "farm": farm.shown(),
        "endpoints": masked_value(endpoints),
        "phases": [],
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _DISTRIBUTIONS}},
        "hosts": hosts,
        "generators": [
            {"worker": given.name, "cores": given.cores, "machine_id": here} for given in assignments
        ],
        "collectors": [
            {"kind": connected.kind, "hosts": list(connected.hosts), "interval_s": interval_s}
            for connected, interval_s in zip(collectors, intervals_s, strict=True)
        ],
        "content": live.content,
        "warnings": masked_value([*live.warnings, *_reports_of(endpoints), *placed]),
    }


def declared_places(hosts: dict[str, Any], farm: Farm) -> Iterator[str]:
    """Add the region and zone that farm.yaml declares.

    Yield a warning for each that the machine contradicts.
    """
    for tier in farm.tiers.values():
        for name, host in tier.hosts.items():
            for what, declared in (("region", host.region or farm.region), ("zone", host.zone)):
                result = hosts.get(name, {}).get(what)
                if declared is None:
                    continue
                if result not in (None, declared):
                    own = f"{result}, as the machine says"
                    yield f"the {what} of {name} is {own}, not {declared} of farm.yaml"
                elif name in hosts:
                    hosts[name][what] = declared
    for inventory in hosts.values() if farm.region else ():  # an embedded farm needs no declared place
        inventory.setdefault("region", farm.region)


def _reports_of(endpoints: Mapping[str, Any]) -> list[str]:
    """Return warnings about the servers, first of all if an acknowledged write may be lost."""
    result = [
        warning
        for facts in endpoints.values()
        for said in facts.values()
        for warning in (said or {}).get("warnings", ())
    ]
    return list(dict.fromkeys(result))
