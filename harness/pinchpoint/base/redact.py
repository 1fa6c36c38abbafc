"""Removes passwords and other secrets from manifests and messages.

A field's type defines whether it is secret: see ``Public`` and ``StrictRecord.shown``. ``masked`` removes the
secrets known to this process from texts of drivers and servers.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import quote, quote_plus, unquote

from pinchpoint_collectors.common import valkey_urls

HIDDEN = "***"
NOT_SHOWN = "a value (not shown)"


class _Shown:
    """Marks a text type whose values may be shown."""


class _ShownAsUrl:
    """Marks a URL type whose values may be shown without their secrets."""


Public = Annotated[str, _Shown()]
"""A text that may be shown. In a record that hides its texts, all other texts are secret."""
Url = Annotated[str, _ShownAsUrl()]
"""A URL. It is shown without passwords and without the values of unknown parameters."""

_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|pwd$|secret|token|cookie|api_?key|private_?key|credential|authorization",
    re.IGNORECASE,
)
_HARMLESS = frozenset(
    {
        "application_name",
        "appname",
        "authmechanism",
        "authsource",
        "compressors",
        "connect_timeout",
        "connection_timeout",
        "connecttimeout",
        "connecttimeoutms",
        "database",
        "db",
        "dbname",
        "dialect",
        "directconnection",
        "driver",
        "dsn",
        "encrypt",
        "encryption",
        "host",
        "hostaddr",
        "hostnameincertificate",
        "journal",
        "keepalives",
        "keyspace",
        "localthresholdms",
        "login_timeout",
        "maxpoolsize",
        "maxstalenessseconds",
        "minpoolsize",
        "multisubnetfailover",
        "option",
        "page",
        "pagesize",
        "port",
        "protocol",
        "readconcernlevel",
        "readpreference",
        "replicaset",
        "retryreads",
        "retrywrites",
        "schema",
        "server",
        "servercertificate",
        "service",
        "serverselectiontimeoutms",
        "socket_connect_timeout",
        "socket_timeout",
        "sockettimeoutms",
        "ssl",
        "sslca",
        "sslcrl",
        "sslmode",
        "sslrootcert",
        "sslverify",
        "target_session_attrs",
        "tls",
        "tlsallowinvalidcertificates",
        "tlsallowinvalidhostnames",
        "tlscafile",
        "tlsinsecure",
        "trusted_connection",
        "trustservercertificate",
        "uid",
        "user",
        "username",
        "w",
        "waitqueuetimeoutms",
        "wtimeoutms",
    }
)
"""URL parameters without secrets. The values of all other parameters are hidden."""
_DATABASES = frozenset(
    {"postgresql", "postgres", "postgresql+odbc", "mssql+odbc", "mysql+odbc", "mariadb+odbc", "odbc"}
    | {"mongodb", "mongodb+srv", "cassandra", "scylla", "smb"}
)
_USER_IS_NAMED = _DATABASES | {"ssh", "winrm", "winrm+http"}
"""URL schemes with user names that are not secret. In other schemes, a user without a password may be a
token."""
NO_AT_IN_PATH = _DATABASES | {"valkeys", "rediss", *valkey_urls.SCHEMES}
"""URL schemes without '@' after the host. An '@' in the rest of such a URL belongs to an unencoded
password."""

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>\S*)")
_BROKEN_LOGIN = re.compile(
    r"(?<=://)(?P<user>[^:@/?#\s]*):(?!\d*(?:[/?#\s]|$))(?P<password>(?:(?!://).)*)@", re.DOTALL
)
_PORT = re.compile(r"(?:\d{0,5}|PORT|\$\{\w+\})(?=[/?#,;:.)\]}\"'`\s]|$)")
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_ENDS = re.compile(r"[\"'`)\].,;:]*$")
_VARIABLES = re.compile(r"(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})*")


def redacted(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of untyped JSON data without secrets.

    Passwords in URLs become ``***``, and so do values of keys named like passwords, tokens or secrets.
    ``${ENV}`` texts are kept, because they are names and not values.
    """
    return {key: hidden(value) if is_secret(key) else redacted_value(value) for key, value in data.items()}


def redacted_value(value: Any) -> Any:
    """Return a JSON value with ``redacted`` applied to it."""
    if isinstance(value, Mapping):
        return redacted(value)
    if isinstance(value, list | tuple):
        return [redacted_value(item) for item in value]
    return redacted_word(value) if isinstance(value, str) else value


def hidden(value: Any) -> Any:
    """Return ``***`` for a value. A missing value and ``${ENV}`` are returned unchanged."""
    if value is None or (isinstance(value, str) and _VARIABLES.fullmatch(value)):
        return value
    return HIDDEN


def is_secret(key: str) -> bool:
    """Return whether a key with this name has a secret value."""
    return bool(_SECRET_KEY.search(key))


def shown(annotation: Any, value: Any) -> Any:
    """Return the JSON value of a field for display. It is hidden unless the type of the field is public."""
    kinds = list(_kinds(annotation))
    if all(_may_be_shown(kind) for kind in kinds):
        return value
    if isinstance(value, str) and any(isinstance(kind, _ShownAsUrl) for kind in kinds):
        return redacted_text(value)
    return hidden(value)


def is_public(annotation: Any) -> bool:
    """Return whether values of a field type may be shown."""
    return all(_may_be_shown(kind) for kind in _kinds(annotation))


def _may_be_shown(kind: Any) -> bool:
    return isinstance(kind, _Shown) or kind in (bool, int, float, type(None)) or get_origin(kind) is Literal


def _kinds(annotation: Any) -> Iterator[Any]:
    """Return the possible types of a value. A marked type is represented by its mark."""
    if get_origin(annotation) is Annotated:
        marks = [mark for mark in annotation.__metadata__ if isinstance(mark, _Shown | _ShownAsUrl)]
        if marks:
            yield from marks
        else:
            yield from _kinds(annotation.__origin__)
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _kinds(each)
    else:
        yield annotation


# URLs ----------------------------------------------------------------------------------------------------


def redacted_text(text: str) -> str:
    """Return the text with secrets in URLs replaced by ``***``.

    Secrets are: a password, up to the last '@' that can end it; a user alone if it may be a token; a password
    in place of a port; the value of every parameter that is not known to be harmless.
    """
    if "://" not in text:
        return text
    if any("@" in match["rest"] for match in _URL.finditer(text)) or "@" not in text:
        return _URL.sub(_shown_url, text)
    # A password may contain white space, so it ends at the last '@' after it.
    broken = _BROKEN_LOGIN.sub(lambda match: f"{match['user']}:{hidden(match['password'])}@", text)
    return _URL.sub(_shown_url, broken)


def redacted_word(word: str) -> str:
    """Return a value that should be a URL but may not be one, with its secrets and any login hidden."""
    if "://" not in word and "@" in word:
        before, _, after = word.rpartition("@")
        user, colon, password = before.partition(":")
        return f"{user}{colon}{hidden(password)}@{after}" if colon else word
    return redacted_text(word)


def _shown_url(match: re.Match[str]) -> str:
    scheme, rest = match["scheme"], match["rest"]
    login, host = _taken_apart(scheme.lower(), rest)
    if login is not None:
        # the '?' begins a parameter, or belongs to a password: the host is ambiguous
        if re.search(r"\?[^@]*=", login):
            return f"{scheme}://{HIDDEN}{_ending(rest)}"
        user, colon, password = login.partition(":")
        if re.search(r"[/?#]", user):
            return f"{scheme}://{HIDDEN}@{_shown_query(host)}"
        user = user if colon or scheme.lower() in _USER_IS_NAMED else hidden(user)
        return f"{scheme}://{user}{colon}{hidden(password)}@{_shown_query(host)}"
    name, colon, port = rest.partition(":")
    if colon and not re.search(r"[/?#\[]", name) and not _PORT.match(port):
        return f"{scheme}://{name}:{HIDDEN}{_ending(port)}"
    inner = _URL.search(rest)
    if inner is None:
        return f"{scheme}://{_shown_query(rest)}"
    return f"{scheme}://{_shown_query(rest[: inner.start()])}{_shown_url(inner)}"


def _taken_apart(scheme: str, rest: str) -> tuple[str | None, str]:
    """Return the login and the part of the URL after the '@'; None for the login if there is none.

    An unencoded '@', '/', '?' or '#' in a password makes a URL invalid, so a password ends at the last '@'.
    """
    before, at, after = rest.rpartition("@")
    if not at:
        return None, rest
    authority = re.split(r"[/?#]", before, maxsplit=1)[0]
    inside = authority == before  # the last '@' ends the login
    _, colon, port = authority.partition(":")
    has_password = bool(colon) and not re.fullmatch(r"\d*", port)
    if inside or scheme in NO_AT_IN_PATH or has_password:
        return before, after
    login, at, after = rest.partition("@")
    return (login, after) if at and not re.search(r"[/?#]", login) else (None, rest)


def _shown_query(rest: str) -> str:
    """Return the query of a URL with the values of unknown parameters hidden."""
    return _QUERY.sub(lambda match: _shown_parameters(match[0]), rest, count=1)


def _shown_parameters(query: str) -> str:
    ending = _ending(query)
    parts = re.split(r"([?&;#])", query[: len(query) - len(ending)])
    return "".join(part if part in "?&;#" else _shown_parameter(part) for part in parts) + ending


def _shown_parameter(part: str) -> str:
    key, equals, value = part.partition("=")
    if not equals:
        return str(hidden(key))
    return part if key.lower() in _HARMLESS else f"{key}={hidden(value)}"


def _ending(text: str) -> str:
    """Return the punctuation at the end of a URL that belongs to the sentence around it."""
    match = _ENDS.search(text)
    return match[0] if match else ""


# Values that this process knows ----------------------------------------------------------------------------

_SHORTEST = 4
"""Smallest length of a secret that is searched for. Shorter secrets occur in too many words."""

_known: dict[str, None] = {}
"""Secrets that ``masked`` replaces, the longest first."""


def remember(secret: object) -> None:
    """Add a secret: ``masked`` replaces it from now on, in every encoding, in this process."""
    text = str(secret)
    if len(text) < _SHORTEST or text in _known:
        return
    for spelling in _spellings(text):
        if len(spelling) >= _SHORTEST:
            _known[spelling] = None
    ordered = sorted(_known, key=len, reverse=True)
    _known.clear()
    _known.update(dict.fromkeys(ordered))


def remember_url(url: str) -> None:
    """Add the login and the values of unknown parameters of a URL as secrets (``remember``)."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return
    login, host = _taken_apart(scheme.lower(), rest)
    if login is not None:
        user, colon, password = login.partition(":")
        named = colon or (scheme.lower() in _USER_IS_NAMED and not re.search(r"[/?#]", user))
        secret = password if named else login
        remember(secret)
        remember(unquote(secret))
        if colon:
            remember_login(unquote(user), unquote(password))
    query = _QUERY.search(host)
    for part in re.split(r"[?&;#]", query[0]) if query else ():
        key, _, value = part.partition("=")
        if key.lower() not in _HARMLESS:
            remember(value)
            remember(unquote(value))


def remember_login(user: str, password: str) -> None:
    """Add the HTTP Basic authentication header of a login as a secret (``remember``)."""
    if password:
        remember(base64.b64encode(f"{user}:{password}".encode(errors="surrogateescape")).decode())


def masked(text: str) -> str:
    """Return the text with all known secrets and all secrets in URLs replaced by ``***``."""
    for secret in _known:
        text = text.replace(secret, HIDDEN)
    return redacted_text(text)


def masked_value(value: Any) -> Any:
    """Return JSON data with ``masked`` applied to each text of several words.

    A single word may equal a password by chance.
    """
    if isinstance(value, Mapping):
        return {key: masked_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_value(item) for item in value]
    if not isinstance(value, str):
        return value
    return masked(value) if re.search(r"\s", value) else redacted_text(value)


def _spellings(secret: str) -> Iterable[str]:
    """Return the encodings of a secret: URL, JSON, HTML, Python and base64."""
    yield secret
    encoders: tuple[Callable[[str], str], ...] = (
        lambda text: quote(text, safe=""),
        quote,
        quote_plus,
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
        lambda text: repr(text)[1:-1],
        html.escape,
    )
    for encode in encoders:
        try:
            yield encode(secret)
        except UnicodeEncodeError:
            continue
    yield base64.b64encode(secret.encode(errors="surrogateescape")).decode()
