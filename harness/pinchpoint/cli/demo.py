"""``pinchpoint demo``: the whole loop on the embedded farm, nothing to write first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from ruamel.yaml import YAML

from pinchpoint.cli.arguments import OUT
from pinchpoint.cli.run import run_and_report
from pinchpoint.errors import InputError
from pinchpoint.plan import load
from pinchpoint.store.schema import REPORT

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
def demo(out: Path, corpus: Path | None) -> int:
    """Start the embedded farm, load it with all three scenarios, say what gives way first.

    Its last line is the path of report.html.
    """
    farm = {
        "name": "demo",
        "environment": "test",
        "embedded": {"tiers": ["web", "sql", "search", "nosql", "files"]},
    }
    if corpus is not None:
        farm["embedded"]["content"] = {"corpus": str(corpus.absolute())}  # type: ignore[index]  # a dict, above
    loaded = load(_write(out / "demo" / "farm.yaml", farm), _write(out / "demo" / "plan.yaml", PLAN))
    directory, status = run_and_report(*loaded, out)
    click.echo(directory / REPORT)
    return status


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
