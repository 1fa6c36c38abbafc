"""The load: what one user of my_app does."""

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
        path: what each request asks for.
    """

    path: str = "/"


class MyApp:
    """Gets one page again and again."""

    use: ClassVar[str] = "my_app"
    needs: ClassVar[frozenset[str]] = frozenset({"web"})
    writes: ClassVar[bool] = False  # True: it is refused on a farm with `environment: production`
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = MyAppParams

    def __init__(self, context: ScenarioContext) -> None:
        self.url = context.endpoints["web"].url
        self.path = context.params.path  # type: ignore[attr-defined]  # of MyAppParams

    def check(self) -> Mapping[str, Any]:
        """Reach the server before the run; what it answers goes into the manifest."""
        session = self.session(0)
        try:
            status, server = session.get()
        except OSError as error:
            raise EndpointUnreachable(f"endpoint web: {self.url}: {error}; start the server") from error
        finally:
            session.close()
        return {"web": {"server": server, "version": f"HTTP {status}"}}

    def intent(self) -> Intent:
        """The changes that ``run --dry-run`` prints."""
        sent = Sent("get", f"GET {self.path}", share=1.0, rows=None, size_bytes=None)
        return Intent((Target(f"endpoint web ({self.url})", self.path, "read"),), (), (sent,), "nothing")

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the data that the run needs: called once, before the load."""

    def session(self, number: int) -> MyAppSession:  # noqa: ARG002 -- every user does the same
        """One user."""
        return MyAppSession(self.url, self.path)

    def finish(self, *, keep_data: bool) -> None:
        """Remove what ``prepare`` made."""


class MyAppSession:
    """One user with one connection."""

    def __init__(self, url: str, path: str) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._path = path
        self._size_bytes = 0

    def perform(self, record: Record) -> bool:
        """Do one operation and record it. A failure of the server is an outcome, never an exception."""
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
        """Status and server of one answer."""
        self._connection.request("GET", self._path)
        answer = self._connection.getresponse()
        self._size_bytes = len(answer.read())
        return answer.status, answer.getheader("Server") or "not named"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
