"""The catalogue of disk and machine types: their limits, each with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pinchpoint_collectors.common.names import allowed


class UnknownProfile(KeyError):  # noqa: N818 -- named for what it says
    """The catalogue has no entry with this name."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class BurstAllowance:
    """A burst allowance: higher limits for some time.

    Attributes:
        iops: I/Os per second.
        bytes_per_s: bytes per second.
        credit_s: seconds at the burst rate that full credits last; None if bursting is bought and needs no
            credits.
    """

    iops: float
    bytes_per_s: float
    credit_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The limits of a disk, or of a whole machine's storage.

    Attributes:
        name: the name in farm.yaml.
        kind: ``disk`` or ``machine``.
        iops: I/Os per second without the host's cache; None if the source names no limit.
        bytes_per_s: bytes per second; None if the source names no limit.
        io_unit_bytes: an I/O counts once per unit of this size that it begins; None if every I/O counts once,
            or if ``bytes_per_s`` is always the lower limit.
        burst: the burst allowance; None if there is none.
        cached_iops: a machine's I/Os per second through the host's cache; None if the source names no cap.
        cached_bytes_per_s: bytes per second through the host's cache; None if the source names no limit.
        source: where the figures come from: title, date of the text, address.
        date: the day on which the figures were copied (ISO).
    """

    name: str
    kind: Literal["disk", "machine"]
    iops: float | None = None
    bytes_per_s: float | None = None
    io_unit_bytes: int | None = None
    burst: BurstAllowance | None = None
    cached_iops: float | None = None
    cached_bytes_per_s: float | None = None
    source: str
    date: str


def profile(name: str) -> Profile:
    """Return the entry with a name. Raises UnknownProfile, which lists all names and the nearest one."""
    entries = catalogue()
    if name not in entries:
        raise UnknownProfile(f"{name!r} is not in the catalogue; {allowed(name, entries)}")
    return entries[name]


def series(entry: Profile) -> tuple[Profile, ...]:
    """Return the entries of the same product series in the order of the catalogue, including this entry.

    Their names differ in the size alone: ``azure/p10`` and ``azure/p20``, ``azure/d2s_v5`` and
    ``azure/d4s_v5``, ``aws/m5.large`` and ``aws/m5.xlarge``, ``aws/gp3-baseline`` and ``aws/gp3-max``.
    """
    same = _series(entry.name)
    return tuple(one for one in catalogue().values() if one.kind == entry.kind and _series(one.name) == same)


def _series(name: str) -> tuple[str, str]:
    """Return the vendor and the name without its size.

    The size is the word after a point or dash, or else the first number.
    """
    vendor, _, rest = name.partition("/")
    for mark in (".", "-"):
        if mark in rest:
            return vendor, rest.partition(mark)[0]
    return vendor, re.sub(r"\d+", "#", rest, count=1)


@cache
def catalogue() -> Mapping[str, Profile]:
    """Return name -> entry of the catalogue."""
    from ruamel.yaml import YAML  # noqa: PLC0415 -- most verdicts need no entry, and it takes a fifth of a second

    text = files("pinchpoint_infra").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    content = YAML(typ="safe").load(text)
    return {name: _profile(name, entry, content["sources"]) for name, entry in content["profiles"].items()}


def _profile(name: str, entry: Mapping[str, Any], sources: Mapping[str, Mapping[str, Any]]) -> Profile:
    burst, source = entry.get("burst"), sources[entry["source"]]
    return Profile(
        **{
            **entry,
            "name": name,
            "burst": BurstAllowance(**burst) if burst else None,
            "source": _cited(source),
            "date": str(source["taken"]),
        }
    )


def _cited(source: Mapping[str, Any]) -> str:
    edition = f" ({source['edition']})" if "edition" in source else ""
    return f"{source['title']}{edition}, {source['url']}"
