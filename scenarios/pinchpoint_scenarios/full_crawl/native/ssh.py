"""A link by the system's ssh, with the user's configuration, agent and known hosts."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pinchpoint_collectors.common.powershell import POWERSHELL, Line, LinkLost, encoded, line_of, loader
from pinchpoint_collectors.common.process import PipedProcess

from ...addresses import place, unreachable
from ...contract import Endpoint
from .link import checked, ends, message_of, parts, request_text, script

_SECRET = "PINCHPOINT_SSH_PASSWORD"  # noqa: S105 - the name of a variable
_ASKPASS = f"#!/bin/sh\nprintf '%s\\n' \"${_SECRET}\"\n"
_REFUSED = ("permission denied", "too many authentication failures")
_UNKNOWN_HOST = ("host key verification failed", "remote host identification has changed")
_KEPT_LINES = 20


class CrawlSshLink:
    """A PowerShell session over the system's ssh.

    Args:
        endpoint: endpoint ``crawler``: ``ssh://HOST[:PORT]`` with ``user``, ``password``, ``key``,
            ``known_hosts``.
        within_s: time limit for opening the link, in seconds.

    Raises:
        LinkLost: the machine does not answer.
        EndpointUnreachable: the machine refuses the login, its key is unknown, or ssh is not installed.
    """

    def __init__(self, endpoint: Endpoint, within_s: float) -> None:
        self._endpoint = endpoint
        self._number = 0
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
        self._process = self._start(program)
        try:
            self._send(f"{loader('-Serve')}\n{encoded(script())}\n", time.monotonic() + within_s)
        except BaseException:
            self.close()
            raise

    def ask(self, request: Mapping[str, Any], within_s: float) -> list[Line]:
        until = time.monotonic() + within_s
        self._number += 1
        self._send(request_text({**request, "id": self._number}) + "\n", until)
        lines: list[Line] = []
        for text in self._lines(until):
            line = line_of(text)
            if line is None:
                self._said.append(text)
                continue
            lines.append(line)
            if ends(line, self._number):
                return checked(lines)
        raise self._ended()

    def close(self) -> None:
        self._secrets.close()
        self._process.close()

    def _start(self, program: str) -> PipedProcess:
        command = [program, *self._options(), "--", parts(self._endpoint).hostname or "", POWERSHELL]
        try:
            return PipedProcess(command, {**os.environ, **self._login_environment()})
        except OSError as error:
            raise unreachable(
                self._endpoint, f"ssh cannot be started: {error.strerror}", "see to it"
            ) from error

    def _options(self) -> list[str]:
        given, port = self._endpoint.options, parts(self._endpoint).port
        settings = {
            "StrictHostKeyChecking": "yes",
            "ServerAliveInterval": "10",
            "ServerAliveCountMax": "3",
            "ConnectTimeout": "5",
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
        """Return the environment that passes a password to ssh, because all users can read a command line."""
        password = self._endpoint.options.get("password")
        if password is None:
            return {}
        folder = self._secrets.enter_context(tempfile.TemporaryDirectory(prefix="pinchpoint-ssh-"))
        teller = Path(folder) / "askpass"
        teller.write_text(_ASKPASS)
        teller.chmod(0o700)
        return {_SECRET: password, "SSH_ASKPASS": str(teller), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":"}

    def _send(self, text: str, until: float) -> None:
        if not self._process.write(text, until):
            raise self._lost("it takes nothing") if time.monotonic() >= until else self._ended()

    def _lines(self, until: float) -> Iterator[str]:
        """Yield the lines of the output up to its end."""
        while True:
            yield from self._process.pieces()
            self._said += self._process.error_lines()
            left_s = until - time.monotonic()
            if self._process.ended:
                return
            if not self._process.pump(max(0.0, left_s)) and left_s <= 0:
                raise self._lost("no answer in time")

    def _lost(self, why: str) -> LinkLost:
        answer = message_of(self._said, self._endpoint)
        return LinkLost(f"{place(self._endpoint)}: {why}" + (f"; it said: {answer}" if answer else ""))

    def _ended(self) -> Exception:
        """Return the error if ssh has ended: a permanent one, or a lost link that may return."""
        status = self._process.status()
        while self._process.pump(0.0):
            continue
        self._said += self._process.errors.splitlines()
        answer = message_of(self._said, self._endpoint)
        if any(words in answer.lower() for words in _REFUSED):
            return unreachable(
                self._endpoint,
                f"the login was refused ({answer})",
                "correct user, password or key in farm.yaml",
            )
        if any(words in answer.lower() for words in _UNKNOWN_HOST):
            return unreachable(
                self._endpoint,
                f"its host key is not a known one ({answer})",
                "compare it on the machine itself, then add it to known_hosts (ssh-keyscan prints it)",
            )
        return self._lost(f"ssh has ended (status {status})")


def _quoted(path: str) -> str:
    """Return a path as one word of ssh's configuration, which splits at spaces."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
