"""PowerShell remoting over WinRM by pypsrp: opens a safe connection, and explains its failures."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import requests
from pypsrp.exceptions import AuthenticationError, WinRMError, WinRMTransportError, WSManFaultError
from pypsrp.wsman import WSMan
from requests.exceptions import SSLError
from requests_credssp.exceptions import AuthenticationException, NTStatusException
from spnego.exceptions import SpnegoError

PORTS = {True: 5986, False: 5985}
"""Ports with TLS and without TLS."""
CLOSING = (WinRMError, requests.RequestException)
"""Errors of closing a session after the link was lost. The machine then ends the session by itself."""
_DENIED = 5
"""ERROR_ACCESS_DENIED, as a code of WS-Management faults."""

# pypsrp logs tracebacks of errors that Pinchpoint reports as messages.
logging.getLogger("pypsrp").addHandler(logging.NullHandler())


class WinRmFailure(Exception):  # noqa: N818 - a finding: who called says it in the words of its reader
    """A step of the protocol failed. Its cause is the error of the library.

    Attributes:
        what: kind of failure: ``refused`` (login), ``untrusted`` (certificate), ``kerberos`` (not installed
            on this machine), ``moved`` (redirect), or ``lost`` (link).
        why: message of the library or the machine, on one line.
    """

    def __init__(self, what: Literal["refused", "untrusted", "kerberos", "moved", "lost"], why: str) -> None:
        super().__init__(why)
        self.what = what
        self.why = why

    @property
    def may_come_back(self) -> bool:
        """Return whether the connection was lost. The session may still exist on the machine then."""
        return isinstance(self.__cause__, requests.ConnectionError | requests.Timeout)


def connection(host: str, **settings: Any) -> WSMan:
    """Return a connection that follows no redirect (a login is for one address) and accepts no document type.

    ``settings`` are those of ``WSMan``. No proxy is used.
    """
    made = WSMan(host, no_proxy=True, **settings)
    transport = made.transport
    build, send = transport._build_session, transport.send

    def session() -> requests.Session:
        one = build()
        one.max_redirects = 0
        return one

    def answer(message: bytes, **options: Any) -> bytes:
        try:
            return _plain(send(message, **options))
        except WinRMTransportError as error:
            _plain((error.response_text or "").encode())
            raise

    transport._build_session = session  # type: ignore[method-assign]
    transport.send = answer  # type: ignore[method-assign]
    return made


def step(do: Callable[[], object]) -> None:
    """Run one step of the protocol. Raises ``WinRmFailure``."""
    try:
        do()
    except (AuthenticationError, AuthenticationException, NTStatusException, SpnegoError) as error:
        raise WinRmFailure("refused", _line(error)) from error
    except WSManFaultError as error:
        why = " ".join((error.reason or str(error)).split())
        raise WinRmFailure("refused" if error.code == _DENIED else "lost", why) from error
    except SSLError as error:
        if "certificate" in str(error).lower():
            raise WinRmFailure("untrusted", _line(error)) from error
        raise WinRmFailure("lost", f"TLS failed ({_root(error)})") from error
    except requests.TooManyRedirects as error:
        raise WinRmFailure("moved", "it answers with a redirect, which WinRM never does") from error
    except requests.RequestException as error:
        raise WinRmFailure("lost", _root(error)) from error
    except ImportError as error:
        raise WinRmFailure("kerberos", str(error)) from error
    except WinRMError as error:
        raise WinRmFailure("lost", _line(error)) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _plain(answer: bytes) -> bytes:
    """Return the same XML. Raises ``WinRMError`` if it declares entities, which can crash the parser."""
    if b"<!DOCTYPE" in answer.replace(b"\0", b""):  # UTF-16 without its zero bytes
        raise WinRMError("its answer declares a document type, which WinRM has none of")
    return answer


def _root(error: BaseException) -> str:
    """Return the first cause of an error, because requests wraps the error of the system several times."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return str(error) or type(error).__name__
