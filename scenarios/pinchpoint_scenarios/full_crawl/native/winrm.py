"""A link over WinRM (PowerShell remoting by pypsrp). One runspace runs the script.

SharePoint's cmdlets connect to the SQL server with the rights of the user, which a network login does not
pass on (the double hop). ``auth: credssp`` passes the credentials on. A session configuration with its own
user (``configuration``) does not need them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from pypsrp.complex_objects import PSInvocationState
from pypsrp.powershell import DEFAULT_CONFIGURATION_NAME, PowerShell, RunspacePool

from pinchpoint_collectors.common import winrm
from pinchpoint_collectors.common.powershell import Line, LinkLost, line_of

from ...addresses import place, unreachable
from ...contract import Endpoint
from .link import FarmRefused, checked, ends, message_of, parts, request_text, script

_OPERATION_S = 20  # seconds after which the server answers a poll, even without data
_CONNECT_S = 5
_READ_S = 30


class CrawlWinRmLink:
    """A PowerShell runspace over WinRM.

    Args:
        endpoint: endpoint ``crawler``: ``winrm://HOST[:PORT]`` (TLS) or ``winrm+http://`` with ``auth``,
            ``user``, ``password``, ``configuration``, ``ca``.
        within_s: time limit for opening the link, in seconds.

    Raises:
        LinkLost: the machine does not answer.
        EndpointUnreachable: the machine refuses the login, or its certificate is not trusted.
    """

    def __init__(self, endpoint: Endpoint, within_s: float) -> None:
        self._endpoint = endpoint
        self._number = 0
        given, url = endpoint.options, parts(endpoint)
        is_tls = url.scheme == "winrm"
        self._connection = winrm.connection(
            url.hostname or "",
            port=url.port or winrm.PORTS[is_tls],
            ssl=is_tls,
            auth=given.get("auth", "negotiate"),
            username=given.get("user"),
            password=given.get("password"),
            cert_validation=given.get("ca", True),
            connection_timeout=max(1, min(round(within_s), _CONNECT_S)),
            operation_timeout=_OPERATION_S,
            read_timeout=_READ_S,
        )
        configuration = given.get("configuration", DEFAULT_CONFIGURATION_NAME)
        self._pool = RunspacePool(self._connection, configuration_name=configuration)
        until = time.monotonic() + within_s
        try:
            self._safely(self._pool.open)
            # The script has no scope of its own, because later requests need its definitions.
            self._run(PowerShell(self._pool).add_script(script(), use_local_scope=False), until)
        except BaseException:
            self.close()
            raise

    def ask(self, request: Mapping[str, Any], within_s: float) -> list[Line]:
        self._number += 1
        text = request_text({**request, "id": self._number})
        call = PowerShell(self._pool).add_cmdlet("Invoke-PinchpointRequest").add_argument(text)
        answer = self._run(call, time.monotonic() + within_s)
        lines = [line for line in map(line_of, answer) if line is not None]
        if not lines or not ends(lines[-1], self._number):
            raise LinkLost(
                f"{place(self._endpoint)}: the answer is not whole: {message_of(answer, self._endpoint)}"
            )
        return checked(lines)

    def close(self) -> None:
        """End the session. WinRM does not notify the script, so watched crawls continue."""
        try:
            # If the link is lost, the server closes the idle shell by itself.
            with contextlib.suppress(*winrm.CLOSING):
                self._pool.close()
        finally:
            self._connection.close()

    def _run(self, call: PowerShell, until: float) -> list[str]:
        """Return all output of a pipeline. Raises ``LinkLost``, ``FarmRefused``."""
        self._safely(call.begin_invoke)
        while call.state == PSInvocationState.RUNNING:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise LinkLost(f"{place(self._endpoint)}: no answer in time")
            self._safely(lambda: call.poll_invoke(timeout=max(1, min(_OPERATION_S, round(left_s)))))  # noqa: B023
        lines = [str(one) for one in call.output]
        if call.state != PSInvocationState.COMPLETED or call.had_errors:
            raise FarmRefused(
                message_of(map(str, call.streams.error), self._endpoint) or "the pipeline was stopped"
            )
        self._safely(call.close)
        return lines

    def _safely(self, step: Callable[[], object]) -> None:
        """Run one step of the protocol. A failure becomes a lost link or a permanent error."""
        try:
            winrm.step(step)
        except winrm.WinRmFailure as failure:
            raise self._reported_of(failure) from failure

    def _reported_of(self, failure: winrm.WinRmFailure) -> Exception:
        if failure.what == "lost":
            return self._lost(failure.why)
        if failure.what == "moved":
            return self._lost(f"{failure.why}; correct the url in farm.yaml")
        if failure.what == "untrusted":
            return unreachable(
                self._endpoint,
                "its certificate is not one that is trusted here",
                "name the authority's file: ca: PATH in farm.yaml",
            )
        if failure.what == "kerberos":
            return unreachable(
                self._endpoint,
                "a login by Kerberos needs a library that is not here",
                "install the Python package pyspnego[kerberos], or use another auth",
            )
        return unreachable(
            self._endpoint,
            f"the login was refused ({message_of([failure.why], self._endpoint)})",
            "correct user, password, auth or configuration in farm.yaml; the user must be a member of Remote "
            "Management Users, or an administrator, on that machine",
        )

    def _lost(self, why: str) -> LinkLost:
        return LinkLost(f"{place(self._endpoint)}: {message_of([why], self._endpoint)}")
