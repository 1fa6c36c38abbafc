"""Maps tiers and hosts to their machines and to the disks that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pinchpoint.base.objects import JsonObject
from pinchpoint.store.read import StoredRun


def tiers(run: StoredRun) -> list[tuple[str, str]]:
    """(tier, host) of each host, in the farm's order; hosts that only the inventory has come last."""
    tiers: JsonObject = run.manifest.get("farm", {}).get("tiers", {})
    listed = [(tier, host) for tier, facts in tiers.items() for host in facts.get("hosts", {})]
    inventory = run.manifest.get("hosts", {}).items()
    return listed + [
        (str(facts["tier"]), host)
        for host, facts in inventory
        if facts.get("tier") and (facts["tier"], host) not in listed
    ]


def disks_with_roles(run: StoredRun) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """(machine, device) -> (tier, role, host) of every disk role on the device, which may be shared."""
    places: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    inventory = run.manifest.get("hosts", {})
    for tier, host in tiers(run):
        facts = inventory.get(host, {})
        for role, disk in facts.get("roles", {}).items():
            if disk.get("device"):
                machine = machine_id(inventory, host)
                places.setdefault((machine, disk["device"]), []).append((tier, role, host))
    return places


def machine_id(hosts: Mapping[str, JsonObject], host: str) -> str:
    """The id of a host's machine; a host without an id is its own machine."""
    return str((hosts.get(host) or {}).get("machine_id") or host)


def machines(hosts: Mapping[str, JsonObject]) -> dict[str, list[str]]:
    """Machine id -> its farm hosts, in the order of the manifest's ``hosts``."""
    result: dict[str, list[str]] = {}
    for host in hosts:
        result.setdefault(machine_id(hosts, host), []).append(host)
    return result


def machine_name(hosts: Mapping[str, JsonObject], there: Sequence[str]) -> str:
    """A machine's name: the only farm host on the machine, or the machine's own host name."""
    return there[0] if len(there) == 1 else str(hosts[there[0]].get("hostname") or "shared machine")


def name_of_machine(hosts: Mapping[str, JsonObject], host: str) -> str:
    """The name of a host's machine."""
    return machine_name(hosts, machines(hosts).get(machine_id(hosts, host), [host]))


def farm_cores(run: StoredRun, hosts: Sequence[str]) -> list[str]:
    """The cores that the farm's tiers may use, if these are only some of the machine's cores; else none.

    The other cores belong to other processes (the load generators), so the machine's mean would hide a
    saturated core.
    """
    facts = [run.manifest["hosts"][host] for host in hosts]
    used = {core for each in facts for core in each.get("tier_cores") or ()}
    usable = {core for each in facts for core in each.get("usable_cores") or ()}
    return [str(core) for core in sorted(used)] if used and used < usable else []
