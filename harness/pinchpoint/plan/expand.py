"""Fills ``${ENV}`` into endpoints, late: in the process that uses them, never in a file or a message."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote, urlsplit

from pinchpoint.base.addresses import LONGEST_NAME_BYTES, can_be_looked_up, is_host
from pinchpoint.base.errors import InputError
from pinchpoint.base.redact import (
    NO_AT_IN_PATH,
    is_public,
    redacted_text,
    remember,
    remember_login,
    remember_url,
)
from pinchpoint.plan.problems import Unfit, nearest, quoted
from pinchpoint.plan.record import field_type
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.odbc import address as odbc
from pinchpoint_scenarios.storage_probe.scenario import DISK

SCHEMES: Mapping[str, tuple[str, ...]] = {
    "sharepoint": ("http", "https"),
    "sql": ("postgresql", *odbc.SCHEMES),
    "nosql": ("valkey", "redis", "cassandra", "scylla", "mongodb", "mongodb+srv"),
    "search": ("http", "https"),
    "web": ("http", "https"),
    "files": ("smb",),
    "crawler": ("winrm", "winrm+http", "ssh"),
}
"""The URL schemes of each endpoint; ``files`` may be a path as well, which has none."""

_FORMS = {"odbc": "odbc:///?dsn=NAME"}
"""Schemes that need no host, and what they need: a data source of the system's knows it."""
_SEVERAL = ("postgresql", "cassandra", "scylla", "mongodb")
"""Schemes whose URL may name several hosts, with commas between them."""
_ENCODED = "in a password write %2F for '/', %40 for '@'"
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expand(name: str, given: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> Endpoint:
    """What a scenario is given: the endpoint with its ``${ENV}`` filled in.

    A variable between ``://`` and ``@`` is percent-encoded on the way, so that a password may hold any
    character.

    Args:
        name: the endpoint's name.
        given: its URL and options, as ``EndpointSpec.given`` or the embedded farm has them.
        environ: the variables.

    Raises:
        InputError: a variable is not set, or what results is no URL of this endpoint.
    """
    endpoint, unfit = expanded(name, given, environ)
    if unfit:
        raise InputError(*(f"endpoints.{name}.{key}: {why}" for key, why in unfit.items()))
    return endpoint


def expanded(
    name: str, given: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[Endpoint, dict[str, Unfit]]:
    """As ``expand``, with what is wrong with each key (``url`` or an option's name) instead of an error."""
    values: dict[str, str] = {}
    unfit: dict[str, Unfit] = {}
    for key, text in given.items():
        try:
            values[key] = _url(name, text, environ) if key == "url" else _text(text, environ)
        except Unfit as why:
            unfit[key] = why
    public = _public(name, values)
    _remember(values, public)
    return Endpoint(name, values.pop("url", ""), values, public), unfit


def _public(name: str, values: Mapping[str, str]) -> frozenset[str]:
    """The options of an endpoint that may be shown."""
    from pinchpoint.plan.endpoints import Endpoints, EndpointSpec  # noqa: PLC0415 -- it checks URLs by this module

    if name.startswith(DISK):
        return frozenset(values)  # a folder of this machine
    field = Endpoints.model_fields.get(name)
    kinds = get_args(field.annotation) if field else ()
    return frozenset(
        option
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, EndpointSpec)
        for option in values
        if is_public(field_type(kind, option))
    )


def _remember(values: Mapping[str, str], public: frozenset[str]) -> None:
    """Let no message of this process show what is secret of an endpoint, or of a collector's options."""
    for key, value in values.items():
        if key == "url":
            remember_url(value)
        elif key not in public:
            remember(value)
            remember_login(values.get("user", ""), value)


def filled(
    given: Mapping[str, Any], environ: Mapping[str, str], public: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], dict[str, Unfit]]:
    """Options whose texts are taken as they are, ``${ENV}`` filled in; what is wrong with each key.

    ``public`` names those that may be shown.
    """
    values: dict[str, Any] = {}
    unfit: dict[str, Unfit] = {}
    for key, value in given.items():
        try:
            values[key] = _text(value, environ) if isinstance(value, str) else value
        except Unfit as why:
            unfit[key] = why
    _remember({key: value for key, value in values.items() if isinstance(value, str)}, public)
    return values, unfit


def variables(text: str) -> list[str]:
    """The names of the variables in a text, as they stand."""
    return _VARIABLE.findall(text)


def check_variables(text: str) -> None:
    """Raise ``Unfit`` where a ``${`` begins no variable."""
    if "${" in _VARIABLE.sub("", text):
        raise Unfit("a '${' that begins no variable", "allowed: ${NAME}, of letters, digits and '_'")


def check_url(name: str, url: str) -> None:
    """Raise ``Unfit`` unless the URL fits the endpoint of that name: its scheme, its hosts, their ports."""
    schemes = SCHEMES[name]
    allowed = "allowed: " + " or ".join(_FORMS.get(scheme, f"{scheme}://HOST") for scheme in schemes)
    shown = quoted(redacted_text(url))
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise Unfit("no URL: it has no scheme", allowed)  # not shown: it may be a misplaced password
    if scheme not in schemes:
        raise Unfit(f"{shown} has the scheme {quoted(scheme)}", allowed, nearest(scheme, schemes))
    if any(character.isspace() or not character.isprintable() for character in url):
        raise Unfit(f"{shown} holds white space", f"{allowed}; write %20 for a space")
    if odbc.is_odbc(url):
        _check_odbc(name, url, allowed)
    else:
        _check_hosts(url, allowed)
    if _ends_later(url):
        raise Unfit(f"{shown} has an '@' behind its host", f"allowed: {scheme}://HOST; {_ENCODED}")
    if _BARE_PERCENT.search(_netloc(url).rpartition("@")[0]):  # a driver would quote it
        raise Unfit(f"{shown} has a '%' that encodes nothing", "in a password write %25 for '%'")


def _check_hosts(url: str, allowed: str) -> None:
    """Raise ``Unfit`` unless every host of the URL can be one; one with a variable is judged once filled in.

    No host is shown by itself: where a password is not encoded, what stands in a host's place is part of it.
    """
    scheme, shown = url.partition("://")[0], quoted(redacted_text(url))
    hosts = _netloc(url).rpartition("@")[2].split(",")
    if len(hosts) > 1 and scheme not in _SEVERAL:
        raise Unfit(f"{shown} has several hosts", f"allowed: {scheme}://HOST; {_ENCODED}")
    for number, host in enumerate(hosts, 1):
        which = f" (host {number} of {len(hosts)})" if len(hosts) > 1 else ""
        if "${" in host and not host.startswith(":"):
            continue
        if not is_host(host):
            raise _no_host(f"{shown} has no host, or a wrong port{which}", allowed)
        if not can_be_looked_up(host):
            raise Unfit(
                f"{shown} has a host that can be no name{which}",
                f"{allowed}; 1 to 63 bytes before, between and after the dots of a name, "
                f"{LONGEST_NAME_BYTES} in all; {_ENCODED}",
            )


def _ends_later(url: str) -> bool:
    """Whether what stands before the first '/' is no host but the begin of a password."""
    scheme, _, rest = url.partition("://")
    path = rest.partition("/")[2] if "/" in rest else rest.partition("?")[2]
    return scheme in NO_AT_IN_PATH and "@" in path


def _no_host(found: str, allowed: str) -> Unfit:
    return Unfit(found, f"{allowed}; a port is a number from 1 to 65535; {_ENCODED}")


def _check_odbc(name: str, url: str, allowed: str) -> None:
    """Likewise of an ODBC endpoint, whose driver has names of its own: ``.``, ``HOST%5CINSTANCE``."""
    if not _has_host(url) and url.partition("://")[0] not in _FORMS:
        raise _no_host(f"{quoted(redacted_text(url))} has no host, or a wrong port", allowed)
    if "${" in url:
        return
    try:
        odbc.parse(Endpoint(name, url))
    except odbc.AddressError as error:
        raise Unfit(error.cause, error.remedy) from error


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


def _url(name: str, text: str, environ: Mapping[str, str]) -> str:
    if name.startswith(DISK):
        return text  # a folder of this machine, from a farm that is up
    if name == "files" and not text.startswith("smb://"):
        folder = Path(_text(text, environ))
        if not folder.is_absolute():
            raise Unfit(
                f"the path {quoted(text)} is not absolute once its variables are filled in",
                "allowed: an absolute path",
            )
        return str(folder)
    scheme, separator, rest = text.partition("://")
    end = next((at for at, character in enumerate(rest) if character in "/?#"), len(rest))
    user, at, host = rest[:end].rpartition("@")
    secret = _text(user, environ, lambda value: quote(value, safe=""))
    url = _text(scheme, environ) + separator + secret + at + _text(host + rest[end:], environ)
    check_url(name, url)
    return url


def _text(text: str, environ: Mapping[str, str], encode: Callable[[str], str] = str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in environ:
            raise Unfit(f"the environment variable {name} is not set", f"set it: export {name}=VALUE")
        return encode(environ[name])

    return _VARIABLE.sub(value, text)
