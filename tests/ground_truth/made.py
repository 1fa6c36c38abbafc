"""Make cases and answers for tests of the runner."""

from __future__ import annotations

from pathlib import Path

from ground_truth.cases import Answer

FARM = """\
name: {name}
environment: test
embedded: {{tiers: [{tier}]}}
"""
PLAN = """\
name: {name}
scenarios: {{load: {{use: {use}, load: {{model: open, rate: 20/s}}}}}}
phases: {{warm_up: 1s, measure: {measure}}}
"""
HEALTHY = "outcome: not_reached\nwhy: hardly any load\n"
LOG_CAP = Answer("bottleneck", "disk_cap", "sql", "log")
OTHER_DISK = Answer("bottleneck", "disk_cap", "sql", "data")
NOBODY = Answer("inconclusive")


def make_case(
    folder: Path, name: str, tier: str = "nosql", measure: str = "3s", expected: str = HEALTHY
) -> Path:
    """Write a case's folder with its three files and return its path."""
    place = folder / name
    place.mkdir(parents=True)
    use = {"nosql": "nosql-burst", "sql": "sql-mix"}[tier]
    (place / "farm.yaml").write_text(FARM.format(name=name, tier=tier))
    (place / "plan.yaml").write_text(PLAN.format(name=name, use=use, measure=measure))
    (place / "expected.yaml").write_text(expected)
    return place
