"""``pinchpoint compare``: shows what changed between two or more sets of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.cli.arguments import show
from pinchpoint.comparison import (
    Comparison,
    check_factor,
    check_metrics,
    exit_status,
    read_again,
    read_sides,
    several_sides,
)
from pinchpoint.comparison import compare as compare_sides
from pinchpoint.comparison.saved import beside
from pinchpoint.comparison.several_sides import SidesComparison
from pinchpoint.comparison.sides import predicted, read_several
from pinchpoint.comparison.statistics import ENOUGH, RUN_TO_RUN
from pinchpoint.plan.files import load_as
from pinchpoint.plan.prices import Prices
from pinchpoint.plan.problems import BadValue
from pinchpoint.plan.units import ratio
from pinchpoint.probe.compare import are_probes, compared
from pinchpoint.probe.several_probes import compare_probes, read_probes
from pinchpoint.report.files import write_comparison
from pinchpoint.report.probe import comparison_text as probe_comparison_text
from pinchpoint.report.terminal import comparison_text
from pinchpoint.run.run_set import SET, is_set, load_set

_DIRECTORY = click.Path(path_type=Path)


_MANY = ("--with", "--aa")
"""Options that take all arguments up to the next option."""


class TwoSides(click.Command):
    """A click command with options of ``_MANY``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``A --with B C`` as ``A --with B --with C``."""
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """Repeat ``--with`` and ``--aa`` before each of the arguments that follow them."""
    spreading = ""
    result: list[str] = []
    for argument in args:
        if argument.startswith("-") and argument != "-":
            spreading = argument if argument in _MANY else ""
            result += [] if spreading else [argument]
        else:
            result += [spreading, argument] if spreading else [argument]
    # An option without a value is left for click to report.
    return [*result, spreading] if spreading and args[-1] == spreading else result


@click.command(cls=TwoSides)
@click.argument("base", metavar="BASE...", nargs=-1, required=True, type=_DIRECTORY)
@click.option(
    "--with",
    "other",
    metavar="RUN...",
    multiple=True,
    type=_DIRECTORY,
    help="The runs to compare BASE with: run folders, or folders of repeated runs. A set of two farms"
    " needs none.",
)
@click.option(
    "--aa",
    metavar="RUN...",
    multiple=True,
    type=_DIRECTORY,
    help="More runs of BASE's farm. The difference between a farm and itself then counts as noise.",
)
@click.option(
    "--factor",
    "factors",
    multiple=True,
    help="What you study: disks, for example. Other differences between the farms are listed and "
    "weaken the conclusion. May be repeated.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="A figure to judge: scenario.crawl.throughput_per_s, for example. Six at most; may be "
    "repeated. [default: those of the plan (compare: {metrics: [...]}); else the figures of "
    "each scenario, p95, and the writes of the studied disks]",
)
@click.option(
    "--margin",
    metavar="RATIO",
    help="Differences within this share count as the same: 5%, for example. [default: as in the "
    "plan, else 5%]",
)
@click.option(
    "--bound",
    type=click.FloatRange(min=1),
    default=None,
    help=f"With fewer than {ENOUGH} runs on a side, report only changes above this factor. "
    f"[default: the plan's, else {RUN_TO_RUN:g}]",
)
@click.option(
    "--prices",
    "price_file",
    metavar="FILE",
    type=_DIRECTORY,
    help="A YAML file with prices per month, as under `prices:` in farm.yaml. [default: those of "
    "each farm.yaml]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the content of comparison.json and nothing else."
)
@click.option(
    "--out",
    type=_DIRECTORY,
    default=None,
    help="The folder for the comparison's folder. [default: that of the first run]",
)
@click.option(
    "--fail-on",
    "fail_on",
    type=click.Choice(["worse"]),
    default=None,
    help="Exit with status 1 when a figure got worse, or more operations failed.",
)
def compare(  # noqa: PLR0913 - one for each option
    base: tuple[Path, ...],
    other: tuple[Path, ...],
    aa: tuple[Path, ...],
    factors: tuple[str, ...],
    metrics: tuple[str, ...],
    *,
    margin: str | None,
    bound: float | None,
    price_file: Path | None,
    out: Path | None,
    fail_on: str | None,
    as_json: bool,
) -> int:
    """Compare the runs BASE with the runs after --with: what changed, how sure, has the bottleneck moved?

    Each side is one run, several repeats of it, or one probe. A set of runs of several farms (run --farm A
    --farm B) has all its sides in it and is given alone. The last line printed is the new folder.

    `compare A B C` (2 to 12 folders, without --with) shows each as a side of its own on one page.
    """
    if not other and len(base) == 2:
        base, other = base[:1], base[1:]
    if are_probes([*base, *other]):
        of_runs = (*factors, *metrics, *aa, *(one for one in (margin, bound, price_file) if one is not None))
        return _probes(base, other, of_runs, out or beside(base), fail_on, as_json=as_json)
    for name in factors:
        check_factor(name)  # before the analysis, which takes minutes
    check_metrics(metrics)
    if bound is not None and not math.isfinite(bound):
        raise InputError(f"--bound: found {bound}; allowed: a number from 1 on, such as {RUN_TO_RUN:g}")
    margin_ratio = _margin(margin) if margin is not None else None
    prices = load_as(Prices, price_file) if price_file else None
    if not other and (many := _many_sides(base)):
        if aa:
            raise InputError("--aa: is for a comparison of two sides; leave it out, or give --with")
        planned = load_set(base[0]) if is_set(base[0]) else None
        return _several(
            several_sides.compare_sides(
                read_several([[side] for side in many]),
                factors or (planned.factors if planned else ()),
                metrics=metrics or (planned.metrics if planned else ()),
                bound=bound,
                margin=margin_ratio,
                prices=prices,
            ),
            out or beside(base),
            fail_on,
            as_json=as_json,
        )
    if not other:
        base, other, aa, factors, metrics = _of_set(base, aa, factors, metrics)
    _check_no_sets((*base, *other, *aa))
    sides = read_sides(base, other)
    again = read_again(sides.base, aa) if aa else None
    result = compare_sides(
        sides,
        factors,
        metrics=metrics,
        bound=bound,
        margin=margin_ratio,
        again=again,
        prices=prices,
        what_if=predicted(sides),
    )
    directory = write_comparison(result, out or beside(base))
    show(result, lambda one: comparison_text(one.to_json()), directory, as_json=as_json)
    if fail_on:
        for line in _why_it_fails(result):
            click.echo(f"--fail-on worse: {line}", err=True)
    return exit_status(result, fail_on_worse=fail_on is not None)


def _many_sides(base: Sequence[Path]) -> tuple[Path, ...]:
    """Return the sides if there are more than two, from folders or from one set; otherwise ()."""
    if len(base) == 1 and is_set(base[0]):
        sides = load_set(base[0]).sides
        return sides if len(sides) >= several_sides.FEWEST else ()
    if len(base) >= several_sides.FEWEST:
        several_sides.check_number(base)
        _check_no_sets(base)
        return tuple(base)
    return ()


def _several(comparison: SidesComparison, out: Path, fail_on: str | None, *, as_json: bool) -> int:
    """Print and write a comparison of several sides."""
    from pinchpoint.report.several_page import text  # noqa: PLC0415 -- charts take a second

    directory = write_comparison(comparison, out)
    show(comparison, text, directory, as_json=as_json)
    return several_sides.exit_status(comparison, fail_on_worse=fail_on is not None)


def _why_it_fails(comparison: Comparison) -> Iterator[str]:
    """Return why ``--fail-on worse`` fails although no figure is worse: worse work, or no figure to judge."""
    worse = [one for one in comparison.work if one.worse]
    yield from (f"{one.about} {one.name}: {one.unlike}" for one in worse)
    if not worse and not any(one.judged.call and one.judged.ci95 for one in comparison.changes):
        yield (
            "no figure that was to be judged has an interval, so none can be called worse; this comparison "
            "cannot fail by it"
        )


def _margin(text: str) -> float:
    """Return a ratio above 0, written as in plans. Raises InputError."""
    try:
        result = ratio(text)
    except BadValue as error:
        raise InputError(f"--margin: {error}") from error
    if not result:
        raise InputError(
            "--margin: found 0; allowed: more than 0: no two runs are the same to the last digit"
        )
    return result


_Given = tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...], tuple[str, ...], tuple[str, ...]]


def _of_set(
    base: tuple[Path, ...], aa: tuple[Path, ...], factors: tuple[str, ...], metrics: tuple[str, ...]
) -> _Given:
    """Return base, other, A/A runs, factors and metrics of a set.

    Options of the command line override them.
    """
    if len(base) != 1 or not is_set(base[0]):
        raise InputError(
            "--with: is missing: give the runs of the other side, or one set of runs (its directory holds "
            f"{SET}) in place of both"
        )
    made = load_set(base[0])
    folders = [str(folder) for folder in made.sides]
    again = made.again
    if len(folders) == 1 and again is not None:
        folders, again = [*folders, str(again)], None
    if len(folders) == 1:
        raise InputError(f"{base[0]}: is a set of one farm; give the runs of another --with")
    return (
        (Path(folders[0]),),
        (Path(folders[1]),),
        aa or ((again,) if again else ()),
        factors or made.factors,
        metrics or made.metrics,
    )


def _check_no_sets(sides: Sequence[Path]) -> None:
    """Raises InputError if a side is a set, because a set has several farms.

    The message names the folders.
    """
    problems = [
        f"{side}: is a set of runs; give one of its farms: {', '.join(map(str, load_set(side).sides))}"
        for side in sides
        if is_set(side)
    ]
    if problems:
        raise InputError(*problems)


def _probes(
    base: tuple[Path, ...],
    other: tuple[Path, ...],
    of_runs: tuple[object, ...],
    out: Path,
    fail_on: str | None,
    *,
    as_json: bool,
) -> int:
    """Compare two storage probes by cell, or more than two on one page."""
    if of_runs:
        raise InputError(
            "--factor, --metric, --aa, --margin, --bound, --prices: are for runs; what differs between two "
            "probes is their disk"
        )
    if not other and len(base) >= several_sides.FEWEST:
        return _several(compare_probes(read_probes(base), base), out, fail_on, as_json=as_json)
    if not other:
        raise InputError("--with: is missing: give the probe of the other side")
    result = compared(base, other)
    directory = write_comparison(result, out)
    show(result, probe_comparison_text, directory, as_json=as_json)
    worse = fail_on is not None and any(one.call == "worse" for one in result.changes)
    return ExitStatus.OBJECTIVES_MISSED if worse else ExitStatus.FINE
