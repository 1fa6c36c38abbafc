"""``pinchpoint init``: a farm.yaml and a plan.yaml to start from."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from pathlib import Path

import click

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.cli.arguments import time_zone
from pinchpoint.plan.problems import Unfit
from pinchpoint.plan.units import duration

FARM = """\
# The farm: what is tested. Durations, sizes and rates carry their unit (10s, 8KiB, 200/s).

name: my-farm
environment: test        # test, staging or production; scenarios that write refuse production

# The embedded farm: real servers, started on this machine for the test and stopped after it.
embedded:
  tiers: [web, sql, search, nosql, files]     # any subset; web needs sql
  # disks:                 # disks of their own, as slow as you say (root; else plain folders, and a warning)
  #   sql.log: {profile: azure/p10, latency: 1ms, time_scale: 60}    # or limits: {iops: 500}
  # cpus: {search: 0.5}    # cores a tier may use (root)
  # delays: {web: 250ms}   # round trip to an endpoint
  # throttle: {web: 50/s}  # what comes faster is refused: 429 with Retry-After
  # content:
  #   corpus: documents    # fill it with this folder's documents; default: this machine's documentation
  #   documents: 2000      # their number; copies are added where there are fewer

# --- A real farm: remove 'embedded' above, and the '# ' at the beginning of every line below. ---
# endpoints:
#   # What the scenarios talk to; leave out what your farm does not have. ${NAME} is taken from the
#   # environment when a run starts and is never written anywhere: keep passwords there.
#   sharepoint: {url: "https://intranet.example", auth: basic, user: "${SP_USER}", password: "${SP_PASSWORD}"}
#   web: {url: "https://www.example"}        # a web site that is crawled by its links and sitemaps
#   files: {path: /srv/documents}            # a folder of documents; or smb://HOST/SHARE, with a login
#   sql: {url: "postgresql://loader:${PGPASSWORD}@sql1.example:5432/loadtest"}    # or mssql+odbc, mysql+odbc
#   nosql: {url: "valkey://:${VALKEY_PASSWORD}@cache1.example:6379/0"}  # or redis, cassandra, scylla, mongodb
#   search: {kind: none}                     # where crawled documents go: nowhere; or to an index:
#   # search: {url: "https://app3.example:9200/documents", kind: opensearch, token: "${SEARCH_TOKEN}"}
#   # crawler: {url: "winrm://app3.example", user: "${SP_USER}", password: "${SP_PASSWORD}"}  # its own crawl
# tiers:
#   # Who plays which role. A host without 'collect' is not watched, and the verdict says so.
#   sql:
#     hosts:
#       sql1:
#         machine: azure/ds12                # what the machine as a whole can do, from the catalogue
#         collect:
#           - {kind: local, process: postgres}    # this machine; 'process' or 'port' say what is the tier's
#         disks:                             # role: where it lies (device or path), what it can do
#           log: {device: nvme1n1, profile: azure/p30}
#           data: {path: /var/lib/postgresql, limits: {iops: 5000, bytes_per_s: 200MB/s, io_unit: 8KiB}}
#   search:
#     hosts:
#       app3:
#         disks:
#           index: {device: sdc, limits: unknown}
# prove:                   # what `run --prove` may make slower, and how; a shell on this machine runs it
#   sql.log: {slower: "ssh sql1 slow-log on", restore: "ssh sql1 slow-log off", by: 20%}
"""

PLAN = """\
# The plan: which scenarios run against the farm, at what load, for how long.

name: first-look
seed: 1                  # decides everything random: the same seed gives the same operations

scenarios:
  # Crawls every source the farm offers into its search tier, as fast as 8 crawlers can.
  crawl:
    use: full-crawl
    load: {model: closed, users: 8}      # users at once; think: 1s lets each pause

  # Short transactions that arrive at a rate, whether or not the earlier ones have ended.
  orders:
    use: sql-mix
    load: {model: open, rate: 100/s}     # arrivals: poisson (default) or constant
    # Level by level, until throughput no longer follows: the knee, and how much is enough.
    # load: {model: steps, start: 50/s, step: 50/s, each: 1m, until: saturation}
    params: {preset: balanced}           # or log-heavy, data-heavy, bulk, tempdb, read-mostly
    # params: {operations: {log_append: 8, point_read: 2}}     # or a mix of your own, by weight

  # Steady writes with a burst of 5 seconds every 15.
  burst:
    use: nosql-burst
    load: {model: burst, base: 50/s, peak: 500/s, every: 15s, for: 5s}

phases:
  warm_up: 5s
  # Until the crawl is done; or a fixed time (measure: 10m), in which a crawl that ends starts again.
  measure: {until: done, at_least: 40s, at_most: 15m}
  cool_down: 0s

# What has to be achieved; a run that misses one ends with exit status 1. Optional.
objectives:
  - {scenario: crawl, errors: 1%}
  - {scenario: orders, p95: 1s}          # or p50, p99; throughput: 90/s

# What is judged wherever runs of this plan are held against others (run --repeat, compare): six figures at
# most. Optional: plan and what is studied decide otherwise.
# compare: {metrics: [scenario.crawl.throughput_per_s, scenario.orders.response_p95_s], margin: 5%}
"""


SCHEMAS = ".schema"
"""The folder beside both files with their JSON Schema: an editor reads it without a network."""
_FROM = "--from"
_WATCH = "1m"
_SHORTEST_WATCH_S = 0.1
_SHORTEST_DAY_S = 120.0
"""An hour of the day then takes five seconds: what is shorter shows no course."""


class Init(click.Command):
    """A command whose ``--from`` takes every argument up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``DIR --from A B`` is read as ``DIR --from A --from B``."""
        return super().parse_args(ctx, list(_spread(args)))


def _spread(args: list[str]) -> Iterator[str]:
    """Repeat ``--from`` before each of the arguments that follow it."""
    spreading = False
    for position, argument in enumerate(args):
        if argument == _FROM:
            spreading = True
            if position + 1 == len(args):
                yield argument  # one that nothing follows is left for click to complain of
        elif argument.startswith("-"):
            spreading = False
            yield argument
        else:
            yield from ([_FROM, argument] if spreading else [argument])


@click.command(cls=Init)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--scenario",
    metavar="NAME",
    help="Instead write a Python package with a scenario and a collector of your own, and a farm and a plan "
    "that use them. [default DIR: NAME]",
)
@click.option(
    "--from",
    "sources",
    metavar="SOURCE...",
    multiple=True,
    help="Fit plan.yaml to production. Sources: two CSV exports each of pg_stat_statements, "
    "_database, _io, _wal, dm_io_virtual_file_stats or dm_os_wait_stats; one export of the "
    "Query Store; two outputs of INFO all (Valkey, Redis); runs with samples of a store (also"
    " Cassandra, MongoDB); recordings of perfmon, sadf, iostat or node_exporter; or a server:"
    " postgresql://, valkey://, mongodb://.",
)
@click.option("--over", metavar="DURATION", help=f"How long a server is watched. [default: {_WATCH}]")
@click.option(
    "--zone",
    metavar="ZONE",
    help="The time zone of recordings without one, and of the hours in the output: Europe/Berlin, +02:00.",
)
@click.option("--host", metavar="HOST", help="The host to use, if the recordings contain several.")
@click.option(
    "--day",
    metavar="DURATION",
    help="Squeeze the whole day into this time (24m), instead of using its busiest hour.",
)
def init(
    directory: Path | None,
    sources: tuple[str, ...],
    *,
    scenario: str | None,
    over: str | None,
    zone: str | None,
    host: str | None,
    day: str | None,
) -> None:
    """Write farm.yaml and plan.yaml into DIR, with comments: a farm on this machine, a template for yours."""
    said = {"--over": over, "--zone": zone, "--host": host, "--day": day}
    alone = [name for name, value in said.items() if value is not None and not sources]
    if alone:
        raise InputError(f"{', '.join(alone)}: belong to {_FROM} SOURCE; add it, or leave them out")
    if scenario is not None:
        if sources:
            raise InputError(f"--scenario: writes a package, and {_FROM} a plan; give one of them")
        _write_package(directory or Path(scenario), scenario)
        return
    if directory is None:
        raise InputError("DIR: is missing; name the folder for farm.yaml and plan.yaml, such as my-farm")
    files = {directory / "farm.yaml": FARM, directory / "plan.yaml": PLAN}
    _check_free(files)
    if sources:
        files[directory / "plan.yaml"] = _fitted(sources, over or _WATCH, time_zone(zone), host, day)
    _write(directory, {path: _schema_line(path.stem) + text for path, text in files.items()})
    _write_schemas(directory / SCHEMAS)
    for path in files:
        click.echo(path)
    click.echo(f"next: pinchpoint check {shlex.quote(str(directory))}", err=True)


def _write_package(directory: Path, name: str) -> None:
    from pinchpoint.cli.new_package import package  # noqa: PLC0415 -- a plain init needs none of it

    files = {directory / path: text for path, text in package(name).items()}
    _check_free(files)
    _write(directory, files)
    for path in files:
        click.echo(path)
    click.echo(f"next: pip install -e {shlex.quote(str(directory))}, then its README.md", err=True)


def _check_free(paths: Iterable[Path]) -> None:
    remedy = "nothing was written; move it away, or name another folder"
    if there := [path for path in paths if os.path.lexists(path)]:
        raise InputError(*(f"{path}: exists already; {remedy}" for path in there))


def _schema_line(kind: str) -> str:
    return f"# yaml-language-server: $schema={SCHEMAS}/{kind}.json\n"


def _fitted(
    sources: tuple[str, ...], over: str, zone: tzinfo | None, host: str | None, day: str | None
) -> str:
    from pinchpoint.fit.fit import fit  # noqa: PLC0415 -- a database driver and all importers: a plain init is quick

    over_s = _seconds("--over", over, _SHORTEST_WATCH_S)
    day_s = _seconds("--day", day, _SHORTEST_DAY_S) if day is not None else None
    return fit(sources, over_s, lambda sentence: click.echo(sentence, err=True), zone, host, day_s)


def _seconds(option: str, text: str, least_s: float) -> float:
    try:
        found_s = duration(text)
    except Unfit as error:
        raise InputError(f"{option}: {error}") from error
    if found_s < least_s:
        raise InputError(f"{option}: found {text!r}; allowed: {least_s:g}s or longer")
    return found_s


def _write(directory: Path, files: dict[Path, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.parent.mkdir(exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"{error.filename}: is in the way; name another folder") from error
    except OSError as error:
        place = error.filename or directory
        raise FarmUnavailable(
            f"{place}: cannot be written ({error.strerror}); name another folder"
        ) from error


def _write_schemas(directory: Path) -> None:
    from pinchpoint.plan.schema import FILES, schema  # noqa: PLC0415 -- it imports every scenario

    try:
        directory.mkdir(exist_ok=True)
        for kind in FILES:
            (directory / f"{kind}.json").write_text(
                json.dumps(schema(kind), indent=1) + "\n", encoding="utf-8"
            )
    except OSError as error:
        place = error.filename or directory
        raise FarmUnavailable(
            f"{place}: cannot be written ({error.strerror}); name another folder"
        ) from error
