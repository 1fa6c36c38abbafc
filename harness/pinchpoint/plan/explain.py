"""Converts pydantic's errors into messages with the field names of the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pinchpoint.base.redact import NOT_SHOWN, is_public, is_secret, redacted_word
from pinchpoint.plan.problems import ABSENT, BadValue, Path, Problem, inside, listed
from pinchpoint.plan.record import StrictRecord
from pinchpoint.plan.units import found
from pinchpoint_collectors.common.names import nearest_name

_FIGURE = re.compile(r"-?\d{1,6}(\.\d{1,6})?\s?%?")
"""Numbers that may be shown although their record hides texts, if their field is public."""


def explain(error: ValidationError, model: type[BaseModel], data: object, under: Path = ()) -> list[Problem]:
    """The problems of a validation error, one for each error; errors that follow from another are left out.

    Args:
        error: the error that pydantic raised when ``model`` validated ``data``.
        model: the model that validated the data and defines the allowed names.
        data: the data of the file at the path ``under``.
        under: the path of ``data`` in the file.
    """
    result = {
        _problem(detail, model, data, under): detail["type"] for detail in error.errors(include_url=False)
    }
    misspelt = {(*each.path[:-1], each.nearest) for each, kind in result.items() if kind == "extra_forbidden"}
    inner = {each.path[:-1] for each in result}
    return [
        each
        for each, kind in result.items()
        if not ((kind == "missing" and each.path in misspelt) or (kind == "too_short" and each.path in inner))
    ]


def _problem(detail: ErrorDetails, model: type[BaseModel], data: object, under: Path) -> Problem:
    kind, ctx = detail["type"], detail.get("ctx", {})
    if kind in {"missing", "extra_forbidden"}:
        return _name_problem(detail, model, data, under)
    path, annotations = _trace(model, detail["loc"], data)
    here = (*under, *path)
    given = _at(data, path)
    is_figure = all(is_public(kind) for kind in annotations) and _FIGURE.fullmatch(str(given))
    secret = _is_secret(model, path, data) and not is_figure
    cause = ctx.get("error")
    if isinstance(cause, BadValue):
        return Problem(here, cause.found, cause.allowed, cause.nearest)
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        return _tag_problem(here, str(ctx["discriminator"]).strip("'"), annotations, given)
    if kind in {"value_error", "assertion_error"}:
        return Problem(here, str(cause))
    limits = {name: _in_unit(value, given) for name, value in ctx.items()}
    allowed = _ALLOWED[kind](limits) if kind in _ALLOWED else detail["msg"]
    if kind in _OF_FIELDS:
        allowed += _fields_of(annotations, given)
    elif kind in _OF_LIST and not secret:
        allowed += (
            f"; write [{redacted_word(given)}]"
            if isinstance(given, str)
            else "; put it in [ ]"
            if given
            else ""
        )
    near = (
        nearest_name(given, _literals(ctx["expected"]))
        if kind == "literal_error" and isinstance(given, str)
        else None
    )
    shown = NOT_SHOWN if secret and near is None else _shown(here, given)
    return Problem(here, f"found {shown}", allowed, near)


def _name_problem(detail: ErrorDetails, model: type[BaseModel], data: object, under: Path) -> Problem:
    """The problem of a missing field or an unknown field."""
    path, annotations = _trace(model, detail["loc"][:-1], data)
    name = str(detail["loc"][-1])
    here = (*under, *path, name)
    fields = _fields(annotations)
    if detail["type"] == "missing":
        needed = fields[name].description if name in fields else None
        return Problem(here, "missing", f"needed: {needed}" if needed else "give it a value")
    return Problem(here, "unknown field", f"allowed: {listed(fields)}", nearest_name(name, fields))


_UNITS: Sequence[tuple[str, str]] = (
    (r"[\d.]+\s*(us|ms|s|m|min|h|d)", " s"),
    (r"[\d.,]+\s*/\s*s", "/s"),
    (r"[\d.]+\s*([kKMGTP]i?)?B", " B"),
    (r"[\d.]+\s*([kKMGTP]i?)?B/s", " B/s"),
)
"""The form of the value found -> the unit in which messages show its limit."""


def _in_unit(value: object, given: object) -> object:
    """A limit in the unit of the value in the file: ``15 s`` for ``5s``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    unit = next((unit for form, unit in _UNITS if re.fullmatch(form, str(given).strip())), "")
    if unit.startswith(" B") and value % 2**20 == 0 and value:
        return f"{value / 2**20:g} Mi{unit.strip()}"
    return f"{value:.12g}{unit}"


def _literals(expected: str) -> list[str]:
    """The names in pydantic's ``expected``: ``'a', 'b' or 'c'``."""
    return [part.strip(" '") for part in expected.replace(" or ", ", ").split(", ")]


_ALLOWED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "literal_error": lambda ctx: f"allowed: {listed(_literals(ctx['expected']))}",
    "greater_than": lambda ctx: f"allowed: more than {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"allowed: {ctx['ge']} or more",
    "less_than": lambda ctx: f"allowed: less than {ctx['lt']}",
    "less_than_equal": lambda ctx: f"allowed: at most {ctx['le']}",
    "too_short": lambda ctx: f"allowed: at least {ctx['min_length']}",
    "string_too_short": lambda _: "allowed: text that is not empty",
    "string_type": lambda _: "allowed: text; put a number in quotes",
    "int_type": lambda _: "allowed: a whole number",
    "int_parsing": lambda _: "allowed: a whole number",
    "int_from_float": lambda _: "allowed: a whole number",
    "float_type": lambda _: "allowed: a number",
    "float_parsing": lambda _: "allowed: a number",
    "finite_number": lambda _: "allowed: a finite number",
    "bool_type": lambda _: "allowed: true or false",
}
_OF_FIELDS = ("model_type", "model_attributes_type", "dict_type", "mapping_type")
_OF_LIST = ("tuple_type", "list_type")
_ALLOWED = {
    **_ALLOWED,
    **dict.fromkeys(_OF_FIELDS, lambda _: "allowed: fields with values ({name: value})"),
    **dict.fromkeys(_OF_LIST, lambda _: "allowed: a list ([a, b])"),
}


def _fields_of(annotations: Sequence[Any], given: object) -> str:
    """Text for a message: the fields allowed there, or an example of the form that was probably meant."""
    forms = [kind for kind in _flat(annotations) if _fields([kind])]
    if len(forms) < 2 or not all(map(_tags, forms)):
        fields = _fields(forms)
        return f"; its fields: {listed(fields)}" if fields else ""
    named = [form for form in forms if given in _tags(form)]
    first, *others = (name for name, info in _fields(named or forms[:1]).items() if info.is_required())
    rest = "".join(f", {name}: ..." for name in others) if named else ", ..."
    return f"; write {{{first}: {given if named else _tags(forms[0])[0]}{rest}}}"


def _tag_problem(here: Path, field: str, annotations: Sequence[Any], given: object) -> Problem:
    """The problem of a discriminating field that is missing or has an unknown value."""
    place = (*here, field)
    names = [str(tag) for kind in _flat(annotations) for tag in _tags(kind, field)]
    value = inside(given, field)
    if value is ABSENT:
        return Problem(place, "missing", f"needed: {listed(names)}")
    near = nearest_name(value, names) if isinstance(value, str) else None
    return Problem(place, f"found {_shown(place, value)}", f"allowed: {listed(names)}", near)


def _shown(here: Path, value: object) -> str:
    if here and is_secret(str(here[-1])):
        return NOT_SHOWN
    return found(redacted_word(value) if isinstance(value, str) else value)


def _is_secret(model: type[BaseModel], path: Path, data: object) -> bool:
    """Whether the value at a path may be a secret, because a record around it hides texts.

    A value of the wrong type counts as well, because it may belong in a secret field.
    """
    return any(
        isinstance(kind, type) and issubclass(kind, StrictRecord) and kind.hides_texts
        for length in range(len(path))
        for kind in _flat(_trace(model, path[:length], data)[1])
    )


def _at(data: object, path: Path) -> object:
    for step in path:
        data = inside(data, step)
    return data


def _trace(model: type[BaseModel], loc: Path, data: object) -> tuple[Path, list[Any]]:
    """Follow pydantic's location of an error through the data and the model.

    Pydantic's locations also name the variant of a union and steps that exist only after a conversion; these
    are not in the file and are left out.

    Returns:
        The path in the file, and the types allowed there.
    """
    path: Path = ()
    annotations: list[Any] = [model]
    for step in loc:
        variants = [kind for kind in _flat(annotations) if step in _tags(kind) or step == _name(kind)]
        if variants and len(_flat(annotations)) > 1:
            annotations = variants
            continue
        inner = [kind for annotation in _flat(annotations) for kind in _inside(annotation, step)]
        child = inside(data, step)
        if child is ABSENT:
            continue
        path, data, annotations = (*path, step), child, inner
    return path, annotations


def _flat(annotations: Sequence[Any]) -> list[Any]:
    """The types with unions and ``Annotated`` resolved into single types."""
    flat: list[Any] = []
    for annotation in annotations:
        origin = get_origin(annotation)
        if origin is Annotated:
            flat += _flat(get_args(annotation)[:1])
        elif origin in (Union, UnionType):
            flat += _flat(get_args(annotation))
        elif annotation is not type(None):
            flat.append(annotation)
    return flat


def _inside(annotation: Any, step: str | int) -> Iterator[Any]:
    """The types allowed at ``step`` inside a value of this type."""
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from (info.annotation for name, info in _fields([annotation]).items() if name == step)
    elif isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
        yield arguments[1]
    elif isinstance(origin, type) and issubclass(origin, Sequence) and arguments:
        yield arguments[0]


def _tags(annotation: Any, field: str | None = None) -> list[Any]:
    """The values with which a discriminating field selects this variant; ``field`` None: any such field."""
    return [
        tag
        for name, info in _fields([annotation]).items()
        if field in (None, name) and get_origin(info.annotation) is Literal
        for tag in get_args(info.annotation)
    ]


def _name(annotation: Any) -> str | None:
    """The tag of a variant that no single field selects, which is the name of its class."""
    return annotation.__name__ if isinstance(annotation, type) else None


def _fields(annotations: Sequence[Any]) -> dict[str, FieldInfo]:
    """The fields of all these types, by their name in the file."""
    models = [kind for kind in _flat(annotations) if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return {info.alias or name: info for model in models for name, info in model.model_fields.items()}
