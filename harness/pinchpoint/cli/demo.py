"""``pinchpoint demo``: the whole loop on the embedded farm, nothing to write first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from ruamel.yaml import YAML

from pinchpoint.cli import dev_vs_prod, stripes
from pinchpoint.cli.arguments import OUT
from pinchpoint.cli.run import run_and_report
from pinchpoint.errors import InputError
from pinchpoint.plan import Farm, Plan, load
from pinchpoint.store.schema import REPORT

FARM: dict[str, Any] = {
    "name": "demo",
    "environment": "test",
    "embedded": {"tiers": ["web", "sql", "search", "nosql", "files"]},
}
PLAN: dict[str, Any] = {
    "name": "demo",
    "scenarios": {
        "crawl": {"use": "full-crawl", "load": {"model": "closed", "users": 8}},
        "orders": {
            "use": "sql-mix",
            "load": {"model": "open", "rate": "100/s"},
            "params": {"preset": "log-heavy"},
        },
        "burst": {
            "use": "nosql-burst",
            "load": {"model": "burst", "base": "50/s", "peak": "500/s", "every": "15s", "for": "5s"},
        },
    },
    # A small corpus is crawled in seconds: it is crawled again until there is enough to judge.
    "phases": {"warm_up": "5s", "measure": {"until": "done", "at_least": "45s", "at_most": "1h"}},
}


@click.command()
@OUT
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="A folder of documents to fill the farm with."
)
@click.option(
    "--dev-vs-prod",
    "both",
    is_flag=True,
    help="Run one plan on two farms that differ in their disks only, and compare (root, Linux).",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Of --dev-vs-prod: so many runs of each farm, by turns. Five make a comparison (half an hour).",
)
@click.option(
    "--stripes",
    "striped",
    is_flag=True,
    help="Run one burst of writes on 1, 2, 4 and 8 stripes of a disk, twice each (root, Linux; 11 minutes).",
)
def demo(out: Path, corpus: Path | None, *, both: bool, repeat: int, striped: bool) -> int:
    """Start the embedded farm, load it with all three scenarios, say what gives way first.

    Its last line is the path of report.html.
    """
    if both and striped:
        raise InputError("--dev-vs-prod and --stripes: two demonstrations; give one of them")
    if repeat > 1 and not both:
        raise InputError(
            "--repeat: is of --dev-vs-prod, which compares; `pinchpoint run --repeat` repeats any"
        )
    if striped:
        return stripes.run_all(
            lambda number: _loaded(out / f"stripes-{number}", stripes.farm(number), stripes.PLAN, None), out
        )
    if both:
        return dev_vs_prod.run_both(
            [
                _loaded(out / name, dev_vs_prod.farm(name), dev_vs_prod.PLAN, corpus)
                for name in dev_vs_prod.DISKS
            ],
            out,
            repeat,
        )
    directory, status = run_and_report(*_loaded(out / "demo", FARM, PLAN, corpus), out)
    click.echo(directory / REPORT)
    return status


def _loaded(
    folder: Path, farm: dict[str, Any], plan: dict[str, Any], corpus: Path | None
) -> tuple[Farm, Plan]:
    """Both files, written for the user to change and run again, and read as any others."""
    if corpus is not None:
        farm = {**farm, "embedded": {**farm["embedded"], "content": {"corpus": str(corpus.absolute())}}}
    return load(_write(folder / "farm.yaml", farm), _write(folder / "plan.yaml", plan))


def _write(path: Path, content: dict[str, Any]) -> Path:
    """Write a file the user can change and run again with ``pinchpoint run``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            YAML().dump(content, file)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error
    return path
