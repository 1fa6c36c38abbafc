"""``pinchpoint demo``: runs an example on the embedded farm, without any file from the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from ruamel.yaml import YAML

from pinchpoint.analysis import exit_status
from pinchpoint.base import units
from pinchpoint.base.errors import ExitStatus, InputError, gravest
from pinchpoint.base.wording import capitalised
from pinchpoint.cli.arguments import OUT
from pinchpoint.cli.run import run_and_print_verdict
from pinchpoint.cli.seeds import SEEDS, run_seed
from pinchpoint.plan import Farm, Plan, load
from pinchpoint.run.demo_calibration import Calibration, calibrate
from pinchpoint.store.schema import REPORT
from pinchpoint.store.write import writable

FARM: dict[str, Any] = {
    "name": "demo",
    "environment": "test",
    "embedded": {"tiers": ["web", "sql", "search", "nosql", "files"]},
}
USERS, RATE, BASE, PEAK = 8, 100, 50, 500
"""Load of the demo on a machine with two idle cores."""
DOCUMENTS = 4_000
"""Number of documents of the demo at full load."""


def farm(load_ratio: float = 1.0) -> dict[str, Any]:
    """Return the farm of the demo. The number of documents is a share (0 to 1) of the full load."""
    embedded = FARM["embedded"] | {"content": {"documents": max(1, round(load_ratio * DOCUMENTS))}}
    return FARM | {"embedded": embedded}


def plan(load_ratio: float = 1.0) -> dict[str, Any]:
    """Return the plan of the demo at a share (0 to 1) of the full load."""
    users, rate, base, peak = (max(1, round(load_ratio * full)) for full in (USERS, RATE, BASE, PEAK))
    return {
        "name": "demo",
        "scenarios": {
            "crawl": {"use": "full-crawl", "load": {"model": "closed", "users": users}},
            "orders": {
                "use": "sql-mix",
                "load": {"model": "open", "rate": f"{rate}/s"},
                "params": {"preset": "log-heavy"},
            },
            "burst": {
                "use": "nosql-burst",
                "load": {
                    "model": "burst",
                    "base": f"{base}/s",
                    "peak": f"{peak}/s",
                    "every": "15s",
                    "for": "5s",
                },
            },
        },
        # A few documents are crawled in seconds, so the crawl repeats until there is enough to judge.
        "phases": {"warm_up": "5s", "measure": {"until": "done", "at_least": "45s", "at_most": "1h"}},
    }


@click.command()
@OUT
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="Fill the farm with the documents of this folder."
)
@click.option(
    "--seed",
    metavar="NAME",
    help="Repeat a published experiment instead (root, Linux): "
    + "; ".join(f"{one.letter} ({one.name}): {one.about}" for one in SEEDS)
    + ".",
)
@click.option("--dev-vs-prod", "both", is_flag=True, help="The same as --seed a.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 20),
    help="With --seed: the number of runs of each farm, or of repetitions. Five make a comparison. "
    "[default: as the experiment]",
)
def demo(out: Path, corpus: Path | None, seed: str | None, *, both: bool, repeat: int | None) -> int:
    """Start a farm on this machine, load it with three scenarios, and name its bottleneck.

    The last line is the path of report.html.
    """
    chosen = seed or ("a" if both else None)
    if repeat and chosen is None:
        raise InputError("--repeat: is of --seed, which compares; `pinchpoint run --repeat` repeats any")
    if chosen is not None:
        if corpus is not None:
            raise InputError("--corpus: a seed's farm.yaml says what it is filled with (embedded: content)")
        return int(run_seed(chosen, out, repeat))
    click.echo("measuring for 3 s what load this machine can bear", err=True)
    result = calibrate()
    click.echo(_calibrated(result), err=True)
    ended, verdict = run_and_print_verdict(
        *_loaded(out / "demo", farm(result.load_ratio), plan(result.load_ratio), corpus), out
    )
    click.echo(ended.directory / REPORT)
    # The demo is no gate for a pipeline: an overload of this machine is only mentioned in the report.
    blamed = verdict.bottleneck.resource if verdict.bottleneck else None
    too_much = verdict.outcome == "invalid" and blamed != "recorder"
    return gravest([*ended.statuses, *([] if too_much else [ExitStatus(exit_status(verdict))])])


def _calibrated(calibration: Calibration) -> str:
    """Return a sentence with the measured capacity of this machine and the chosen load."""
    loads = plan(calibration.load_ratio)["scenarios"]
    users, rate = loads["crawl"]["load"]["users"], loads["orders"]["load"]["rate"]
    base, peak = (loads["burst"]["load"][key] for key in ("base", "peak"))
    full = calibration.load_ratio == 1
    what = "runs at its full load" if full else f"lowers its load to {units.percent(calibration.load_ratio)}"
    return (
        f"{capitalised(calibration.words())}: the demo {what} (crawl {users} users, orders {rate}, "
        f"burst {base} to {peak})."
    )


def _loaded(
    folder: Path, farm: dict[str, Any], plan: dict[str, Any], corpus: Path | None
) -> tuple[Farm, Plan]:
    """Write both files, which the user can change and run again, and load them like other files."""
    if corpus is not None:
        # A corpus that the user gives is crawled completely.
        farm = {**farm, "embedded": {**farm["embedded"], "content": {"corpus": str(corpus.absolute())}}}
    return load(_write(folder / "farm.yaml", farm), _write(folder / "plan.yaml", plan))


def _write(path: Path, content: dict[str, Any]) -> Path:
    """Write a file that the user can change and run again with ``pinchpoint run``."""
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            YAML().dump(content, file)
    return path
