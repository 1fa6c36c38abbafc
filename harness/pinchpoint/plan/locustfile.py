"""Makes a scenario of a locustfile; this process does not import Locust.

The file's users are Locust's own and run in the load generators (``loadgen.locust_load``).
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import field_validator, model_validator

from pinchpoint.plan.urls import names_server
from pinchpoint_scenarios import registry
from pinchpoint_scenarios.addresses import place
from pinchpoint_scenarios.contract import (
    Endpoint,
    Intent,
    Params,
    Scenario,
    ScenarioContext,
    Sent,
    Session,
    Target,
)
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError

SUFFIX = ".py"
_IMPORT_S = 60.0
_REACH_S = 5.0
_PORTS = {"http": 80, "https": 443}


class LocustfileParams(Params):
    """The parameters of a locustfile; at most one of them.

    Attributes:
        endpoint: the farm's endpoint that its users talk to.
        host: the base URL that its users talk to, in place of an endpoint.
    """

    endpoint: str | None = None
    host: str | None = None

    @field_validator("host")
    @classmethod
    def _is_url(cls, host: str | None) -> str | None:
        if host is not None:
            if not names_server(host):
                raise ValueError(
                    "no host, a host that can be no name, or a wrong port; allowed: a URL such as "
                    "http://web1:8080, its port from 1 to 65535"
                )
            parts = urlsplit(host)
            if not parts.scheme or not parts.hostname:
                raise ValueError("allowed: a URL such as http://web1:8080")
            if "@" in parts.netloc:
                raise ValueError("a user in the host; secrets live in farm.yaml alone: give endpoint instead")
        return host

    @model_validator(mode="after")
    def _one_of_them(self) -> LocustfileParams:
        if self.endpoint is not None and self.host is not None:
            raise ValueError("endpoint and host are given together; allowed: one of them")
        return self


class Locustfile:
    """A scenario whose users a locustfile defines; ``scenario_class`` makes the class for a file.

    Args:
        context: the scenario's parameters and endpoints, as for every scenario.
    """

    use: ClassVar[str] = ""
    needs: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[bool] = True  # unknown code, so writes are assumed
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = LocustfileParams

    def __init__(self, context: ScenarioContext) -> None:
        params = context.params
        assert isinstance(params, LocustfileParams)  # noqa: S101 -- validated by params_model
        self.path = Path(self.use)
        self.host = params.host
        self._endpoint = params.endpoint or "host"
        if params.endpoint is not None:
            if params.endpoint not in context.endpoints:
                raise ScenarioError(f"{context.name}: the farm has no endpoint {params.endpoint}")
            self.host = context.endpoints[params.endpoint].url

    def check(self) -> Mapping[str, Any]:
        """See ``Scenario``. Imports the file in a separate process and connects to every host over TCP."""
        try:
            users = inspect(self.path)
        except ScenarioError as error:
            raise ScenarioError(f"the locustfile {self.path}: {error}") from error
        hosts = [self.host] if self.host else [user.host for user in users.classes if user.host]
        for host in dict.fromkeys(hosts):
            _reach(host)
        warnings = []
        if users.has_shape:
            warnings.append(f"{self.path.name}: its LoadTestShape is not used; the plan says how many users")
        names = ", ".join(user.name for user in users.classes)
        return {"locustfile": {"server": names, "version": "reachable", "warnings": warnings}}

    def intent(self) -> Intent:
        """See ``Scenario``. What the file's own code sends and writes is not known."""
        where = place(Endpoint(self._endpoint, self.host)) if self.host else "the hosts that the file names"
        return Intent(
            (Target(where, "whatever its requests reach"),),
            (),
            (Sent(self.path.name, "not known: own code", None, None, None),),
            "what its users remove themselves (on_stop)",
            notes=("own code: what it sends and writes is not known",),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """See ``Scenario``. Does nothing: the file's users prepare their data in ``on_start``."""

    def session(self, number: int) -> Session:
        """See ``Scenario``.

        Raises ``ScenarioError``: only load generators, where Locust runs, have sessions.
        """
        raise ScenarioError(f"user {number} of {self.path.name} can live in a load generator only")

    def finish(self, *, keep_data: bool) -> None:
        """See ``Scenario``. Does nothing: the file's users remove their data in ``on_stop``."""


def is_locustfile(use: str) -> bool:
    """Whether the ``use`` of a plan's scenario names a file and not a scenario."""
    return use.endswith(SUFFIX) or "/" in use


def scenario_class(use: str) -> type[Scenario]:
    """The scenario class for a plan's ``use``; raises ``ScenarioError`` with all names and the nearest."""
    if is_locustfile(use):
        return type(Locustfile.__name__, (Locustfile,), {"use": use})
    return registry.scenario(use)


@dataclass(frozen=True, slots=True)
class UserClassOfFile:
    """One user class of a locustfile.

    Attributes:
        name: name of the class.
        host: base URL that the class sets; None if it sets none.
        is_http: whether the class needs a base URL.
        fixed_count: fixed number of users of the class; 0: any number.
    """

    name: str
    host: str | None
    is_http: bool
    fixed_count: int


@dataclass(frozen=True, slots=True)
class LocustClasses:
    """The content of a locustfile: its user classes, and whether it has a LoadTestShape."""

    classes: tuple[UserClassOfFile, ...]
    has_shape: bool


def inspect(path: Path) -> LocustClasses:
    """The user classes of a locustfile, imported in a separate process because Locust patches its process.

    Raises:
        ScenarioError: the file cannot be imported; the message gives the reason and the line.
    """
    try:
        return _inspected(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ScenarioError(f"it cannot be read: {error.strerror}") from error


@lru_cache
def _inspected(path: Path, _changed_ns: int) -> LocustClasses:
    command = [sys.executable, "-m", "pinchpoint.loadgen.locust_load", str(path)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_IMPORT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ScenarioError(f"importing it took longer than {_IMPORT_S:g} s") from error
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise ScenarioError(
            f"importing it ended the process (exit status {done.returncode}): keep what runs a test out of "
            "the module, or below `if __name__ == '__main__':`"
        ) from error
    if "error" in answer:
        raise ScenarioError(answer["error"])
    users = tuple(
        UserClassOfFile(**{key: one[key] for key in ("name", "host", "is_http", "fixed_count")})
        for one in answer["classes"]
    )
    return LocustClasses(users, answer["has_shape"])


def _reach(host: str) -> None:
    if not names_server(host):
        return  # a list of hosts, or a form that only the file's own client can read
    parts = urlsplit(host)
    port = parts.port or _PORTS.get(parts.scheme)
    if parts.hostname is None or port is None:
        return  # probably not a URL of a server; only the file's own client can read it
    where = f"{parts.scheme}://{parts.hostname}:{port}"
    try:
        socket.create_connection((parts.hostname, port), timeout=_REACH_S).close()
    except OSError as error:
        raise EndpointUnreachable(
            f"{where}, the host of the locustfile, does not answer: {error}; start it, or give another with "
            "params: {endpoint: NAME} or {host: URL}"
        ) from error
