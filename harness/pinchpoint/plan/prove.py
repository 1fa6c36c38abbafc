"""Defines the record of ``prove`` in farm.yaml: how ``run --prove`` may make a resource slower."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, field_validator

from pinchpoint.plan.document import YamlFile
from pinchpoint.plan.problems import BadValue, Problem, unknown_at
from pinchpoint.plan.record import Ratio, Seconds, StrictRecord
from pinchpoint.plan.units import DURATION

CPU, ENDPOINT = "cpu", "endpoint"
"""Parts of a tier that ``prove`` may name besides disk roles: its CPU, and the network path to the tier."""


class Allowed(StrictRecord):
    """How ``run --prove`` may make a resource slower.

    Attributes:
        slower: the command that makes it slower; ``/bin/sh -c`` runs it on this machine.
        restore: the command that undoes it. It must do no harm if nothing was changed.
        by_ratio: how much slower it becomes, such as ``25%``.
        timeout_s: the longest time of a command.
    """

    hides_texts = True

    slower: str = Field(min_length=1, repr=False, description="a command that makes it slower")
    restore: str = Field(min_length=1, repr=False, description="the command that puts it back")
    by_ratio: Ratio = Field(alias="by", ge=0.05, le=0.5, description="how much slower, such as 20%")
    timeout_s: Seconds = Field(default=30.0, alias="timeout", gt=0, le=600, description=DURATION)

    @field_validator("slower", "restore")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip() or "\0" in value:
            raise BadValue("an empty command", "needed: what a shell can run")
        return value


def check_prove(farm: YamlFile) -> Iterator[Problem]:
    """Problems of names in ``prove`` that are not resources of this farm, or of ``prove`` if embedded."""
    named = farm.mapping("prove")
    if not named:
        return
    if "embedded" in farm.data:
        yield Problem(
            ("prove",),
            "commands for an embedded farm",
            "remove it: Pinchpoint makes what it has built slower by itself",
        )
        return
    allowed = sorted(_names(farm))
    for name in named:
        if name not in allowed:
            yield unknown_at(("prove", name), "resource of this farm:", name, allowed)


def _names(farm: YamlFile) -> set[str]:
    result = set()
    for tier in farm.mapping("tiers"):
        result |= {f"{tier}.{CPU}", f"{tier}.{ENDPOINT}"}
        for host in farm.mapping("tiers", tier, "hosts"):
            result |= {f"{tier}.{role}" for role in farm.mapping("tiers", tier, "hosts", host, "disks")}
    return result
