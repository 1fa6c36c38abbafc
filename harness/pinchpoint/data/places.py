"""Maps tiers and hosts to the machines they run on and the disks they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint.store.read import StoredRun


def tiers(run: StoredRun) -> list[tuple[str, str]]:
    """(tier, host) in the farm's order."""
    tiers: Mapping[str, Any] = run.manifest.get("farm", {}).get("tiers", {})
    listed = [(tier, host) for tier, facts in tiers.items() for host in facts.get("hosts", {})]
    inventory = run.manifest.get("hosts", {}).items()
    return listed + [
        (str(facts["tier"]), host)
        for host, facts in inventory
        if facts.get("tier") and (facts["tier"], host) not in listed
    ]


def disks_with_roles(run: StoredRun) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """(machine, device) -> every (tier, role, host) that lies on it: a device is one however many use it."""
    places: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    inventory = run.manifest.get("hosts", {})
    for tier, host in tiers(run):
        facts = inventory.get(host, {})
        for role, disk in facts.get("roles", {}).items():
            if disk.get("device"):
                machine = str(facts.get("machine_id") or host)
                places.setdefault((machine, disk["device"]), []).append((tier, role, host))
    return places


def machines(run: StoredRun) -> dict[str, list[str]]:
    """Machine id -> its farm hosts, in the order of the manifest. A host without an id is its own machine."""
    found: dict[str, list[str]] = {}
    for host, facts in run.manifest.get("hosts", {}).items():
        found.setdefault(str(facts.get("machine_id") or host), []).append(host)
    return found


def machine_name(run: StoredRun, hosts: Sequence[str]) -> str:
    """What a machine is called: its own host name, or the farm host's where it is the only one there."""
    facts = run.manifest["hosts"][hosts[0]]
    return hosts[0] if len(hosts) == 1 else str(facts.get("hostname") or "shared machine")


def farm_cores(run: StoredRun, hosts: Sequence[str]) -> list[str]:
    """The cores the farm's tiers may use, where these are only some of the machine's; else none.

    The rest belongs to others (the load generators): the whole machine's mean then hides a full core.
    """
    facts = [run.manifest["hosts"][host] for host in hosts]
    used = {core for each in facts for core in each.get("tier_cores") or ()}
    usable = {core for each in facts for core in each.get("usable_cores") or ()}
    return [str(core) for core in sorted(used)] if used and used < usable else []
