"""``pinchpoint worker``: leaves no process behind, and accepts work only with its token."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from support import end, run_cli, start_cli, until

from pinchpoint.loadgen.permits import TOKEN_VARIABLE

TOKEN = "a-token-of-the-tests-and-of-nothing-else"


@pytest.fixture
def nowhere() -> Iterator[str]:
    """Yield a bound address without a listener, so no controller answers there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_what_ends_a_worker_ends_its_child(how: signal.Signals, nowhere: str) -> None:
    """When the worker ends, its child ends too; after SIGKILL the child notices by itself."""
    worker = start_cli("worker", "--master", nowhere, env={TOKEN_VARIABLE: TOKEN})
    child = _child(worker)
    status, _, err = end(worker, how)
    assert status == (-signal.SIGKILL if how is signal.SIGKILL else 130), err
    assert "Traceback" not in err
    psutil.wait_procs([child], timeout=0 if how is not signal.SIGKILL else 60)
    with suppress(psutil.NoSuchProcess):
        assert child.status() == psutil.STATUS_ZOMBIE, "it ended; who inherited it has not asked yet"


def test_no_command_line_shows_the_token(nowhere: str, tmp_path: Path) -> None:
    """No command line shows the token, and the child's environment has permitted variables only."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    more = {"CANARY_FREE": "seen", "CANARY_SECRET": "not-seen", TOKEN_VARIABLE: TOKEN}
    for given in (("--token-file", file), ()):
        worker = start_cli("worker", "--master", nowhere, *given, "--allow-env", "CANARY_FREE", env=more)
        child = _child(worker)
        shown = " ".join(psutil.Process(worker.pid).cmdline() + child.cmdline())
        environment = child.environ()
        end(worker, signal.SIGTERM)
        assert TOKEN not in shown
        assert TOKEN not in str(environment)
        assert environment["CANARY_FREE"] == "seen"
        assert "CANARY_SECRET" not in environment


@pytest.mark.parametrize(
    ("token", "mode", "said"),
    [
        (None, 0o600, f"export {TOKEN_VARIABLE}=TOKEN"),
        ("short", 0o600, "a token has 32 to 256"),
        (f"{TOKEN} {TOKEN}", 0o600, "without white space"),
        (TOKEN, 0o644, "chmod 600"),
    ],
)
def test_without_a_token_of_its_own_it_does_not_start(
    tmp_path: Path, token: str | None, mode: int, said: str
) -> None:
    """Without a token, or with a file that others can read, it ends with status 2 and the remedy."""
    file = tmp_path / "token"
    if token is not None:
        file.write_text(token)
        file.chmod(mode)
    given = ("--token-file", file) if token is not None else ()
    done = run_cli("worker", "--master", "127.0.0.1", *given, starts_nothing=True)
    assert done.returncode == 2
    assert said in done.stderr
    assert token is None or token not in done.stderr


def test_what_may_be_permitted(tmp_path: Path) -> None:
    """A permission for the token's variable or for a missing folder is refused with exit status 2."""
    for given, said in (
        (("--allow-env", TOKEN_VARIABLE), "never"),
        (("--allow-env", "A B"), "'A B'"),
        (("--allow-path", tmp_path / "no"), "is no folder here"),
    ):
        command = ("worker", "--master", "127.0.0.1", *given)
        done = run_cli(*command, env={TOKEN_VARIABLE: TOKEN}, starts_nothing=True)
        assert done.returncode == 2
        assert said in done.stderr


def test_its_help_says_what_travels() -> None:
    """The help says what is transferred, that it is encrypted, and what the token allows."""
    said = " ".join(run_cli("worker", "--help", starts_nothing=True).stdout.split())
    for words in (
        "What the controller sends",
        "What this worker sends",
        "What does not travel",
        "encrypted",
        "Whoever knows the token",
        "password",
    ):
        assert words in said


def _child(worker: subprocess.Popen[str]) -> psutil.Process:
    """Return the process of a run, once it is no longer a copy of the worker."""
    [child] = until(psutil.Process(worker.pid).children, "started no process for a run")
    until(lambda: "pinchpoint.loadgen.remote" in child.cmdline())
    return child
