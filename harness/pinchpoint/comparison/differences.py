"""Differences between the runs' manifests, fact by fact: a pure function of two sets of manifests."""

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
    """The subject of a fact.

    Attributes:
        area: which kind of thing; what ``--factor`` names.
        what: the fact's name; its ending is its unit (``memory_bytes``, ``built.latency_s``).
        place: the host it holds for, None if it holds for the tier or the whole run.
        tier: the tier, None if it holds for the whole run.
        role: the disk's role.
    """

    area: Area
    what: str
    tier: str | None = None
    place: HostPair | None = None
    role: str | None = None

    @property
    def given(self) -> bool:
        """Whether a file says it; else a collector found it."""
        return self.what == "machine" or self.what.startswith(("declared.", "built."))


Facts = dict[Subject, Any]
"""Subject -> value; what is not recorded is not in it."""

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
"""How a disk is attached where farm.yaml does not say."""


def facts_of(manifest: JsonObject, side: str, places: HostPairs) -> Facts:
    """Everything of a manifest that can make two runs differ.

    Names that differ for no reason of their own are left out: of the farm and its file, of hosts, of loop
    devices and folders.

    Args:
        manifest: manifest.json's content.
        side: ``base`` or ``other``: whose host names it uses.
        places: the hosts of both sides, paired.
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
    """Nested mappings as dotted names: ``{"a": {"b": 1}}`` -> ``a.b``, 1."""
    if not isinstance(value, Mapping):
        yield prefix, value
        return
    for key, item in value.items():
        yield from flat(item, f"{prefix}.{key}" if prefix else str(key))


_SubjectFacts = Iterator[tuple[Subject, Any]]


def _each(area: Area, value: Any, *whose: Any, prefix: str = "") -> _SubjectFacts:
    """Nested facts of one area, and of ``whose``: tier, host, role."""
    yield from ((Subject(area, name, *whose), item) for name, item in flat(value, prefix))


def _hosts(manifest: JsonObject, side: str, places: HostPairs) -> _SubjectFacts:
    """Facts that the collectors read on each host."""
    inventory = object_at(manifest, "hosts")
    for tier, hosts in tiers_of(manifest).items():
        for host in hosts:
            place, facts = places.of(tier, host, side), object_at(inventory, host)
            machine = {
                # A host that was not measured may differ in anything.
                "inventory": "recorded" if facts else None,
                **_picked(facts, *_MACHINE),
                **_where(manifest, tier, host),
                "shares_with": _neighbours(inventory, host, tier),
            }
            # Which cores is chance; how many is not.
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
    """Region, zone and machine type: as the machine says, else as farm.yaml does."""
    farm = object_at(manifest, "farm")
    tiers = object_at(farm, "tiers")
    declared = object_at(tiers, tier, "hosts", host)
    facts = object_at(manifest, "hosts", host)
    answer = {"region": declared.get("region") or farm.get("region"), "zone": declared.get("zone")}
    return {name: facts.get(name) or answer.get(name) for name in ("region", "zone", "machine_type")}


def _neighbours(inventory: JsonObject, host: str, tier: str) -> str | None:
    """The other tiers on the same machine; ``none`` where it has it for itself."""
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
    """The settings of an embedded farm; the verdict does not read them, but two farms differ in them."""
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
    """Whether a disk role of an embedded farm has a file system of its own, as an emulated disk does.

    Where the machine lacks the means for one, the role is a plain folder, whatever farm.yaml asks for.
    """
    disk = object_at(manifest, "hosts", host, "roles", role)
    return disk.get("given") is not None and disk.get("given") == disk.get("mount_point")


def _databases(manifest: JsonObject, side: str, places: HostPairs) -> _SubjectFacts:
    """Versions and settings, as the collector on the host saw them, else as the scenarios did."""
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
    """A disk's latencies by what is outstanding compare by their text; any other limit as it is."""
    if not isinstance(value, (list, tuple)):
        return value
    each = ", ".join(f"{units.seconds(latency_s)} at {depth:g}" for depth, latency_s in value)
    return f"{each} outstanding"


def _plain(value: Any) -> Any:
    """Lists and tables compare by their text; everything else as it is."""
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value)
    return str(value) if isinstance(value, Mapping) else value


AREAS: tuple[str, ...] = get_args(Area)
"""The areas that ``--factor`` may name."""

SAME_SIZE = 0.01
"""Sizes of memory within 1 % are the same: a kernel keeps a little more or less of it for itself (design)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the sides differ.

    Attributes:
        area: what kind of thing; see ``AREAS``.
        what: the fact's name; its ending is its unit.
        tier: the tier, None if it holds for the whole run.
        places: the hosts it holds for; empty if it holds for the tier or the whole run.
        role: the disk's role.
        base: the base's values, each once; empty: not recorded. More than one: its runs differ themselves.
        other: likewise.
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
        """Whether the runs of one side differ among themselves."""
        return len(self.base) > 1 or len(self.other) > 1


def differences(
    base: Sequence[JsonObject], other: Sequence[JsonObject], places: HostPairs
) -> tuple[Difference, ...]:
    """Everything in which the manifests of the two sides differ, area by area.

    A host that no collector described is a difference of its own: what may differ there is not known.

    Args:
        base: the manifests of the base's runs.
        other: of the other side's.
        places: the hosts of both, paired.
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
    """A host that one side lacks, or that no collector described on a side: said once, not fact by fact."""
    if place.base is None or place.other is None:
        sides = (tuple(name for name in (side,) if name) for side in (place.base, place.other))
        yield Difference("machine", "host", place.tier, (place,), None, *sides)
        return
    subject = Subject("machine", "inventory", place.tier, place)
    values = _values(ours, subject), _values(theirs, subject)
    if values != (("recorded",), ("recorded",)):
        yield Difference("machine", "inventory", place.tier, (place,), None, *values)


def _values(side: Sequence[Facts], subject: Subject) -> tuple[Any, ...]:
    """The distinct values of a side's runs; a run that did not record it counts as None beside others."""
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
    """The same difference on several hosts is one: hosts of one machine all describe its CPU.

    It then is no longer one tier's, unless all of them are of that tier.
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
