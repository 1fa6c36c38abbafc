"""What no single field shows of loads and stop rules: names, and objectives that steps are to end at."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.plan.document import Document
from pinchpoint.plan.problems import Problem, listed, unknown


def check_loads(plan: Document) -> Iterator[Problem]:
    """Steps until an objective need one; a rule's scenario must be one of the plan's."""
    names = plan.mapping("scenarios")
    aimed_at = {one.get("scenario") for one in _list(plan, "objectives")}
    for name in names:
        if plan.at("scenarios", name, "load", "until") == "objective" and name not in aimed_at:
            yield Problem(
                ("scenarios", name, "load", "until"),
                f"steps until an objective is missed, and {name} has none",
                f"add one to objectives ({{scenario: {name}, p95: 50ms}}), or write until: saturation",
            )
    for position, rule in enumerate(_list(plan, "stop_when")):
        said = rule.get("scenario")
        if isinstance(said, str) and said not in names:
            why = unknown("scenario", said, names)
            yield Problem(("stop_when", position, "scenario"), why.found, why.allowed, why.nearest)


def check_rules(farm: Document, plan: Document) -> Iterator[Problem]:
    """The hosts, tiers and disk roles that rules name must be the farm's, where it names any."""
    tiers = {*farm.mapping("tiers"), *_embedded(farm)}
    hosts = {host for tier in farm.mapping("tiers") for host in farm.mapping("tiers", tier, "hosts")}
    hosts |= {f"{tier}1" for tier in _embedded(farm)}
    for position, rule in enumerate(_list(plan, "stop_when")):
        for field, allowed in (("tier", tiers), ("host", hosts)):
            said = rule.get(field)
            if isinstance(said, str) and said not in allowed:
                yield Problem(
                    ("stop_when", position, field),
                    f"{farm.file} has no {field} {said}",
                    f"allowed: {listed(sorted(allowed))}" if allowed else f"add the {field} there",
                )


def _embedded(farm: Document) -> list[str]:
    found = farm.at("embedded", "tiers")
    return [tier for tier in found if isinstance(tier, str)] if isinstance(found, list) else []


def _list(plan: Document, key: str) -> list[dict[str, object]]:
    found = plan.at(key)
    return [one if isinstance(one, dict) else {} for one in found] if isinstance(found, list) else []
