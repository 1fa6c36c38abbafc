"""Kinds whose connection is not in ``base.py`` yet."""

from __future__ import annotations

from urllib.parse import urlsplit

from pinchpoint_collectors.databases.base import ServerKind
from pinchpoint_collectors.record import Watch


class NodeKind(ServerKind):
    """A kind that makes its own collector."""

    def _url(self, watch: Watch) -> str:
        """The endpoint's URL, with the address in place of its own where one is given."""
        url, address = str(watch.options["url"]), watch.options.get("address")
        parts = urlsplit(url)
        login, at, _ = parts.netloc.rpartition("@")
        return url if address is None else parts._replace(netloc=f"{login}{at}{address}").geturl()
