"""``pinchpoint check``: would this plan run against this farm? Starts nothing, changes nothing."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from pinchpoint import preflight
from pinchpoint.cli.arguments import FARM, OUT, PLAN
from pinchpoint.errors import ExitStatus
from pinchpoint.live import LiveFarm, standing_farm
from pinchpoint.loadgen.load import make_scenario, planned_scenarios
from pinchpoint.plan import Plan, expand_all, guard, load


@click.command()
@PLAN
@FARM
@OUT
def check(plan_file: Path, farm_file: Path, out: Path) -> int:
    """Check both files, every endpoint, every collector and the space for PLAN; never starts a farm."""
    farm, plan = load(farm_file, plan_file)
    expand_all(farm)  # a variable that is not set is said with its line, before anything starts
    guard(farm, plan)
    checks = [preflight.check_space(out)]
    live = standing_farm(farm)
    if live is None:
        found = "is embedded and down: `pinchpoint run` starts it; its endpoints can be checked once it is up"
        checks.append(preflight.Check(f"farm {farm.name}", ok=True, found=found))
    else:
        checks += _against(live, plan)
    for entry in checks:
        click.echo(f"{'ok  ' if entry.ok else 'FAIL'} {entry.what}: {entry.found}")
    return ExitStatus.FINE if all(entry.ok for entry in checks) else ExitStatus.ENVIRONMENT


def _against(live: LiveFarm, plan: Plan) -> list[preflight.Check]:
    made = {
        name: make_scenario(name, given, live.endpoints, plan.seed, 0, 1, lambda *_, **__: None)
        for name, given in planned_scenarios(plan).items()
    }
    checks, _ = preflight.check_scenarios(made)
    with ExitStack() as stack:
        checks += [entry for entry, _ in preflight.connect(live.watches, stack)]
    return checks
