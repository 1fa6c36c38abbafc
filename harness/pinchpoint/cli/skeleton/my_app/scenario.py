"""Defines the load: the operations of one user of my_app."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pinchpoint_scenarios.contract import OK, Intent, Params, Record, ScenarioContext, Sent, Target
from pinchpoint_scenarios.errors import EndpointUnreachable

TIMEOUT_S = 10.0


class MyAppParams(Params):
    """``params`` in plan.yaml.

    Attributes:
        path: path that each operation requests.
    """

    path: str = "/"


class MyApp:
    """Requests one page again and again."""

    use: ClassVar[str] = "my_app"
    needs: ClassVar[frozenset[str]] = frozenset({"web"})
    writes: ClassVar[bool] = False  # True: the scenario is refused on a farm with `environment: production`
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = MyAppParams

    def __init__(self, context: ScenarioContext) -> None:
        self.url = context.endpoints["web"].url
        self.path = context.params.path  # type: ignore[attr-defined]  # of MyAppParams

    def check(self) -> Mapping[str, Any]:
        """Contact the server before the run, and return facts about it for the manifest."""
        session = self.session(0)
        try:
            status, server = session.get()
        except OSError as error:
            raise EndpointUnreachable(f"endpoint web: {self.url}: {error}; start the server") from error
        finally:
            session.close()
        return {"web": {"server": server, "version": f"HTTP {status}"}}

    def intent(self) -> Intent:
        """Return the changes that ``run --dry-run`` prints."""
        sent = Sent("get", f"GET {self.path}", share=1.0, rows=None, size_bytes=None)
        return Intent((Target(f"endpoint web ({self.url})", self.path, "read"),), (), (sent,), "nothing")

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create the data for the run. It is called once, before the load."""

    def session(self, number: int) -> MyAppSession:  # noqa: ARG002 -- every user does the same
        """Return one user."""
        return MyAppSession(self.url, self.path)

    def finish(self, *, keep_data: bool) -> None:
        """Remove what ``prepare`` created."""


class MyAppSession:
    """One user with one connection."""

    def __init__(self, url: str, path: str) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._path = path
        self._size_bytes = 0

    def perform(self, record: Record) -> bool:
        """Do one operation and record its outcome. A failure of the server is an outcome and no exception."""
        begin_ns = time.perf_counter_ns()
        self._size_bytes = 0
        try:
            status, _ = self.get()
            outcome = OK if status < 400 else f"http_{status}"
        except TimeoutError:
            outcome = "timeout"
        except (OSError, http.client.HTTPException):
            outcome = "connection"
        if outcome in ("timeout", "connection"):
            self._connection.close()  # the next operation connects again
        record("get", outcome, begin_ns, time.perf_counter_ns(), self._size_bytes)
        return True

    def get(self) -> tuple[int, str]:
        """Return the status and the server name of one response."""
        self._connection.request("GET", self._path)
        answer = self._connection.getresponse()
        self._size_bytes = len(answer.read())
        return answer.status, answer.getheader("Server") or "not named"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
