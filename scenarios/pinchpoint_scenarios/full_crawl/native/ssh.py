"""A link by the system's ssh: its configuration, agent and known hosts are the user's own.

``powershell -Command -`` reads commands from standard input line by line. The only one it is given reads the
next line, which is the script, and runs it; from then on the script reads the lines.
"""

from __future__ import annotations

import base64
import contextlib
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...addresses import place, unreachable
from ...contract import Endpoint
from .link import Line, LinkLost, checked, ends, line_of, parts, request_text, script, told

POWERSHELL = "powershell -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command -"
_LOADER = (
    "& ([ScriptBlock]::Create([Text.Encoding]::UTF8.GetString("
    "[Convert]::FromBase64String([Console]::In.ReadLine())))) -Serve"
)
_SECRET = "PINCHPOINT_SSH_PASSWORD"  # noqa: S105 - the name of a variable
_ASKPASS = f"#!/bin/sh\nprintf '%s\\n' \"${_SECRET}\"\n"
_REFUSED = ("permission denied", "too many authentication failures")
_UNKNOWN_HOST = ("host key verification failed", "remote host identification has changed")
_KEPT_LINES = 20
_END_S = 3.0


class SshLink:
    """See ``Link``.

    Args:
        endpoint: the endpoint ``crawler``: ``ssh://HOST[:PORT]`` with ``user``, ``password``, ``key``,
            ``known_hosts``.
        within_s: how long opening it may take.

    Raises:
        LinkLost: the machine does not answer.
        EndpointUnreachable: it refuses the login, its key is not known, or there is no ssh here.
    """

    def __init__(self, endpoint: Endpoint, within_s: float) -> None:
        self._endpoint = endpoint
        self._number = 0
        self._buffer = b""
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        self._secrets = contextlib.ExitStack()
        host = parts(endpoint).hostname or ""
        if not host or host.startswith("-"):
            raise unreachable(
                endpoint,
                f"its host is {host!r}",
                "write a host that does not begin with -: ssh://HOST[:PORT]",
            )
        program = shutil.which("ssh")
        if program is None:
            raise unreachable(endpoint, "there is no program ssh here", "install it (Debian: openssh-client)")
        self._in, self._out, self._err, self._process = self._start(program)
        try:
            lines = f"{_LOADER}\n{base64.b64encode(script().encode()).decode()}\n"
            self._send(lines.encode(), time.monotonic() + within_s)
        except BaseException:
            self.close()
            raise

    def ask(self, request: Mapping[str, Any], within_s: float) -> list[Line]:
        """See ``Link``."""
        until = time.monotonic() + within_s
        self._number += 1
        self._send(request_text({**request, "id": self._number}).encode() + b"\n", until)
        found: list[Line] = []
        while True:
            line = line_of(text := self._line(until))
            if line is None:
                self._said.append(text)
                continue
            found.append(line)
            if ends(line, self._number):
                return checked(found)

    def close(self) -> None:
        """See ``Link``."""
        self._secrets.close()
        for descriptor in (self._in, self._out, self._err):
            with contextlib.suppress(OSError):  # closed before
                os.close(descriptor)
        self._in = self._out = self._err = -1
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _start(self, program: str) -> tuple[int, int, int, subprocess.Popen[bytes]]:
        """Start ssh with pipes of ours: (its input, output, error output, itself)."""
        environment = {**os.environ, **self._login_environment()}
        (their_in, ours_in), (ours_out, their_out), (ours_err, their_err) = os.pipe(), os.pipe(), os.pipe()
        try:
            process = subprocess.Popen(
                [program, *self._options(), "--", parts(self._endpoint).hostname or "", POWERSHELL],
                stdin=their_in,
                stdout=their_out,
                stderr=their_err,
                env=environment,
                start_new_session=True,  # Ctrl-C at the terminal is for the controller
            )
        except OSError as error:
            for descriptor in (ours_in, ours_out, ours_err):
                os.close(descriptor)
            raise unreachable(
                self._endpoint, f"ssh cannot be started: {error.strerror}", "see to it"
            ) from error
        finally:
            for descriptor in (their_in, their_out, their_err):
                os.close(descriptor)
        for descriptor in (ours_in, ours_out, ours_err):
            os.set_blocking(descriptor, False)
        return ours_in, ours_out, ours_err, process

    def _options(self) -> list[str]:
        given, port = self._endpoint.options, parts(self._endpoint).port
        settings = {
            "StrictHostKeyChecking": "yes",
            "ServerAliveInterval": "10",
            "ServerAliveCountMax": "3",
            "ConnectTimeout": "15",
            "LogLevel": "ERROR",
        }
        if "password" in given:
            settings |= {"PreferredAuthentications": "password,keyboard-interactive"}
            settings |= {"PubkeyAuthentication": "no", "NumberOfPasswordPrompts": "1"}
        else:
            settings |= {"BatchMode": "yes"}
        if "known_hosts" in given:
            known = _quoted(given["known_hosts"])
            settings |= {"UserKnownHostsFile": known, "GlobalKnownHostsFile": "/dev/null"}
        if "key" in given:
            settings |= {"IdentityFile": _quoted(given["key"]), "IdentitiesOnly": "yes"}
        options = ["-T", *(f"-o{name}={value}" for name, value in settings.items())]
        options += [f"-p{port}"] if port else []
        return options + ([f"-l{given['user']}"] if "user" in given else [])

    def _login_environment(self) -> dict[str, str]:
        """A password goes to ssh by its environment: a command line is there for everybody to read."""
        password = self._endpoint.options.get("password")
        if password is None:
            return {}
        folder = self._secrets.enter_context(tempfile.TemporaryDirectory(prefix="pinchpoint-ssh-"))
        teller = Path(folder) / "askpass"
        teller.write_text(_ASKPASS)
        teller.chmod(0o700)
        return {_SECRET: password, "SSH_ASKPASS": str(teller), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":"}

    def _send(self, data: bytes, until: float) -> None:
        while data:
            if not select.select([], [self._in], [], max(0.0, until - time.monotonic()))[1]:
                raise self._lost("it takes nothing")
            try:
                data = data[os.write(self._in, data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._ended() from error

    def _line(self, until: float) -> str:
        """The next line of the output."""
        while b"\n" not in self._buffer:
            ready = select.select([self._out, self._err], [], [], max(0.0, until - time.monotonic()))[0]
            if not ready:
                raise self._lost("no answer in time")
            self._listen(self._err in ready)
            if self._out in ready:
                data = self._read(self._out)
                if data == b"":
                    raise self._ended()
                self._buffer += data or b""
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    def _listen(self, ready: bool) -> None:
        """Keep what is said on the error output: it is wanted when things go wrong."""
        data = self._read(self._err) if ready else None
        if data:
            self._said += data.decode("utf-8", "replace").splitlines()

    @staticmethod
    def _read(descriptor: int) -> bytes | None:
        """What is there; nothing at the end, None where nothing has come."""
        try:
            return os.read(descriptor, 65536)
        except BlockingIOError:
            return None

    def _lost(self, why: str) -> LinkLost:
        said = told(self._said, self._endpoint)
        return LinkLost(f"{place(self._endpoint)}: {why}" + (f"; it said: {said}" if said else ""))

    def _ended(self) -> Exception:
        """Why ssh has ended: an error that would come again, or a link that may come back."""
        with contextlib.suppress(subprocess.TimeoutExpired):  # it has closed its output: it is about to end
            self._process.wait(_END_S)
        with contextlib.suppress(OSError):
            while select.select([self._err], [], [], 0)[0] and (data := self._read(self._err)):
                self._said += data.decode("utf-8", "replace").splitlines()
        said = told(self._said, self._endpoint)
        if any(words in said.lower() for words in _REFUSED):
            return unreachable(
                self._endpoint,
                f"the login was refused ({said})",
                "correct user, password or key in farm.yaml",
            )
        if any(words in said.lower() for words in _UNKNOWN_HOST):
            return unreachable(
                self._endpoint,
                f"its host key is not a known one ({said})",
                "compare it on the machine itself, then add it to known_hosts (ssh-keyscan prints it)",
            )
        return self._lost(f"ssh has ended (status {self._process.returncode})")


def _quoted(path: str) -> str:
    """A path as one word of ssh's configuration, which takes it for several where it has spaces."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
