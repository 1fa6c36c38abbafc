"""``pinchpoint run``: runs one plan against one farm, or a set of runs of several farms or repetitions."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pinchpoint.analysis import Verdict, exit_status
from pinchpoint.base.errors import ExitStatus, FarmUnavailable, InputError, gravest
from pinchpoint.cli.arguments import OUT, PLAN, TOKEN_FILE
from pinchpoint.cli.worker import address
from pinchpoint.loadgen.permits import given_token, new_token
from pinchpoint.loadgen.workers import DEFAULT_PORT, WorkerOptions
from pinchpoint.plan import Closed, Farm, Plan, expand_all, guard, load, with_phases
from pinchpoint.plan.locustfile import scenario_class
from pinchpoint.report.files import write_run
from pinchpoint.report.judged import renew_verdict
from pinchpoint.report.terminal import verdict_text
from pinchpoint.run.controller import PLAIN, RunEnd, RunOptions
from pinchpoint.run.controller import run as run_plan
from pinchpoint.run.dry_run import dry_run
from pinchpoint.run.progress import Board, ProgressDisplay
from pinchpoint.run.run_set import Repeated, new_set
from pinchpoint.store.read import StoredRun
from pinchpoint.store.write import what_is_kept

if TYPE_CHECKING:
    from pinchpoint.live.display import LivePage

MOST_REPEATS = 1000
DEFAULT_LIVE_PORT = 8765
_LIVE, _WEB_UI = "--live", "--web-ui"
_PORTS = {_LIVE: DEFAULT_LIVE_PORT, _WEB_UI: 8089}
"""Option whose port may be omitted -> default port. The default for Locust's page is that of Locust."""


class RunCommand(click.Command):
    """A click command whose ``--live`` and ``--web-ui`` may have no port, at any place."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``--live PLAN`` as ``--live=DEFAULT PLAN``."""
        result: list[str] = []
        for place, argument in enumerate(args):
            port = args[place + 1] if place + 1 < len(args) else ""
            default = _PORTS.get(argument)
            result.append(f"{argument}={default}" if default and not port.isdecimal() else argument)
        return super().parse_args(ctx, result)


@click.command(cls=RunCommand)
@PLAN
@click.option(
    "--farm",
    "farm_files",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    help="The farm.yaml to use. If repeated, the farms take turns; the first is the base of the comparison.",
)
@OUT
@click.option(
    "--measure",
    metavar="DURATION",
    help="Measure for this time, such as 30s, instead of the plan's phases.measure.",
)
@click.option(
    "--warm-up",
    metavar="DURATION",
    help="Warm up for this time, or auto, instead of the plan's phases.warm_up.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, MOST_REPEATS),
    help="Number of runs on each farm. Five make a comparison.",
)
@click.option(
    "--aa",
    is_flag=True,
    help="Run the first farm twice in each round. The difference between a farm and itself then "
    "counts as noise.",
)
@click.option(
    "--factor",
    "factors",
    multiple=True,
    help="With several farms: what you study, disks for example (see compare). May be repeated.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="A figure to judge: scenario.crawl.throughput_per_s, for example (see compare). May be repeated.",
)
@click.option(
    "--prove",
    is_flag=True,
    help="After the measurement, make the bottleneck slower for about a minute and compare the "
    "effect on throughput with the prediction.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the crawl of an interrupted run of this plan. Nothing is lost or done twice.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Take over the NoSQL data that a killed run still holds. A run that is still alive loses it.",
)
@click.option(
    "--reset-index",
    metavar="NAME",
    multiple=True,
    help="Empty the index of this SharePoint search service application before the farm's own "
    "crawl (drive: native). What is lost is printed first; it cannot be restored. May be repeated.",
)
@click.option(
    "--dry-run",
    "dry",
    is_flag=True,
    help="Print every server, the data that would be created, sent, written and removed, and exit."
    " Nothing is started or written.",
)
@click.option("--keep-data", is_flag=True, help="Keep the data that the scenarios created on the farm.")
@click.option(
    "--workers",
    type=click.IntRange(0, 256),
    help="Number of load processes on this machine; they share every scenario. [default: one per scenario]",
)
@click.option(
    "--remote-workers",
    type=click.IntRange(1, 256),
    default=None,
    help="Wait for this number of `pinchpoint worker` processes on other machines before the load begins.",
)
@click.option(
    "--listen",
    metavar="ADDRESS[:PORT]",
    help="The address of this machine for the workers of --remote-workers. The command for them is "
    f"printed, with the token they need. [default port: {DEFAULT_PORT}]",
)
@TOKEN_FILE
@click.option(
    _LIVE,
    "live_port",
    metavar="[PORT]",
    type=click.IntRange(0, 65535),
    help="Show the run on a page of this machine while it goes on, with /metrics for Prometheus. "
    f"0: any free port. [default PORT: {DEFAULT_LIVE_PORT}]",
)
@click.option(
    _WEB_UI,
    "web_ui_port",
    metavar="[PORT]",
    type=click.IntRange(1, 65535),
    help="Set the number of users on Locust's own page, with start, stop and ramp, up to the users of the "
    f"plan. The time since the last change is judged. [default PORT: {_PORTS[_WEB_UI]}]",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="With --live: also send its metrics to OpenTelemetry, by OTLP over HTTP, such as "
    "http://127.0.0.1:4318 (the extra otel).",
)
def run(
    plan_file: Path,
    farm_files: tuple[Path, ...],
    out: Path,
    *,
    dry: bool,
    live_port: int | None,
    otlp: str | None,
    **given: Any,
) -> int:
    """Run PLAN against a farm, name the bottleneck, and write the report. The last line is the run folder.

    With --repeat, --aa or several farms it is that of a set: a folder for each farm, set.json, and the
    comparison of the farms.
    """
    web_ui_port = given.pop("web_ui_port")
    crew = _crew(*(given.pop(name) for name in ("workers", "remote_workers", "listen", "token_file")))
    repeated = Repeated(*(given.pop(name) for name in ("repeat", "aa", "factors", "metrics")))
    phases = {name: value for name in ("measure", "warm_up") if (value := given.pop(name)) is not None}
    as_set = repeated.repeat is not None or repeated.aa or len(farm_files) > 1
    if web_ui_port is not None:
        crew = _web_ui_crew(web_ui_port, crew, as_set=as_set, **given)
    options = RunOptions(crew=crew, overrides=phases, **given)
    _check_set_options(repeated, as_set=as_set, resume=options.resume)
    loaded = _loaded(farm_files, plan_file)
    plan = with_phases(loaded[0][1], phases.get("measure"), phases.get("warm_up"))
    members = [(farm, plan) for farm, _ in loaded]
    _check_fits(plan, options)
    if web_ui_port is not None:
        _check_web_ui(plan)
    if dry:
        _say_dry(members, out, repeated, options)
        return ExitStatus.FINE
    with live_page(live_port, otlp) as page:
        if not as_set:
            directory, status = run_and_report(*members[0], out, options, page)
            click.echo(directory)
            return status
        return _run_set(members, out, repeated, partial(run_and_report, options=options, page=page))


@contextmanager
def live_page(port: int | None, otlp: str | None) -> Iterator[LivePage | None]:
    """Open the page of ``--live`` for all runs of this command. Raises InputError, FarmUnavailable."""
    if port is None:
        if otlp is not None:
            raise InputError("--otlp: sends what the page of --live shows; add --live")
        yield None
        return
    from pinchpoint.live.display import LivePage  # noqa: PLC0415 -- most runs have none

    with LivePage(port, otlp) as page:
        click.echo(f"live: {page.url}", err=True)
        yield page


def _run_set(
    members: Sequence[tuple[Farm, Plan]],
    out: Path,
    repeated: Repeated,
    conduct_one: Callable[[Farm, Plan, Path], tuple[Path, ExitStatus]],
) -> int:
    plan = members[0][1]
    from pinchpoint.cli import run_set  # noqa: PLC0415 -- comparing loads the charts, and most runs need none

    farms = [(farm.name, Path(farm.identity)) for farm, _ in members]
    made = new_set(out, plan.name, farms, repeated)
    statuses = run_set.run_members(made, members, conduct_one)
    click.echo(run_set.spread_text(made))
    if made.state == "finished" and len(made.places) > 1:
        click.echo("")
        try:
            statuses.append(run_set.compare_farms(made)[1])
        except InputError as error:  # hours of runs are not lost: `compare` accepts the set later
            click.echo(str(error), err=True)
            statuses.append(error.exit_status)
    click.echo(made.directory)
    return gravest(statuses)


def _say_dry(
    members: Sequence[tuple[Farm, Plan]], out: Path, repeated: Repeated, options: RunOptions
) -> None:
    """Print what a run of each farm would do, and how many runs there are.

    Raises InputError, FarmUnavailable, GuardError.
    """
    for number, (farm, plan) in enumerate(members):
        guard(farm, plan)
        click.echo(dry_run(farm, plan, out, options))
        if (runs := (repeated.repeat or 1) * (2 if repeated.aa and number == 0 else 1)) > 1:
            click.echo(f"\n{runs} runs on this farm: all of it in each of them.")


def _check_set_options(repeated: Repeated, *, as_set: bool, resume: bool) -> None:
    """Raises InputError for set options without a set, and for others with a set, before anything starts."""
    if resume and as_set:
        raise InputError("--resume: goes on with one run on one farm; run it without --repeat, --aa, --farm")
    if (repeated.factors or repeated.metrics) and not as_set:
        raise InputError(
            "--factor, --metric: are for a set of runs, which is compared; add --repeat, or another --farm"
        )
    if repeated.factors or repeated.metrics:
        from pinchpoint.comparison import check_factor, check_metrics  # noqa: PLC0415 -- as above

        for name in repeated.factors:
            check_factor(name)
        check_metrics(repeated.metrics)


def _loaded(farm_files: Sequence[Path], plan_file: Path) -> list[tuple[Farm, Plan]]:
    """Load the plan with every farm. Raises InputError with the problems of all files."""
    members: list[tuple[Farm, Plan]] = []
    problems: list[str] = []
    for farm_file in farm_files:
        try:
            farm, plan = load(farm_file, plan_file)
            expand_all(farm)  # an unset variable is reported with its line before anything starts
            members.append((farm, plan))
        except InputError as error:
            problems += error.problems
    if len({farm.identity for farm, _ in members}) < len(members):
        problems.append("--farm: the same file twice; --aa runs the first farm twice in each round")
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return members


def _check_fits(plan: Plan, options: RunOptions) -> None:
    """Raises InputError if the plan lacks something that the options need."""
    if options.resume and not any(scenario_class(planned.use).ends for planned in plan.scenarios.values()):
        raise InputError(
            "--resume: no scenario of this plan is work that ends, so there is nothing to go on with; "
            "run it without --resume"
        )
    native = sum(planned.params.get("drive") == "native" for planned in plan.scenarios.values())
    if native and len(options.reset_index) > native:
        raise InputError(
            f"--reset-index: given {len(options.reset_index)} times, but the plan has {native} crawl"
            f"{'s' * (native != 1)} of a farm's own (params: {{drive: native}}); give it once for each"
        )
    if options.reset_index and not native:
        raise InputError(
            "--reset-index: no scenario of this plan is a farm's own crawl (params: {drive: native}); one "
            "that Pinchpoint makes resets its own index by itself: run without --reset-index"
        )


def _crew(
    workers: int | None, remote: int | None, listen: str | None, token_file: Path | None
) -> WorkerOptions:
    if remote and not listen:
        raise InputError(
            "--remote-workers: workers of other machines must know where to find this run; "
            "add --listen with an address of this machine that they reach"
        )
    if listen and not remote:
        raise InputError(
            "--listen: say with --remote-workers how many workers of other machines take part; they are "
            "waited for before the load begins, and none is taken in later"
        )
    if workers == 0 and not remote:
        raise InputError("--workers: found 0; without --remote-workers no process would generate load")
    if token_file and not listen:
        raise InputError("--token-file: is for workers of other machines; add --listen with an address")
    token = given_token(token_file)
    if not listen:
        return WorkerOptions(workers)
    made = token is None
    return WorkerOptions(workers, remote or 0, address("--listen", listen), token or new_token(), made)


def _web_ui_crew(
    port: int, crew: WorkerOptions, *, as_set: bool, prove: bool, resume: bool, **_: object
) -> WorkerOptions:
    """Return worker options for the single process that serves Locust's page.

    Raises InputError, FarmUnavailable.
    """
    if crew.workers not in (None, 1) or crew.remote:
        raise InputError(f"{_WEB_UI}: one process serves the page and makes the load; leave the workers out")
    if as_set or prove or resume:
        raise InputError(
            f"{_WEB_UI}: is for one run that you steer; leave out --repeat, --aa, --prove, --resume and "
            "further farms"
        )
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise FarmUnavailable(
            f"{_WEB_UI}: port {port} of 127.0.0.1 cannot be used ({error.strerror}); "
            f"give another: {_WEB_UI}=PORT"
        ) from error
    return replace(crew, workers=1, web_ui_port=port)


def _check_web_ui(plan: Plan) -> None:
    """Raises InputError if Locust's page cannot control the plan: the page only sets a number of users."""
    other = [name for name, planned in plan.scenarios.items() if not isinstance(planned.load, Closed)]
    if other or plan.phases.measure.until:
        what = f"the load of {', '.join(other)}" if other else "phases.measure.until: done"
        raise InputError(
            f"{_WEB_UI}: {what} cannot be set on Locust's page, which knows a number of users; "
            "allowed: load: {model: closed, users: N} in every scenario, and a time to measure"
        )


def run_and_report(
    farm: Farm, plan: Plan, out: Path, options: RunOptions = PLAIN, page: LivePage | None = None
) -> tuple[Path, ExitStatus]:
    """Run a plan, print the verdict, write verdict.json and report.html.

    Returns the run directory and the exit status.
    """
    ended, verdict = run_and_print_verdict(farm, plan, out, options, page)
    return ended.directory, gravest([*ended.statuses, ExitStatus(exit_status(verdict))])


def _cut_off(directory: Path, error: InputError) -> str:
    """Return why a measured run has no verdict or report, and which of its data are kept."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else None
    why = str(error) if directory.is_dir() else f"{directory}: the folder is gone"
    return f"{why}. {what_is_kept(directory, cause)}"


def run_and_print_verdict(
    farm: Farm, plan: Plan, out: Path, options: RunOptions = PLAIN, page: LivePage | None = None
) -> tuple[RunEnd, Verdict]:
    """Run a plan, write verdict.json and report.html, and print the verdict."""
    ended, stored, verdict = run_and_judge(farm, plan, out, options, page)
    click.echo(verdict_text(verdict.to_json(), stored.manifest, ended.directory))
    return ended, verdict


def run_and_judge(
    farm: Farm, plan: Plan, out: Path, options: RunOptions = PLAIN, page: LivePage | None = None
) -> tuple[RunEnd, StoredRun, Verdict]:
    """Run a plan, and write verdict.json and report.html. Only the progress is printed."""
    board, display = _display(farm, plan, page)
    with display as progress:
        ended = run_plan(farm, plan, out, progress, board, options)
        for reason in ended.reasons:
            progress.say(reason)
        progress.say("analysing")
        try:
            stored, verdict = renew_verdict(ended.directory)
            write_run(stored, verdict.to_json(), ["html"], ended.directory)
        # Pinchpoint wrote these files, so damage to them is no error of the user's input
        except InputError as error:
            raise FarmUnavailable(_cut_off(ended.directory, error)) from error
    return ended, stored, verdict


def _display(farm: Farm, plan: Plan, page: LivePage | None) -> tuple[Board, ProgressDisplay]:
    if page is None:
        board = Board()
        return board, ProgressDisplay(board)
    from pinchpoint.live.display import LiveDisplay  # noqa: PLC0415 -- as above
    from pinchpoint.live.state import LiveBoard  # noqa: PLC0415 -- likewise

    shown = LiveBoard()
    return shown, LiveDisplay(shown, page, farm, plan)
