"""``pinchpoint compare``: two sets of runs, and what may be said of their difference."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pinchpoint.comparison import Comparison, check_factor, exit_status, read_sides
from pinchpoint.comparison import compare as compare_sides
from pinchpoint.comparison.saved import beside, directory_for, save, write_reports
from pinchpoint.errors import ExitStatus, InputError
from pinchpoint.probe.compared import are_probes, compared, saved
from pinchpoint.probe.compared import comparison_text as probe_comparison_text
from pinchpoint.report.compared.terminal import comparison_text

_DIRECTORY = click.Path(path_type=Path)


class TwoSides(click.Command):
    """A command whose ``--with`` takes every argument up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``A --with B C`` is read as ``A --with B --with C``."""
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """Repeat ``--with`` before each of the arguments that follow it."""
    spreading = False
    found: list[str] = []
    for argument in args:
        if argument.startswith("-") and argument != "-":
            spreading = argument == "--with"
            found += [] if spreading else [argument]
        else:
            found += ["--with", argument] if spreading else [argument]
    # One that nothing follows is left for click to complain of.
    return [*found, "--with"] if spreading and args[-1] == "--with" else found


@click.command(cls=TwoSides)
@click.argument("base", metavar="BASE...", nargs=-1, required=True, type=_DIRECTORY)
@click.option(
    "--with",
    "other",
    metavar="OTHER...",
    multiple=True,
    required=True,
    type=_DIRECTORY,
    help="The other side: runs, or directories of repeats.",
)
@click.option(
    "--factor",
    "factors",
    multiple=True,
    help="What is studied, such as disks; any other difference weakens the claim. May be given again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print comparison.json's content and nothing else.")
@click.option(
    "--out",
    type=_DIRECTORY,
    default=None,
    help="The folder in which the comparison's directory is made; that of the first run by default.",
)
@click.option(
    "--fail-on",
    "fail_on",
    type=click.Choice(["worse"]),
    default=None,
    help="Exit with 1 when something got worse.",
)
def compare(
    base: tuple[Path, ...],
    other: tuple[Path, ...],
    factors: tuple[str, ...],
    out: Path | None,
    fail_on: str | None,
    *,
    as_json: bool,
) -> int:
    """Compare the runs of BASE with those of OTHER: what differs, what changed, whether the bottleneck moved.

    BASE and OTHER are run directories, or directories of repeats; or one probe each. The last line is the
    directory made.
    """
    if are_probes([*base, *other]):
        return _probes(base, other, factors, out or beside(base), fail_on, as_json=as_json)
    for name in factors:
        check_factor(name)  # before minutes of analysis
    found = compare_sides(read_sides(base, other), factors)
    directory = write_comparison(found, out or beside(base))
    content = found.to_json()
    click.echo(json.dumps(content, indent=1) if as_json else comparison_text(content))
    click.echo(directory, err=as_json)
    if fail_on and not any(one.ci95 for one in found.changes):
        click.echo(
            "--fail-on worse: no change can be called worse yet, as ratios have no interval; "
            "this comparison cannot fail by it",
            err=True,
        )
    return exit_status(found, fail_on_worse=fail_on is not None)


def _probes(
    base: tuple[Path, ...],
    other: tuple[Path, ...],
    factors: tuple[str, ...],
    out: Path,
    fail_on: str | None,
    *,
    as_json: bool,
) -> int:
    """Two storage probes, cell by cell."""
    if factors:
        raise InputError("--factor: is for runs; what differs between two probes is their disk")
    found = compared(base, other)
    directory = saved(found, out)
    click.echo(json.dumps(found.to_json(), indent=1) if as_json else probe_comparison_text(found))
    click.echo(directory, err=as_json)
    worse = fail_on is not None and any(one.call == "worse" for one in found.changes)
    return ExitStatus.OBJECTIVES_MISSED if worse else ExitStatus.FINE


def write_comparison(found: Comparison, parent: Path) -> Path:
    """Make the comparison's directory with comparison.json and report.html; its path. Raises InputError."""
    directory = directory_for(parent, found)
    save(found, directory)
    write_reports(found.to_json(), ["html"], directory)
    return directory
