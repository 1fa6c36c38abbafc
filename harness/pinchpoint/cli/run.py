"""``pinchpoint run``: one plan against one farm."""

from __future__ import annotations

from pathlib import Path

import click

from pinchpoint.analysis import exit_status
from pinchpoint.cli.arguments import FARM, OUT, PLAN
from pinchpoint.cli.worker import address
from pinchpoint.conclude import verdict_of, write_reports
from pinchpoint.errors import ExitStatus, InputError, gravest
from pinchpoint.loadgen.crew import DEFAULT_PORT, ONE_EACH, Crew
from pinchpoint.loadgen.locustfile import scenario_class
from pinchpoint.plan import Farm, Plan, ScenarioPlan, expand_all, load
from pinchpoint.progress import Board, Progress
from pinchpoint.report.terminal import verdict_text
from pinchpoint.run import run as run_plan


@click.command()
@PLAN
@FARM
@OUT
@click.option(
    "--prove",
    is_flag=True,
    help="After the measuring, make what the verdict names slower for a while, and see whether throughput "
    "answers as the model says.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the crawl that a run of this plan was killed or interrupted in: nothing of it is lost, "
    "and nothing is done twice.",
)
@click.option(
    "--reset-index",
    metavar="NAME",
    help="Before a SharePoint farm crawls by itself (drive: native), empty the index of its search service "
    "application of this very name. What is lost is printed first, and does not come back.",
)
@click.option("--keep-data", is_flag=True, help="Leave the data the scenarios made on the farm.")
@click.option(
    "--workers",
    type=click.IntRange(0, 256),
    help="So many generator processes here, each doing its share of every scenario. "
    "[default: one process per scenario]",
)
@click.option(
    "--remote-workers",
    type=click.IntRange(1, 256),
    default=None,
    help="Wait for so many `pinchpoint worker` on other machines before the load begins.",
)
@click.option(
    "--listen",
    metavar="ADDRESS[:PORT]",
    help="Where workers of other machines find this run; they may also come late. "
    f"[default port: {DEFAULT_PORT}]",
)
def run(  # noqa: PLR0913 - one for each option
    plan_file: Path,
    farm_file: Path,
    out: Path,
    *,
    prove: bool,
    resume: bool,
    reset_index: str | None,
    keep_data: bool,
    workers: int | None,
    remote_workers: int | None,
    listen: str | None,
) -> int:
    """Run PLAN against a farm, analyse and report; the last line is the run directory."""
    crew = _crew(workers, remote_workers, listen)
    farm, plan = load(farm_file, plan_file)
    expand_all(farm)  # a variable that is not set is said with its line, before anything starts
    if resume and not any(scenario_class(planned.use).ends for planned in plan.scenarios.values()):
        raise InputError(
            "--resume: no scenario of this plan is work that ends, so there is nothing to go on with; "
            "run it without --resume"
        )
    if reset_index is not None and not any(map(_is_native, plan.scenarios.values())):
        raise InputError(
            "--reset-index: no scenario of this plan is a farm's own crawl (params: {drive: native}); one "
            "that Pinchpoint makes resets its own index by itself: run without --reset-index"
        )
    directory, status = run_and_report(
        farm,
        plan,
        out,
        keep_data=keep_data,
        crew=crew,
        prove=prove,
        resume=resume,
        reset_index=reset_index,
    )
    click.echo(directory)
    return status


def _is_native(planned: ScenarioPlan) -> bool:
    return planned.params.get("drive") == "native"


def _crew(workers: int | None, remote: int | None, listen: str | None) -> Crew:
    if remote and not listen:
        raise InputError(
            "--remote-workers: workers of other machines must know where to find this run; "
            "add --listen with an address of this machine that they reach"
        )
    if workers == 0 and not remote:
        raise InputError("--workers: found 0; without --remote-workers nobody would generate load")
    return Crew(workers, remote or 0, address("--listen", listen) if listen else None)


def run_and_report(
    farm: Farm,
    plan: Plan,
    out: Path,
    *,
    keep_data: bool = False,
    crew: Crew = ONE_EACH,
    prove: bool = False,
    resume: bool = False,
    reset_index: str | None = None,
) -> tuple[Path, ExitStatus]:
    """Run, print the verdict, write verdict.json and report.html: (run directory, exit status)."""
    board = Board()
    with Progress(board) as progress:
        ended = run_plan(
            farm,
            plan,
            out,
            progress,
            board,
            keep_data=keep_data,
            crew=crew,
            prove=prove,
            resume=resume,
            reset_index=reset_index,
        )
        for reason in ended.reasons:
            progress.say(reason)
        progress.say("analysing")
        stored, verdict = verdict_of(ended.directory)
        write_reports(stored, verdict.to_json(), ["html"], ended.directory)
    click.echo(verdict_text(verdict.to_json()))
    return ended.directory, gravest([*ended.statuses, ExitStatus(exit_status(verdict))])
