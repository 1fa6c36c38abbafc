"""``pinchpoint runs``: lists runs, and shows the trend of a plan's figures over them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pinchpoint.base import units, wording
from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.cli.arguments import show
from pinchpoint.run.run_set import SET, load_set
from pinchpoint.store import document
from pinchpoint.store.read import read_manifest
from pinchpoint.store.schema import MANIFEST, VERDICT
from pinchpoint.store.write import is_being_written, writable, write_file
from pinchpoint_collectors.common.counts import counted

PAGE = "trend.html"
RESULT = {
    "bottleneck": "a bottleneck",
    "not_reached": "no limit reached",
    "inconclusive": "inconclusive",
    "invalid": "invalid run",
}
"""Outcome -> text in the list. A bottleneck is shown by its name."""


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path("runs"))
@click.option(
    "--trend",
    "plan",
    metavar="PLAN",
    help="Find changes of level in the figures of this plan (its name, or its file) over all runs.",
)
@click.option(
    "--fail-on",
    "fail_on",
    type=click.Choice(["worse"]),
    default=None,
    help="With --trend: exit with status 1 when a figure is worse than before its last change, or "
    "throughput is 0.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="With --trend: print the result as JSON and nothing else."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help=f"With --trend: the folder in which {PAGE} is written.",
)
def runs(directory: Path, plan: str | None, fail_on: str | None, out: Path | None, *, as_json: bool) -> int:
    """List the runs in DIR (default: runs), oldest first, or follow the figures of a plan over them."""
    if plan is not None:
        return _trend(directory, plan, out, as_json=as_json, fail=fail_on is not None)
    given = [name for name, is_set in (("--fail-on", fail_on), ("--json", as_json), ("--out", out)) if is_set]
    if given:
        raise InputError(f"{', '.join(given)}: only with --trend PLAN; add it, or omit them")
    _list(directory)
    return ExitStatus.FINE


def _trend(directory: Path, plan: str, out: Path | None, *, as_json: bool, fail: bool) -> int:
    from pinchpoint.report.trend import trend_text  # noqa: PLC0415 -- likewise
    from pinchpoint.trend import find_trend, read_histories  # noqa: PLC0415 -- a list of runs needs no statistics

    result = find_trend(read_histories(directory, _plan_name(plan)))
    show(result, trend_text, as_json=as_json)
    if out is not None:
        from pinchpoint.report.html import write  # noqa: PLC0415 -- charts take a second
        from pinchpoint.report.trend_page import document  # noqa: PLC0415 -- likewise

        path = out / PAGE
        page = write(document(result))
        with writable(path):
            out.mkdir(parents=True, exist_ok=True)
            write_file(path, page)
        click.echo(path, err=as_json)
    if fail and not result.worse and all(line.why_not for line in result.lines):
        click.echo(
            "--fail-on worse: no figure has enough runs to detect a change, so this check cannot fail",
            err=True,
        )
    return ExitStatus.OBJECTIVES_MISSED if fail and result.worse else ExitStatus.FINE


def _plan_name(plan: str) -> str:
    """Return the name of a plan in a file. A text that is no file is itself the name."""
    from pinchpoint.plan import load_plan  # noqa: PLC0415 -- likewise

    path = Path(plan)
    return load_plan(path).name if path.is_file() else plan


def _list(directory: Path) -> None:
    from pinchpoint.report.tables import Column, Table, grid  # noqa: PLC0415 -- a trend as JSON needs none

    if not directory.is_dir():
        raise InputError(f"{directory}: is not a directory; `pinchpoint run` writes its runs to ./runs")
    result = [_row(path.parent) for path in directory.glob(f"*/{MANIFEST}")]
    result += [_row_of_set(path.parent) for path in directory.glob(f"*/{SET}")]
    if not result:
        click.echo(f"no runs in {directory}")
        return
    rows = sorted(result, key=lambda row: (row.get("started", ""), row["run"]))
    titles = {"run": "run", "plan": "plan", "started": "started (UTC)", "lasted": "measured"}
    titles |= {"result": "result", "confidence": "confidence", "throughput": "throughput"}
    columns = [Column(key, title, absent="") for key, title in titles.items()]
    table = Table("runs", "", columns, [{key: row.get(key) for key in titles} for row in rows])
    # The lines are also for pipes, where each run is one line of any length.
    less = ("plan", "lasted", "started", "throughput", "confidence") if sys.stdout.isatty() else None
    for line in grid(table, less=less):
        click.echo(line)


def _row(directory: Path) -> dict[str, str]:
    from pinchpoint.report.tables import measured_s  # noqa: PLC0415 -- likewise

    try:
        manifest = read_manifest(directory)
    except InputError as error:
        return {"run": directory.name, "result": f"cannot be read: {error}"}
    lasted = measured_s(manifest)
    row = {
        "run": directory.name,
        "plan": str(manifest.get("name") or ""),
        "started": manifest["started"][:16].replace("T", " "),
        "lasted": "" if lasted is None else units.seconds(lasted),
    }
    state = manifest["state"]
    if state == "running":
        running = is_being_written(directory)
        return row | {"result": "running" if running else "killed: `pinchpoint analyse` recovers it"}
    verdict = directory / VERDICT
    result = _outcome(verdict) if verdict.exists() else {"result": "not analysed yet"}
    return row | (result if state == "finished" else result | {"result": f"{state}: {result['result']}"})


def _outcome(verdict: Path) -> dict[str, str]:
    """Return the outcome or the bottleneck of a verdict.json as text."""
    from pinchpoint.analysis.verdict import SCHEMA  # noqa: PLC0415 -- likewise
    from pinchpoint.analysis.verdict_forms import VerdictForm  # noqa: PLC0415 -- a folder without runs needs no analysis

    try:
        content = document.read(verdict, VerdictForm, SCHEMA, "")
    except (FileNotFoundError, InputError):
        return {"result": "verdict unreadable"}
    limit = content.get("bottleneck") or {}
    named = content["outcome"] == "bottleneck" and limit
    done = [
        f"{name} {units.per_second(per_s)}"
        for name, figures in (content.get("scenarios") or {}).items()
        if (per_s := wording.rate_of(figures)) is not None
    ]
    return {
        "result": wording.bare(wording.bottleneck_name(limit)) if named else RESULT[content["outcome"]],
        "confidence": str(limit.get("confidence") or ""),
        "throughput": ", ".join(done),
    }


def _row_of_set(directory: Path) -> dict[str, str]:
    """Return the row of the list for a set of runs. The folders of the set contain the runs."""
    try:
        made = load_set(directory)
    except InputError as error:
        return {"run": directory.name, "result": f"cannot be read: {error}"}
    folders = ", ".join(place.folder for place in made.places)
    state = "" if made.state == "finished" else f"{made.state}: "
    return {
        "run": directory.name,
        "started": made.started[:16].replace("T", " "),
        "result": f"{state}set of {counted(len(made.runs), 'run')} on {folders}",
    }
