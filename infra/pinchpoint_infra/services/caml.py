"""CAML, the XML in which SharePoint's views and queries are written, as SQL with its values apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from pinchpoint_infra.services.odata import RefusalError
from pinchpoint_infra.services.odata_filter import OPERATORS, Condition, Fields, names
from pinchpoint_infra.services.web_fields import ITEM_FIELDS, ROW_FIELDS

_COMPARED = {
    "Eq": "eq", "Neq": "ne", "Gt": "gt", "Geq": "ge", "Lt": "lt", "Leq": "le",
}  # fmt: skip
_WITHIN = {"BeginsWith": "starts_with(lower({}), lower(%s))", "Contains": "strpos(lower({}), lower(%s)) > 0"}
_DEEPEST = 50
_LARGEST = 2**16


@dataclass(frozen=True, slots=True)
class View:
    """What a view shows.

    Attributes:
        where: a condition.
        values: its values.
        order: the inside of an ORDER BY.
        limit: at most so many rows; None: it does not say.
        fields: those it names, in lower case; empty: all.
    """

    where: str = "true"
    values: list[Any] = field(default_factory=list)
    order: str = "id"
    limit: int | None = None
    fields: frozenset[str] = frozenset()

    def shown(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Of an item's fields those the view shows; its ID is among them in any case."""
        if not self.fields:
            return dict(fields)
        return {name: text for name, text in fields.items() if name == "ID" or name.lower() in self.fields}


def parse(view: str, view_fields: str = "", limit: Any = None) -> View:
    """Understand ``<View>...</View>`` or ``<Query>...</Query>``.

    Args:
        view: the XML; empty: everything is shown, in order of its number.
        view_fields: ``<ViewFields>...</ViewFields>`` where it comes apart.
        limit: of rows, where it comes apart.

    Raises:
        RefusalError: it is no CAML, or says what cannot be done here.
    """
    root = _element(view) if view.strip() else Element("View")
    if root.tag not in {"View", "Query"}:
        raise RefusalError(400, f"CAML: <{root.tag}> is not understood; allowed are <View> and <Query>")
    query = root if root.tag == "Query" else root.find("Query")
    where, values = "true", list[Any]()
    sort = "id"
    for part in query if query is not None else ():
        match part.tag:
            case "Where":
                where, values = _all(part, 0)
            case "OrderBy":
                sort = ", ".join([*(_sorted(each) for each in part), "id"])
            case _:
                raise RefusalError(400, f"CAML: <{part.tag}> is not supported; <Where> and <OrderBy> are")
    rows = root.findtext("RowLimit") or limit
    if rows is not None and not (str(rows).isascii() and str(rows).isdecimal() and int(str(rows)[:9]) > 0):
        raise RefusalError(400, "CAML: RowLimit: a whole number from 1 is needed")
    shown = _element(view_fields) if view_fields.strip() else root.find("ViewFields")
    chosen = frozenset(each.get("Name", "").lower() for each in (shown if shown is not None else ()))
    if unknown := chosen - {name.lower() for name in ROW_FIELDS}:
        allowed = ", ".join(ROW_FIELDS)
        raise RefusalError(400, f"CAML: no field {', '.join(sorted(unknown))}; there are {allowed}")
    return View(where, values, sort, int(rows) if rows is not None else None, chosen)


def _element(text: str) -> Element:
    if len(text) > _LARGEST:
        raise RefusalError(400, f"CAML: longer than {_LARGEST} characters")
    if "<!DOCTYPE" in text:  # a chain of entities crashes expat before 2.7
        raise RefusalError(400, "CAML: a DOCTYPE is not allowed")
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - no DOCTYPE, so no entities
    except ElementTree.ParseError as error:
        raise RefusalError(400, f"CAML: no XML: {error}") from error


def _all(element: Element, depth: int) -> Condition:
    """The conditions inside of an element: one, of <And> and <Or> two."""
    if depth > _DEEPEST:
        raise RefusalError(400, f"CAML: conditions lie more than {_DEEPEST} deep in each other")
    found = [_one(each, depth) for each in element]
    wanted = 1 if element.tag == "Where" else 2
    if len(found) != wanted:
        raise RefusalError(400, f"CAML: <{element.tag}> needs {wanted} conditions, found {len(found)}")
    joined = f" {element.tag.upper()} ".join(sql for sql, _ in found)
    return f"({joined})", [each for _, values in found for each in values]


def _one(element: Element, depth: int) -> Condition:
    if element.tag in {"And", "Or"}:
        return _all(element, depth + 1)
    if element.tag not in _COMPARED and element.tag not in _WITHIN:
        allowed = ", ".join(f"<{name}>" for name in ("And", "Or", *_COMPARED, *_WITHIN))
        raise RefusalError(400, f"CAML: <{element.tag}> is not supported; {allowed} are")
    column, convert = _column(element.find("FieldRef"), ITEM_FIELDS)
    text = element.findtext("Value") or ""
    try:
        value = convert(text.replace("\0", "\ufffd"))
    except ValueError as error:
        raise RefusalError(400, f"CAML: {text!a} is not a value of that field") from error
    if element.tag in _WITHIN:
        return _WITHIN[element.tag].format(column), [str(value)]
    return f"{column} {OPERATORS[_COMPARED[element.tag]]} %s", [value]


def _sorted(element: Element) -> str:
    column, _ = _column(element, ITEM_FIELDS)
    return f"{column} {'DESC' if element.get('Ascending', 'TRUE').upper() == 'FALSE' else 'ASC'}"


def _column(element: Element | None, fields: Fields) -> tuple[str, Any]:
    name = element.get("Name", "") if element is not None else ""
    if name.lower() not in fields:
        raise RefusalError(400, f"CAML: <FieldRef Name={name!a}>: no such field; there are {names(fields)}")
    return fields[name.lower()]
