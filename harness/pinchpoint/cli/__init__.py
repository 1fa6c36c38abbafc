"""Defines the command line. Each command has a module, and a table lists all commands."""

from __future__ import annotations

import difflib
import errno
import io
import os
import re
import sys
import traceback
from importlib import import_module
from keyword import iskeyword

import click
from click.shell_completion import CompletionItem

from pinchpoint.base.errors import ExitStatus, PinchpointError
from pinchpoint.base.interrupts import Interrupted
from pinchpoint.base.redact import masked
from pinchpoint.cli.output import outlive_readers

COMMANDS = {
    "demo": "Load a farm on this machine and name its bottleneck.",
    "init": "Write a commented farm.yaml and plan.yaml.",
    "check": "Check a plan, its farm and every collector. Starts nothing.",
    "run": "Run a plan against a farm, and name the bottleneck.",
    "analyse": "Name the bottleneck of a run.",
    "compare": "Compare the runs of two farms.",
    "what-if": "Predict throughput after a change: a disk, cores, the load.",
    "report": "Write the report of a run, a comparison or a probe.",
    "probe": "Measure one disk, and find what limits it.",
    "import": "Find the bottleneck in logs of other tools.",
    "farm": "Start, stop or show an embedded farm.",
    "worker": "Send load for a run on another machine.",
    "pack": "Pack a run into one file with checksums.",
    "unpack": "Check and unpack a packed run.",
    "schema": "Print the JSON Schema of farm.yaml or plan.yaml.",
    "runs": "List runs, or follow the figures of a plan over many runs.",
}
"""Command -> its line in ``pinchpoint --help``. The function and the module have the same name, with ``_``
for ``-`` and after keywords. The help needs no import of the commands."""


_MAY_NOT = "give another place, or let this user use it"
_NO_ROOM = "make room, or give another place"
_REFUSED = {
    errno.EACCES: _MAY_NOT,
    errno.EPERM: _MAY_NOT,
    errno.EROFS: _MAY_NOT,
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.ENAMETOOLONG: "give a shorter one",
    errno.ELOOP: "give one that leads somewhere",
    errno.EMFILE: "allow this user more open files (ulimit -n 4096)",
    errno.ENFILE: "allow this machine more open files (sysctl fs.file-max)",
    errno.ENOMEM: "end other programs, or allow this user more memory (ulimit -v)",
}
"""Error number that the system may return for a path -> remedy."""
_NO_MEMORY = re.compile(
    r"can't start new thread|failed to map segment from shared object|annot allocate memory"
)
"""Messages about a lack of memory in exceptions other than MemoryError, from Python or the library loader."""


class _Commands(click.Group):
    """Imports only the requested command. Importing all commands, with drivers and charts, takes seconds."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's
        """Write the commands of ``COMMANDS`` into the help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. An unknown name is refused with all allowed names and the nearest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; nearest: {near[0]}" if near else ""
            raise click.UsageError(f"no command {args[0]!r}; allowed: {', '.join(COMMANDS)}{hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command from ``COMMANDS``, without importing the command."""
        options = click.Command.shell_complete(self, ctx, incomplete)
        named = [(name, line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return [*(CompletionItem(name, help=line) for name, line in named), *options]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's
        if cmd_name not in COMMANDS:
            return None
        return command(cmd_name)


def command(name: str) -> click.Command:
    """Import and return the command of a name in ``COMMANDS``."""
    module = f"{name}_" if iskeyword(name) else name.replace("-", "_")
    result: click.Command = getattr(import_module(f"pinchpoint.cli.{module}"), module)
    return result


def _install_completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is not None and not ctx.resilient_parsing:
        from pinchpoint.cli.completion import install  # noqa: PLC0415 -- once in a lifetime

        click.echo(install(shell))
        ctx.exit()


def _manual(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from pinchpoint.cli.manual import manual  # noqa: PLC0415 -- with every command

        click.echo(manual({name: command(name) for name in COMMANDS}, ctx.command.help or ""))
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pinchpoint", prog_name="pinchpoint")
@click.option(
    "--install-completion",
    metavar="[=SHELL]",
    is_flag=False,
    flag_value="",
    is_eager=True,
    expose_value=False,
    callback=_install_completion,
    help="Let bash, zsh or fish complete commands and options. [default: your shell]",
)
@click.option(
    "--man",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_manual,
    help="Print the manual page: pinchpoint --man | man -l -",
)
def pinchpoint() -> None:
    """Load a database farm as its applications do, and find the resource that limits throughput."""


def main() -> None:
    """Run the ``pinchpoint`` command. An error becomes one message and an exit status."""
    outlive_readers()
    sys.exit(_status())


def _status() -> int:
    try:
        # Commands return None or an exit status. click itself exits only for --help and --version.
        return int(pinchpoint.main(standalone_mode=False) or ExitStatus.FINE)
    except PinchpointError as error:
        click.echo(masked(str(error)), err=True)  # the lines begin with FILE:LINE, as those of a compiler
        return error.exit_status
    except click.ClickException as error:
        usage = io.StringIO()
        error.show(file=usage)
        click.echo(masked(usage.getvalue()), nl=False, err=True)
        return ExitStatus.BAD_INPUT
    except (Interrupted, KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return ExitStatus.INTERRUPTED
    except Exception as error:  # noqa: BLE001 -- the last resort: a person gets a sentence, not a traceback
        return _failed(error)


def _failed(error: Exception) -> int:
    if os.environ.get("PINCHPOINT_DEBUG"):
        click.echo(masked("".join(traceback.format_exception(error))), err=True)
    if isinstance(error, OSError) and error.errno in _REFUSED:
        # The message names the path that the system refused.
        # any file has the same problem
        named = error.filename and error.errno not in (errno.EMFILE, errno.ENFILE)
        place = f"{os.fsdecode(error.filename)}: " if named else ""
        click.echo(masked(f"{place}{error.strerror}; {_REFUSED[error.errno]}"), err=True)
        return ExitStatus.ENVIRONMENT
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        click.echo(masked(f"too little memory: {error}; {_REFUSED[errno.ENOMEM]}"), err=True)
        return ExitStatus.ENVIRONMENT
    click.echo(
        f"internal error: {type(error).__name__}: {masked(str(error))}. This is a fault of Pinchpoint, "
        "not of your input; PINCHPOINT_DEBUG=1 shows where it happened",
        err=True,
    )
    return ExitStatus.INTERNAL
