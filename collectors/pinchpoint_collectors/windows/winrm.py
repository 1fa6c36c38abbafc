"""The script over WinRM: PowerShell's remoting protocol, spoken by pypsrp.

One runspace runs the script for as long as it is watched, a second one tells the machine's time now and then.
When nobody asks for what the script says, Windows closes the session by itself (``_IDLE_S``).
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import requests
from pypsrp.complex_objects import PSInvocationState
from pypsrp.exceptions import AuthenticationError, WinRMError, WinRMTransportError, WSManFaultError
from pypsrp.powershell import DEFAULT_CONFIGURATION_NAME, PowerShell, RunspacePool
from pypsrp.wsman import WSMan
from requests.exceptions import SSLError
from spnego.exceptions import SpnegoError

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.windows.link import Arrived, LinkLost
from pinchpoint_collectors.windows.options import WinRm
from pinchpoint_collectors.windows.script import line_of, script

TIME = '"{{""kind"":""time"",""asked"":{asked},""utc"":$([DateTime]::UtcNow.ToFileTimeUtc())}}"'
# What it logs are tracebacks of errors that we tell in words.
logging.getLogger("pypsrp").addHandler(logging.NullHandler())

_IDLE_S = 60
"""The shortest that WinRM takes."""
_WAIT_S = 1
_ANSWER_S = 10
_TIME_S = 5.0
_HELD_S = 40.0
_AGAIN_S = 1.0
_DENIED = 5
"""ERROR_ACCESS_DENIED, as a code of WS-Management's faults."""


class WinRmLink:
    """See ``Link``.

    Args:
        address: the machine.
        request: what the script is asked.
        ending: set when nobody wants it any more.

    Raises:
        LinkLost: the machine does not answer.
        CollectorError: it refuses the login, or its certificate is not trusted: to try again would not help.
    """

    def __init__(self, address: WinRm, request: str, ending: threading.Event) -> None:
        self._address = address
        self._ending = ending
        self._lost = False
        self._received_bytes = 0
        self._told: list[Arrived] = []
        connection = WSMan(
            address.host,
            port=address.port,
            ssl=address.tls,
            auth=address.auth,
            username=address.user,
            password=address.password,
            cert_validation=(address.ca or True) if address.cert_validation else False,  # type: ignore[arg-type]  # a path is taken, too
            connection_timeout=_ANSWER_S,
            operation_timeout=_ANSWER_S,
            read_timeout=2 * _ANSWER_S,
            no_proxy=True,
        )
        self._connection = _guarded(connection)
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
        """See ``Link``: what the script said, without what it was wrapped in."""
        return self._received_bytes

    def receive(self) -> list[Arrived]:
        """See ``Link``."""
        self._fetch()
        now_ns = time.time_ns()
        found, self._told = self._told, []
        for line in self._lines(self._script):
            if line["kind"] == "end":
                raise self._cut(f"the script has ended: {line.get('why') or 'it was told to'}")
            found.append(Arrived(now_ns, line))
        if not found and self._script.state != PSInvocationState.RUNNING:
            raise self._cut(_errors(self._script) or "the script was stopped")
        return found

    def _fetch(self) -> None:
        """Fetch what the script has said. While the link is cut Windows holds it; we wait ``_HELD_S``."""
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
        """What sealed the messages was the connection's: the next one is logged in to anew."""
        transport = self._connection.transport
        transport.close()
        transport.session = transport.encryption = None

    def ask(self) -> None:
        """See ``Link``. While the link is cut nothing is asked: fetching tells whether it comes back."""
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
                raise self._cut("it does not tell its time")
            self._safely(lambda: call.poll_invoke(timeout=_WAIT_S))
        now_ns = time.time_ns()
        self._told += [Arrived(now_ns, line) for line in self._lines(call)]
        self._safely(call.close)

    def close(self) -> None:
        """See ``Link``. Over a link that is lost nothing can be ended; Windows does so by itself."""
        try:
            # A machine that was lost meanwhile ends the session by itself.
            with contextlib.suppress(WinRMError, requests.RequestException):
                if not self._lost:
                    if self._script.state == PSInvocationState.RUNNING:
                        self._script.stop()
                    self._pool.close()
        finally:
            self._lost = True
            self._connection.close()

    def _lines(self, call: PowerShell) -> list[dict[str, object]]:
        said, call.output = call.output, []
        texts = [str(one) for one in said]
        self._received_bytes += sum(map(len, texts))
        return [dict(line) for text in texts if (line := line_of(text)) is not None]

    def _safely(self, step: Callable[[], object]) -> None:
        """Do one step of the protocol; what goes wrong with it is a link lost, or will go wrong again."""
        try:
            step()
        except (AuthenticationError, SpnegoError) as error:
            raise self._refused(str(error)) from error
        except WSManFaultError as error:
            why = " ".join((error.reason or str(error)).split())
            raise (self._refused(why) if error.code == _DENIED else self._cut(why)) from error
        except SSLError as error:
            self._lost = True
            raise CollectorError(
                f"{self._address}: its certificate is not one that is trusted here; name the file of the "
                "authority that signed it (`ca:`), or say `cert_validation: false` for a machine of your own"
            ) from error
        except requests.TooManyRedirects as error:
            raise self._cut(
                "it answers with a redirect, which WinRM never does; correct `address:`"
            ) from error
        except requests.RequestException as error:
            raise self._cut(_with_remedy(_root(error))) from error
        except ImportError as error:
            self._lost = True
            raise CollectorError(
                f"{self._address}: a login by Kerberos needs a library that is not here ({error}); install "
                "pyspnego[kerberos], or say `auth: ntlm`"
            ) from error
        except WinRMError as error:
            raise self._cut(" ".join(str(error).split())[:300]) from error

    def _refused(self, why: str) -> CollectorError:
        self._lost = True
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
}
"""What the system says of a connection, in small letters -> what to do."""


def _guarded(connection: WSMan) -> WSMan:
    """The same: it follows no redirect, for a login is for one address, and reads no document type."""
    transport = connection.transport
    build, send = transport._build_session, transport.send

    def session() -> requests.Session:
        made = build()
        made.max_redirects = 0
        return made

    def answer(message: bytes, **options: Any) -> bytes:
        try:
            return _plain(send(message, **options))
        except WinRMTransportError as error:
            _plain((error.response_text or "").encode())
            raise

    transport._build_session = session  # type: ignore[method-assign]
    transport.send = answer  # type: ignore[method-assign]
    return connection


def _plain(answer: bytes) -> bytes:
    """The same; raises ``WinRMError`` where it declares entities, which can make the parser crash."""
    if b"<!DOCTYPE" in answer.replace(b"\0", b""):  # without the zeros that UTF-16 has between them
        raise WinRMError("its answer declares a document type, which WinRM has none of")
    return answer


def _with_remedy(why: str) -> str:
    remedy = next((remedy for words, remedy in _WORDS.items() if words in why.lower()), None)
    return f"{why}; {remedy}" if remedy else why


def _may_come_back(lost: LinkLost) -> bool:
    """Whether it was a connection that was lost: the session may still be there."""
    return isinstance(lost.__cause__, requests.ConnectionError | requests.Timeout)


def _errors(call: PowerShell) -> str:
    errors: Sequence[object] = call.streams.error
    return " ".join(" ".join(map(str, errors)).split())[:400]


def _root(error: BaseException) -> str:
    """What lies at the ground of an error: requests wraps the system's own in several of its own."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return str(error) or type(error).__name__
