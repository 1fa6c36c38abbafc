"""``pinchpoint run``: one plan against one farm."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.analysis import exit_status
from pinchpoint.cli.arguments import FARM, OUT, PLAN
from pinchpoint.conclude import verdict_of, write_reports
from pinchpoint.errors import ExitStatus, gravest
from pinchpoint.plan import Farm, Plan, expand_all, load
from pinchpoint.progress import Board, Progress
from pinchpoint.report.terminal import verdict_text
from pinchpoint.run import run as run_plan


@click.command()
@PLAN
@FARM
@OUT
@click.option("--keep-data", is_flag=True, help="Leave the data the scenarios made on the farm.")
def run(plan_file: Path, farm_file: Path, out: Path, *, keep_data: bool) -> int:
    """Run PLAN against a farm, analyse and report; the last line is the run directory."""
    farm, plan = load(farm_file, plan_file)
    expand_all(farm)  # a variable that is not set is said with its line, before anything starts
    directory, status = run_and_report(farm, plan, out, keep_data=keep_data)
    click.echo(directory)
    return status


def run_and_report(farm: Farm, plan: Plan, out: Path, *, keep_data: bool = False) -> tuple[Path, ExitStatus]:
    """Run, print the verdict, write verdict.json and report.html: (run directory, exit status)."""
    board = Board()
    with Progress(board) as progress:
        ended = run_plan(farm, plan, out, progress, board, keep_data=keep_data)
        for reason in ended.reasons:
            progress.say(reason)
        progress.say("analysing")
        stored, verdict = verdict_of(ended.directory)
        write_reports(stored, verdict.to_json(), ["html"], ended.directory)
    click.echo(verdict_text(verdict.to_json()))
    return ended.directory, gravest([*ended.statuses, ExitStatus(exit_status(verdict))])
