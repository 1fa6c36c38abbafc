"""Contract between a tier and its supervisor."""

from __future__ import annotations

import http.client
import json
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar


class EmbeddedTier(ABC):
    """One server of a tier: its folder, its process, its health, its endpoint.

    Args:
        directory: folder of the server, created by the supervisor.
        others: name -> servers created before.
    """

    name: ClassVar[str]
    endpoint_name: ClassVar[str]
    lets_pass: ClassVar[bool] = False
    """Return whether the server runs as another user under root, who must be able to enter its folder."""
    after: ClassVar[tuple[str, ...]] = ()
    """Return tiers that must be up, with the farm's content loaded, before this one starts."""

    several: ClassVar[bool] = False
    """Return whether the tier may have several hosts. Its endpoint then contains all of them."""

    def __init__(self, directory: Path, others: dict[str, EmbeddedTier]) -> None:
        self.server: str = self.name  # name among the farm's servers (see ``pinchpoint_infra.servers``)
        self.directory = directory
        self.others = others
        self.port: int | None = None
        self.user: int | None = None  # None: the user of the supervisor
        self.emulated: frozenset[str] = frozenset()  # disk roles on disks of their own
        self.far = False  # whether clients reach the server over a delay
        self.memory_capped = False  # whether the memory of the server is limited
        self.settings: Mapping[str, str] = {}  # further settings of the server, which override those set here

    @property
    def log(self) -> Path:
        """The tier's log file."""
        return self.directory / f"{self.name}.log"

    @abstractmethod
    def prepare(self) -> None:
        """Create folders, configuration and secrets. Raises FarmError."""

    @abstractmethod
    def command(self) -> list[str] | None:
        """Return the command line of the first process; None for a tier that is only a folder."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the server answers as clients need."""

    def when_ready(self) -> None:  # noqa: B027 -- most tiers have nothing to add
        """Create roles and databases in the running server. Raises FarmError."""

    @abstractmethod
    def endpoint(self) -> dict[str, str]:
        """Return the tier's entry in ``endpoints`` of farm.yaml."""

    @abstractmethod
    def disks(self) -> dict[str, Path]:
        """Return disk role -> folder."""


def new_secret() -> str:
    """Return a random password without characters that need quoting in URLs or configuration files."""
    return secrets.token_hex(16)


def write_secret(path: Path, text: str) -> Path:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path


def write_config(path: Path, **values: object) -> Path:
    """Write the JSON configuration of a service, which may contain secrets."""
    return write_secret(path, json.dumps(values))


class ServiceTier(EmbeddedTier):
    """A service in Python: a module with a configuration file. It is ready when ``/health`` returns 200."""

    module: ClassVar[str]

    @property
    def config(self) -> Path:
        """The tier's configuration file."""
        return self.directory / "config.json"

    @property
    def url(self) -> str:
        """The URL of the service."""
        return f"http://127.0.0.1:{self.port}"

    def login(self) -> dict[str, str]:
        """Return the headers that ``/health`` needs."""
        return {}

    def command(self) -> list[str]:
        return [sys.executable, "-m", self.module, str(self.config)]

    def is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/health", headers=self.login())
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()
