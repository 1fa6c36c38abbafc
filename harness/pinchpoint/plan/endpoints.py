"""The endpoints of a farm as they stand in farm.yaml: their ``${ENV}`` unexpanded, no secret in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pinchpoint.base.redact import Public, Url, redacted_text
from pinchpoint.plan.expand import check_url, check_variables
from pinchpoint.plan.problems import Unfit, listed, quoted
from pinchpoint.plan.record import FileContext, Record, resolved


class EndpointSpec(Record):
    """One entry of ``endpoints``.

    A text of it is secret unless its type says otherwise: see ``Record.hides_texts``.

    Attributes:
        url: where it is; for ``files`` a folder.
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
        """Its URL and its options, as ``expand`` takes them."""
        return {name: str(value) for name, value in self.to_json().items()}


_CREDENTIALS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "basic": ("user", "password"),
    "bearer": ("token",),
    "ntlm": ("user", "password"),
    "cookies": ("cookies",),
}
"""How a site is logged in to -> the options that takes."""


class SiteEndpoint(EndpointSpec):
    """A site that may want a login: ``auth`` and the options of ``_CREDENTIALS``."""

    auth: Public = "none"
    user: Public | None = None
    password: str | None = Field(default=None, repr=False)
    token: str | None = Field(default=None, repr=False)
    cookies: str | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        given = {name for name in ("user", "password", "token", "cookies") if getattr(self, name) is not None}
        if given != set(_CREDENTIALS[self.auth]):
            allowed = get_args(type(self).model_fields["auth"].annotation)
            ways = (f"{auth} with {' and '.join(_CREDENTIALS[auth]) or 'nothing'}" for auth in allowed)
            raise Unfit(f"auth {self.auth} with {listed(sorted(given))}", f"allowed: auth {', '.join(ways)}")
        return self


class SharePointEndpoint(SiteEndpoint):
    """A SharePoint-style site; the user of ``ntlm`` is written DOMAIN, a backslash, USER."""

    endpoint = "sharepoint"

    auth: Literal["none", "basic", "bearer", "ntlm", "cookies"] = "none"


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
    """A Valkey or Redis server."""

    endpoint = "nosql"


class SearchEndpoint(EndpointSpec):
    """Where crawled documents go: our index service, an index of OpenSearch or Elasticsearch, or nowhere."""

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
            raise Unfit("kind none with a url", "documents go nowhere then: remove url, or give another kind")
        if self.kind != "none" and not self.url:
            raise Unfit(f"kind {self.kind} without a url", "add url, or say kind: none to index nothing")
        logins = [name for name in ("user", "token", "api_key") if getattr(self, name) is not None]
        more = ["pipeline"] if self.pipeline is not None else []
        allowed = {"opensearch": [*logins, *more], "pinchpoint": ["token"]}.get(self.kind, [])
        if wrong := [name for name in logins + more if name not in allowed]:
            raise Unfit(
                f"kind {self.kind} with {listed(wrong)}", "these are for kind opensearch: remove them"
            )
        if len(logins) > 1 or (self.user is None) != (self.password is None):
            raise Unfit(
                f"a login of {listed(logins or ['password'])}",
                "allowed: user with password, or token, or api_key, or none of them",
            )
        return self

    @property
    def given(self) -> dict[str, str]:
        """As any endpoint's; without a URL where there is none."""
        return {name: value for name, value in super().given.items() if value}


class FilesEndpoint(EndpointSpec):
    """A folder of documents, relative to the farm's file; or an SMB share, with the user who may read it."""

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
            raise Unfit(
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
            raise Unfit(
                "a user or a password alone, or for a folder",
                "allowed: both together, for a path like smb://HOST/SHARE",
            )
        return self


FILE_OPTIONS = ("ca", "key", "known_hosts")
"""The options of endpoints that name a file."""
_WAYS: Mapping[str, tuple[str, ...]] = {
    "winrm": ("auth", "user", "password", "configuration", "ca"),
    "winrm+http": ("auth", "user", "password", "configuration"),
    "ssh": ("user", "password", "key", "known_hosts"),
}
"""The scheme of a crawler's URL -> the options that go with it."""
_WITH_PASSWORD = ("ntlm", "credssp", "basic")


class CrawlerEndpoint(EndpointSpec):
    """A server of a SharePoint farm on which its crawler is told what to do, over WinRM or SSH."""

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
            raise Unfit("a login in the url", "write user and password as keys of their own")
        return value

    @field_validator(*FILE_OPTIONS)
    @classmethod
    def _files(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None or value.startswith("${") or not isinstance(info.context, FileContext):
            return value
        return str(resolved(Path(value), info.context.directory))

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        way = self.url.partition("://")[0]
        given = [
            name for name in type(self).model_fields if name != "url" and getattr(self, name) is not None
        ]
        wrong = [name for name in given if way in _WAYS and name not in _WAYS[way]]
        if wrong:
            raise Unfit(f"{way}:// with {listed(wrong)}", f"allowed with it: {listed(_WAYS[way])}")
        if self.password is not None and self.user is None:
            raise Unfit("a password without a user", "needed: both, or none of them")
        if self.auth in _WITH_PASSWORD and self.password is None:
            raise Unfit(f"auth {self.auth} without user and password", "needed: both")
        if self.auth == "basic" and way == "winrm+http":
            raise Unfit("auth basic without TLS", "anybody could read the password; allowed: winrm://")
        return self


class Endpoints(Record):
    """The endpoints of a farm that Pinchpoint does not build itself."""

    sharepoint: SharePointEndpoint | None = None
    sql: SqlEndpoint | None = None
    nosql: NoSqlEndpoint | None = None
    search: SearchEndpoint | None = None
    files: FilesEndpoint | None = None
    web: WebEndpoint | None = None
    crawler: CrawlerEndpoint | None = None

    def named(self) -> Mapping[str, EndpointSpec]:
        """Those that are given, by name."""
        return {name: spec for name in type(self).model_fields if (spec := getattr(self, name)) is not None}
