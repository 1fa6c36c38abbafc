"""Defines the record of ``prices`` in farm.yaml: the user's monthly prices of disks and machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, field_validator

from pinchpoint.plan.compare import disks_of
from pinchpoint.plan.document import YamlFile
from pinchpoint.plan.embedded import built_servers
from pinchpoint.plan.problems import BadValue, Problem, quoted, unknown, unknown_at
from pinchpoint.plan.record import StrictRecord
from pinchpoint_infra.catalogue import catalogue

_CURRENCY = re.compile(r"[A-Za-z€$£¥]{1,8}")
_OWN_DISK = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\.[A-Za-z0-9_][A-Za-z0-9_-]*")

Price = Annotated[float, Field(ge=0, description="a number: per month")]


class Prices(StrictRecord):
    """Prices per month.

    Attributes:
        currency: its name, such as ``EUR``.
        disks: price by disk type of the catalogue (``azure/p30``), or by disk of this farm (``sql.log``).
        machines: price by machine type of the catalogue, or by host of this farm.
    """

    currency: str = Field(description="such as EUR")
    disks: Mapping[str, Price] = Field(default_factory=dict)
    machines: Mapping[str, Price] = Field(default_factory=dict)

    @field_validator("currency")
    @classmethod
    def _a_word(cls, value: str) -> str:
        if not _CURRENCY.fullmatch(value):
            raise BadValue(f"the currency {quoted(value)}", "allowed: a word such as EUR or USD")
        return value

    @field_validator("disks")
    @classmethod
    def _known_disks(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        for name in value:
            if not _OWN_DISK.fullmatch(name):
                _in_catalogue(name, "disk")
        return value

    @field_validator("machines")
    @classmethod
    def _known_machines(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        for name in value:
            if "/" in name:
                _in_catalogue(name, "machine")
        return value


def _in_catalogue(name: str, kind: str) -> None:
    names = [entry.name for entry in catalogue().values() if entry.kind == kind]
    if name not in names:
        raise unknown(kind, name, names)


def check_prices(farm: YamlFile) -> Iterator[Problem]:
    """Problems of prices whose disk or host the farm lacks, because such a price would never be used."""
    disks = disks_of(farm.data)
    hosts = {host for tier in disks for host in farm.mapping("tiers", tier, "hosts")}
    built, count = farm.at("embedded", "tiers"), farm.at("embedded", "hosts")
    named = [tier for tier in disks if isinstance(built, list) and tier in built]
    hosts |= {server.host for tier in named for server in built_servers(count, tier)}
    own = {"disks": {f"{tier}.{role}" for tier in disks for role in disks[tier]}, "machines": hosts}
    for field, names in own.items():
        for name in farm.mapping("prices", field):
            of_ours = _OWN_DISK.fullmatch(name) if field == "disks" else "/" not in name
            if of_ours and name not in names:
                what = f"{field.removesuffix('s')} of this farm:"
                yield unknown_at(("prices", field, name), what, name, names)
