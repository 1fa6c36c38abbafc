"""What no single field shows of loads and stop rules: names, and objectives that steps are to end at."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.plan.compare import disks_of
from pinchpoint.plan.document import Document
from pinchpoint.plan.problems import Problem, listed, nearest, unknown_at


def check_loads(plan: Document) -> Iterator[Problem]:
    """Steps until an objective need one; a rule's scenario must be one of the plan's."""
    names = plan.mapping("scenarios")
    aimed_at = [one.get("scenario") for one in _list(plan, "objectives")]
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
            yield unknown_at(("stop_when", position, "scenario"), "scenario", said, names)


def check_rules(farm: Document, plan: Document) -> Iterator[Problem]:
    """The hosts, tiers and disk roles that rules name must be the farm's: one of no disk never ends a run."""
    disks = disks_of(farm.data)
    roles = {role for tier in disks for role in disks[tier]}
    hosts = {host for tier in farm.mapping("tiers") for host in farm.mapping("tiers", tier, "hosts")}
    built = farm.at("embedded", "tiers")
    hosts |= {f"{tier}1" for tier in built if isinstance(tier, str)} if isinstance(built, list) else set()
    for position, rule in enumerate(_list(plan, "stop_when")):
        for field, allowed in (("tier", set(disks)), ("host", hosts), ("role", roles)):
            said = rule.get(field)
            if isinstance(said, str) and said not in allowed:
                yield Problem(
                    ("stop_when", position, field),
                    f"{farm.file} has no {field} {said}",
                    f"allowed: {listed(sorted(allowed))}" if allowed else f"add the {field} there",
                    nearest(said, allowed),
                )


def _list(plan: Document, key: str) -> list[dict[str, object]]:
    found = plan.at(key)
    return [one if isinstance(one, dict) else {} for one in found] if isinstance(found, list) else []
