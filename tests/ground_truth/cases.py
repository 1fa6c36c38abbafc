"""Read the labelled cases with their expected answers, and select those that a command names."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pinchpoint.analysis.verdict import Kind, Outcome
from pinchpoint.base.errors import InputError
from pinchpoint.plan import Farm, Plan, load

CASES = Path(__file__).with_name("cases")
LISTS = Path(__file__).parent
"""Folder of the lists of names: ``@ci`` means the names in ``ci.txt``."""

Need = Literal["root", "disks", "cpus", "memory", "network", "share", "cores"]

KNOB_NEEDS: Mapping[str, Need] = {
    "disks": "disks",
    "cpus": "cpus",
    "memory": "memory",
    "networks": "network",
    "share_cores": "cores",
}
"""Key of ``embedded:`` -> what the machine must offer for it; all but ``cores`` need root as well."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One of several alternating causes.

    Attributes:
        resource: ``cpu``, ``disk`` or ``lock``, as in the verdict's candidates. tier, role: tier and role of
            the resource.
        share: ratio of the time in which the resource is at its limit.
    """

    resource: str
    tier: str
    role: str | None
    share: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of a verdict that must be right; the rest may differ.

    Attributes:
        outcome: the verdict's outcome. kind, tier, role: those of its bottleneck; None if there is no
            bottleneck.
        turns: the alternating causes of a verdict without a bottleneck.
    """

    outcome: Outcome
    kind: Kind | None = None
    tier: str | None = None
    role: str | None = None
    turns: tuple[Turn, ...] = ()

    @property
    def resource(self) -> tuple[str | None, ...]:
        """The answer without the kind of disk limit."""
        kind = "disk" if self.kind and self.kind.startswith("disk") else self.kind
        return (self.outcome, kind, self.tier, self.role)

    @property
    def label(self) -> str:
        """The answer's row or column in the confusion table."""
        return self.kind or self.outcome

    def __str__(self) -> str:
        if self.kind is None:
            turns = [f"{'.'.join(filter(None, (one.tier, one.role)))} {one.resource}" for one in self.turns]
            return f"{self.outcome}: {' and '.join(turns)} in turn" if turns else self.outcome
        place = ".".join(part for part in (self.tier, self.role) if part)
        invalid = "invalid: " if self.outcome == "invalid" else ""
        return f"{invalid}{self.kind} {place}".rstrip()


class ExpectedTurn(BaseModel):
    """``{resource: cpu, tier: search, share: 0.6}``: see ``Turn``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    resource: Literal["cpu", "disk"]
    tier: str
    role: str | None = None
    share: float = Field(gt=0, le=1)


class Expected(BaseModel):
    """The content of one expected.yaml.

    Attributes:
        outcome, kind, tier, role: the only right answer.
        turns: alternating causes of an inconclusive run, each with its share of the time.
        why: reason why the answer is true: how the farm and the load were made.
        needs: what the machine must offer.
        neighbours: number of other programs on every core of the machine during the run.
        unsolved: reason why the verdict is still wrong. The case runs and counts as a miss.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    outcome: Outcome
    kind: Kind | None = None
    tier: str | None = None
    role: str | None = None
    turns: tuple[ExpectedTurn, ...] = ()
    why: str = Field(min_length=1)
    needs: tuple[Need, ...] = ()
    neighbours: int = Field(default=0, ge=0, le=16)
    unsolved: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        named = self.kind is not None
        if named != (self.outcome in ("bottleneck", "invalid")):
            raise ValueError(f"a kind belongs to bottleneck and invalid, and only to them: {self.outcome}")
        if (self.tier is not None) != (self.outcome == "bottleneck"):
            raise ValueError(f"a tier belongs to bottleneck, and only to it: {self.outcome}")
        if (self.role is not None) != bool(self.kind and self.kind.startswith("disk_")):
            raise ValueError(f"a role belongs to the kinds of disks, and only to them: {self.kind}")
        if self.turns and (self.outcome != "inconclusive" or len(self.turns) < 2):
            raise ValueError(f"turns are two causes or more of an inconclusive run: {self.outcome}")
        return self

    @property
    def answer(self) -> Answer:
        """The right answer."""
        turns = tuple(Turn(**one.model_dump()) for one in self.turns)
        return Answer(self.outcome, self.kind, self.tier, self.role, turns)


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case.

    Attributes:
        name: name of the case's folder.
        folder: path of its three files. farm, plan: the parsed farm.yaml and plan.yaml.
        expected: the label.
    """

    name: str
    folder: Path
    farm: Farm
    plan: Plan
    expected: Expected

    @property
    def farm_key(self) -> str:
        """A key that is equal for cases with equal ``embedded:`` sections, which share one farm."""
        assert self.farm.embedded is not None  # read_case has checked it
        return json.dumps(self.farm.embedded.to_json(), sort_keys=True)

    @property
    def limit_declared(self) -> bool:
        """True if farm.yaml declares the limit of the expected bottleneck."""
        expected = self.expected
        tier = self.farm.tiers.get(expected.tier or "")
        if expected.kind != "disk_cap" or tier is None:
            return False
        disks = [host.disks.get(expected.role or "") for host in tier.hosts.values()]
        return any(disk is not None and disk.resolved_limits is not None for disk in disks)

    @property
    def load_s(self) -> float:
        """The maximum time of the plan's load, in seconds."""
        phases = self.plan.phases
        return phases.warm_up.at_most_s + phases.measure.at_most_s + phases.cool_down_s


def read_case(folder: Path) -> Case:
    """Read one case. Raises InputError."""
    farm, plan = load(folder / "farm.yaml", folder / "plan.yaml")
    if farm.embedded is None:
        raise InputError(f"{folder / 'farm.yaml'}: a labelled farm is an embedded one; it has no embedded:")
    path = folder / "expected.yaml"
    try:
        expected = Expected.model_validate(YAML(typ="safe").load(path))
    except (OSError, YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except ValidationError as error:
        problems = (f"{path}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(*problems) from error
    return Case(folder.name, folder, farm, plan, expected)


def select(patterns: Sequence[str], cases: Path = CASES, lists: Path = LISTS) -> list[Case]:
    """Return the cases that names, globs and ``@lists`` select, sorted by name; all without a pattern.

    Raises:
        InputError: a pattern selects no case, or a case cannot be read.
    """
    names = sorted(folder.name for folder in cases.iterdir() if folder.is_dir())
    wanted = list(_resolved(patterns, lists))
    meant = {pattern: [name for name in names if fnmatchcase(name, pattern)] for pattern in wanted}
    problems = [
        f"CASES: {pattern}: is no case; {_nearest(pattern, names)}"
        for pattern in wanted
        if not meant[pattern]
    ]
    if problems:
        raise InputError(*problems)
    chosen = {name for found in meant.values() for name in found} if wanted else set(names)
    return [read_case(cases / name) for name in names if name in chosen]


def _resolved(patterns: Iterable[str], lists: Path) -> Iterable[str]:
    for pattern in patterns:
        if not pattern.startswith("@"):
            yield pattern
            continue
        path = lists / f"{pattern[1:]}.txt"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InputError(f"CASES: {pattern}: {path} cannot be read: {error.strerror}") from error
        yield from (line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _nearest(pattern: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(pattern, names, n=1)
    return f"nearest: {close[0]}" if close else f"there are: {', '.join(names)}"


FARM_START_S = 8.0
RUN_OVERHEAD_S = 8.0
"""Time to make data and write reports; both figures only balance the shards."""


def farms(cases: Sequence[Case], shard: int = 1, shards: int = 1) -> list[list[Case]]:
    """Return the cases of one shard, grouped by farm, the farms in the order of their first case.

    Each farm goes to one shard: the longest farm first, to the shard with the least work so far.

    Args:
        cases: the cases of all shards.
        shard: number of the shard, from 1 to ``shards``.
        shards: number of shards.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.farm_key, []).append(case)
    lengths = {
        key: FARM_START_S + sum(case.load_s + RUN_OVERHEAD_S for case in group)
        for key, group in groups.items()
    }
    busy = [0.0] * shards
    mine = set()
    for key in sorted(groups, key=lambda key: (-lengths[key], groups[key][0].name)):
        least = busy.index(min(busy))
        busy[least] += lengths[key]
        if least == shard - 1:
            mine.add(key)
    return [group for key, group in groups.items() if key in mine]


def needs_of(embedded: Mapping[str, Any]) -> set[str]:
    """Return what the keys of an ``embedded:`` section need of the machine."""
    used: set[str] = {need for knob, need in KNOB_NEEDS.items() if embedded.get(knob)}
    if "files" in (embedded.get("delays") or {}):
        used.add("share")
    return used | {"root"} if used - {"cores"} else used
