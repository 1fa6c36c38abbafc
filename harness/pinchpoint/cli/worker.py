"""``pinchpoint worker``: lend this machine to runs that are driven from another one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import click

from pinchpoint.errors import ExitStatus, InputError
from pinchpoint.interrupts import Interrupts
from pinchpoint.loadgen.crew import DEFAULT_PORT

_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[^:\s/]+)(?::(?P<port>\d{1,5}))?")


def address(option: str, text: str) -> tuple[str, int]:
    """``HOST[:PORT]`` as (host, port). Raises InputError."""
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if not found or not 0 < port < 65536:
        raise InputError(
            f"{option}: found {text!r}; allowed is HOST or HOST:PORT, such as 10.0.0.5 or loader1:5557"
        )
    return found["host"], port


@click.command()
@click.option(
    "--master", required=True, metavar="HOST[:PORT]", help="Where `pinchpoint run --listen` is started."
)
@click.option("--once", is_flag=True, help="End after one run.")
def worker(master: str, *, once: bool) -> int:
    """Take part in the runs of a controller on another machine, one after the other, until Ctrl-C.

    The controller is started there with `pinchpoint run ... --listen ADDRESS --remote-workers N`. Variables
    that farm.yaml names as ${VARIABLE} must be set here too: secrets do not travel.
    """
    host, port = address("--master", master)
    click.echo(f"waiting for a run at {host}:{port}; Ctrl-C ends this worker", err=True)
    with Interrupts():  # SIGTERM, too, ends what is started here
        while True:
            status = _one_run(host, port)
            if status == ExitStatus.ENVIRONMENT:
                return status
            if once:
                return ExitStatus.FINE if status == 0 else ExitStatus.ENVIRONMENT


def _one_run(host: str, port: int) -> int:
    """A process of its own for each run, so that nothing of one is left in the next; its exit status."""
    own = str(os.getpid())  # by which it sees that this one was killed
    process = subprocess.Popen([sys.executable, "-m", "pinchpoint.loadgen.remote", host, str(port), own])
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()
