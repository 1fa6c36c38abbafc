"""Checks whether a URL's host name is possible, before a client fails on it."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

LONGEST_NAME_BYTES = 253
_NO_NAME = ("/", "@")
"""What the path of a Unix socket begins with (``%2Frun%2Fpostgresql``), and the name of an abstract one."""


def is_host(text: str) -> bool:
    """Whether a text is ``HOST``, ``HOST:PORT``, ``[IPv6]`` or ``[IPv6]:PORT``, the port from 1 to 65535."""
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname) and parts.port != 0 and not text.endswith(":")
    except ValueError:
        return False


def can_be_looked_up(host: str) -> bool:
    """Whether a host, which ``is_host``, has a name that a resolver takes, or needs none.

    A name has labels of 1 to 63 bytes, as they are sent (an international one is longer then than it looks),
    with dots between them, one of which may stand at the end.
    """
    name = unquote(urlsplit(f"//{host}").hostname or "")
    if name.startswith(_NO_NAME):
        return True
    try:
        sent = name.encode("idna")  # as Python's own sockets do, which raise no OSError where that fails
    except UnicodeError:
        return False
    return len(sent.removesuffix(b".")) <= LONGEST_NAME_BYTES


def names_server(url: str) -> bool:
    """Whether the host of a URL, where it has one, can be one."""
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return False
    return not host or (is_host(host) and can_be_looked_up(host))
