"""Defines the record of ``compare`` in plan.yaml: the figures that comparisons judge.

The figures are declared before a run, because a figure chosen afterwards could be chosen for its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from pinchpoint.base.figures import FIGURES, MOST_METRICS, OF_SCENARIOS, part_of, split
from pinchpoint.base.objects import JsonObject
from pinchpoint.plan.document import YamlFile
from pinchpoint.plan.embedded import EMBEDDED_ROLES
from pinchpoint.plan.problems import BadValue, Path, Problem, listed, quoted, unknown
from pinchpoint.plan.record import Ratio, StrictRecord
from pinchpoint_collectors.common.names import nearest_name

_METRICS: Path = ("compare", "metrics")
SCHEDULED = ("open", "burst", "soak")
"""Load models whose operations always have an intended start and therefore a response time."""
NO_WORK = ("compare", "production")
"""Fields of a plan that create no load: the figures to compare, and the figures of production."""
EXAMPLE = "scenario.orders.throughput_per_s"


class Compare(StrictRecord):
    """The figures that comparisons judge.

    Attributes:
        metrics: the figures, six at most, such as ``scenario.crawl.throughput_per_s``.
        margin_ratio: differences within this share count as the same. Default: ``5%``.
        bound: with fewer than five runs a side, only changes above this factor are reported. Default: 1.5.
    """

    metrics: tuple[str, ...] = Field(default=(), strict=False, description=f"names such as {EXAMPLE}")
    margin_ratio: Ratio | None = Field(default=None, alias="margin", gt=0, description="such as 5%")
    bound: float | None = Field(default=None, ge=1, description="a number such as 1.5")

    @field_validator("metrics")
    @classmethod
    def _few(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(metrics)) > MOST_METRICS:
            raise BadValue(
                f"{len(set(metrics))} figures",
                f"allowed: {MOST_METRICS} at most, as each further one makes an answer by chance more likely",
            )
        return metrics


def check_compare(plan: YamlFile) -> Iterator[Problem]:
    """Problems of names in ``compare.metrics``: unknown figures or scenarios, and repeated names."""
    seen: set[str] = set()
    for place, name in _names(plan):
        if name in seen:
            yield Problem(place, f"{quoted(name)} is there twice", "remove one of them")
            continue
        seen.add(name)
        why = unfit(name, plan.mapping("scenarios"))
        if why is not None:
            yield Problem(place, why.found, why.allowed, why.nearest)


def check_compared(farm: YamlFile, plan: YamlFile) -> Iterator[Problem]:
    """Problems of names in ``compare.metrics`` whose tier or disk role the farm lacks."""
    tiers = disks_of(farm.data)
    for place, name in _names(plan):
        if unfit(name, plan.mapping("scenarios")) is None:
            why = unfit_of_farm(name, tiers)
            if why is not None:
                yield Problem(place, f"{farm.file} has no {why.found}", why.allowed, why.nearest)


def unfit(name: str, scenarios: JsonObject) -> BadValue | None:
    """Why a run of these scenarios cannot have the figure ``name``; None if it can.

    Args:
        name: name of a figure, such as ``scenario.orders.throughput_per_s``.
        scenarios: the plan's scenarios by name, as in plan.yaml or in the JSON of the plan's record.
    """
    about, thing, figure = split(name)
    if about not in FIGURES:
        return BadValue(
            f"{quoted(name)} is no figure",
            f"allowed: ABOUT.THING.FIGURE such as {EXAMPLE}, ABOUT being one of {listed(FIGURES)}",
            nearest_name(about.partition(".")[0], FIGURES),
        )
    if figure not in FIGURES[about]:
        return unknown(f"{about} figure", figure, FIGURES[about])
    if about not in OF_SCENARIOS:
        return None
    if thing[0] not in scenarios:
        return unknown("scenario", thing[0], scenarios)
    load = _load(scenarios[thing[0]])
    if (about == "burst" or figure.startswith("burst_")) and load.get("model") not in {"burst", None}:
        return BadValue(f"a burst of {thing[0]}, whose load has none", "needed: the load model burst")
    return _of_times(thing[0], figure, load)


def _of_times(scenario: str, metric: str, load: JsonObject) -> BadValue | None:
    """The problem if the load has no time of this kind; None if it has.

    Operations of a closed load have no intended start and so no response time; for scheduled operations only
    the response time is allowed, because it counts from the intended start.
    """
    kind, _, rest = metric.partition("_")
    scheduled = load.get("model") in SCHEDULED
    if kind == "response" and load.get("model") == "closed":
        return BadValue(
            f"the response time of {scenario}, whose users have no intended start",
            f"allowed: service_{rest}",
            f"service_{rest}",
        )
    if kind == "service" and scheduled:
        return BadValue(
            f"the service time of {scenario}, whose operations have an intended start",
            f"allowed: response_{rest}, which counts from it",
            f"response_{rest}",
        )
    return None


def unfit_of_farm(name: str, tiers: Mapping[str, Iterable[str]]) -> BadValue | None:
    """The problem if the farm lacks the tier or disk role in ``name``; None if it has both.

    Args:
        name: name of a figure that ``unfit`` accepts.
        tiers: the disk roles of each tier, by tier; empty if the farm's tiers are not known.
    """
    tier, role = part_of(name)
    if not tiers or tier is None:
        return None
    if tier not in tiers:
        return BadValue(f"tier {tier}", f"allowed: {listed(sorted(tiers))}", nearest_name(tier, tiers))
    roles = sorted(tiers[tier])
    if role is not None and role not in roles:
        return BadValue(f"{role} disk of {tier}", f"allowed: {listed(roles)}", nearest_name(role, roles))
    return None


def disks_of(farm: JsonObject) -> dict[str, set[str]]:
    """The disk roles of each tier of a farm.yaml's content or a farm's JSON; invalid parts are skipped."""
    result: dict[str, set[str]] = {}
    built = _inside(farm, "embedded").get("tiers")
    for tier in built if isinstance(built, list) else []:
        if isinstance(tier, str):
            result.setdefault(tier, set()).update(EMBEDDED_ROLES.get(tier, ()))
    for tier in _inside(farm, "tiers"):
        roles = result.setdefault(tier, set())
        for host in _inside(farm, "tiers", tier, "hosts"):
            roles.update(_inside(farm, "tiers", tier, "hosts", host, "disks"))
    return result


def _inside(data: Any, *path: str) -> JsonObject:
    for step in path:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _names(plan: YamlFile) -> Iterator[tuple[Path, str]]:
    given = plan.at(*_METRICS)
    for position, name in enumerate(given if isinstance(given, list) else []):
        if isinstance(name, str):  # validation of the record reports other types
            yield (*_METRICS, position), name


def _load(scenario: Any) -> JsonObject:
    return _inside(scenario, "load")
