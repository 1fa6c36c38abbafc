"""Takes passwords and other secrets out of what is written to a manifest or shown in a message.

A field's type says whether it is secret: see ``Public`` and ``StrictRecord.shown``. ``masked`` cleans a text
that a driver or a server wrote, of the secrets that this process has expanded.
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
    """Marks a type of text that may be shown."""


class _ShownAsUrl:
    """Marks a type of URL that may be shown without the secrets in it."""


Public = Annotated[str, _Shown()]
"""A text that may be shown. In a record that hides its texts, any other text is a secret."""
Url = Annotated[str, _ShownAsUrl()]
"""A URL: it is shown without passwords and without the values of unknown parameters."""

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
"""Parameters of URLs that hold no secret; the value of any other is hidden."""
_DATABASES = frozenset(
    {"postgresql", "postgres", "postgresql+odbc", "mssql+odbc", "mysql+odbc", "mariadb+odbc", "odbc"}
    | {"mongodb", "mongodb+srv", "cassandra", "scylla", "smb"}
)
_USER_IS_NAMED = _DATABASES | {"ssh", "winrm", "winrm+http"}
"""Schemes whose URL may have a user without a password; in others a lone user may be a token."""
NO_AT_IN_PATH = _DATABASES | {"valkeys", "rediss", *valkey_urls.SCHEMES}
"""Schemes with no '@' behind the host: one that stands there ends a password that is not encoded."""

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>\S*)")
_BROKEN_LOGIN = re.compile(
    r"(?<=://)(?P<user>[^:@/?#\s]*):(?!\d*(?:[/?#\s]|$))(?P<password>(?:(?!://).)*)@", re.DOTALL
)
_PORT = re.compile(r"(?:\d{0,5}|PORT|\$\{\w+\})(?=[/?#,;:.)\]}\"'`\s]|$)")
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_ENDS = re.compile(r"[\"'`)\].,;:]*$")
_VARIABLES = re.compile(r"(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})*")


def redacted(data: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of JSON-ready data of no known type in which no secret is left.

    Passwords in URLs, and the values of keys that speak of passwords, tokens or secrets, become ``***``.
    ``${ENV}`` texts stay: they are names, not values.
    """
    return {key: hidden(value) if is_secret(key) else redacted_value(value) for key, value in data.items()}


def redacted_value(value: Any) -> Any:
    """Any JSON value with ``redacted`` applied to it."""
    if isinstance(value, Mapping):
        return redacted(value)
    if isinstance(value, list | tuple):
        return [redacted_value(item) for item in value]
    return redacted_word(value) if isinstance(value, str) else value


def hidden(value: Any) -> Any:
    """``***`` in place of a value; one that is absent, or a ``${ENV}``, stays."""
    if value is None or (isinstance(value, str) and _VARIABLES.fullmatch(value)):
        return value
    return HIDDEN


def is_secret(key: str) -> bool:
    """Whether a key of this name holds a secret."""
    return bool(_SECRET_KEY.search(key))


def shown(annotation: Any, value: Any) -> Any:
    """The JSON-ready value of a field as its type lets it be shown: hidden, unless it is public."""
    kinds = list(_kinds(annotation))
    if all(_may_be_shown(kind) for kind in kinds):
        return value
    if isinstance(value, str) and any(isinstance(kind, _ShownAsUrl) for kind in kinds):
        return redacted_text(value)
    return hidden(value)


def is_public(annotation: Any) -> bool:
    """Whether values of a field of this type may be shown as they are."""
    return all(_may_be_shown(kind) for kind in _kinds(annotation))


def _may_be_shown(kind: Any) -> bool:
    return isinstance(kind, _Shown) or kind in (bool, int, float, type(None)) or get_origin(kind) is Literal


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types a value may have; of a marked one the mark."""
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
    """The text with the secrets of the URLs in it replaced by ``***``.

    These are: a password, up to the last '@' that can end it; a user alone where it may be a token; a
    password in the place of a port; the value of every parameter that is not known to be harmless.
    """
    if "://" not in text:
        return text
    if any("@" in match["rest"] for match in _URL.finditer(text)) or "@" not in text:
        return _URL.sub(_shown_url, text)
    # White space in a password: it ends at the last '@' behind it.
    broken = _BROKEN_LOGIN.sub(lambda match: f"{match['user']}:{hidden(match['password'])}@", text)
    return _URL.sub(_shown_url, broken)


def redacted_word(word: str) -> str:
    """One value of a file, which need not be the URL it was meant to be: a login in it is hidden as well."""
    if "://" not in word and "@" in word:
        before, _, after = word.rpartition("@")
        user, colon, password = before.partition(":")
        return f"{user}{colon}{hidden(password)}@{after}" if colon else word
    return redacted_text(word)


def _shown_url(match: re.Match[str]) -> str:
    scheme, rest = match["scheme"], match["rest"]
    login, host = _taken_apart(scheme.lower(), rest)
    if login is not None:
        if re.search(r"\?[^@]*=", login):  # a parameter, or a password with a '?': what is the host?
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
    """(user and password, what follows the '@'); None for a URL without a login.

    An unencoded '@', '/', '?' or '#' in a password makes the URL invalid, so a password ends at the last '@'.
    """
    before, at, after = rest.rpartition("@")
    if not at:
        return None, rest
    authority = re.split(r"[/?#]", before, maxsplit=1)[0]
    inside = authority == before  # the last '@' is the login's own
    _, colon, port = authority.partition(":")
    has_password = bool(colon) and not re.fullmatch(r"\d*", port)
    if inside or scheme in NO_AT_IN_PATH or has_password:
        return before, after
    login, at, after = rest.partition("@")
    return (login, after) if at and not re.search(r"[/?#]", login) else (None, rest)


def _shown_query(rest: str) -> str:
    """The query of a URL, with the values of unknown parameters hidden."""
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
    """Punctuation of the sentence around a URL."""
    match = _ENDS.search(text)
    return match[0] if match else ""


# Values that this process knows ----------------------------------------------------------------------------

_SHORTEST = 4
"""Shorter secrets are not searched for, because they are part of too many words."""

_known: dict[str, None] = {}
"""Secrets that ``masked`` hides, longest first."""


def remember(secret: object) -> None:
    """Let ``masked`` hide this value, in every spelling, from now on in this process."""
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
    """Mark the login and the unknown parameters of a URL as secrets; see ``remember``."""
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
    """Mark the header that HTTP Basic authentication makes of both as a secret; see ``remember``."""
    if password:
        remember(base64.b64encode(f"{user}:{password}".encode(errors="surrogateescape")).decode())


def masked(text: str) -> str:
    """The text with every secret that this process knows, and those of its URLs, replaced by ``***``."""
    for secret in _known:
        text = text.replace(secret, HIDDEN)
    return redacted_text(text)


def masked_value(value: Any) -> Any:
    """JSON data with ``masked`` applied to every sentence; a single word may be a name like a password."""
    if isinstance(value, Mapping):
        return {key: masked_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_value(item) for item in value]
    if not isinstance(value, str):
        return value
    return masked(value) if re.search(r"\s", value) else redacted_text(value)


def _spellings(secret: str) -> Iterable[str]:
    """How a secret may be written: encoded for a URL, JSON, HTML, Python, and as base64."""
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
