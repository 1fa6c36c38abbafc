"""Parses ``--set NAME=VALUE``; each mistake becomes one sentence.

| name | value |
| --- | --- |
| `TIER.ROLE` | a disk type of the catalogue, or the directory of a kept probe of a disk |
| `TIER.ROLE.iops`, `.bytes` | limit of the disk in I/Os or bytes per second: `5000`, `200MB/s` |
| `TIER.ROLE.latency` | time of an I/O without a queue: `2ms` |
| `TIER.ROLE.stripes` | number of striped disks of this type |
| `TIER.cpu` | number of cores |
| `TIER.machine` | a machine type of the catalogue |
| `TIER.network` | capacity of a limiting interface: `125MB/s` |
| `TIER.processes` | processes that share the work of a limiting thread: `2` |
| `TIER.lock` | time that an operation waits for limiting locks: `0ms` |
| `NAME.delay` | time that a request waits before a limiting tier or source: `5ms` |
| `SCENARIO.users`, `.rate`, `.think` | load of the scenario: `64`, `400/s`, `1s` |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pinchpoint.analysis.model.probed import ProbedDisk
from pinchpoint.analysis.resources.disk.types import catalogue
from pinchpoint.base.errors import InputError
from pinchpoint.plan.problems import BadValue, listed, quoted
from pinchpoint.plan.units import byte_rate, duration, rate
from pinchpoint_collectors.common.names import nearest_name

What = Literal[
    "profile",
    "probe",
    "iops",
    "bytes_per_s",
    "latency_s",
    "stripes",
    "cores",
    "machine",
    "network",
    "processes",
    "lock",
    "delay",
    "users",
    "rate_per_s",
    "think_s",
]

MOST_CORES, MOST_STRIPES, MOST_USERS = 4096, 64, 1_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """One change of the farm or of its load.

    Attributes:
        name: the name without its value, as given: ``sql.log.latency``.
        target: the disk, tier or scenario to change: ``sql.log``, ``search``.
        what: the property to change.
        value: a figure in base units; a catalogue name for ``profile`` and ``machine``; the probed disk for
            ``probe``.
        text: the value as it was given.
    """

    name: str
    target: str
    what: What
    value: float | str | ProbedDisk
    text: str

    @property
    def number(self) -> float:
        """The value of a numeric setting."""
        assert isinstance(self.value, float | int)  # noqa: S101 -- all but profile, machine and probe are
        return self.value


@dataclass(frozen=True, slots=True)
class Known:
    """The settings that a run allows.

    Attributes:
        disks: names of the disks, as ``tier.role``.
        tiers: tiers with CPUs.
        machines: tiers whose machine type can be set.
        scenarios: by name, whether the load is a rate (else a number of users).
        limits: names of the settings of limits other than disk and CPU.
    """

    disks: tuple[str, ...]
    tiers: tuple[str, ...]
    machines: tuple[str, ...]
    scenarios: Mapping[str, bool]
    limits: tuple[str, ...] = ()


def read_settings(given: Sequence[str], known: Known, probe_at: Probes | None = None) -> tuple[Setting, ...]:
    """The settings of a command. Raises InputError with a sentence for every mistake.

    Args:
        given: the settings as typed.
        known: the allowed settings.
        probe_at: reads a kept probe; None: no probed disk can be set.
    """
    names = _names(known)
    problems: list[str] = []
    settings: list[Setting] = []
    for text in given:
        try:
            settings.append(_setting(text, names, probe_at))
        except (BadValue, InputError) as error:
            problems.append(f"--set {text}: {error}")
    problems += _together(settings)
    if problems:
        raise InputError(*problems)
    return tuple(settings)


LIMITS: Mapping[str, What] = {
    "network": "network",
    "processes": "processes",
    "lock": "lock",
    "delay": "delay",
}
"""Last part of the name of a setting of a limiting resource -> property to change."""
Place = tuple[str, What]
Probes = Callable[[Path], ProbedDisk]
"""Function that reads a kept probe from its directory. Raises InputError."""
_SAYS: Mapping[What, Sequence[What]] = {
    "profile": ("iops", "bytes_per_s"),
    "probe": ("iops", "bytes_per_s", "latency_s", "stripes"),
}
"""Setting of a disk -> the properties that it already sets."""


def _names(known: Known) -> dict[str, Place]:
    """Name of a setting -> (target, property)."""
    names: dict[str, Place] = {}
    for disk in known.disks:
        names |= {
            disk: (disk, "profile"),
            f"{disk}.iops": (disk, "iops"),
            f"{disk}.bytes": (disk, "bytes_per_s"),
        }
        names |= {f"{disk}.latency": (disk, "latency_s"), f"{disk}.stripes": (disk, "stripes")}
    names |= {f"{tier}.cpu": (tier, "cores") for tier in known.tiers}
    names |= {f"{tier}.machine": (tier, "machine") for tier in known.machines}
    for name in known.limits:
        target, _, what = name.rpartition(".")
        names[name] = (target, LIMITS[what])
    for scenario, is_rate in known.scenarios.items():
        if is_rate:
            names[f"{scenario}.rate"] = (scenario, "rate_per_s")
        else:
            names |= {f"{scenario}.users": (scenario, "users"), f"{scenario}.think": (scenario, "think_s")}
    return names


def _setting(text: str, names: Mapping[str, Place], probe_at: Probes | None) -> Setting:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise BadValue(
            "is no setting", "allowed: NAME=VALUE, such as sql.log=azure/p30 or sql.log.latency=2ms"
        )
    if name not in names:
        raise BadValue(
            f"this run does not have {quoted(name)}", f"allowed: {listed(names)}", nearest_name(name, names)
        )
    target, what = names[name]
    if what == "profile" and probe_at and value not in catalogue() and Path(value).exists():
        return Setting(name, target, "probe", probe_at(Path(value)), value)
    return Setting(name, target, what, VALUES[what](value), value)


def _together(settings: Sequence[Setting]) -> Iterator[str]:
    """Sentences about settings that contradict each other."""
    by_name: dict[str, str] = {}
    for one in settings:
        if one.name in by_name:
            both = f"{by_name[one.name]} and {one.text}"
            yield f"--set {one.name}: given twice, as {both}; allowed: one of them"
        by_name.setdefault(one.name, one.text)
    answer = {one.target: one.what for one in settings if one.what in _SAYS}
    for one in settings:
        if one.what in _SAYS.get(answer.get(one.target, one.what), ()):
            yield (
                f"--set {one.name}: {one.target} has a {answer[one.target]} as well, which sets the same; "
                "allowed: one of them"
            )


def _of_catalogue(kind: str) -> Callable[[str], str]:
    def known(text: str) -> str:
        names = [name for name, entry in catalogue().items() if entry.kind == kind]
        if text not in names:
            raise BadValue(
                f"the catalogue has no {kind} {quoted(text)}"
                + (", and there is no probe in that directory" if kind == "disk" else ""),
                f"allowed: {listed(names)}"
                + ("; or the directory of a kept probe" if kind == "disk" else ""),
                nearest_name(text, names),
            )
        return text

    return known


def _count(most: int, what: str, *, whole: bool = True) -> Callable[[str], float]:
    allowed = f"allowed: {'a whole number' if whole else 'a number'} of {what}, up to {most:,}"

    def count(text: str) -> float:
        try:
            number = float(text)
        except ValueError as error:
            raise BadValue(f"{quoted(text)} is no number", allowed) from error
        if not math.isfinite(number) or not 0 < number <= most or (whole and number != int(number)):
            raise BadValue(f"{quoted(text)} cannot be", allowed)
        return number

    return count


def _above_zero(read: Callable[[object], float], *, zero: bool = False) -> Callable[[str], float]:
    def figure(text: str) -> float:
        number = read(text)
        if number <= 0 and not (zero and number == 0):
            raise BadValue(f"{quoted(text)} cannot be", "allowed: more than 0")
        return number

    return figure


VALUES: Mapping[What, Callable[[str], float | str]] = {
    "profile": _of_catalogue("disk"),
    "iops": _count(10_000_000, "I/Os per second", whole=False),
    "bytes_per_s": _above_zero(byte_rate),
    "latency_s": _above_zero(duration, zero=True),
    "stripes": _count(MOST_STRIPES, "disks"),
    "cores": _count(MOST_CORES, "cores", whole=False),
    "machine": _of_catalogue("machine"),
    "network": _above_zero(byte_rate),
    "processes": _count(MOST_CORES, "processes"),
    "lock": _above_zero(duration, zero=True),
    "delay": _above_zero(duration, zero=True),
    "users": _count(MOST_USERS, "users"),
    "rate_per_s": _above_zero(rate),
    "think_s": _above_zero(duration, zero=True),
}
"""Setting -> parser of its value."""
