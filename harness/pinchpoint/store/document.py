"""Reads JSON files of Pinchpoint and checks them against their form.

Each document has one form: a pydantic model or a record. What does not fit it is an ``InputError`` that names
the file, the place in it, what was found and what is allowed. What a form does not name may be there, as
newer versions may add to it; numbers are finite everywhere.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterator, Sequence
from functools import lru_cache
from inspect import isfunction
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from pinchpoint.base.clock import seconds_of
from pinchpoint.base.errors import InputError
from pinchpoint_collectors import bounds

Place = tuple[str | int, ...]

_MOST = 2**64
"""Servers count in 64 bits; beyond that Python may refuse to print a number, and NumPy to hold it."""
MOST_BYTES = 2**26
"""The largest accepted file: manifests of many hosts and events of a day need a tenth of it."""
_ALWAYS_FINE_BYTES, _MOST_UNPACKED = 64 << 20, 100
_SHOWN = 10
"""This many problems of a document are listed."""


class Form(BaseModel):
    """Base of forms: values are never coerced, and what is not named may be there."""

    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)


def _time(text: str) -> str:
    try:
        second = seconds_of(text)
    except (ValueError, OverflowError):
        second = -1.0
    if not bounds.EARLIEST_NS / 1e9 <= second <= bounds.LATEST_NS / 1e9:
        raise ValueError("a time such as 2026-01-01T00:00:00Z")
    return text


Time = Annotated[str, AfterValidator(_time)]
"""ISO text."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
NotBelow0 = Annotated[float, Field(ge=0)]
Above0 = Annotated[float, Field(gt=0)]


def read(path: Path, form: Any, schema: str, remedy: str) -> Any:
    """The content of a JSON file, as plain JSON types.

    Args:
        path: the file.
        form: the type of the content.
        schema: what it says of itself.
        remedy: what to do where it is damaged.

    Raises:
        FileNotFoundError: there is no such file.
        InputError: it cannot be read, is of another schema, or is not of that form.
    """
    return _of_file(path, form, schema, remedy)[0]


def read_record(path: Path, form: Any, schema: str, remedy: str) -> Any:
    """Read a file as an instance of the form; a missing file is an InputError as well. See ``read``."""
    try:
        return _of_file(path, form, schema, remedy)[1]
    except FileNotFoundError as error:
        raise InputError(f"{path}: is missing; {remedy}") from error


def content_of(path: Path, remedy: str) -> bytes:
    """What is in a file of a run, which others may have made.

    Raises:
        FileNotFoundError: there is no such file.
        InputError: it cannot be read, is no plain file (a pipe, a device), or is larger than any is.
    """
    try:
        plain, size = path.is_file(), path.stat().st_size
        if plain and size <= MOST_BYTES:
            return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error
    result = f"{size:,} bytes; allowed: {MOST_BYTES:,}" if plain else "is no plain file"
    raise InputError(f"{path}: {result}; {remedy}")


def most_unpacked(path: Path, times: int = _MOST_UNPACKED) -> int:
    """Bytes that a packed file of ours may become; one that becomes more was made to fill the memory.

    Args:
        path: the file.
        times: how many times its own size, where that is above 64 MiB; journals shrink tenfold.
    """
    return max(_ALWAYS_FINE_BYTES, times * path.stat().st_size)


def _of_file(path: Path, form: Any, schema: str, remedy: str) -> tuple[Any, Any]:
    return parsed(content_of(path, remedy), form, str(path), remedy, schema)


def parsed(data: bytes, form: Any, where: str, remedy: str, schema: str | None = None) -> tuple[Any, Any]:
    """JSON text: (its content, as an instance of the form).

    Args:
        data: UTF-8.
        form: the type of the content, or a function that says it of the content.
        where: what a message begins with: ``FILE``, or ``FILE:LINE``.
        remedy: what to do where it is damaged.
        schema: what it says of itself; None if it says nothing.

    Raises:
        InputError: it is no JSON, of another schema, or not of that form.
    """
    try:
        content = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(f"{where}: cannot be read as JSON: {error}; {remedy}") from error
    result = content.get("schema", schema) if schema and isinstance(content, dict) else schema
    if result != schema:
        known = f'this version of Pinchpoint reads "{schema}"'
        raise InputError(f"{where}: schema: found {_words(result)}; {known}; {remedy}")
    problems, record = list(dict.fromkeys(_odd_numbers(content, ()))), None
    if not problems:
        try:
            record = _adapter(form(content) if isfunction(form) else form).validate_json(data, strict=True)
        except ValidationError as error:
            problems = [_problem(each, content) for each in error.errors(include_url=False)]
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        lines = (*problems[:_SHOWN], *more, f"this is not as this version of Pinchpoint writes it; {remedy}")
        raise InputError("\n".join(f"{where}: {line}" for line in lines))
    return content, record


@lru_cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def _odd_numbers(value: Any, place: Place) -> Iterator[str]:
    """Numbers that are not finite, or larger than any that is counted."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if not isinstance(item, str):
                yield from _odd_numbers(item, (*place, key))
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{dotted(place)}: found a number that is not finite; allowed: a finite number"
    elif isinstance(value, int) and not -_MOST < value < _MOST:
        yield f"{dotted(place)}: found a number of more than 64 bits; allowed: a number of 64 bits"


def _problem(details: ErrorDetails, content: Any) -> str:
    """``FIELD: what was found; what is allowed``."""
    place: list[str | int] = []
    value: Any = content
    for step in details["loc"]:
        # Pydantic also names the variant of a union, and what is missing: these are no places here.
        there = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        if step in there:
            place, value = [*place, step], operator.getitem(value, step)
    kind, ctx = details["type"], details.get("ctx", {})
    if kind == "missing":
        return f"{dotted((*place, details['loc'][-1]))}: missing"
    allowed = details["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if kind in (
        "union_tag_invalid",
        "union_tag_not_found",
    ):  # the field that says which of several forms it has
        name = ctx["discriminator"].strip("'")
        place, value = [*place, name], value.get(name) if isinstance(value, dict) else None
        allowed = ctx.get("expected_tags", "the name of a form")
    allowed = allowed.replace("a valid array", "a list").replace(" valid ", " ", 1)
    return f"{dotted(place)}: found {_words(value)}; allowed: {allowed}"


def _words(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def dotted(place: Sequence[str | int]) -> str:
    """The place as people write it: ``hosts.sql1.roles[0]``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text) or "all of it"
