"""The ``search`` tier: content processing and the full-text index."""

from __future__ import annotations

from pathlib import Path

from pinchpoint_infra.embedded.tiers.contract import ServiceTier, new_secret, write_config
from pinchpoint_infra.ports import free_port


class Search(ServiceTier):
    """``services.search`` with its index in its own folder. All hosts of the tier use the same token."""

    name = "search"
    several = True
    endpoint_name = "search"
    module = "pinchpoint_infra.services.search"

    def prepare(self) -> None:
        """Create the folder of the index (see ``EmbeddedTier``)."""
        self.port = free_port()
        beside = [tier for tier in self.others.values() if isinstance(tier, Search) and tier is not self]
        self._token: str = beside[0]._token if beside else new_secret()
        index = self.directory / "index"
        index.mkdir(exist_ok=True)
        write_config(self.config, port=self.port, token=self._token, directory=str(index))

    def endpoint(self) -> dict[str, str]:
        return {"url": self.url, "kind": "pinchpoint", "token": self._token}

    def login(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def disks(self) -> dict[str, Path]:
        """The folder of the index."""
        return {"index": self.directory / "index"}
