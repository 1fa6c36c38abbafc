"""Replaces the names of hosts, users and databases in a report.

The same name gets the same word everywhere.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel

from pinchpoint.base import wording
from pinchpoint.report.brief import Gathered
from pinchpoint.report.charts import Chart
from pinchpoint.report.report import Report
from pinchpoint.store import forms
from pinchpoint.store.read import StoredRun

_KEYS: Mapping[str, str] = {
    "host": "host",
    "hosts": "host",
    "hostname": "host",
    "address": "host",
    "machine_id": "machine",
    "user": "user",
    "username": "user",
    "uid": "user",
    "login": "user",
    "database": "database",
    "databases": "database",
    "keyspace": "database",
}
"""Key with a name as its value -> kind of the name."""
_USED_AS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[^:@/?#\s]*)(?::[^@/\s]*)?@)?(?P<hosts>[^/?#\s'\"]*)"
    r"(?:/(?P<path>[^/?#\s'\"]*))?(?:[^?#\s'\"]*\?(?P<query>[^#\s'\"]*))?"
)
_PARAMETERS: Mapping[str, str] = {
    "host": "host",
    "hostaddr": "host",
    "server": "host",
    "user": "user",
    "uid": "user",
    "database": "database",
    "dbname": "database",
    "dsn": "database",
}
"""Parameter of a connection address -> kind of the name in its value."""
_DATABASE_SCHEMES = re.compile(r"postgres|mssql|mysql|mariadb|mongodb|cassandra|scylla|sqlserver")
_HOME = re.compile(r"(?:/home/|[\\/]Users[\\/])([^/\\\s'\"]+)")
_LOGIN = re.compile(r"(?:(?P<user>[^@\s:]+)@)?(?P<host>[^@\s:/]+)(?::\d+)?")
_NEUTRAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 -- of every machine
_COMMON = frozenset(
    "a all an and as at by cpu crawl data disk generator1 host in index is it log machine memory network no "  # noqa: SIM905 -- sixty lines otherwise
    "none nosql not of on one or orders os root sa sql tempdb the tier to user users web search files "
    "content postgres postgresql valkey redis cassandra mongodb mariadb mysql sqlserver master admin test "
    "prod dev staging production public default select from where value metric instance samples".split()
)
"""Common words in reports and names that every installation has. They identify no one."""


def redacted(report: Gathered) -> Gathered:
    """Return the report with ``host-1``, ``user-1``, ``database-1`` in place of names."""
    result: dict[str, str] = {}
    sources: list[Any] = [report]
    if isinstance(report, Report):
        sources = [report.run.manifest, report.run.events, report.verdict]
    for source in sources:
        for kind, name in _names(source):
            if name.casefold() not in _OWN and not name.isdigit():
                result.setdefault(name.casefold(), kind)
    gathered: Gathered = _Renaming.of(result).whole(report)
    return gathered


def _own() -> frozenset[str]:
    """Return the words that every report contains."""
    models = (one for one in vars(forms).values() if isinstance(one, type) and issubclass(one, BaseModel))
    fields_ = {name for model in models for name in model.model_fields}
    return frozenset({*fields_, *wording.MEANING, *wording.OUTCOME, *_COMMON, *_NEUTRAL, ""})


_OWN = _own()


def _names(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each name in a record or in JSON."""
    if isinstance(value, Mapping):
        if key in ("hosts", "databases"):
            yield from ((_KEYS[key], str(name)) for name in value)
        for name, item in value.items():
            yield from _names(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names(item, key)
    elif is_dataclass(value) and not isinstance(value, type | Chart):
        for field in fields(value):
            yield from _names(getattr(value, field.name), field.name)
    elif isinstance(value, str):
        if key in _KEYS:
            yield from _named(_KEYS[key], value)
        yield from _in_text(value)


def _named(kind: str, value: str) -> Iterator[tuple[str, str]]:
    if kind == "host" and "://" not in value and (match := _LOGIN.fullmatch(value)):
        yield "host", match["host"]
        yield from [("host", match["host"].partition(".")[0])] if _has_domain(match["host"]) else ()
        yield from [("user", match["user"])] if match["user"] else ()
    elif "://" not in value and "${" not in value:
        yield kind, value.strip()
        if kind == "user" and (bare := re.split(r"[\\@]", value.strip())) and len(bare) > 1:
            yield kind, bare["\\" in value]  # the login is DOMAIN\\name or name@domain


def _has_domain(host: str) -> bool:
    return "." in host and not host.replace(".", "").isdigit()


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names in URLs and in paths of home directories."""
    for match in _USED_AS.finditer(text):
        if match["user"] and "$" not in match["user"]:
            yield "user", unquote(match["user"])
        yield from _hosts(match["hosts"])
        for key, value in parse_qsl(match["query"] or ""):
            kind = _PARAMETERS.get(key.casefold())
            if kind == "host":
                yield from _hosts(value)
            elif kind and "$" not in value:
                yield kind, value
        if match["path"] and _DATABASE_SCHEMES.match(match["scheme"]) and "$" not in match["path"]:
            yield "database", unquote(match["path"])
    yield from (("user", match[1]) for match in _HOME.finditer(text))


def _hosts(text: str) -> Iterator[tuple[str, str]]:
    """Yield each host of an address. A folder (of a socket) in place of a host is left out."""
    for one in text.split(","):
        host = re.sub(r":\d*$", "", one.removeprefix("tcp:")).strip("[].")
        if host and "$" not in host and not host.startswith("/"):
            yield from _named("host", host)


@dataclass(frozen=True, slots=True)
class _Renaming:
    """The replacements of all names, and the pattern that finds the names.

    Names are found as whole words, in any case, and also escaped for HTML.
    """

    pattern: re.Pattern[str]
    words: Mapping[str, str]

    @classmethod
    def of(cls, kinds: Mapping[str, str]) -> _Renaming:
        """Number the names in the order of their occurrence.

        A host's short and full name get the same word.
        """
        words: dict[str, str] = {}
        count: dict[str, int] = {}
        for name, kind in kinds.items():
            long = next((one for one in words if kind == "host" and one.partition(".")[0] == name), None)
            if long is not None:
                words[name] = words[long]
            else:
                count[kind] = count.get(kind, 0) + 1
                words[name] = f"{kind}-{count[kind]}"
        words |= {html.escape(name): word for name, word in words.items()}
        either = "|".join(re.escape(name) for name in sorted(words, key=len, reverse=True)) or r"(?!)"
        return cls(re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])", re.IGNORECASE), words)

    def text(self, text: str) -> str:
        """Return a text with all names replaced."""
        return self.pattern.sub(lambda found: self.words[found[0].casefold()], text)

    def whole(self, value: Any) -> Any:
        """Return a record of the same type with all names replaced."""
        made: Any = value
        if isinstance(value, str) and not isinstance(value, Enum):
            made = self.text(value)
        elif isinstance(value, StoredRun):
            made = replace(value, manifest=self.whole(value.manifest), events=self.whole(value.events))
        elif isinstance(value, Mapping):
            made = {self.whole(key): self.whole(item) for key, item in value.items()}
        elif isinstance(value, tuple) and not hasattr(value, "_fields"):
            made = tuple(self.whole(item) for item in value)
        elif isinstance(value, list):
            made = [self.whole(item) for item in value]
        elif is_dataclass(value) and not isinstance(value, type):
            made = replace(
                value, **{one.name: self.whole(getattr(value, one.name)) for one in fields(value) if one.init}
            )
        return made
