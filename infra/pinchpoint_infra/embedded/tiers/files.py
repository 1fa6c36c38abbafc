"""The ``files`` tier: a folder of documents, as a file share is to a crawler."""

from __future__ import annotations

from pathlib import Path

from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier


class FilesTier(EmbeddedTier):
    """A folder; no process serves it."""

    name = "files"
    endpoint_name = "files"

    @property
    def folder(self) -> Path:
        """Where the documents lie."""
        return self.directory / "content"

    def prepare(self) -> None:
        """Make the folder: see ``EmbeddedTier``."""
        self.folder.mkdir(exist_ok=True)

    def command(self) -> None:
        """No process."""
        return

    def is_ready(self) -> bool:
        """A folder is there once it is made."""
        return self.folder.is_dir()

    def endpoint(self) -> dict[str, str]:
        return {"url": str(self.folder)}

    def disks(self) -> dict[str, Path]:
        """Where the documents lie."""
        return {"content": self.folder}
