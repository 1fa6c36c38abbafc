"""``pinchpoint check``: tests whether a plan can run against a farm, without starting or changing anything.

Every collector is tested on every host. A write test (16 MiB per disk, removed afterwards) is made only if
farm.yaml (``write_test:``) allows it, or if the folder belongs to an embedded farm.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from threading import Lock

import click

from pinchpoint.base import units
from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.base.redact import masked
from pinchpoint.base.text import one_line, wrapped
from pinchpoint.cli.arguments import OUT, PLAN
from pinchpoint.farm.ready import ReadyFarm, standing_farm
from pinchpoint.loadgen.scenarios import make_scenario, planned_scenarios
from pinchpoint.plan import Plan, Steps, expand_all, guard, load
from pinchpoint.run import preflight
from pinchpoint.run.preflight import HostCheck, ProofCheck
from pinchpoint_scenarios.contract import Scenario

SCHEMA = "pinchpoint.check/1"


@click.command()
@PLAN
@click.option(
    "--farm",
    "farm_file",
    type=click.Path(path_type=Path),
    help="The farm's farm.yaml. [default: where PLAN is a folder, the one in it]",
)
@OUT
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON and nothing else.")
@click.option("--quiet", is_flag=True, help="Print problems only, and a last line: ready or not.")
def check(plan_file: Path, farm_file: Path | None, out: Path, *, as_json: bool, quiet: bool) -> int:
    """Check both files, every endpoint, every collector and the disk space. Never starts a farm."""
    if plan_file.is_dir():
        farm_file, plan_file = farm_file or plan_file / "farm.yaml", plan_file / "plan.yaml"
    if farm_file is None and not plan_file.exists():
        raise InputError(f"{plan_file}: does not exist; give a plan.yaml, or a folder with both files")
    if farm_file is None:
        raise InputError(f"--farm: missing; give the farm.yaml, or instead of {plan_file} a folder with both")
    farm, plan = load(farm_file, plan_file)
    expand_all(farm)  # an unset variable is reported with its line before anything starts
    guard(farm, plan)
    say = (lambda _: None) if as_json else _printer(quiet=quiet)
    checks = [preflight.check_space(out), preflight.check_load_here(), *_judged(plan), *_confidence(plan)]
    proofs: list[ProofCheck] = []
    live = standing_farm(farm)
    if live is None:
        result = (
            "is embedded and down: `pinchpoint run` starts it; its endpoints can be checked once it is up"
        )
        checks.append(HostCheck(f"farm {farm.name}", ok=True, found=result))
    for entry in checks:
        say(entry)
    if live is not None:
        scenarios = _scenarios(live, plan)
        with ThreadPoolExecutor(1) as pool:
            endpoints = pool.submit(preflight.check_scenarios, scenarios, say)
            collectors, proofs = preflight.prove(farm, live.watches, say)
        checks += [*endpoints.result()[0], *collectors]
    proofs = [replace(proof, found=masked(proof.found)) for proof in proofs]
    fine = all(entry.ok for entry in checks) and all(proof.outcome != "failed" for proof in proofs)
    if as_json:
        checks = [replace(entry, found=masked(entry.found)) for entry in checks]
        click.echo(_document(checks, proofs, fine=fine))
    else:
        # the check of the collector reports the error
        proofs = [one for one in proofs if one.what != "reached"]
        if quiet:
            proofs = [one for one in proofs if one.outcome == "failed"]
        problems = sum(not entry.ok for entry in checks) + len(proofs)
        lines = [*_proof_lines(proofs), *([_ready(problems)] if quiet else [])]
        click.echo("\n".join(lines), nl=bool(lines))
    return ExitStatus.FINE if fine else ExitStatus.ENVIRONMENT


def _printer(*, quiet: bool) -> Callable[[HostCheck], None]:
    """Return a function that prints each check; with ``quiet`` only failed checks."""
    lock = Lock()

    def say(entry: HostCheck) -> None:
        if not (quiet and entry.ok):
            with lock:
                label = "FAIL " if not entry.ok else "warn " if entry.warning else "ok   "
                click.echo(_paragraph(label, f"{entry.what}: {masked(entry.found)}"))

    return say


def _judged(plan: Plan) -> Iterator[HostCheck]:
    """Check that the plan's figures for comparisons exist."""
    if plan.compare is not None:
        names = ", ".join(plan.compare.metrics) or "the default figures"
        margin, bound = plan.compare.margin_ratio, plan.compare.bound
        answer = [f"within {units.percent(margin)} the same"] if margin is not None else []
        answer += [f"one run up to {units.times(bound)} the next"] if bound is not None else []
        yield HostCheck("compare", ok=True, found="; ".join([f"judged: {names}", *answer]))


def _confidence(plan: Plan) -> Iterator[HostCheck]:
    """Yield the highest possible confidence with this load and duration, if that is not the maximum."""
    from pinchpoint.analysis.thresholds import MIN_LEVELS, MIN_SAMPLES  # noqa: PLC0415 -- a bad file needs none

    levels = max(one.load.count if isinstance(one.load, Steps) else 1 for one in plan.scenarios.values())
    longest_s = plan.phases.measure.at_most_s
    if levels == 1 and longest_s < MIN_SAMPLES.value:
        needed = units.seconds(MIN_SAMPLES.value)
        result = f"low at most: {units.seconds(longest_s)} are measured; {needed} are needed (phases.measure)"
    elif levels < MIN_LEVELS.value:
        has = f"{levels} load levels" if levels > 1 else "one load level"
        remedy = "a higher at_most, or a smaller step" if levels > 1 else "load: {model: steps, ...}"
        result = f"medium at most: {has}; {MIN_LEVELS.value:.0f} are needed for high ({remedy})"
    else:
        return
    yield HostCheck("confidence", ok=True, warning=True, found=result)


def _ready(problems: int) -> str:
    return "ready" if not problems else f"not ready: {problems} problem{'s' * (problems != 1)}"


def _scenarios(live: ReadyFarm, plan: Plan) -> dict[str, Scenario]:
    return {
        name: make_scenario(name, given, live.endpoints, plan.seed, 0, 1, lambda *_, **__: None)
        for name, given in planned_scenarios(plan).items()
    }


def _document(checks: Sequence[HostCheck], proofs: Sequence[ProofCheck], *, fine: bool) -> str:
    return json.dumps(
        {
            "schema": SCHEMA,
            "ok": fine,
            "checks": [{"what": entry.what, "ok": entry.ok, "found": entry.found} for entry in checks],
            "collectors": [asdict(proof) for proof in proofs],
        },
        indent=2,
        ensure_ascii=False,
    )


def _proof_lines(proofs: Sequence[ProofCheck]) -> Iterator[str]:
    """Yield a paragraph per test of a host and collector, with the remedy below."""
    for (host, kind), there in groupby(proofs, lambda proof: (proof.host, proof.kind)):
        yield f"\n{host}, by {kind}"
        for proof in there:
            yield _paragraph(f"  {proof.outcome:13}", f"{proof.what}: {proof.found}")
            if proof.remedy:
                yield _paragraph(f"{'':15}", f"to do: {proof.remedy}")


def _paragraph(label: str, text: str) -> str:
    """Return text wrapped to the terminal; in a file or a pipe on one line, which is easier to search."""
    return wrapped(text, label) if sys.stdout.isatty() else f"{label}{one_line(text)}"
