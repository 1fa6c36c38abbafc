"""The ``web`` tier: a front end that serves a SharePoint-style API from the content database."""

from __future__ import annotations

import http.client
import json
from dataclasses import asdict
from pathlib import Path

from pinchpoint_infra.embedded.tiers.contract import ServiceTier, new_secret, write_config
from pinchpoint_infra.embedded.tiers.sql import Sql
from pinchpoint_infra.faults.throttle import ThrottledEndpoint
from pinchpoint_infra.ports import free_port

_THROTTLE_WITHIN_S = 30.0  # under load, with a fraction of a core, the start takes long


class WebTier(ServiceTier):
    """``services.web`` in front of the ``sql`` tier."""

    name = "web"
    endpoint_name = "sharepoint"
    module = "pinchpoint_infra.services.web"
    after = ("sql",)

    def prepare(self) -> None:
        """Write the configuration (see ``EmbeddedTier``)."""
        sql = self.others["sql"]
        assert isinstance(sql, Sql)  # noqa: S101 -- the spec was checked: no web without sql
        self.port = free_port()
        self._token = new_secret()
        write_config(self.config, port=self.port, token=self._token, database_url=sql.content_url)

    def endpoint(self) -> dict[str, str]:
        return {"url": self.url, "auth": "bearer", "token": self._token}

    def disks(self) -> dict[str, Path]:
        """No disks: the tier stores nothing."""
        return {}

    def throttle(self, throttle: ThrottledEndpoint | None) -> None:
        """Refuse requests above a rate; None: refuse no request. Raises OSError.

        A crashed tier refuses nothing, so there is nothing to remove.
        """
        body = json.dumps(asdict(throttle) if throttle else None)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_THROTTLE_WITHIN_S)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", "/throttle", body, headers)
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise OSError(
                    f"the web tier answered {answer.status}: {answer.read().decode(errors='replace')}"
                )
        except http.client.HTTPException as error:
            raise OSError(f"the web tier did not answer: {error!r}") from error
        except ConnectionError:
            if throttle is not None:
                raise
        finally:
            connection.close()
