"""Formats an endpoint for people: its address without its login."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from .contract import Endpoint
from .errors import EndpointUnreachable

_PLACE = ("dsn", "host", "hostaddr", "port", "service")
"""Parameters of a URL without a host that contain the server's place."""
_SHORT = 4
"""A shorter secret occurs in words and host names by chance: it is replaced only as a whole word."""
_ALONE = r"(?<![\w.-]){}(?![\w-]|\.\w)"


def place(endpoint: Endpoint) -> str:
    """``endpoint sql (127.0.0.1:5432)``: the endpoint's name and its host and port, or its path."""
    if "://" not in endpoint.url:
        return f"endpoint {endpoint.name} ({endpoint.url})"
    parts = urlsplit(endpoint.url)
    where = parts.netloc.rpartition("@")[2]
    if not where:  # the query contains the place; no other part of it is shown
        where = "&".join(part for part in parts.query.split("&") if part.partition("=")[0].lower() in _PLACE)
    return f"endpoint {endpoint.name} ({where})"


def within(endpoint: Endpoint, inside: str) -> str:
    """``database loadtest, schema pinchpoint_orders``: with the database that the URL names."""
    database = unquote(urlsplit(endpoint.url).path.strip("/")) if "://" in endpoint.url else ""
    return f"database {database}, {inside}" if database else f"its default database, {inside}"


def without_secrets(text: str, endpoint: Endpoint) -> str:
    """A server's message, with the endpoint's secrets (plain and URL-encoded) replaced by ``***``."""
    secrets = {value for name, value in endpoint.options.items() if name not in endpoint.public}
    if "://" in endpoint.url:
        user_and_password = urlsplit(endpoint.url).netloc.rpartition("@")[0]
        secrets |= {user_and_password.partition(":")[2]}
    secrets |= {unquote(each) for each in secrets} | {quote(each, safe="") for each in secrets}
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = re.sub(
            _ALONE.format(re.escape(secret)) if len(secret) < _SHORT else re.escape(secret), "***", text
        )
    return text


def unreachable(endpoint: Endpoint, cause: str, remedy: str) -> EndpointUnreachable:
    """The error for an endpoint that cannot be used: ``endpoint NAME (HOST:PORT): CAUSE; REMEDY``."""
    return EndpointUnreachable(f"{place(endpoint)}: {cause}; {remedy}")
