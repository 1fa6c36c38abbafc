"""``pinchpoint import``: imports recordings of other tools as a run of samples, or into an existing run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import click

from pinchpoint.analysis import exit_status
from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.cli.arguments import OUT, time_zone
from pinchpoint.imports import (
    HostPlaces,
    RecordingFile,
    import_as_run,
    import_into_run,
    open_source,
    read_mapping,
    read_names,
    read_places,
    read_text,
    result_kind,
)
from pinchpoint.imports.reading import TimeSpan
from pinchpoint.plan.problems import BadValue
from pinchpoint.plan.units import duration
from pinchpoint.probe.suite_run import new_directory
from pinchpoint.report.files import write_run
from pinchpoint.report.judged import renew_probe_verdict, renew_verdict
from pinchpoint.report.terminal import verdict_text
from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.record import Settings
from pinchpoint_scenarios.storage_probe.results import RESULTS, ResultKind

_PATH = click.Path(path_type=Path)
PUBLISHED = "published"


@click.command(name="import")
@click.argument("files", metavar="FILE...", type=_PATH, nargs=-1, required=True)
@click.option(
    "--into", "run", metavar="RUN", type=_PATH, help="Add the samples to this run, aligned by time."
)
@click.option(
    "--kind",
    metavar="KIND",
    help=f"What FILE is: {', '.join([*registry.names(), *registry.BINARY, *RESULTS])}. "
    "[default: by its beginning]",
)
@click.option(
    "--host", metavar="HOST", help="The host of FILE, if the file does not name it, or to rename it."
)
@click.option(
    "--disk",
    "disks",
    metavar="HOST:DISK=TIER.ROLE",
    multiple=True,
    help="What a disk is used for: SQL1:L:=sql.log, for example. May be repeated.",
)
@click.option(
    "--tier",
    "tiers",
    metavar="HOST=TIER",
    multiple=True,
    help="The tier of a host: APP3=search, for example. May be repeated.",
)
@click.option(
    "--memory",
    metavar="HOST=SIZE",
    multiple=True,
    help="The memory of a host (SQL1=56GB). Windows counters do not contain it.",
)
@click.option(
    "--farm",
    "farm_file",
    metavar="FARM",
    type=_PATH,
    help="A farm.yaml that declares hosts, tiers, disk roles and disk limits.",
)
@click.option("--zone", metavar="ZONE", help="The time zone of FILE: Europe/Berlin, +02:00 or UTC.")
@click.option(
    "--from",
    "from_",
    metavar="TIME",
    help="Ignore samples before this time (2026-11-20T09:00, in ZONE, else UTC).",
)
@click.option("--to", metavar="TIME", help="Ignore samples after this time.")
@click.option("--start", metavar="TIME", help="The time of the first sample, if FILE has no times.")
@click.option(
    "--every", metavar="DURATION", help="The interval between samples, if FILE has no times: 5s, for example."
)
@click.option(
    "--map", "mapping", metavar="MAPPING", type=_PATH, help="A YAML file that describes the columns of a CSV."
)
@click.option(
    "--encoding",
    metavar="NAME",
    help="The encoding of FILE (cp932 on a Japanese Windows). [default: detected]",
)
@click.option(
    "--names",
    metavar="NAMES",
    type=_PATH,
    help="Windows' own list of counter names, for a language that is not known.",
)
@OUT
def import_(  # noqa: PLR0913 - one for each option
    files: tuple[Path, ...],
    *,
    run: Path | None,
    kind: str | None,
    host: str | None,
    disks: tuple[str, ...],
    tiers: tuple[str, ...],
    memory: tuple[str, ...],
    farm_file: Path | None,
    zone: str | None,
    from_: str | None,
    to: str | None,
    start: str | None,
    every: str | None,
    mapping: Path | None,
    encoding: str | None,
    names: Path | None,
    out: Path,
) -> int:
    """Read FILE, a log of another tool, find the bottleneck, and write a report; prints the run folder.

    Results of DiskSpd, CrystalDiskMark, Iometer, fio and bonnie++ become a probe, as `pinchpoint probe` makes
    one; several files are repetitions or further measurements of the same disk.

    Without --into, FILE becomes a run of samples alone. With `--kind published` FILE has a report's figures
    in YAML, without samples: it is judged as `pinchpoint analyse FILE` does, and becomes no run.
    """
    if kind == PUBLISHED:
        return _published(files, into=run)
    known = time_zone(zone)
    results = None if mapping else result_kind(files[0], kind, encoding)
    if results is not None:
        omitted = {"--into": run, "--tier": tiers, "--memory": memory, "--from": from_, "--to": to}
        omitted |= {"--start": start, "--every": every, "--names": names}
        _check_omitted(results, omitted)
        return _probed(files, results, read_places(host, disks, (), (), farm_file), known, encoding, out)
    settings = Settings(
        zone=known,
        names=read_names(names) if names else {},
        mapping=read_mapping(mapping) if mapping else None,
        start_s=_time_s("--start", start, known),
        every_s=_seconds("--every", every),
    )
    between = TimeSpan(_time_s("--from", from_, known), _time_s("--to", to, known))
    places = read_places(host, disks, tiers, memory, farm_file)
    sources = [_opened(path, "csv" if mapping and not kind else kind, encoding) for path in files]
    if run is None:
        directory = import_as_run(sources, settings, places, between, out)
    else:
        if between != TimeSpan():
            raise InputError("--from, --to: with --into, the time of the run is used; omit them")
        added = import_into_run(run, sources, settings, places)
        click.echo(f"Added {counted(added, 'sample')} to {run}", err=True)
        directory = run
    stored, verdict = renew_verdict(directory)
    write_run(stored, verdict.to_json(), ["html"], directory)
    click.echo(verdict_text(verdict.to_json(), stored.manifest, directory))
    click.echo(directory)
    return exit_status(verdict)


def _opened(path: Path, kind: str | None, encoding: str | None) -> RecordingFile:
    """Open a recording. The list of kinds leaves out results of storage tools. Raises InputError."""
    try:
        return open_source(path, kind, encoding)
    except InputError as error:
        kinds = "".join(f"\n  {name}: {of.says}" for name, of in RESULTS.items())
        raise InputError(f"{error}{kinds}" if "the known kinds" in str(error) else str(error)) from error


def _check_omitted(kind: ResultKind, given: Mapping[str, object]) -> None:
    """Raises InputError for options that have no effect on a result of a storage tool."""
    if options := [name for name, value in given.items() if value]:
        raise InputError(
            f"{', '.join(options)}: have no effect on {kind.says}, which becomes a probe; omit them. "
            "`pinchpoint compare PROBE --with PROBE` shows two probes on one page"
        )


def _probed(
    files: Sequence[Path],
    kind: ResultKind,
    places: HostPlaces,
    zone: tzinfo | None,
    encoding: str | None,
    out: Path,
) -> int:
    """Import results of storage tools as a probe, with the files that `pinchpoint probe` writes."""
    from pinchpoint.probe.imported import imported  # noqa: PLC0415 -- other imports need none of it
    from pinchpoint.report.probe import probe_text  # noqa: PLC0415 -- likewise

    made = imported([(path, *read_text(path, encoding)) for path in files], kind, places, zone)
    directory = new_directory(out, made)
    verdict = renew_probe_verdict(made, directory)
    click.echo(probe_text(made, verdict))
    click.echo(directory)
    return ExitStatus.FINE


def _published(files: Sequence[Path], *, into: Path | None) -> int:
    """Judge the published figures of a report. They contain no samples to store."""
    from pinchpoint.published import judge_report, read_report  # noqa: PLC0415 -- other imports need none of it
    from pinchpoint.published.text import published_text  # noqa: PLC0415 -- likewise

    if into is not None:
        raise InputError("--into: published figures contain no samples; omit it")
    reports = [read_report(path) for path in files]
    for report in reports:
        click.echo(published_text(judge_report(report)))
    return ExitStatus.FINE


def _time_s(option: str, text: str | None, zone: tzinfo | None) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"{option}: found {text!r}; allowed: a time such as 2026-11-20T09:00 or 2026-11-20T09:00:00+01:00"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone or UTC)).timestamp()


def _seconds(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        result = duration(text)
    except BadValue as error:
        raise InputError(f"{option}: {error}") from error
    if result <= 0:
        raise InputError(f"{option}: found {text!r}; allowed: more than 0")
    return result
