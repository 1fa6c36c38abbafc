"""``pinchpoint worker``: lets this machine send load for runs on another machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click

from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.base.interrupts import Interrupts
from pinchpoint.cli.arguments import TOKEN_FILE
from pinchpoint.loadgen.permits import TOKEN_VARIABLE, Permits, given_token
from pinchpoint.loadgen.workers import DEFAULT_PORT
from pinchpoint_collectors.environment import child_environment

_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[^:\s/]+)(?::(?P<port>\d{1,5}))?")


def address(option: str, text: str) -> tuple[str, int]:
    """Return ``HOST[:PORT]`` as host and port. Raises InputError."""
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or DEFAULT_PORT) if match else 0
    if not match or not 0 < port < 65536:
        raise InputError(
            f"{option}: found {text!r}; allowed is HOST or HOST:PORT, such as 10.0.0.5 or loader1:5557"
        )
    return match["host"], port


@click.command()
@click.option(
    "--master",
    required=True,
    metavar="HOST[:PORT]",
    help="The address of the controller, where `pinchpoint run --listen` runs.",
)
@TOKEN_FILE
@click.option(
    "--allow-env",
    "variables",
    multiple=True,
    metavar="NAME",
    help="A variable of this machine that a farm.yaml may use as ${NAME}. May be repeated. [default: none]",
)
@click.option(
    "--allow-path",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder whose files a plan may use on this machine: locustfiles (they are executed), "
    "SQL scripts, captures, documents, disks. May be repeated. [default: none]",
)
@click.option("--once", is_flag=True, help="Exit after one run.")
def worker(
    master: str,
    token_file: Path | None,
    variables: tuple[str, ...],
    folders: tuple[Path, ...],
    *,
    once: bool,
) -> int:
    """Send load for a controller on another machine, run after run, until Ctrl-C.

    Start the controller first: `pinchpoint run ... --listen ADDRESS --remote-workers N`. It prints a token
    and the command for this machine. Give the token in PINCHPOINT_WORKER_TOKEN or in a file (--token-file).

    What the controller sends: the plan's scenarios; the farm's endpoints, with ${NAME} not filled in (a
    password that is written out in farm.yaml does travel); when to begin, share and stop.

    What this worker sends: its host name, cores, clock and version; counts and times of operations; events,
    with error messages; how well it keeps up.

    What does not travel: values of variables, and files. Both are read here, and only where you permit it.

    All of it is encrypted (CURVE), and both ends prove that they know the token. Without it no message gets
    in on either side.

    Whoever knows the token can make this worker send load and SQL to any server that it reaches, run the
    locustfiles that you permit, and read the farm's endpoints from the controller.
    """
    host, port = address("--master", master)
    token = given_token(token_file)
    if token is None:
        raise InputError(
            "this worker has no token, and without one anyone could give it work; start the controller "
            "(pinchpoint run ... --listen ADDRESS), which prints a token, then here: export "
            f"{TOKEN_VARIABLE}=TOKEN, or put it into a file and add --token-file FILE"
        )
    permits = Permits.given(variables, folders)
    given = json.dumps({"token": token, **asdict(permits)}).encode() + b"\n"
    click.echo(f"waiting for a run at {host}:{port}; Ctrl-C ends this worker", err=True)
    with Interrupts():  # SIGTERM must also end the processes that are started here
        while True:
            status = _one_run(host, port, given, permits)
            if status == ExitStatus.ENVIRONMENT:
                return status
            if once:
                return ExitStatus.FINE if status == 0 else ExitStatus.ENVIRONMENT


def _one_run(host: str, port: int, given: bytes, permits: Permits) -> int:
    """Make one run in a process of its own, so that no state is left for the next. Return its exit status.

    The process reads the token from its pipe. It gets only the environment variables that the user permits.
    """
    own = str(os.getpid())  # the process notices by this id that this one was killed
    process = subprocess.Popen(
        [sys.executable, "-m", "pinchpoint.loadgen.remote", host, str(port), own],
        stdin=subprocess.PIPE,
        env=child_environment(permits.variables),
        bufsize=0,
    )
    try:
        assert process.stdin is not None  # noqa: S101 -- opened as a pipe above
        with suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(given)
        return process.wait()
    finally:
        process.kill()
        process.wait()
