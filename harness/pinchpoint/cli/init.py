"""``pinchpoint init``: writes a first farm.yaml and plan.yaml."""

from __future__ import annotations

import json
import keyword
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path

import click

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.cli import templates
from pinchpoint.cli.arguments import time_zone
from pinchpoint.plan.problems import BadValue
from pinchpoint.plan.units import duration
from pinchpoint.plan.urls import variables

# ``init --scenario NAME`` writes a package: the files of ``skeleton/`` with the name in place of my_app.

SKELETON = Path(__file__).with_name("skeleton")
_NAME = re.compile(r"[a-z][a-z0-9_]{1,30}")
_FILES = (
    "pyproject.toml",
    "README.md",
    "farm.yaml",
    "plan.yaml",
    "my_app/__init__.py",
    "my_app/scenario.py",
    "my_app/collector.py",
)


def package(name: str) -> dict[str, str]:
    """Return path -> content of a package with a scenario and a collector. Raises InputError."""
    from pinchpoint_collectors import registry  # noqa: PLC0415 -- a plain init needs no registry
    from pinchpoint_scenarios.registry import SCENARIOS  # noqa: PLC0415 -- likewise

    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise InputError(
            f"--scenario: found {name!r}; allowed: a Python package's name of 2 to 31 small letters, "
            "digits and _, such as my_app"
        )
    if name in SCENARIOS or name in registry.names():
        raise InputError(f"--scenario: {name!r} is the name of a scenario or collector already; give another")
    class_name = "".join(part.capitalize() for part in name.split("_")) or name
    return {
        path.replace("my_app", name): (SKELETON / path)
        .read_text(encoding="utf-8")
        .replace("MyApp", class_name)
        .replace("my_app", name)
        for path in _FILES
    }


SCHEMAS = ".schema"
"""Folder for the JSON Schemas of both files, which an editor reads without a network."""
_FROM = "--from"
_DISCOVER = "--discover"
_OF_FROM = ("over", "zone", "host", "day")
"""Options that need ``--from``."""
_WATCH = "1m"
_SHORTEST_WATCH_S = 0.1
_SHORTEST_DAY_S = 120.0
"""Shortest length of a simulated day in seconds: each hour then takes five seconds. A shorter day would hide
changes."""


class Init(click.Command):
    """A click command whose ``--from`` and ``--discover`` take all arguments up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``DIR --from A B`` as ``DIR --from A --from B``."""
        return super().parse_args(ctx, list(_spread(args)))


def _spread(args: list[str]) -> Iterator[str]:
    """Repeat such an option before each of its arguments."""
    spread = ""
    for position, argument in enumerate(args):
        if argument in (_FROM, _DISCOVER):
            spread = argument
            if position + 1 == len(args):
                yield argument  # click reports an option without a value
        elif argument.startswith("-"):
            spread = ""
            yield argument
        else:
            yield from ([spread, argument] if spread else [argument])


@click.command(cls=Init)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--scenario",
    metavar="NAME",
    help="Instead write a Python package with a scenario and a collector of your own, and a farm and a plan "
    "that use them. [default DIR: NAME]",
)
@click.option(
    "--template",
    metavar="NAME",
    help=f"Start from a template instead of a farm on this machine: {', '.join(templates.names())}. "
    "'list' prints a line on each.",
)
@click.option("--sql", metavar="URL", help="Write both files for this database, once it has answered.")
@click.option("--nosql", metavar="URL", help="Likewise for this NoSQL store.")
@click.option("--web", metavar="URL", help="Likewise for this web site, which is crawled; needs --sql.")
@click.option(
    "--discover",
    "hosts",
    metavar="HOST...",
    multiple=True,
    help="Look at hosts over ssh (HOST, USER@HOST or a name of ~/.ssh/config) or WinRM (winrm://USER@HOST, "
    "with its password in WINDOWS_PASSWORD) and write what is found: system, disks, servers, roles of disks, "
    "type of machine. Each guess has a comment.",
)
@click.option("--ssh-config", metavar="FILE", help="For --discover: in place of ~/.ssh/config.")
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
    hosts: tuple[str, ...],
    *,
    scenario: str | None,
    template: str | None,
    **given: str | None,
) -> None:
    """Write farm.yaml and plan.yaml into DIR, with comments: a farm on this machine, or like yours."""
    if template == "list":
        for name in templates.names():
            click.echo(f"{name:<16}{templates.summary(name)}")
        return
    urls = {name: url for name in ("sql", "nosql", "web") if (url := given[name]) is not None}
    ways = [way for way, used in (("--template", template), (_DISCOVER, hosts), *urls.items()) if used]
    _check_options(sources, scenario, ways, given)
    if scenario is not None:
        _write_package(directory or Path(scenario), scenario)
        return
    if directory is None:
        raise InputError("DIR: is missing; name the folder for farm.yaml and plan.yaml, such as my-farm")
    there = set(os.environ)
    written = templates.files(template or "embedded")
    _check_free(directory / name for name in written)
    if urls:
        from pinchpoint.cli import init_servers  # noqa: PLC0415 -- it connects: a plain init is quick

        written = init_servers.files(urls)
    if hosts:
        from pinchpoint.cli import discover, init_servers  # noqa: PLC0415 -- as above

        farm = discover.farm_file(hosts, given["ssh_config"])
        written = {"farm.yaml": farm, "plan.yaml": init_servers.plan(discover.endpoints(farm))}
    if sources:
        zone = time_zone(given["zone"])
        written["plan.yaml"] = _fitted(sources, given["over"] or _WATCH, zone, given["host"], given["day"])
    files = {directory / name: _schema_line(name) + text for name, text in written.items()}
    _write(directory, files)
    _write_schemas(directory / SCHEMAS)
    for path in files:
        click.echo(path)
    for sentence in _to_do(directory, files, there):
        click.echo(sentence, err=True)


def _check_options(
    sources: tuple[str, ...],
    scenario: str | None,
    ways: Sequence[str],
    given: Mapping[str, str | None],
) -> None:
    """Raises ``InputError`` for options that exclude each other."""
    if given["ssh_config"] is not None and _DISCOVER not in ways:
        raise InputError(f"--ssh-config: belongs to {_DISCOVER} HOST; add it, or leave it out")
    alone = [f"--{name}" for name in _OF_FROM if given[name] is not None and not sources]
    if alone:
        raise InputError(f"{', '.join(alone)}: belong to {_FROM} SOURCE; add it, or leave them out")
    if scenario is not None and (sources or ways):
        other = _FROM if sources else ways[0]
        raise InputError(f"--scenario: writes a package, and {other} a plan; give one of them")
    if len(ways) > 1 and ways[0].startswith("--"):
        raise InputError(f"{ways[0]}: given with --{ways[1].removeprefix('--')}; give one of them")


def _write_package(directory: Path, name: str) -> None:

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


def _schema_line(name: str) -> str:
    kind = "plan" if name == "plan.yaml" else "farm"
    return f"# yaml-language-server: $schema={SCHEMAS}/{kind}.json\n"


def _to_do(directory: Path, files: Mapping[Path, str], there: Collection[str]) -> Iterator[str]:
    """Yield the steps that the user must still do before the files can be used, then the next command."""
    farms = [text for path, text in files.items() if path.stem != "plan"]
    lines = [line.partition(" #")[0] for text in farms for line in text.splitlines() if line[:1] != "#"]
    used = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    if re.search(r"\.example\b", used):
        yield "to do: replace the names that end in .example with those of your servers"
    unset = [name for name in dict.fromkeys(variables(used)) if name not in there]
    if unset:
        yield f"to do: export {' '.join(f'{name}=...' for name in unset)}"
    if directory / "farm.yaml" in files:
        yield f"next: pinchpoint check {shlex.quote(str(directory))}"
        return
    plan = shlex.quote(str(directory / "plan.yaml"))
    for path in files:
        if path.stem != "plan":
            yield f"next: pinchpoint check {plan} --farm {shlex.quote(str(path))}"


def _fitted(
    sources: tuple[str, ...], over: str, zone: tzinfo | None, host: str | None, day: str | None
) -> str:
    from pinchpoint.cli import init_servers  # noqa: PLC0415 -- as below
    from pinchpoint.fit.fit import fit  # noqa: PLC0415 -- a database driver and all importers: a plain init is quick

    sources = tuple(
        init_servers.filled(_FROM, "sql" if source.startswith("postgres") else "nosql", source)
        if "://" in source and variables(source)
        else source
        for source in sources
    )
    over_s = _seconds("--over", over, _SHORTEST_WATCH_S)
    day_s = _seconds("--day", day, _SHORTEST_DAY_S) if day is not None else None
    return fit(sources, over_s, lambda sentence: click.echo(sentence, err=True), zone, host, day_s)


def _seconds(option: str, text: str, least_s: float) -> float:
    try:
        found_s = duration(text)
    except BadValue as error:
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
