"""Finds the differences between the manifests of two sets of runs, fact by fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pinchpoint.base import units
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.comparison.sides import HostPair, HostPairs, tiers_of
from pinchpoint.plan.embedded import for_each_server

Area = Literal[
    "disks",
    "cpu",
    "memory",
    "network",
    "machine",
    "database",
    "plan",
    "content",
    "generators",
    "collectors",
    "versions",
]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a fact describes.

    Attributes:
        area: the area of the fact; ``--factor`` takes this name.
        what: the name of the fact; its suffix is its unit (``memory_bytes``, ``built.latency_s``).
        place: the host; None if the fact applies to the tier or the whole run.
        tier: the tier; None if the fact applies to the whole run.
        role: the role of the disk; None for other facts.
    """

    area: Area
    what: str
    tier: str | None = None
    place: HostPair | None = None
    role: str | None = None

    @property
    def given(self) -> bool:
        """Whether farm.yaml or the embedded farm states the fact; otherwise a collector measured it."""
        return self.what == "machine" or self.what.startswith(("declared.", "built."))


Facts = dict[Subject, Any]
"""Subject -> value. Facts that were not recorded have no entry."""

_MACHINE = ("machine_id", "kernel", "os", "virtualisation", "clock_source")
_DEVICE = ("size_bytes", "model", "rotational", "scheduler", "write_cache")
_ENDPOINT_TIER = {"sharepoint": "web"}
_BUILT: Mapping[str, tuple[Area, str]] = {
    "cpus": ("cpu", "cores"),
    "memory": ("memory", "memory_bytes"),
    "delays": ("network", "delay"),
    "throttle": ("network", "throttle"),
    "networks": ("network", "interface_bytes_per_s"),
    "settings": ("database", "settings"),
}
GENERATOR = "generator"
NETWORK = "network"
"""How a disk is attached if farm.yaml does not say."""


def facts_of(manifest: JsonObject, side: str, places: HostPairs) -> Facts:
    """All facts of a manifest in which two runs can differ.

    Names without an effect are left out: names of the farm and its file, hosts, loop devices and folders.

    Args:
        manifest: the content of manifest.json.
        side: the side whose host names the manifest uses, ``base`` or ``other``.
        places: the paired hosts of both sides.
    """
    every = (
        *_hosts(manifest, side, places),
        *_declared_limits(manifest, side, places),
        *_built(manifest, side, places),
        *_databases(manifest, side, places),
        *_whole_run(manifest),
    )
    return {subject: _plain(value) for subject, value in every if value is not None}


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested mappings to dotted names: ``{"a": {"b": 1}}`` -> ``a.b``, 1."""
    if not isinstance(value, Mapping):
        yield prefix, value
        return
    for key, item in value.items():
        yield from flat(item, f"{prefix}.{key}" if prefix else str(key))


_SubjectFacts = Iterator[tuple[Subject, Any]]


def _each(area: Area, value: Any, *whose: Any, prefix: str = "") -> _SubjectFacts:
    """The nested facts of one area; ``whose`` is the tier, host and role."""
    yield from ((Subject(area, name, *whose), item) for name, item in flat(value, prefix))


def _hosts(manifest: JsonObject, side: str, places: HostPairs) -> _SubjectFacts:
    """Facts that the collectors read on each host."""
    inventory = object_at(manifest, "hosts")
    for tier, hosts in tiers_of(manifest).items():
        for host in hosts:
            place, facts = places.of(tier, host, side), object_at(inventory, host)
            machine = {
                # A host that was not measured may differ in any fact.
                "inventory": "recorded" if facts else None,
                **_picked(facts, *_MACHINE),
                **_where(manifest, tier, host),
                "shares_with": _neighbours(inventory, host, tier),
            }
            # The numbers of the cores vary by chance; their count does not.
            cores = {"tier_cores": len(facts.get("tier_cores") or ()) or None}
            yield from _each("cpu", {**_picked(facts, "cpu_model", "cores"), **cores}, tier, place)
            yield from _each("memory", _picked(facts, "memory_bytes", "swap_bytes"), tier, place)
            yield from _each("machine", machine, tier, place)
            for role, disk in object_at(facts, "roles").items():
                device = object_at(facts, "disks", disk.get("device"))
                own = {**_picked(device, *_DEVICE), **_picked(disk, "file_system")}
                yield from _each("disks", own, tier, place, role)


def _picked(facts: JsonObject, *names: str) -> dict[str, Any]:
    return {name: facts.get(name) for name in names}


def _where(manifest: JsonObject, tier: str, host: str) -> dict[str, str | None]:
    """Region, zone and machine type: from the machine if recorded, else from farm.yaml."""
    farm = object_at(manifest, "farm")
    tiers = object_at(farm, "tiers")
    declared = object_at(tiers, tier, "hosts", host)
    facts = object_at(manifest, "hosts", host)
    answer = {"region": declared.get("region") or farm.get("region"), "zone": declared.get("zone")}
    return {name: facts.get(name) or answer.get(name) for name in ("region", "zone", "machine_type")}


def _neighbours(inventory: JsonObject, host: str, tier: str) -> str | None:
    """The other tiers on the same machine; ``none`` if the tier has the machine alone."""
    machine = object_at(inventory, host).get("machine_id")
    if not machine:
        return None
    tiers = {str(facts.get("tier")) for facts in inventory.values() if facts.get("machine_id") == machine}
    return ", ".join(sorted(tiers - {tier})) or "none"


def _declared_limits(manifest: JsonObject, side: str, places: HostPairs) -> _SubjectFacts:
    """The limits that farm.yaml declares for machines and disks."""
    for tier, spec in object_at(manifest, "farm", "tiers").items():
        for host, entry in object_at(spec, "hosts").items():
            place = places.of(tier, host, side)
            yield Subject("machine", "machine", tier, place), (entry or {}).get("machine")
            for role, disk in object_at(entry, "disks").items():
                answer = disk or {}
                declared = {
                    **_picked(
                        answer, "profile", *(["attached"] if answer.get("attached") != NETWORK else [])
                    ),
                    **{name: _limit(value) for name, value in flat(object_at(answer, "resolved_limits"))},
                }
                yield from _each("disks", declared, tier, place, role, prefix="declared")


def _built(manifest: JsonObject, side: str, places: HostPairs) -> _SubjectFacts:
    """The settings of an embedded farm, which the verdict does not use but in which two farms can differ."""
    built = object_at(manifest, "farm", "embedded")
    hosts = object_at(built, "hosts")
    for tier, count in hosts.items():
        yield Subject("machine", "built.hosts", tier), count
    for key, disk in for_each_server(object_at(built, "disks"), hosts).items():
        tier, *named, role = key.split(".")
        host = named[0] if named else f"{tier}1"
        if stands_alone(manifest, host, role):
            yield from _each("disks", disk, tier, places.of(tier, host, side), role, prefix="built")
    for section, (area, word) in _BUILT.items():
        for tier, given in object_at(built, section).items():
            own: Area = "generators" if tier == GENERATOR else area
            yield from _each(own, given, None if tier == GENERATOR else tier, prefix=f"built.{word}")


def stands_alone(manifest: JsonObject, host: str, role: str) -> bool:
    """Whether a disk role of an embedded farm has its own file system, as an emulated disk does.

    On a machine that cannot emulate disks, the role is a plain folder, whatever farm.yaml requests.
    """
    disk = object_at(manifest, "hosts", host, "roles", role)
    return disk.get("given") is not None and disk.get("given") == disk.get("mount_point")


def _databases(manifest: JsonObject, side: str, places: HostPairs) -> _SubjectFacts:
    """Database versions and settings: from the host's collector if recorded, else from the scenarios."""
    seen = set()
    for host, facts in object_at(manifest, "hosts").items():
        tier = facts.get("tier")
        if tier and facts.get("database"):
            seen.add(tier)
            for name, value in flat(facts["database"]):
                if name.startswith("settings.") or name in ("server", "version", "standby"):
                    yield Subject("database", name, tier, places.of(tier, host, side)), value
    for endpoints in object_at(manifest, "endpoints").values():
        for endpoint, answer in (endpoints or {}).items():
            tier = _ENDPOINT_TIER.get(endpoint, endpoint)
            if tier in seen or not isinstance(answer, Mapping) or "server" not in answer:
                continue
            yield from _each("database", _picked(answer, "server", "version", "settings"), tier)


def _whole_run(manifest: JsonObject) -> _SubjectFacts:
    """Facts about the whole run."""
    plan = {key: value for key, value in object_at(manifest, "plan").items() if key not in ("name", "seed")}
    yield Subject("plan", "seed"), manifest.get("seed")
    yield from _each("plan", plan)
    content = object_at(manifest, "content")
    yield from _each(
        "content", {key: content.get(key) for key in ("corpus", "documents", "bytes", "sources")}
    )
    workers = manifest.get("generators") or ()
    yield Subject("generators", "workers"), len(workers)
    yield Subject("generators", "cores"), len({core for one in workers for core in one.get("cores") or ()})
    collectors = manifest.get("collectors") or ()
    kinds = sorted({str(one.get("kind")) for one in collectors})
    yield Subject("collectors", "kinds"), ", ".join(kinds) or "none"
    for one in collectors:
        yield Subject("collectors", f"{one.get('kind')}.interval_s"), one.get("interval_s")
    yield from _each("versions", object_at(manifest, "versions"))


def _limit(value: Any) -> Any:
    """Latencies by queue depth as text, so that they can be compared; any other limit unchanged."""
    if not isinstance(value, (list, tuple)):
        return value
    each = ", ".join(f"{units.seconds(latency_s)} at {depth:g}" for depth, latency_s in value)
    return f"{each} outstanding"


def _plain(value: Any) -> Any:
    """Lists and mappings as text, so that they can be compared; any other value unchanged."""
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value)
    return str(value) if isinstance(value, Mapping) else value


AREAS: tuple[str, ...] = get_args(Area)
"""The areas that ``--factor`` accepts."""

SAME_SIZE = 0.01
"""Memory sizes within 1 % are equal, because kernels reserve slightly different amounts (design value)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact in which the sides differ.

    Attributes:
        area: the area of the fact (``AREAS``).
        what: the name of the fact; its suffix is its unit.
        tier: the tier; None if the fact applies to the whole run.
        places: the hosts; empty if the fact applies to the tier or the whole run.
        role: the role of the disk; None for other facts.
        base: the distinct values of the base's runs; empty if not recorded, several if the runs differ from
            each other.
        other: the distinct values of the other side's runs, in the same form as ``base``.
    """

    area: Area
    what: str
    tier: str | None
    places: tuple[HostPair, ...]
    role: str | None
    base: tuple[Any, ...]
    other: tuple[Any, ...]

    @property
    def mixed(self) -> bool:
        """Whether the runs of one side differ from each other."""
        return len(self.base) > 1 or len(self.other) > 1


def differences(
    base: Sequence[JsonObject], other: Sequence[JsonObject], places: HostPairs
) -> tuple[Difference, ...]:
    """All differences between the manifests of the two sides, by area.

    A host that no collector described is one difference, because its facts are unknown.

    Args:
        base: the manifests of the base's runs.
        other: the manifests of the other side's runs.
        places: the paired hosts of both sides.
    """
    ours = [facts_of(manifest, "base", places) for manifest in base]
    theirs = [facts_of(manifest, "other", places) for manifest in other]
    result = [one for place in places.all for one in _whole_host(place, ours, theirs)]
    apart = {place for one in result for place in one.places}
    for subject in dict.fromkeys(subject for facts in (*ours, *theirs) for subject in facts):
        values = _values(ours, subject), _values(theirs, subject)
        reported = subject.place in apart and not subject.given
        if not reported and not _same(subject.area, *values):
            places_of = (subject.place,) if subject.place else ()
            result.append(
                Difference(subject.area, subject.what, subject.tier, places_of, subject.role, *values)
            )
    return tuple(
        sorted(_merged(result), key=lambda one: (AREAS.index(one.area), one.tier or "", one.role or ""))
    )


def _whole_host(place: HostPair, ours: Sequence[Facts], theirs: Sequence[Facts]) -> Iterator[Difference]:
    """One difference for a host that a side lacks or that no collector described, instead of one per fact."""
    if place.base is None or place.other is None:
        sides = (tuple(name for name in (side,) if name) for side in (place.base, place.other))
        yield Difference("machine", "host", place.tier, (place,), None, *sides)
        return
    subject = Subject("machine", "inventory", place.tier, place)
    values = _values(ours, subject), _values(theirs, subject)
    if values != (("recorded",), ("recorded",)):
        yield Difference("machine", "inventory", place.tier, (place,), None, *values)


def _values(side: Sequence[Facts], subject: Subject) -> tuple[Any, ...]:
    """The distinct values of a side's runs. A run without the fact counts as None if others have it."""
    given = [facts.get(subject) for facts in side]
    values = tuple(dict.fromkeys(given))
    return () if values == (None,) else values


def _same(area: Area, base: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    if area == "memory":
        sizes = [value for value in (*base, *other) if isinstance(value, int | float)]
        if base and other and len(sizes) == len(base) + len(other):
            return max(sizes) - min(sizes) <= SAME_SIZE * max(sizes)
    return len(base) == len(other) == 1 and bool(base == other)


def _merged(value: Sequence[Difference]) -> list[Difference]:
    """Merge the same difference on several hosts into one: all hosts of a machine describe the same CPU.

    The merged difference keeps its tier only if all the hosts are of that tier.
    """
    groups = by_key(
        (
            (
                one.area,
                one.what,
                one.role,
                one.base,
                one.other,
                one.tier if one.role or not one.places else "",
            ),
            one,
        )
        for one in value
    )
    merged = []
    for group in groups.values():
        first = group[0]
        tiers = {one.tier for one in group}
        places = tuple(place for one in group for place in one.places)
        tier = first.tier if len(tiers) == 1 else None
        merged.append(Difference(first.area, first.what, tier, places, first.role, first.base, first.other))
    return merged
