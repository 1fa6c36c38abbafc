"""SharePoint's REST API on the wire: paths that are method calls, two JSON forms, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import Response

_OPTIONS = {"$top", "$skip", "$skiptoken", "$select", "$filter", "$expand", "$orderby"}
LIGHT, VERBOSE = "nometadata", "verbose"
_VERBOSE_ASKED = re.compile(r"odata\s*=\s*\"?verbose", re.IGNORECASE)
_CALL = re.compile(
    r"(?P<name>\w+)\((?:(?P<parameter>\w+)=)?(?P<value>@\w+|(?:guid)?'(?:[^']|'')*'|-?\d+|)\)",
    re.DOTALL | re.IGNORECASE,
)


class RefusalError(Exception):
    """The request is answered with an error: an HTTP status and a sentence."""

    def __init__(self, status: int, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Call:
    """A request: ``/_api/web/lists/getbytitle('T')/items(3)?$top=5``.

    Attributes:
        steps: the names behind ``/_api/`` in lower case, an argument as ``()``:
            web/lists/getbytitle()/items().
        arguments: what stood between each pair of brackets, unquoted.
        query: the options by name in lower case.
        origin: scheme and host as the client spelt them.
        verbose: whether it asks for the verbose form.
        body: the JSON that came with it; empty without any.
    """

    steps: str
    arguments: tuple[str, ...]
    query: Mapping[str, str]
    origin: str
    verbose: bool
    body: Mapping[str, Any]

    @property
    def argument(self) -> str:
        """The first argument; empty without any."""
        return self.arguments[0] if self.arguments else ""

    def selected(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Those fields that ``$select`` asks for; all where it asks for none in particular."""
        names = self.names("$select") - {"*"}
        return {name: value for name, value in fields.items() if not names or name.lower() in names}

    def names(self, option: str) -> set[str]:
        """The first step of every path an option lists, in lower case: ``File/Name`` asks for ``file``."""
        return {path.strip().partition("/")[0].lower() for path in self.query.get(option, "").split(",")} - {
            ""
        }

    def number(self, option: str, default: int, least: int, most: int) -> int:
        """An option that is a whole number; raises ``RefusalError``."""
        given = self.query.get(option, str(default))
        if not (given.isascii() and given.isdecimal() and len(given) < 10 and least <= int(given) <= most):
            raise RefusalError(400, f"{option}: a whole number from {least} to {most} is needed")
        return int(given)


async def parse(request: Request, site: str) -> Call:
    """Understand a request below ``/_api/`` or ``SITE/_api/``, in whatever case.

    Raises:
        RefusalError: it is no such request.
    """
    raw = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
    path = unquote(raw, errors="replace")
    query = {name.lower(): value for name, value in parse_qsl(request.url.query, keep_blank_values=True)}
    if refused := {name for name in query if name.startswith("$")} - _OPTIONS:
        allowed = ", ".join(sorted(_OPTIONS))
        raise RefusalError(400, f"{', '.join(sorted(refused))}: not supported here; {allowed} are")
    start = path.casefold().find("/_api/")
    if start < 0 or path[:start].casefold() not in {"", site.casefold()}:
        raise RefusalError(404, f"there is no {path}; the site answers below /_api/")
    rest = path[start + len("/_api/") :]
    arguments = tuple(_text(found["value"], query) for found in _CALL.finditer(rest))
    steps = _CALL.sub(lambda found: f"{found['name']}()", rest)
    verbose = _VERBOSE_ASKED.search(request.headers.get("accept", "")) is not None
    return Call(steps.strip("/").lower(), arguments, query, origin(request), verbose, await _body(request))


def origin(request: Request) -> str:
    """Scheme and host as the client spelt them."""
    return f"{request.url.scheme}://{request.headers.get('host', request.url.netloc)}"


async def _body(request: Request) -> Mapping[str, Any]:
    content = await request.body() if request.method == "POST" else b""
    if not content:
        return {}
    try:
        found = json.loads(content)
    except ValueError as error:
        raise RefusalError(400, f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise RefusalError(400, "the body is no JSON object")
    return found


def _text(literal: str, query: Mapping[str, str]) -> str:
    """A number, a string in single quotes (doubled in it), or the ``@name`` of an option that holds one."""
    if literal.startswith("@"):
        name, literal = literal, query.get(literal.lower(), "")
        if not (len(literal) >= 2 and literal[-1] == "'" and "'" in literal[:-1]):
            raise RefusalError(400, f"{name} stands for nothing; add {name}='...' to the query")
    if "'" not in literal:
        return literal
    return literal.partition("'")[2][:-1].replace("''", "'")


def entity(call: Call, fields: Mapping[str, Any], wrapper: str = "") -> Response:
    """One object; ``wrapper`` is the name the verbose form puts around it."""
    if call.verbose:
        inner = _wrapped(fields if wrapper else call.selected(fields))
        return _json({"d": {wrapper: inner} if wrapper else inner}, VERBOSE)
    return _json(call.selected(fields), LIGHT)


def collection(call: Call, objects: Sequence[Mapping[str, Any]], following: str | None = None) -> Response:
    """A list of objects, or a page of one with the link to the next."""
    values = [call.selected(each) for each in objects]
    if call.verbose:
        return _json(
            {"d": {"results": _inner(values)} | ({"__next": following} if following else {})}, VERBOSE
        )
    return _json({"value": values} | ({"odata.nextLink": following} if following else {}), LIGHT)


def refusal(error: RefusalError) -> Response:
    """An error in the form that clients of the API read."""
    message = {"lang": "en-US", "value": str(error)}
    response = _json({"odata.error": {"code": f"{error.status}", "message": message}}, LIGHT, error.status)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def _wrapped(value: Any) -> Any:
    """As the verbose form has it: a list inside of something is an object that holds ``results``."""
    if isinstance(value, Mapping):
        return {name: _wrapped(inner) for name, inner in value.items()}
    return {"results": _inner(value)} if isinstance(value, list) else value


def _inner(values: Sequence[Any]) -> list[Any]:
    return [_wrapped(value) for value in values]


def _json(content: Any, form: str, status: int = 200) -> Response:
    body = json.dumps(content, separators=(",", ":"))
    return Response(body, status, media_type=f"application/json;odata={form};charset=utf-8")
