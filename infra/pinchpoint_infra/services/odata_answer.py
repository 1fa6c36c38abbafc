"""Formats answers and refusals in the three JSON forms of SharePoint's REST API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from pinchpoint_infra.services.odata import LIGHT, VERBOSE, Call, RefusalError, Tree

_ALL: Tree = {}


@dataclass(frozen=True, slots=True)
class Entity:
    """An object of the API that has an address.

    Attributes:
        kind: name of the type, such as ``SP.File``.
        link: address after ``/_api/``.
        fields: name -> value; a value may be an ``Entity`` or a list of entities.
    """

    kind: str
    link: str
    fields: Mapping[str, Any]


_NESTED = (Entity, dict, list)
"""Types of values that contain other values. They are concrete, because each field of each item is
checked."""


def entity(call: Call, found: Entity | Mapping[str, Any], wrapper: str = "") -> Response:
    """Return the answer with one object.

    Args:
        call: request.
        found: object, with or without an address.
        wrapper: name of the method, which the verbose form adds around its result.
    """
    shown = _shown(found, call.selected, call)
    if call.form == VERBOSE:
        return json_response({"d": {wrapper: shown} if wrapper else shown}, VERBOSE)
    return json_response(_about(call, found) | shown, call.form)


def value(call: Call, found: Any, wrapper: str) -> Response:
    """Return the answer with a plain value, such as a text, from the method ``wrapper``."""
    if call.form == VERBOSE:
        return json_response({"d": {wrapper: found}}, VERBOSE)
    return json_response({"value": found}, call.form)


def collection(
    call: Call, objects: Sequence[Entity | Mapping[str, Any]], following: str | None = None
) -> Response:
    """Return the answer with a list of objects, or with one page of it and the link to the next page."""
    shown = [_shown(each, call.selected, call) for each in objects]
    if call.form == VERBOSE:
        page = {"results": shown} | ({"__next": following} if following else {})
        return json_response({"d": page}, VERBOSE)
    about = {} if call.form == LIGHT else {"odata.metadata": f"{call.origin}/_api/$metadata"}
    more = {"odata.nextLink": following} if following else {}
    return json_response(about | {"value": shown} | more, call.form)


def refusal(error: RefusalError) -> Response:
    """Return an error in the form that API clients read."""
    message = {"lang": "en-US", "value": str(error)}
    response = json_response({"odata.error": {"code": f"{error.status}", "message": message}}, LIGHT)
    response.status_code = error.status
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def json_response(content: Any, form: str) -> Response:
    """Return an HTTP response with JSON in one of the three forms."""
    body = json.dumps(content, separators=(",", ":"))
    return Response(body, media_type=f"application/json;odata={form};charset=utf-8")


def _about(call: Call, found: Entity | Mapping[str, Any]) -> dict[str, Any]:
    if call.form == LIGHT or not isinstance(found, Entity):
        return {}
    return {"odata.metadata": f"{call.origin}/_api/$metadata#{found.kind}/@Element"}


def _shown(found: Entity | Mapping[str, Any], selected: Tree, call: Call) -> dict[str, Any]:
    """Return the selected fields of an object in the requested form."""
    fields = found.fields if isinstance(found, Entity) else found
    some = selected and "*" not in selected
    shown = {
        name: _inside(each, selected.get(name.lower(), _ALL), call) if isinstance(each, _NESTED) else each
        for name, each in fields.items()
        if not some or name.lower() in selected
    }
    if some and selected is call.selected and len(shown) < len(selected):
        raise _not_there(fields, selected)
    if call.form == LIGHT or not isinstance(found, Entity):
        return shown
    address = f"{call.origin}/_api/{found.link}"
    if call.form == VERBOSE:
        return {"__metadata": {"id": address, "uri": address, "type": found.kind}} | shown
    return {"odata.type": found.kind, "odata.id": address, "odata.editLink": found.link} | shown


def _not_there(fields: Mapping[str, Any], selected: Tree) -> RefusalError:
    there = {name.lower() for name in fields}
    missing = ", ".join(sorted(selected.keys() - there))
    return RefusalError(
        400,
        f"$select: there is no field {missing} here, or it has to be expanded first ($expand); allowed are "
        f"{', '.join(sorted(fields))}",
    )


def _inside(found: Any, selected: Tree, call: Call) -> Any:
    """Return the value of a property. In the verbose form a list is an object with ``results``."""
    if isinstance(found, list):
        each = [_inside(one, selected, call) for one in found]
        return {"results": each} if call.form == VERBOSE else each
    return _shown(found, selected, call) if isinstance(found, Entity | dict) else found
