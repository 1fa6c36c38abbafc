"""What the two tiers that are services of ours have in common."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path
from typing import ClassVar

from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier


class ServiceTier(EmbeddedTier):
    """A Python service, started as a module with a configuration file, healthy when ``/health`` says 200."""

    module: ClassVar[str]

    @property
    def config(self) -> Path:
        """Its configuration file."""
        return self.directory / "config.json"

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def login(self) -> dict[str, str]:
        """Headers with which it answers ``/health``."""
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
