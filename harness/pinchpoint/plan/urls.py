"""Checks the URL of an endpoint, before and after its ``${ENV}`` is replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs, unquote, urlsplit

from pinchpoint.base.redact import NO_AT_IN_PATH, redacted_text
from pinchpoint.plan.problems import BadValue, quoted
from pinchpoint_collectors.common import valkey_urls
from pinchpoint_collectors.common.names import nearest_name
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.odbc import address as odbc

# Checks whether a URL's host name is possible, before a client fails on it.

LONGEST_NAME_BYTES = 253
_NO_NAME = ("/", "@")
"""First letters of the path of a Unix socket (``%2Frun%2Fpostgresql``), and of an abstract one's name."""


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
    """Whether the host of a URL, if it has one, can be one."""
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return False
    return not host or (is_host(host) and can_be_looked_up(host))


SCHEMES: Mapping[str, tuple[str, ...]] = {
    "sharepoint": ("http", "https"),
    "sql": ("postgresql", *odbc.SCHEMES),
    "nosql": (*valkey_urls.SCHEMES, "cassandra", "scylla", "mongodb", "mongodb+srv"),
    "search": ("http", "https"),
    "web": ("http", "https"),
    "files": ("smb",),
    "crawler": ("winrm", "winrm+http", "ssh"),
}
"""The URL schemes of each endpoint; ``files`` may be a path as well, which has none."""

_OTHER_NAMES = {"postgres": "postgresql"}
"""A scheme as it is written now and then -> its name here."""
_LIBPQ = ("postgresql", "postgres")
_LIBPQ_PLACE = frozenset({"host", "hostaddr", "service"})
"""Parameters of libpq's URLs that say where the server is, in place of the host."""
_FORMS = {"odbc": "odbc:///?dsn=NAME"}
"""Schemes that need no host, and what they need: a data source of the system's knows it."""
_SEVERAL = ("postgresql", "postgres", "cassandra", "scylla", "mongodb", *valkey_urls.SCHEMES)
"""Schemes whose URL may name several hosts, with commas between them; of ``search`` any may."""
_ENCODED = "in a password write %2F for '/', %40 for '@'"
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable's name, in braces."""


def variables(text: str) -> list[str]:
    """The names of the variables in a text, as they stand."""
    return VARIABLE.findall(text)


def check_variables(text: str) -> None:
    """Raise ``BadValue`` where a ``${`` begins no variable."""
    if "${" in VARIABLE.sub("", text):
        raise BadValue("a '${' that begins no variable", "allowed: ${NAME}, of letters, digits and '_'")


def check_url(name: str, url: str) -> None:
    """Raise ``BadValue`` unless scheme, hosts and ports of the URL fit the endpoint of that name."""
    schemes = SCHEMES[name]
    allowed = "allowed: " + " or ".join(_FORMS.get(scheme, f"{scheme}://HOST") for scheme in schemes)
    shown = quoted(redacted_text(url))
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise BadValue("no URL: it has no scheme", allowed)  # not shown: it may be a misplaced password
    if _OTHER_NAMES.get(scheme, scheme) not in schemes:
        raise BadValue(f"{shown} has the scheme {quoted(scheme)}", allowed, nearest_name(scheme, schemes))
    if any(character.isspace() or not character.isprintable() for character in url):
        raise BadValue(f"{shown} holds white space", f"{allowed}; write %20 for a space")
    if odbc.is_odbc(url):
        _check_odbc(name, url, allowed)
    else:
        _check_hosts(url, allowed, several=scheme in _SEVERAL or name == "search")
    if scheme in valkey_urls.SCHEMES and "${" not in url and _has_host(url):
        try:
            valkey_urls.read(url)
        except ValueError as error:
            raise BadValue(f"{shown}: {error}", allowed) from error
    if _ends_later(url):
        raise BadValue(f"{shown} has an '@' behind its host", f"allowed: {scheme}://HOST; {_ENCODED}")
    if _BARE_PERCENT.search(_netloc(url).rpartition("@")[0]):  # a driver would quote it
        raise BadValue(f"{shown} has a '%' that encodes nothing", "in a password write %25 for '%'")


def _check_hosts(url: str, allowed: str, *, several: bool) -> None:
    """Raise ``BadValue`` unless every host of the URL is valid; one with a variable is checked when expanded.

    No host is shown by itself: where a password is not encoded, what stands in a host's place is part of it.
    """
    scheme, shown = url.partition("://")[0], quoted(redacted_text(url))
    hosts = _netloc(url).rpartition("@")[2].split(",")
    if len(hosts) > 1 and not several:
        raise BadValue(f"{shown} has several hosts", f"allowed: {scheme}://HOST; {_ENCODED}")
    for number, host in enumerate(hosts, 1):
        which = f" (host {number} of {len(hosts)})" if len(hosts) > 1 else ""
        if "${" in host and not host.startswith(":"):
            continue
        if not host and scheme in _LIBPQ and _LIBPQ_PLACE & parse_qs(urlsplit(url).query).keys():
            continue
        if not is_host(host):
            raise _no_host(f"{shown} has no host, or a wrong port{which}", allowed)
        if not can_be_looked_up(host):
            raise BadValue(
                f"{shown} has a host that can be no name{which}",
                f"{allowed}; 1 to 63 bytes before, between and after the dots of a name, "
                f"{LONGEST_NAME_BYTES} in all; {_ENCODED}",
            )


def _ends_later(url: str) -> bool:
    """Whether what stands before the first '/' is no host but the begin of a password."""
    scheme, _, rest = url.partition("://")
    path = rest.partition("/")[2] if "/" in rest else rest.partition("?")[2]
    return scheme in NO_AT_IN_PATH and "@" in path


def _no_host(value: str, allowed: str) -> BadValue:
    return BadValue(value, f"{allowed}; a port is a number from 1 to 65535; {_ENCODED}")


def _check_odbc(name: str, url: str, allowed: str) -> None:
    """Likewise of an ODBC endpoint, whose driver has names of its own: ``.``, ``HOST%5CINSTANCE``."""
    if not _has_host(url) and url.partition("://")[0] not in _FORMS:
        raise _no_host(f"{quoted(redacted_text(url))} has no host, or a wrong port", allowed)
    if "${" in url:
        return
    try:
        odbc.parse(Endpoint(name, url))
    except odbc.AddressError as error:
        raise BadValue(error.cause, error.remedy) from error


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        if "," in host or "${" in parts.netloc:  # what comes from a variable is judged later
            return bool(host) and not host.startswith(":")
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:  # brackets that hold no IPv6 address
        return ""
