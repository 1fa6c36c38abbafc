"""The contract of a tier with its supervisor."""

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
        directory: the server's own folder; made by the supervisor.
        others: the servers made earlier, by name.
    """

    name: ClassVar[str]
    endpoint_name: ClassVar[str]
    lets_pass: ClassVar[bool] = False
    """Whether, under root, its server runs as another user, who must be able to enter its folder."""
    after: ClassVar[tuple[str, ...]] = ()
    """Tiers that must be up, with the farm's content loaded, before this one starts."""

    several: ClassVar[bool] = False
    """Whether the tier may have several hosts: its endpoint then names all of them."""

    def __init__(self, directory: Path, others: dict[str, EmbeddedTier]) -> None:
        self.server: str = self.name  # its name among the farm's servers; see ``pinchpoint_infra.servers``
        self.directory = directory
        self.others = others
        self.port: int | None = None
        self.user: int | None = None  # None: the user of the supervisor
        self.emulated: frozenset[str] = frozenset()  # the disk roles on disks of their own
        self.far = False  # whether clients reach it over a delay
        self.memory_capped = False  # whether its memory is limited
        self.settings: Mapping[str, str] = {}  # further settings of its server, which replace those set here

    @property
    def log(self) -> Path:
        """The tier's log file."""
        return self.directory / f"{self.name}.log"

    @abstractmethod
    def prepare(self) -> None:
        """Make folders, configuration, secrets. Raises FarmError."""

    @abstractmethod
    def command(self) -> list[str] | None:
        """The command line of its first process; None for a tier that is only a folder."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers as clients need."""

    def when_ready(self) -> None:  # noqa: B027 -- most tiers have nothing to add
        """What is created in the running server: roles, databases. Raises FarmError."""

    @abstractmethod
    def endpoint(self) -> dict[str, str]:
        """The tier's entry of farm.yaml's ``endpoints``."""

    @abstractmethod
    def disks(self) -> dict[str, Path]:
        """Disk role -> its folder."""


def new_secret() -> str:
    """A random password without characters that need quoting in URLs or configuration files."""
    return secrets.token_hex(16)


def write_secret(path: Path, text: str) -> Path:
    """Write a file only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path


def write_config(path: Path, **values: object) -> Path:
    """Write a service's JSON configuration; it may hold secrets."""
    return write_secret(path, json.dumps(values))


class ServiceTier(EmbeddedTier):
    """A Python service: a module with a configuration file, ready when ``/health`` returns 200."""

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
        """Headers that ``/health`` needs."""
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
