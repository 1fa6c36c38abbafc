"""Formats an endpoint for messages: its address without its login."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from .contract import Endpoint
from .errors import EndpointUnreachable

_PLACE = ("dsn", "host", "hostaddr", "port", "service")
"""URL parameters that contain the server's address if the URL has no host."""
_SHORT = 4
"""Length below which a secret is replaced only as a whole word, because it may be part of words and host
names."""
_ALONE = r"(?<![\w.-]){}(?![\w-]|\.\w)"


def place(endpoint: Endpoint) -> str:
    """Return an endpoint with its host and port, or its path: ``endpoint sql (127.0.0.1:5432)``."""
    if "://" not in endpoint.url:
        return f"endpoint {endpoint.name} ({endpoint.url})"
    parts = urlsplit(endpoint.url)
    where = parts.netloc.rpartition("@")[2]
    if not where:  # the query contains the address; no other part of the query is shown
        where = "&".join(part for part in parts.query.split("&") if part.partition("=")[0].lower() in _PLACE)
    return f"endpoint {endpoint.name} ({where})"


def within(endpoint: Endpoint, inside: str) -> str:
    """Return a schema with the database in the URL: ``database loadtest, schema pinchpoint_orders``."""
    database = unquote(urlsplit(endpoint.url).path.strip("/")) if "://" in endpoint.url else ""
    return f"database {database}, {inside}" if database else f"its default database, {inside}"


def without_secrets(text: str, endpoint: Endpoint) -> str:
    """Return a server's message with the endpoint's secrets (plain and URL-encoded) replaced by ``***``."""
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
    """Return the error for an endpoint that cannot be used: ``endpoint NAME (HOST:PORT): CAUSE; REMEDY``."""
    return EndpointUnreachable(f"{place(endpoint)}: {cause}; {remedy}")
