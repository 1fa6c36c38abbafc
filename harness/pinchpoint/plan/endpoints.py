"""Defines the endpoints of farm.yaml; their ``${ENV}`` variables are replaced when an endpoint is used.

A variable is replaced only in the process that uses the endpoint; files and messages never contain its value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args
from urllib.parse import quote

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pinchpoint.base.errors import InputError
from pinchpoint.base.redact import (
    Public,
    Url,
    is_public,
    redacted_text,
    remember,
    remember_login,
    remember_url,
)
from pinchpoint.plan.problems import BadValue, listed, quoted
from pinchpoint.plan.record import FileContext, StrictRecord, field_type, resolved
from pinchpoint.plan.urls import VARIABLE, check_url, check_variables
from pinchpoint_collectors.common import valkey_urls
from pinchpoint_scenarios.contract import DISK, Endpoint
from pinchpoint_scenarios.logins import LOGIN_OPTIONS, LOGINS


class EndpointSpec(StrictRecord):
    """One entry of ``endpoints``.

    Texts of an endpoint are secrets unless their type says otherwise; see ``StrictRecord.hides_texts``.

    Attributes:
        url: its address. ``${NAME}`` is replaced by that environment variable when a run starts.
        user, password: the login.
        token: a bearer token.
        cookies: a Cookie header.
        auth: how to log in.
    """

    endpoint: ClassVar[str]
    hides_texts = True

    url: Url = Field(description="the endpoint's URL", repr=False)

    @field_validator("*")
    @classmethod
    def _variables_fit(cls, value: object) -> object:
        if isinstance(value, str):
            check_variables(value)
        return value

    @field_validator("url")
    @classmethod
    def _url_fits(cls, value: str, info: ValidationInfo) -> str:  # noqa: ARG003 - files' needs it
        if not value.startswith("${"):
            check_url(cls.endpoint, value)
        return value

    @property
    def given(self) -> dict[str, str]:
        """The URL and the options of the endpoint, in the form that ``expand`` accepts."""
        return {name: str(value) for name, value in self.to_json().items()}


FILE_OPTIONS = ("ca", "certificate", "key", "known_hosts")
"""The options of endpoints whose value is a file name."""


def _from_farm_folder(value: str | None, info: ValidationInfo) -> str | None:
    """The path of a file, resolved relative to the folder of farm.yaml."""
    if value is None or value.startswith("${") or not isinstance(info.context, FileContext):
        return value
    return str(resolved(Path(value), info.context.directory))


class SiteEndpoint(EndpointSpec):
    """A site that may need a login: ``auth`` and the options that ``LOGINS`` lists for it."""

    auth: Public = "none"
    user: Public | None = None
    password: str | None = Field(default=None, repr=False)
    token: str | None = Field(default=None, repr=False)
    cookies: str | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        given = {name for name in LOGIN_OPTIONS if getattr(self, name, None) is not None}
        if given not in map(set, LOGINS[self.auth]):
            allowed = get_args(type(self).model_fields["auth"].annotation)
            ways = (f"{auth} with {_ways(auth)}" for auth in allowed)
            raise BadValue(
                f"auth {self.auth} with {listed(sorted(given))}", f"allowed: auth {', '.join(ways)}"
            )
        return self


def _ways(auth: str) -> str:
    """The allowed options of an ``auth``, as text such as ``nothing or user or user and password``."""
    sets = (", ".join(way[:-1]) + (" and " if way[1:] else "") + "".join(way[-1:]) for way in LOGINS[auth])
    return " or ".join(each or "nothing" for each in sets)


class SharePointEndpoint(SiteEndpoint):
    """A SharePoint-style site.

    Attributes:
        user: of ``ntlm`` it is written DOMAIN, a backslash, USER; of ``kerberos`` USER@REALM. Without a user
            ``kerberos`` uses the ticket of kinit.
        tenant: of ``entra`` the tenant's name or number, for other clouds than the public one with the
            address before it: ``https://login.microsoftonline.us/TENANT``.
        client: the number of the application that is registered there.
        secret: its client secret.
        certificate: a PEM or PFX file with its private key and certificate; ``password`` is the file's.
    """

    endpoint = "sharepoint"

    auth: Literal["none", "basic", "bearer", "ntlm", "kerberos", "entra", "cookies"] = "none"
    tenant: Public | None = None
    client: Public | None = None
    secret: str | None = Field(default=None, repr=False)
    certificate: Public | None = None

    @field_validator("certificate")
    @classmethod
    def _files(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _from_farm_folder(value, info)


class WebEndpoint(SiteEndpoint):
    """A web site that is crawled by its links and sitemaps."""

    endpoint = "web"

    auth: Literal["none", "basic", "bearer", "cookies"] = "none"


class SqlEndpoint(EndpointSpec):
    """The database that SQL scenarios load and that holds a crawl's queue.

    ``postgresql://``, or by an ODBC driver: ``mssql+odbc://``, ``mysql+odbc://`` (``mariadb+odbc://``),
    ``postgresql+odbc://USER:PASSWORD@HOST:PORT/DATABASE?KEYWORD=VALUE``, and ``odbc:///?dsn=NAME``.
    """

    endpoint = "sql"


class NoSqlEndpoint(EndpointSpec):
    """A NoSQL store: ``valkey://``, ``redis://``, ``cassandra://``, ``scylla://`` or ``mongodb://``.

    Attributes:
        sentinel_user, sentinel_password: the login of Sentinels, which have one of their own.
    """

    endpoint = "nosql"

    sentinel_user: Public | None = None
    sentinel_password: str | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _login_has_sentinels(self) -> Self:
        login = self.sentinel_user is not None or self.sentinel_password is not None
        if (
            login
            and self.url.partition("://")[0] not in valkey_urls.SENTINEL
            and not self.url.startswith("${")
        ):
            raise BadValue("a login for Sentinels with a url that names none", "allowed: valkey+sentinel://")
        return self


class SearchEndpoint(EndpointSpec):
    """Where crawled documents go.

    Attributes:
        url: its address. That of ``pinchpoint`` may name several hosts (``http://app3:8200,app4:8200``): a
            document then goes to the one with the least to do.
        kind: ``pinchpoint`` (the index service of the embedded farm), ``opensearch`` (an index of OpenSearch
            or Elasticsearch) or ``none`` (documents are not indexed).
        pipeline: an ingest pipeline of OpenSearch.
        api_key: an API key of Elasticsearch.
    """

    endpoint = "search"

    url: Url = Field(default="", description="the URL of the service, or of the index", repr=False)
    kind: Literal["pinchpoint", "opensearch", "none"] = "pinchpoint"
    pipeline: Public | None = None
    user: Public | None = None
    password: str | None = Field(default=None, repr=False)
    token: str | None = Field(default=None, repr=False)
    api_key: str | None = Field(default=None, repr=False)

    @field_validator("url")
    @classmethod
    def _url_fits(cls, value: str, info: ValidationInfo) -> str:  # noqa: ARG003 - as any endpoint's
        if value and not value.startswith("${"):
            check_url(cls.endpoint, value)
        return value

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.kind == "none" and self.url:
            raise BadValue(
                "kind none with a url", "documents go nowhere then: remove url, or give another kind"
            )
        if self.kind != "none" and not self.url:
            raise BadValue(f"kind {self.kind} without a url", "add url, or say kind: none to index nothing")
        if self.kind == "opensearch" and "," in self.url.partition("://")[2].partition("/")[0]:
            raise BadValue(
                "kind opensearch with several hosts", "needed: one; every node of a cluster takes documents"
            )
        logins = [name for name in ("user", "token", "api_key") if getattr(self, name) is not None]
        more = ["pipeline"] if self.pipeline is not None else []
        allowed = {"opensearch": [*logins, *more], "pinchpoint": ["token"]}.get(self.kind, [])
        if wrong := [name for name in logins + more if name not in allowed]:
            raise BadValue(
                f"kind {self.kind} with {listed(wrong)}", "these are for kind opensearch: remove them"
            )
        if len(logins) > 1 or (self.user is None) != (self.password is None):
            raise BadValue(
                f"a login of {listed(logins or ['password'])}",
                "allowed: user with password, or token, or api_key, or none of them",
            )
        return self

    @property
    def given(self) -> dict[str, str]:
        """The URL and the options, without the URL if it is empty."""
        return {name: value for name, value in super().given.items() if value}


class FilesEndpoint(EndpointSpec):
    """A folder of documents, or an SMB share.

    Attributes:
        url: a folder, relative to farm.yaml, or ``smb://HOST/SHARE``.
        user, password: the login of a share.
    """

    endpoint = "files"

    url: Url = Field(alias="path", description="the path of a folder of documents, or smb://HOST/SHARE")
    user: Public | None = None
    password: str | None = Field(default=None, repr=False)

    @field_validator("url")
    @classmethod
    def _url_fits(cls, value: str, info: ValidationInfo) -> str:
        if value.startswith("smb://"):
            check_url("files", value)
            return value
        if "://" in value or not value or "\0" in value:
            raise BadValue(
                f"found {quoted(redacted_text(value))}", "allowed: the path of a folder, or smb://HOST/SHARE"
            )
        if isinstance(info.context, FileContext) and not value.startswith("${"):
            return str(resolved(Path(value), info.context.directory))
        return value

    @model_validator(mode="after")
    def _login_fits(self) -> Self:
        if (self.user is None) != (self.password is None) or (
            self.user and not self.url.startswith("smb://")
        ):
            raise BadValue(
                "a user or a password alone, or for a folder",
                "allowed: both together, for a path like smb://HOST/SHARE",
            )
        return self


_WAYS: Mapping[str, tuple[str, ...]] = {
    "winrm": ("auth", "user", "password", "configuration", "ca"),
    "winrm+http": ("auth", "user", "password", "configuration"),
    "ssh": ("user", "password", "key", "known_hosts"),
}
"""The scheme of a crawler's URL -> the options that it allows."""
_WITH_PASSWORD = ("ntlm", "credssp", "basic")


class CrawlerEndpoint(EndpointSpec):
    """A server of a SharePoint farm whose own crawl Pinchpoint starts and watches.

    Attributes:
        url: ``winrm://HOST``, ``winrm+http://HOST`` or ``ssh://HOST``.
        configuration: the name of a PowerShell session configuration.
        ca: a file with the certificate authority of WinRM over TLS.
        key: a file with the private key for SSH.
        known_hosts: a file with the host keys for SSH.
    """

    endpoint = "crawler"

    auth: Literal["negotiate", "ntlm", "kerberos", "credssp", "basic"] | None = None
    user: Public | None = None
    password: str | None = Field(default=None, repr=False)
    configuration: Public | None = Field(default=None, min_length=1)
    ca: Public | None = None
    key: str | None = None
    known_hosts: Public | None = None

    @field_validator("url")
    @classmethod
    def _no_login_in_it(cls, value: str) -> str:
        if "@" in value:
            raise BadValue("a login in the url", "write user and password as keys of their own")
        return value

    @field_validator("ca", "key", "known_hosts")
    @classmethod
    def _files(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _from_farm_folder(value, info)

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        way = self.url.partition("://")[0]
        given = [
            name for name in type(self).model_fields if name != "url" and getattr(self, name) is not None
        ]
        wrong = [name for name in given if way in _WAYS and name not in _WAYS[way]]
        if wrong:
            raise BadValue(f"{way}:// with {listed(wrong)}", f"allowed with it: {listed(_WAYS[way])}")
        if self.password is not None and self.user is None:
            raise BadValue("a password without a user", "needed: both, or none of them")
        if self.auth in _WITH_PASSWORD and self.password is None:
            raise BadValue(f"auth {self.auth} without user and password", "needed: both")
        if self.auth == "basic" and way == "winrm+http":
            raise BadValue("auth basic without TLS", "anybody could read the password; allowed: winrm://")
        return self


class Endpoints(StrictRecord):
    """The servers that scenarios talk to.

    Attributes:
        sharepoint: a SharePoint site to crawl.
        sql: the SQL database.
        nosql: the NoSQL store.
        search: where crawled documents go.
        files: a folder or share to crawl.
        web: a web site to crawl.
        crawler: a server of a SharePoint farm that crawls by itself.
    """

    sharepoint: SharePointEndpoint | None = None
    sql: SqlEndpoint | None = None
    nosql: NoSqlEndpoint | None = None
    search: SearchEndpoint | None = None
    files: FilesEndpoint | None = None
    web: WebEndpoint | None = None
    crawler: CrawlerEndpoint | None = None

    def named(self) -> Mapping[str, EndpointSpec]:
        """The endpoints that are set, by name."""
        return {name: spec for name in type(self).model_fields if (spec := getattr(self, name)) is not None}


def expand(name: str, given: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> Endpoint:
    """The endpoint for a scenario, with its ``${ENV}`` variables replaced.

    The value of a variable between ``://`` and ``@`` is percent-encoded, so that a password may contain any
    character.

    Args:
        name: the endpoint's name.
        given: URL and options of the endpoint, as ``EndpointSpec.given`` or the embedded farm gives them.
        environ: values of the environment variables, by name.

    Raises:
        InputError: a variable is not set, or the resulting URL is not valid for this endpoint.
    """
    endpoint, unfit = expanded(name, given, environ)
    if unfit:
        raise InputError(*(f"endpoints.{name}.{key}: {why}" for key, why in unfit.items()))
    return endpoint


def expanded(
    name: str, given: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[Endpoint, dict[str, BadValue]]:
    """The endpoint as from ``expand``, and the problem of each invalid key (``url`` or an option's name)."""
    values: dict[str, str] = {}
    unfit: dict[str, BadValue] = {}
    for key, text in given.items():
        try:
            values[key] = _url(name, text, environ) if key == "url" else _text(text, environ)
        except BadValue as why:
            unfit[key] = why
    public = _public(name, values)
    _remember(values, public)
    return Endpoint(name, values.pop("url", ""), values, public), unfit


def _public(name: str, values: Mapping[str, str]) -> frozenset[str]:
    """The names of an endpoint's options whose values may be shown."""
    if name.startswith(DISK):
        return frozenset(values)  # a folder on this machine, which is not a secret
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
    """Register the secrets of an endpoint or a collector, so that no message of this process shows them."""
    for key, value in values.items():
        if key == "url":
            remember_url(value)
        elif key not in public:
            remember(value)
            remember_login(values.get("user", ""), value)


def filled(
    given: Mapping[str, Any], environ: Mapping[str, str], public: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], dict[str, BadValue]]:
    """Options with their ``${ENV}`` variables replaced and not encoded, and the problem of each invalid key.

    ``public`` names the options that may be shown.
    """
    values: dict[str, Any] = {}
    unfit: dict[str, BadValue] = {}
    for key, value in given.items():
        try:
            values[key] = _text(value, environ) if isinstance(value, str) else value
        except BadValue as why:
            unfit[key] = why
    _remember({key: value for key, value in values.items() if isinstance(value, str)}, public)
    return values, unfit


def _url(name: str, text: str, environ: Mapping[str, str]) -> str:
    if name.startswith(DISK):
        return text  # a folder on this machine, given by a running farm
    if name == "files" and not text.startswith("smb://"):
        folder = Path(_text(text, environ))
        if not folder.is_absolute():
            raise BadValue(
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
            raise BadValue(*unset(name))
        return encode(environ[name])

    return VARIABLE.sub(value, text)


def unset(variable: str) -> tuple[str, str]:
    """The problem text and the remedy for an environment variable that is not set."""
    return f"the environment variable {variable} is not set", f"set it: export {variable}=VALUE"
