"""Sends requests to the crawl script of the farm, and converts failures to errors for the user."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.common.names import unknown
from pinchpoint_collectors.common.powershell import Line, LinkLost

from ...addresses import place, unreachable
from ...contract import Endpoint
from ...errors import ScenarioError
from .link import CrawlLink, FarmRefused
from .params import NativeParams
from .progress import CrawlState

T = TypeVar("T")

_OPEN_S = 45.0
_ANSWER_S = 120.0  # the first answer comes after SharePoint's cmdlets were loaded
_LEAVE_S = 4.0
_REMEDIES = (
    (
        "cannot access the local farm",
        (
            "the user has no rights in the farm, or they do not reach its SQL server from there (the double "
            "hop): over WinRM use auth: credssp, or a configuration that runs as a user of its own; over SSH "
            "log in with a password, not a key; and make the user a shell administrator (Add-SPShellAdmin)"
        ),
    ),
    ("is not recognized", "connect to a server of the farm, and with its Windows PowerShell"),
    ("name one", "say which: params: {native: {application: NAME}}"),
)


def open_link(endpoint: Endpoint, within_s: float) -> CrawlLink:
    """Open a link and load the script.

    Args:
        endpoint: endpoint ``crawler``.
        within_s: time limit in seconds.

    Raises:
        LinkLost: the machine does not answer.
        ScenarioError: another attempt would not help: the login is refused, or a program or package is
            missing.
    """
    scheme = endpoint.url.partition("://")[0]
    if scheme == "ssh":
        from .ssh import CrawlSshLink  # noqa: PLC0415 - one of the two is needed

        return CrawlSshLink(endpoint, within_s)
    if scheme in ("winrm", "winrm+http"):
        from .winrm import CrawlWinRmLink  # noqa: PLC0415 - its library takes a second to load

        return CrawlWinRmLink(endpoint, within_s)
    raise ScenarioError(
        f"endpoint {endpoint.name}: {unknown('scheme', scheme, ('ssh', 'winrm', 'winrm+http'))}"
    )


class Crawler:
    """Controls the crawler of the farm.

    Args:
        endpoint: endpoint ``crawler``.
        params: application and sources, and time limits.
        opener: opens a link.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        params: NativeParams,
        opener: Callable[[Endpoint, float], CrawlLink] = open_link,
    ) -> None:
        self._endpoint = endpoint
        self._params = params
        self._opener = opener
        self._link: CrawlLink | None = None
        self._watched = False

    def check(self) -> tuple[Line, list[CrawlState]]:
        """Return the facts of the farm, and every content source of its search service application."""
        lines = self._ask("check", sources=None)
        farm = next(line for line in lines if line["kind"] == "farm")
        return farm, _states(lines)

    def states(self) -> list[CrawlState]:
        """Return the states of the content sources."""
        return _states(self._ask("state"))

    def start(self, names: Sequence[str]) -> dict[str, str]:
        """Start full crawls of the sources. Return the reasons for those that were not started."""
        lines = self._ask("start", sources=list(names), grace_s=self._params.reconnect_within)
        self._watched = True
        return {
            str(line["source"]): str(line.get("why") or "no reason was given")
            for line in lines
            if line["kind"] == "start" and not line["started"]
        }

    def watch(self) -> None:
        """Watch the crawls in progress. They are stopped when this link is finally lost."""
        self._ask("watch", grace_s=self._params.reconnect_within)
        self._watched = True

    def statistics(self) -> list[Line]:
        """Return lines of the crawl log, of the kinds ``items`` and ``statistics``."""
        return self._ask("statistics")

    def stop(self, within_s: float = _ANSWER_S) -> None:
        """Request the stop of all crawls of the sources, which may take some time."""
        self._ask("stop", within_s)

    def reset(self, name: str) -> None:
        """Empty the index of the search service application with a name."""
        self._ask("reset", self._params.reset_within, sources=None, name=name)

    def leave(self) -> None:
        """End the session. Crawls in progress continue. A second call does nothing."""
        link, self._link, self._watched = self._link, None, False
        if link is None:
            return
        try:
            with contextlib.suppress(LinkLost, FarmRefused):
                link.ask({"do": "bye"}, _LEAVE_S)
        finally:
            link.close()

    def patiently(self, step: Callable[[], T], within_s: float) -> T:
        """Run an action for which the link may have to be reopened several times.

        Raises ``EndpointUnreachable`` if it does not succeed within this time.
        """
        until, backoff = time.monotonic() + within_s, Backoff()
        while True:
            try:
                return step()
            except LinkLost as lost:
                backoff.failed()
                if time.monotonic() >= until:
                    raise unreachable(
                        self._endpoint,
                        str(lost).removeprefix(f"{place(self._endpoint)}: "),
                        "check the address, and that WinRM or sshd is running there",
                    ) from lost
                backoff.wait()

    def _ask(self, what: str, within_s: float = _ANSWER_S, **fields: Any) -> list[Line]:
        """Return the lines of an answer.

        Raises:
            LinkLost: the link is lost. The next request opens it again.
            ScenarioError: the farm refused the request.
        """
        try:
            if self._link is None:
                self._link = self._opener(self._endpoint, _OPEN_S)
                if self._watched:  # the script of the lost link stops the crawls unless this one watches them
                    self._link.ask(
                        self._request("watch", {"grace_s": self._params.reconnect_within}), _ANSWER_S
                    )
            return self._link.ask(self._request(what, fields), within_s)
        except LinkLost:
            link, self._link = self._link, None
            if link is not None:
                link.close()
            raise
        except FarmRefused as refused:
            raise self._explained(refused) from refused

    def _request(self, what: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "do": what,
            "application": self._params.application,
            "sources": list(self._params.content_sources) or None,
            **fields,
        }

    def _explained(self, refused: FarmRefused) -> ScenarioError:
        why = str(refused).strip().rstrip(".")
        remedy = next((then for words, then in _REMEDIES if words in why.lower()), None)
        return ScenarioError(
            f"{place(self._endpoint)}: the farm answered: {why}" + (f"; {remedy}" if remedy else "")
        )


def _states(lines: Sequence[Line]) -> list[CrawlState]:
    return [CrawlState.of(line) for line in lines if line["kind"] == "source"]
