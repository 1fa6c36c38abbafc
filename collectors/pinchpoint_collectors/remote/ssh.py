"""Uses the system's ssh: the address of a host, the command line, messages for failures.

The user's configuration, keys, agent, jump hosts and known_hosts apply. Questions cannot be answered
(BatchMode). No option has a password, so that none is on a command line.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pinchpoint_collectors.common.process import PipedProcess
from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.options import file, port, word

OPTIONS = frozenset({"address", "user", "port", "identity", "config"})
"""Keys of a ``collect`` entry with the address of a host."""
PUBLIC = frozenset({"address", "user", "port", "identity", "config"})
"""Options whose values may be shown."""

CONNECT_TIMEOUT_S = 5
ALIVE_INTERVAL_S = 5
ALIVE_COUNT = 2
"""Number of probes of a silent link, one every ALIVE_INTERVAL_S. ssh ends the link at the next one."""

SSH_FAILED = 255
"""Exit status of ssh itself. Any other status is that of the command."""

_SETTINGS = (
    "BatchMode=yes",
    f"ConnectTimeout={CONNECT_TIMEOUT_S}",
    f"ServerAliveInterval={ALIVE_INTERVAL_S}",
    f"ServerAliveCountMax={ALIVE_COUNT}",
    # Only errors are printed, so that a banner is never mistaken for one.
    "LogLevel=ERROR",
    # An existing shared connection of the user is used, but no new master is left behind.
    "ControlMaster=no",
    # Turns off what the user's configuration adds for terminals.
    "RemoteCommand=none",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a host; None leaves a value to the user's ssh configuration.

    Attributes:
        host: name (also an alias in the configuration) or IP address.
        user: login name.
        port: TCP port.
        identity: file of a private key.
        config: another ssh configuration file than ``~/.ssh/config``; it may define jump hosts.
    """

    host: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    config: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the address from the keys ``OPTIONS`` of a ``collect`` entry.

        ``address`` may be ``user@host``.

        Raises:
            OptionError: an option is invalid.
            CollectorError: a named file does not exist on this machine.
        """
        host = word(options, "address")
        if host is None:
            raise OptionError("address", "missing; needed: the host's name or address, as ssh takes it")
        user = word(options, "user")
        if "@" in host:
            if user is not None:
                raise OptionError("user", f"found {user!r} beside {host!r}; allowed: one of the two")
            user, _, host = host.rpartition("@")
            if not user or not host or host.startswith("-"):
                raise OptionError("address", f"found {options['address']!r}; allowed: HOST or USER@HOST")
        return cls(host, user, port(options), file(options, "identity"), file(options, "config"))

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        if self.port is None:
            return f"{user}{self.host}"
        return f"{user}[{self.host}]:{self.port}" if ":" in self.host else f"{user}{self.host}:{self.port}"


def argv(address: Address, command: str) -> list[str]:
    """Return the command line that runs ``command`` on the host, through the login shell of the user.

    Its standard streams are those of the command. ``command`` must contain no secret, because ``ps`` shows it
    on both machines.
    """
    line = ["ssh", "-T"]
    for setting in _SETTINGS:
        line += ["-o", setting]
    if address.config is not None:
        line += ["-F", address.config]
    if address.identity is not None:
        line += ["-i", address.identity, "-o", "IdentitiesOnly=yes"]
    if address.user is not None:
        line += ["-l", address.user]
    if address.port is not None:
        line += ["-p", str(address.port)]
    return [*line, "--", address.host, command]


def start(address: Address, command: str) -> PipedProcess:
    """Start ``command`` on the host. Raises ``CollectorError`` if ssh is not installed on this machine."""
    try:
        return PipedProcess(argv(address, command))
    except FileNotFoundError as error:
        raise no_ssh() from error


def shell(script: str) -> str:
    """Return a command that runs a POSIX shell script under any login shell.

    It is for scripts of one line without ``!`` and backslashes, which csh and fish interpret. Longer scripts
    use standard input.
    """
    return f"exec /bin/sh -c {shlex.quote(script)}"


def run(address: Address, command: str, *, given: str = "", timeout_s: float = 30.0) -> str:
    """Run one command on the host and return its standard output.

    Args:
        address: ssh address of the host.
        command: command (see ``argv``).
        given: standard input of the command.
        timeout_s: time limit in seconds, including the connection.

    Raises:
        CollectorError: ssh is missing or failed, the command failed or did not end; the message has the
            remedy.
    """
    try:
        done = subprocess.run(
            argv(address, command),
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise no_ssh() from error
    except subprocess.TimeoutExpired as error:
        raise CollectorError(
            f"{address}: the request over ssh did not end within {timeout_s:g} s; is the host overloaded?"
        ) from error
    if done.returncode != 0:
        raise CollectorError(why(address, done.returncode, done.stderr or done.stdout))
    return done.stdout


def no_ssh() -> CollectorError:
    """Return the error for a machine without ssh."""
    return CollectorError(
        "no program `ssh` on this machine; install OpenSSH's client (Debian: openssh-client)"
    )


_UNKNOWN_KEY = (
    "its host key is not known here; connect once by hand (`{by_hand}`) and compare the fingerprint, "
    "or add the key to known_hosts"
)
_CHANGED_KEY = (
    "its host key is another than known_hosts says; find out why (a new machine, or an attack) and "
    "only then remove the old one with `ssh-keygen -R`"
)
_REFUSED_KEY = (
    "it accepts no key of ours (it takes {how}); put the public key into ~/.ssh/authorized_keys there, or "
    "say `user:` and `identity:`; a key with a passphrase must be in ssh-agent, because no prompt is possible"
)
_OPEN_KEY = "others may read the private key; `chmod 600` it"
_IS_OPEN = r"UNPROTECTED PRIVATE KEY FILE|bad permissions"
_FAILURES: tuple[tuple[str, str], ...] = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED", _CHANGED_KEY),
    (r"Host key verification failed|No .* host key is known", _UNKNOWN_KEY),
    (r"Permission denied \((?P<how>[^)]*)\)", _REFUSED_KEY),
    (r"Too many authentication failures", "it was offered too many keys; say which with `identity:`"),
    (r"Connection refused", "nothing listens there; start sshd, or correct `address:` and `port:`"),
    (r"Could not resolve hostname", "its name is not known here; correct `address:` or the name service"),
    (
        r"Connection timed out|Operation timed out|timed out during banner",
        f"it did not answer within {CONNECT_TIMEOUT_S} s; is it up, and does a firewall let ssh through?",
    ),
    (r"No route to host|Network is unreachable", "no way leads there; look at the network and its routes"),
    (
        r"Timeout, server .* not responding|Broken pipe|Connection reset",
        "the link was cut; look at the network between here and there",
    ),
    (
        r"Connection closed by|closed by remote host|kex_exchange_identification",
        "sshd closed the connection; its log says why",
    ),
    (
        r"no matching .* found",
        "it and this machine share no way to encrypt; allow one in the ssh configuration",
    ),
    (
        r"(?P<how>[^\n]*(Bad configuration option|bad configuration options|Can't open user config)[^\n]*)",
        "correct the ssh configuration: {how}",
    ),
    (_IS_OPEN, _OPEN_KEY),
)
_NO_SHELL = re.compile(
    r"account is currently not available|nologin|not recognized as an internal|[Ss]hell access"
)


def why(address: Address, status: int, stderr: str) -> str:
    """Return cause and remedy of an ssh failure, as a sentence that begins with the address.

    Args:
        address: ssh address of the host.
        status: exit status of ssh.
        stderr: error output of ssh.
    """
    answer = _last_line(stderr)
    if status != SSH_FAILED:
        return f"{address}: {_command_failed(status, stderr)}"
    for pattern, sentence in _FAILURES:
        match = re.search(pattern, stderr)
        if match:
            words = {"how": match.groupdict().get("how", ""), "by_hand": _by_hand(address)}
            # A key that was not offered was not refused.
            more = f"; {_OPEN_KEY}" if sentence == _REFUSED_KEY and re.search(_IS_OPEN, stderr) else ""
            return f"{address}: {sentence.format(**words)}{more} (ssh: {answer})"
    answer = answer or "without a word, as it gives up a link that was cut"
    return f"{address}: ssh failed: {answer}; try `{_by_hand(address)}`"


def _command_failed(status: int, stderr: str) -> str:
    answer = _last_line(stderr)
    if status in (126, 127) or _NO_SHELL.search(stderr):
        return (
            f"the login works, but there is no shell that runs our commands (exit status {status}: "
            f"{answer or 'nothing was said'}); give a user whose login shell is one, or `kind: windows`"
        )
    return f"the command ended with status {status}: {answer or 'nothing was said'}"


def _by_hand(address: Address) -> str:
    given = (("-F", address.config), ("-i", address.identity), ("-l", address.user), ("-p", address.port))
    options = [part for option, value in given if value is not None for part in (option, str(value))]
    return shlex.join(["ssh", *options, address.host])


def _last_line(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
