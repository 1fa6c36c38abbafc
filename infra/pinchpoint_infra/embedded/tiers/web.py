"""The ``web`` tier: a front end that serves a SharePoint-style API out of the content database."""

from __future__ import annotations

from pathlib import Path

from pinchpoint_infra.embedded.tiers.contract import free_port, new_secret, write_config
from pinchpoint_infra.embedded.tiers.service import Service
from pinchpoint_infra.embedded.tiers.sql import Sql


class Web(Service):
    """``services.web`` in front of the ``sql`` tier."""

    name = "web"
    endpoint_name = "sharepoint"
    module = "pinchpoint_infra.services.web"
    after = ("sql",)

    def prepare(self) -> None:
        """Write its configuration: see ``Tier``."""
        sql = self.others["sql"]
        assert isinstance(sql, Sql)  # noqa: S101 -- the spec was checked: no web without sql
        self.port = free_port()
        self._token = new_secret()
        write_config(self.config, port=self.port, token=self._token, database_url=sql.content_url)

    def endpoint(self) -> dict[str, str]:
        """See ``Tier``."""
        return {"url": self.url, "auth": "bearer", "token": self._token}

    def disks(self) -> dict[str, Path]:
        """It keeps nothing of its own."""
        return {}
