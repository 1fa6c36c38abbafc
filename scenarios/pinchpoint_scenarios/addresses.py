"""How an endpoint is named to a person: where it is, never with what it is opened."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from .contract import Endpoint
from .errors import EndpointUnreachable

_SECRET_OPTIONS = ("password", "token")


def place(endpoint: Endpoint) -> str:
    """``endpoint sql (127.0.0.1:5432)``: the endpoint's name and its host and port, or its path."""
    if "://" not in endpoint.url:
        return f"endpoint {endpoint.name} ({endpoint.url})"
    parts = urlsplit(endpoint.url)
    after_user = parts.netloc.rpartition("@")[2]
    return f"endpoint {endpoint.name} ({after_user or parts.query})"  # a data source's name is in the query


def within(endpoint: Endpoint, inside: str) -> str:
    """``database loadtest, schema pinchpoint_orders``: with the database that the URL names."""
    database = unquote(urlsplit(endpoint.url).path.strip("/")) if "://" in endpoint.url else ""
    return f"database {database}, {inside}" if database else f"its default database, {inside}"


def without_secrets(text: str, endpoint: Endpoint) -> str:
    """What a server said, with the endpoint's password and token, in every spelling, replaced by ``***``."""
    secrets = {endpoint.options.get(name, "") for name in _SECRET_OPTIONS}
    if "://" in endpoint.url:
        user_and_password = urlsplit(endpoint.url).netloc.rpartition("@")[0]
        secrets |= {user_and_password.partition(":")[2]}
    for secret in sorted(secrets | {unquote(each) for each in secrets}, key=len, reverse=True):
        text = text.replace(secret, "***") if secret else text
    return text


def unreachable(endpoint: Endpoint, cause: str, remedy: str) -> EndpointUnreachable:
    """The error for an endpoint that cannot be used: ``endpoint NAME (HOST:PORT): CAUSE; REMEDY``."""
    return EndpointUnreachable(f"{place(endpoint)}: {cause}; {remedy}")
