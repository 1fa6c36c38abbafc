"""Parses requests of SharePoint's REST API, whose paths contain method calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.requests import Request

_OPTIONS = frozenset({"$top", "$skip", "$skiptoken", "$select", "$filter", "$expand", "$orderby"})
LIGHT, MINIMAL, VERBOSE = "nometadata", "minimalmetadata", "verbose"
_FORM = re.compile(r"application/json(?P<rest>[^,]*)", re.IGNORECASE)
_LITERAL = r"@\w+|(?:guid)?'(?:[^']|'')*'|-?\d+|true|false"
_ARGUMENT = re.compile(
    rf"\s*(?:(?P<name>\w+)\s*=\s*)?(?P<value>{_LITERAL})\s*(?:,|\Z)", re.DOTALL | re.IGNORECASE
)
_CALL = re.compile(
    rf"(?P<method>\w+)\((?P<arguments>(?:\s*(?:\w+\s*=\s*)?(?:{_LITERAL})\s*,)*"
    rf"\s*(?:\w+\s*=\s*)?(?:{_LITERAL})\s*|)\)",
    re.DOTALL | re.IGNORECASE,
)
_UNQUOTED = re.compile(r"-?\d+|true|false", re.IGNORECASE)


class RefusalError(Exception):
    """The request is answered with an error: an HTTP status and a sentence."""

    def __init__(self, status: int, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class ODataRequest:
    """An HTTP request as received.

    Attributes:
        method: ``GET`` or ``POST``.
        target: path and query, percent-encoded as received.
        headers: name in lower case -> value, or a mapping that ignores case.
        content: body of the request.
        origin: scheme and host as the client wrote them.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes
    origin: str


Tree = dict[str, Any]
"""Selected fields of an object: field in lower case -> selection inside the field; empty: all fields."""


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed request, such as ``/_api/web/lists/getbytitle('T')/items(3)?$top=5``.

    Attributes:
        asked: request as received.
        steps: names after ``/_api/`` in lower case, with arguments as ``()``: web/lists/getbytitle()/items().
        arguments: unquoted values in the parentheses, in order.
        named: name in lower case -> value of the arguments with names.
        query: name in lower case -> value of the options.
        form: ``LIGHT``, ``MINIMAL`` or ``VERBOSE``: amount of metadata in the answer.
        selected: fields of ``$select``.
        expanded: fields of ``$expand``.
    """

    asked: ODataRequest
    steps: str
    arguments: tuple[str, ...]
    named: Mapping[str, str]
    query: Mapping[str, str]
    form: str
    selected: Tree = field(default_factory=dict)
    expanded: Tree = field(default_factory=dict)

    @property
    def argument(self) -> str:
        """Return the first argument; "" if there is none."""
        return self.arguments[0] if self.arguments else ""

    @property
    def origin(self) -> str:
        """Return the scheme and the host as the client wrote them."""
        return self.asked.origin

    @property
    def body(self) -> dict[str, Any]:
        """Return the JSON object in the body; empty without a body. Raises ``RefusalError``."""
        if not self.asked.content.strip():
            return {}
        try:
            result = json.loads(self.asked.content)
        except (ValueError, RecursionError) as error:
            raise RefusalError(400, f"the body is no JSON: {error}") from error
        if not isinstance(result, dict):
            raise RefusalError(400, "the body is no JSON object")
        return result

    def member(self, name: str) -> dict[str, Any]:
        """Return an object in the body by its name in any case. Raises ``RefusalError`` if it is missing."""
        result = next((value for key, value in self.body.items() if key.lower() == name.lower()), None)
        if not isinstance(result, dict):
            raise RefusalError(400, f"the body needs an object named {name}")
        return result

    def number(self, option: str, default: int, least: int, most: int) -> int:
        """Return an option with a whole number. Raises ``RefusalError`` for other values."""
        given = self.query.get(option, str(default))
        if not (given.isascii() and given.isdecimal() and len(given) < 10 and least <= int(given) <= most):
            raise RefusalError(400, f"{option}: a whole number from {least} to {most} is needed")
        return int(given)

    def next_link(self, skip: int | None) -> str | None:
        """Return the address of the next page, which begins after ``skip`` objects; None if there is none."""
        if skip is None:
            return None
        path, _, options = self.asked.target.partition("?")
        kept = [
            (name, value)
            for name, value in parse_qsl(options, keep_blank_values=True)
            if name.lower() != "$skip"
        ]
        query = urlencode([*kept, ("$skip", str(skip))], safe="$,'@", quote_via=quote)
        return f"{self.origin}{path}?{query}"

    def allow_expand(self, allowed: Tree) -> None:
        """Raises ``RefusalError`` for a ``$expand`` of fields outside of ``allowed``."""
        for path in _paths(self.expanded):
            place: Tree | None = allowed
            for step in path:
                place = place.get(step) if place is not None else None
            if place is None:
                names = ", ".join("/".join(each) for each in _paths(allowed)) or "nothing"
                raise RefusalError(400, f"$expand: {'/'.join(path)}: not supported here; allowed: {names}")

    def refuse_options(self, *allowed: str) -> None:
        """Raises ``RefusalError`` for an option that would be ignored."""
        if unknown := {name for name in self.query if name.startswith("$")} - {"$select", *allowed}:
            names = ", ".join(sorted({"$select", *allowed}))
            raise RefusalError(400, f"{', '.join(sorted(unknown))}: not supported for this; allowed: {names}")


async def received(request: Request) -> ODataRequest:
    """Return the HTTP request as received."""
    scope = request.scope
    target = scope["raw_path"].decode("ascii", "replace").partition("?")[0]
    if scope["query_string"]:
        target += "?" + scope["query_string"].decode("ascii", "replace")
    content = await request.body() if request.method == "POST" else b""
    return ODataRequest(request.method, target, request.headers, content, origin(request))


def parse(asked: ODataRequest, site: str) -> Call:
    """Parse a request to a path below ``/_api/`` or ``SITE/_api/``, in any case.

    Raises:
        RefusalError: the request is not valid.
    """
    raw, _, options = asked.target.partition("?")
    path = unquote(raw, errors="replace")
    given = parse_qsl(options, keep_blank_values=True) if options else ()
    query = {name.lower(): value for name, value in given}
    if refused := {name for name in query if name.startswith("$")} - _OPTIONS:
        allowed = ", ".join(sorted(_OPTIONS))
        raise RefusalError(400, f"{', '.join(sorted(refused))}: not supported here; allowed: {allowed}")
    start = path.casefold().find("/_api/")
    if start < 0 or path[:start].casefold() not in {"", site.casefold()}:
        raise RefusalError(404, f"there is no {path}; the site answers below /_api/")
    rest = path[start + len("/_api/") :]
    result: list[tuple[str | None, str]] = []

    def noted(call: re.Match[str]) -> str:
        """Store the arguments of a method and return its name."""
        arguments = _ARGUMENT.finditer(call["arguments"])
        result.extend((each["name"], _text(each["value"], query)) for each in arguments)
        return f"{call['method']}()"

    steps = _CALL.sub(noted, rest)
    return Call(
        asked=asked,
        steps=steps.strip("/").lower(),
        arguments=tuple(value for _, value in result),
        named={name.lower(): value for name, value in result if name},
        query=query,
        form=_form(asked.headers.get("accept", "")),
        selected=_tree(query["$select"]) if "$select" in query else {},
        expanded=_tree(query["$expand"]) if "$expand" in query else {},
    )


def origin(request: Request) -> str:
    """Return the scheme and the host as the client wrote them."""
    return f"{request.scope['scheme']}://{request.headers.get('host') or request.url.netloc}"


@lru_cache(256)
def _form(accept: str) -> str:
    """Return the form of the first JSON type that a client accepts. Plain JSON is the minimal form."""
    match = _FORM.search(accept)
    if match is None:
        return LIGHT
    asked = match["rest"].replace(" ", "").lower()
    if "odata=verbose" in asked or 'odata="verbose' in asked:
        return VERBOSE
    return LIGHT if "nometadata" in asked or "metadata=none" in asked else MINIMAL


def _tree(paths: str) -> Tree:
    root: Tree = {}
    for path in filter(None, paths.split(",")):
        node = root
        for step in path.strip().lower().split("/"):
            node = node.setdefault(step, {})
    return root


def _paths(tree: Tree) -> list[tuple[str, ...]]:
    """Yield all paths in a tree, shorter paths first."""
    result: list[tuple[str, ...]] = []
    for name, below in tree.items():
        result += [(name,), *((name, *path) for path in _paths(below))]
    return result


def _text(literal: str, query: Mapping[str, str]) -> str:
    """Return a number, a text in single quotes (doubled inside), or the value of an ``@name`` option."""
    if literal.startswith("@"):
        name, literal = literal, query.get(literal.lower(), "")
        quoted = len(literal) >= 2 and literal[-1] == "'" and "'" in literal[:-1]
        if not (quoted or _UNQUOTED.fullmatch(literal)):
            raise RefusalError(400, f"{name} stands for nothing; add {name}='...' to the query")
    if "'" not in literal:
        return literal
    return literal.partition("'")[2][:-1].replace("''", "'")
