"""Runs the script over WinRM: PowerShell's remoting protocol by pypsrp.

One runspace runs the script while the machine is watched, and a second one reports the machine's time at
intervals. If the output of the script is no longer read, Windows closes the session by itself (``_IDLE_S``).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from pypsrp.complex_objects import PSInvocationState
from pypsrp.powershell import DEFAULT_CONFIGURATION_NAME, PowerShell, RunspacePool
from pypsrp.wsman import WSMan

from pinchpoint_collectors.common import winrm
from pinchpoint_collectors.common.powershell import LinkLost, line_of
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.windows.options import WinRm
from pinchpoint_collectors.windows.script import script
from pinchpoint_collectors.windows.stream import Arrived

TIME = '"{{""kind"":""time"",""asked"":{asked},""utc"":$([DateTime]::UtcNow.ToFileTimeUtc())}}"'

_IDLE_S = 60
"""Shortest idle timeout that WinRM accepts, in seconds."""
_WAIT_S = 1
_CONNECT_S = 5
_ANSWER_S = 10
_TIME_S = 5.0
_HELD_S = 40.0
_AGAIN_S = 1.0


def connection(address: WinRm, **timeouts: int) -> WSMan:
    """Return a connection to a machine. ``timeouts`` are in seconds, as for ``WSMan``."""
    return winrm.connection(
        address.host,
        port=address.port,
        ssl=address.tls,
        auth=address.auth,
        username=address.user,
        password=address.password,
        cert_validation=(address.ca or True) if address.cert_validation else False,
        **timeouts,
    )


class WinRmLink:
    """A link to the script in a WinRM shell.

    Args:
        address: address and login of the machine.
        request: request to the script.
        ending: event that is set when the link is no longer needed.

    Raises:
        LinkLost: the machine does not answer.
        CollectorError: the login is refused, or the certificate is not trusted; another attempt would not
            help.
    """

    def __init__(self, address: WinRm, request: str, ending: threading.Event) -> None:
        self._address = address
        self._ending = ending
        self._lost = False
        self._received_bytes = 0
        self._reported: list[Arrived] = []
        self._connection = connection(
            address, connection_timeout=_CONNECT_S, operation_timeout=_ANSWER_S, read_timeout=2 * _ANSWER_S
        )
        self._pool = RunspacePool(
            self._connection,
            configuration_name=address.configuration or DEFAULT_CONFIGURATION_NAME,
            max_runspaces=2,
            no_profile=True,
            idle_timeout=_IDLE_S,
        )
        self._script = PowerShell(self._pool)
        try:
            self._safely(self._pool.open)
            self._script.add_script(script()).add_parameter("Request", request)
            self._safely(self._script.begin_invoke)
        except BaseException:
            self.close()
            raise

    @property
    def received_bytes(self) -> int:
        """Return the bytes of the script's output, without those of the protocol."""
        return self._received_bytes

    def receive(self) -> list[Arrived]:
        self._fetch()
        now_ns = time.time_ns()
        arriveds, self._reported = self._reported, []
        for line in self._lines(self._script):
            if line["kind"] == "end":
                raise self._cut(f"the script has ended: {line.get('why') or 'on request'}")
            arriveds.append(Arrived(now_ns, line))
        if not arriveds and self._script.state != PSInvocationState.RUNNING:
            raise self._cut(_errors(self._script) or "the script was stopped")
        return arriveds

    def _fetch(self) -> None:
        """Fetch the output of the script.

        While the link is lost, Windows keeps the output for ``_HELD_S``.
        """
        until = time.monotonic() + _HELD_S
        while True:
            try:
                self._safely(lambda: self._script.poll_invoke(timeout=_WAIT_S))
            except LinkLost as lost:
                if not _may_come_back(lost) or self._ending.wait(_AGAIN_S) or time.monotonic() > until:
                    raise
                self._log_in_again()
            else:
                self._lost = False
                return

    def _log_in_again(self) -> None:
        """Log in on a new connection, because message encryption belongs to a connection."""
        transport = self._connection.transport
        transport.close()
        transport.session = transport.encryption = None

    def ask(self) -> None:
        """Send a line. While the link is lost nothing is sent; fetching reports whether the link returns."""
        try:
            self._ask()
        except LinkLost as lost:
            if not _may_come_back(lost):
                raise
            self._log_in_again()

    def _ask(self) -> None:
        call = PowerShell(self._pool).add_script(TIME.format(asked=time.time_ns()))
        self._safely(call.begin_invoke)
        until = time.monotonic() + _TIME_S
        while call.state == PSInvocationState.RUNNING:
            if time.monotonic() > until:
                raise self._cut("it does not report its time")
            self._safely(lambda: call.poll_invoke(timeout=_WAIT_S))
        now_ns = time.time_ns()
        self._reported += [Arrived(now_ns, line) for line in self._lines(call)]
        self._safely(call.close)

    def close(self) -> None:
        """End the script. Over a lost link nothing can be ended; Windows then does so by itself."""
        try:
            # A machine that was lost meanwhile ends the session by itself.
            with contextlib.suppress(*winrm.CLOSING):
                if not self._lost:
                    if self._script.state == PSInvocationState.RUNNING:
                        self._script.stop()
                    self._pool.close()
        finally:
            self._lost = True
            self._connection.close()

    def _lines(self, call: PowerShell) -> list[dict[str, object]]:
        answer, call.output = call.output, []
        texts = [str(one) for one in answer]
        self._received_bytes += sum(map(len, texts))
        return [dict(line) for text in texts if (line := line_of(text)) is not None]

    def _safely(self, step: Callable[[], object]) -> None:
        """Run one step of the protocol. Its failure becomes a lost link or a permanent error."""
        try:
            winrm.step(step)
        except winrm.WinRmFailure as failure:
            raise self._reported_of(failure) from failure

    def _reported_of(self, failure: winrm.WinRmFailure) -> Exception:
        self._lost = True
        why = failure.why
        if failure.what == "refused":
            return self._refused(why)
        if failure.what == "untrusted":
            return CollectorError(
                f"{self._address}: its certificate is not one that is trusted here; name the file of the "
                "authority that signed it (`ca:`), or say `cert_validation: false` for a machine of your own"
            )
        if failure.what == "kerberos":
            return CollectorError(
                f"{self._address}: a login by Kerberos needs a library that is not here ({why}); install "
                "pyspnego[kerberos], or say `auth: ntlm`"
            )
        return self._cut(f"{why}; correct `address:`" if failure.what == "moved" else _with_remedy(why[:300]))

    def _refused(self, why: str) -> CollectorError:
        return CollectorError(
            f"{self._address}: the login was refused ({self._without_secret(why)}); correct `user:`, "
            "`password:` or `auth:`; the user must be a member of Remote Management Users and of Performance "
            "Monitor Users, or an administrator, on that machine"
        )

    def _cut(self, why: str) -> LinkLost:
        self._lost = True
        return LinkLost(f"{self._address}: {self._without_secret(why)}")

    def _without_secret(self, text: str) -> str:
        password = self._address.password
        return text.replace(password, "***") if password else text


_WORDS = {
    "refused": "nothing listens there: run `winrm quickconfig -transport:https` on it, or correct `address:` "
    "and `port:` (`tls: false` is port 5985)",
    "unreachable": "look at the network and its routes",
    "timed out": "is it up, and does a firewall let WinRM through (5986, without TLS 5985)?",
    "not known": "correct `address:`, or the name service",
    "no address associated": "correct `address:`, or the name service",
    "wrong version number": "it does not speak TLS there: say `tls: false`, or correct `port:`",
    **dict.fromkeys(
        ("tls failed", "reset by peer", "closed connection"),
        "correct `address:` and `port:`; if they are right, look for a proxy or firewall on the way",
    ),
}
"""Words of a system message about a connection, in lower case -> remedy."""


def _with_remedy(why: str) -> str:
    remedy = next((remedy for words, remedy in _WORDS.items() if words in why.lower()), None)
    return f"{why}; {remedy}" if remedy else why


def _may_come_back(lost: LinkLost) -> bool:
    """Return whether the connection was lost, so that the session may still exist."""
    return isinstance(lost.__cause__, winrm.WinRmFailure) and lost.__cause__.may_come_back


def _errors(call: PowerShell) -> str:
    errors: Sequence[object] = call.streams.error
    return " ".join(" ".join(map(str, errors)).split())[:400]
