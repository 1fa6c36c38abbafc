"""Parses addresses of SMB shares: ``smb://HOST[:PORT]/SHARE[/PATH]``."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from ...contract import Endpoint
from ...errors import ScenarioError

_PORT = 445
_SCHEME = "smb://"


@dataclass(frozen=True, slots=True)
class ShareAddress:
    """The address of a share.

    Attributes:
        host: server of the share.
        port: port of the server.
        path: share, and the crawled folder in it, separated by ``/``.
    """

    host: str
    port: int
    path: str


def is_share(endpoint: Endpoint) -> bool:
    """Return whether an endpoint is an SMB share and not a folder."""
    return endpoint.url.lower().startswith(_SCHEME)


def check_share(endpoint: Endpoint) -> ShareAddress:
    """Return the share of an endpoint.

    Raises:
        ScenarioError: its address or its options are invalid.
    """
    try:
        parts = urlsplit(endpoint.url)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError as error:
        raise _wrong(endpoint, str(error)) from error
    path = unquote(parts.path).strip("/")
    if not host or not path:
        raise _wrong(endpoint, "a host and the name of a share are needed")
    if parts.username is not None:
        raise _wrong(endpoint, "user and password are options of their own")
    if bool(endpoint.options.get("user")) != bool(endpoint.options.get("password")):
        raise _wrong(
            endpoint, "user and password belong together; with neither, the process' own login is used"
        )
    return ShareAddress(host, port, path)


def _wrong(endpoint: Endpoint, why: str) -> ScenarioError:
    return ScenarioError(
        f"endpoint {endpoint.name}: {why}; write the share like smb://files.example/documents"
    )
