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

_OPTIONS = {"$top", "$skiptoken", "$select"}
LIGHT, VERBOSE = "nometadata", "verbose"
_VERBOSE_ASKED = re.compile(r"odata\s*=\s*\"?verbose", re.IGNORECASE)
_CALL = re.compile(r"(?P<name>\w+)\((?:(?P<parameter>\w+)=)?(?P<value>@\w+|'(?:[^']|'')*')\)", re.DOTALL)


class RefusalError(Exception):
    """The request is answered with an error: an HTTP status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Call:
    """A request: ``/_api/web/lists/getbytitle('T')/items?$top=5``.

    Attributes:
        steps: the names behind ``/_api/`` in lower case, an argument as ``()``: web/lists/getbytitle()/items.
        argument: what stood between the brackets, unquoted; empty without any.
        query: the options by name in lower case.
        origin: scheme and host as the client spelt them.
        verbose: whether it asks for the verbose form.
    """

    steps: str
    argument: str
    query: Mapping[str, str]
    origin: str
    verbose: bool

    def selected(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Those fields that ``$select`` asks for; all where it asks for none in particular."""
        names = {name.strip().lower() for name in self.query.get("$select", "").split(",")} - {"", "*"}
        return {name: value for name, value in fields.items() if not names or name.lower() in names}


def parse(request: Request, site: str) -> Call:
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
    found = _CALL.search(rest)
    argument = ""
    if found:
        argument = _text(found["value"], query)
        rest = f"{rest[: found.start()]}{found['name']}(){rest[found.end() :]}"
    verbose = _VERBOSE_ASKED.search(request.headers.get("accept", "")) is not None
    origin = f"{request.url.scheme}://{request.headers.get('host', request.url.netloc)}"
    return Call(rest.strip("/").lower(), argument, query, origin, verbose)


def _text(literal: str, query: Mapping[str, str]) -> str:
    """A string in single quotes, or the ``@name`` of an option that holds one; quotes in it are doubled."""
    if literal.startswith("@"):
        name, literal = literal, query.get(literal.lower(), "")
        if not (len(literal) >= 2 and literal[0] == literal[-1] == "'"):
            raise RefusalError(400, f"{name} stands for nothing; add {name}='...' to the query")
    return literal[1:-1].replace("''", "'")


def entity(call: Call, fields: Mapping[str, Any], wrapper: str = "") -> Response:
    """One object; ``wrapper`` is the name the verbose form puts around it."""
    if call.verbose:
        return _json({"d": {wrapper: fields} if wrapper else call.selected(fields)}, VERBOSE)
    return _json(call.selected(fields), LIGHT)


def collection(call: Call, objects: Sequence[Mapping[str, Any]], following: str | None = None) -> Response:
    """A list of objects, or a page of one with the link to the next."""
    values = [call.selected(each) for each in objects]
    if call.verbose:
        return _json({"d": {"results": values} | ({"__next": following} if following else {})}, VERBOSE)
    return _json({"value": values} | ({"odata.nextLink": following} if following else {}), LIGHT)


def refusal(error: RefusalError) -> Response:
    """An error in the form that clients of the API read."""
    message = {"lang": "en-US", "value": str(error)}
    response = _json({"odata.error": {"code": f"{error.status}", "message": message}}, LIGHT, error.status)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _json(content: Any, form: str, status: int = 200) -> Response:
    body = json.dumps(content, separators=(",", ":"))
    return Response(body, status, media_type=f"application/json;odata={form};charset=utf-8")
