"""Checks the URL of an endpoint, before and after its ``${ENV}`` variables are replaced."""

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

LONGEST_NAME_BYTES = 253
_NO_NAME = ("/", "@")
"""First characters of a Unix socket's path (``%2Frun%2Fpostgresql``) and of an abstract socket's name."""


def is_host(text: str) -> bool:
    """Whether a text is ``HOST``, ``HOST:PORT``, ``[IPv6]`` or ``[IPv6]:PORT``; a port is 1 to 65535."""
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname) and parts.port != 0 and not text.endswith(":")
    except ValueError:
        return False


def can_be_looked_up(host: str) -> bool:
    """Whether a host that ``is_host`` accepts has a valid DNS name, or is a Unix socket.

    The labels of a name have 1 to 63 bytes in their encoded form (longer than the text for international
    names), with dots between them; a dot at the end is allowed.
    """
    name = unquote(urlsplit(f"//{host}").hostname or "")
    if name.startswith(_NO_NAME):
        return True
    try:
        sent = name.encode("idna")  # the encoding of Python's sockets, whose failure there is not an OSError
    except UnicodeError:
        return False
    return len(sent.removesuffix(b".")) <= LONGEST_NAME_BYTES


def names_server(url: str) -> bool:
    """Whether the URL has no host, or a host that is valid."""
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
"""The URL schemes of each endpoint; ``files`` may also be a path without a scheme."""

_OTHER_NAMES = {"postgres": "postgresql"}
"""An alternative name of a scheme -> the name used here."""
_LIBPQ = ("postgresql", "postgres")
_LIBPQ_PLACE = frozenset({"host", "hostaddr", "service"})
"""Parameters of libpq's URLs that give the server instead of the host."""
_FORMS = {"odbc": "odbc:///?dsn=NAME"}
"""Schemes that need no host -> the form of their URL; the ODBC data source contains the host."""
_SEVERAL = ("postgresql", "postgres", "cassandra", "scylla", "mongodb", *valkey_urls.SCHEMES)
"""Schemes whose URL may have several hosts with commas between them; a ``search`` URL always may."""
_ENCODED = "in a password write %2F for '/', %40 for '@'"
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""An environment variable in braces: ``${NAME}``."""


def variables(text: str) -> list[str]:
    """The names of the variables in a text, in order."""
    return VARIABLE.findall(text)


def check_variables(text: str) -> None:
    """Raise ``BadValue`` if a ``${`` does not start a variable."""
    if "${" in VARIABLE.sub("", text):
        raise BadValue("a '${' that begins no variable", "allowed: ${NAME}, of letters, digits and '_'")


def check_url(name: str, url: str) -> None:
    """Raise ``BadValue`` unless scheme, hosts and ports of the URL are valid for the endpoint ``name``."""
    schemes = SCHEMES[name]
    allowed = "allowed: " + " or ".join(_FORMS.get(scheme, f"{scheme}://HOST") for scheme in schemes)
    shown = quoted(redacted_text(url))
    scheme, separator, _ = url.partition("://")
    if not separator:
        # the text is not shown, because it may be a misplaced password
        raise BadValue("no URL: it has no scheme", allowed)
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
    if _BARE_PERCENT.search(_netloc(url).rpartition("@")[0]):  # a driver would show the password in its error
        raise BadValue(f"{shown} has a '%' that encodes nothing", "in a password write %25 for '%'")


def _check_hosts(url: str, allowed: str, *, several: bool) -> None:
    """Raise ``BadValue`` unless every host of the URL is valid; a host with a variable is checked later.

    No message shows a host alone: if a password is not encoded, the text in the host's place may be part of
    the password.
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
    """Whether the text before the first '/' is the start of a password with a '/' in it, and not a host."""
    scheme, _, rest = url.partition("://")
    path = rest.partition("/")[2] if "/" in rest else rest.partition("?")[2]
    return scheme in NO_AT_IN_PATH and "@" in path


def _no_host(value: str, allowed: str) -> BadValue:
    return BadValue(value, f"{allowed}; a port is a number from 1 to 65535; {_ENCODED}")


def _check_odbc(name: str, url: str, allowed: str) -> None:
    """Raise ``BadValue`` unless an ODBC URL is valid.

    ODBC drivers allow more forms of a host: ``.``, ``HOST%5CINSTANCE``.
    """
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
        if "," in host or "${" in parts.netloc:  # a host with a variable is checked after expansion
            return bool(host) and not host.startswith(":")
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:  # brackets without an IPv6 address
        return ""
