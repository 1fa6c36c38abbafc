"""``pinchpoint analyse``: prints the verdict on a run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from pinchpoint.analysis import exit_status
from pinchpoint.cli.arguments import RUN, show
from pinchpoint.data.timeaxis import clock_of
from pinchpoint.report.explained import explanation_text
from pinchpoint.report.judged import renew_verdict
from pinchpoint.report.run_tables import replayed
from pinchpoint.report.similarity import similarity
from pinchpoint.report.statements import statements_text
from pinchpoint.report.terminal import details_text, table_text, verdict_text


@click.command()
@RUN
@click.option("--json", "as_json", is_flag=True, help="Print the content of verdict.json and nothing else.")
@click.option(
    "--explain",
    is_flag=True,
    help="Also print every check, every resource that was considered, its figures and thresholds.",
)
def analyse(directory: Path, *, as_json: bool, explain: bool) -> int:
    """Print the bottleneck of RUN: the resource that limits throughput.

    A run that was killed is recovered first. RUN may also be a YAML file with the published figures of a
    report (infra/examples). Exit status 1: an objective was missed or not measured. Exit status 3: the run is
    not valid, or measured nothing.
    """
    if directory.is_file():
        return _published(directory, as_json=as_json)
    run, verdict = renew_verdict(directory)
    if not os.access(directory, os.W_OK):
        click.echo(f"{directory}: you may not write there, so the verdict is not kept", err=True)
    content = verdict.to_json()
    if as_json:
        click.echo(json.dumps(content, indent=1))  # the JSON of a verdict always contains the explanation
    else:
        click.echo(verdict_text(content, run.manifest, directory))
        if explain:
            clock = clock_of(run)
            tables = map(table_text, (similarity(run, clock), replayed(run)))
            shown = explanation_text(content, clock.offset_s)
            parts = (details_text(content), *tables, statements_text(run), shown)
            click.echo("\n" + "\n\n".join(filter(None, parts)))
    return exit_status(verdict)


def _published(path: Path, *, as_json: bool) -> int:
    """Judge the published figures of a report by the same rules, without samples."""
    from pinchpoint.published import judge_report, read_report  # noqa: PLC0415 -- a run needs none of it
    from pinchpoint.published.text import published_text  # noqa: PLC0415 -- likewise

    result = judge_report(read_report(path))
    show(result, published_text, as_json=as_json)
    return 0
