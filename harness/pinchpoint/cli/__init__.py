"""The command line: one file per command, all of them in one table."""

from __future__ import annotations

import os
import sys
import traceback

import click

from pinchpoint.cli.analyse import analyse
from pinchpoint.cli.check import check
from pinchpoint.cli.compare import compare
from pinchpoint.cli.demo import demo
from pinchpoint.cli.farm import farm
from pinchpoint.cli.init import init
from pinchpoint.cli.report import report
from pinchpoint.cli.run import run
from pinchpoint.cli.runs import runs
from pinchpoint.cli.worker import worker
from pinchpoint.errors import ExitStatus, PinchpointError
from pinchpoint.interrupts import Interrupted

COMMANDS = (demo, init, check, run, analyse, compare, report, farm, worker, runs)


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pinchpoint", prog_name="pinchpoint")
def pinchpoint() -> None:
    """Load a database-heavy farm as its applications would, and say which resource gives way first."""


def main() -> None:
    """Entry of the ``pinchpoint`` command: errors become one clear message and an exit status."""
    sys.exit(_status())


def _status() -> int:
    try:
        # Commands return nothing or an exit status; click itself exits only for --help and --version.
        return int(pinchpoint.main(standalone_mode=False) or ExitStatus.FINE)
    except PinchpointError as error:
        click.echo(str(error), err=True)  # its lines begin with FILE:LINE, as compilers' do
        return error.exit_status
    except click.ClickException as error:
        error.show()
        return ExitStatus.BAD_INPUT
    except (Interrupted, KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has closed it (`| head`); Python must not complain about it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FINE
    except Exception as error:  # noqa: BLE001 -- the last resort: a person gets a sentence, not a traceback
        if os.environ.get("PINCHPOINT_DEBUG"):
            traceback.print_exc()
        click.echo(
            f"internal error: {type(error).__name__}: {error}. This is a fault of Pinchpoint, "
            "not of your input; PINCHPOINT_DEBUG=1 shows where it happened",
            err=True,
        )
        return ExitStatus.INTERNAL
