"""Reads JSON files of Pinchpoint and validates them against their form.

Each document has one form: a pydantic model or a record. Content that does not match is an ``InputError``
that names the file, the place in the file, the value found and the allowed values. Fields that a form does
not name are accepted, because newer versions may add fields. All numbers must be finite.
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
"""Servers count in 64 bits; Python may refuse to print a larger number, and NumPy to store it."""
MOST_BYTES = 2**26
"""The largest accepted file; manifests of many hosts and events of a day take a tenth of it."""
_ALWAYS_FINE_BYTES, _MOST_UNPACKED = 64 << 20, 100
_SHOWN = 10
"""The highest number of problems listed for a document."""


class Form(BaseModel):
    """Base class of forms: values are never converted, and unknown fields are ignored."""

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
"""A time as ISO text."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
NotBelow0 = Annotated[float, Field(ge=0)]
Above0 = Annotated[float, Field(gt=0)]


def read(path: Path, form: Any, schema: str, remedy: str) -> Any:
    """The content of a JSON file, as plain JSON types.

    Args:
        path: path of the file.
        form: the type of the content.
        schema: the expected value of the field ``schema``.
        remedy: remedy in the message for a damaged file.

    Raises:
        FileNotFoundError: the file does not exist.
        InputError: the file cannot be read, has another schema, or does not match the form.
    """
    return _of_file(path, form, schema, remedy)[0]


def read_record(path: Path, form: Any, schema: str, remedy: str) -> Any:
    """The content of a file as an instance of the form; a missing file raises InputError. See ``read``."""
    try:
        return _of_file(path, form, schema, remedy)[1]
    except FileNotFoundError as error:
        raise InputError(f"{path}: is missing; {remedy}") from error


def content_of(path: Path, remedy: str) -> bytes:
    """The bytes of a run's file, which may come from an untrusted source.

    Raises:
        FileNotFoundError: the file does not exist.
        InputError: the file cannot be read, is not a plain file (a pipe, a device), or is larger than
            ``MOST_BYTES``.
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
    """The largest accepted unpacked size of a file, bytes; a larger size is a decompression bomb.

    Args:
        path: path of the packed file.
        times: allowed ratio of unpacked to packed size; 64 MiB are always allowed. Journals shrink tenfold.
    """
    return max(_ALWAYS_FINE_BYTES, times * path.stat().st_size)


def _of_file(path: Path, form: Any, schema: str, remedy: str) -> tuple[Any, Any]:
    return parsed(content_of(path, remedy), form, str(path), remedy, schema)


def parsed(data: bytes, form: Any, where: str, remedy: str, schema: str | None = None) -> tuple[Any, Any]:
    """The content of JSON text: (plain JSON types, instance of the form).

    Args:
        data: JSON text in UTF-8.
        form: the type of the content, or a function that returns the type for the content.
        where: start of each message: ``FILE``, or ``FILE:LINE``.
        remedy: remedy in the message for a damaged file.
        schema: the expected value of the field ``schema``; None: the content has no schema.

    Raises:
        InputError: the text is not JSON, has another schema, or does not match the form.
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
    """A problem for each number that is not finite or has more than 64 bits."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if not isinstance(item, str):
                yield from _odd_numbers(item, (*place, key))
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{dotted(place)}: found a number that is not finite; allowed: a finite number"
    elif isinstance(value, int) and not -_MOST < value < _MOST:
        yield f"{dotted(place)}: found a number of more than 64 bits; allowed: a number of 64 bits"


def _problem(details: ErrorDetails, content: Any) -> str:
    """The message of a validation error: ``FIELD: what was found; what is allowed``."""
    place: list[str | int] = []
    value: Any = content
    for step in details["loc"]:
        # Pydantic's location also contains union variants and missing fields, which are not in the content.
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
    ):  # the field that selects one of several forms
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
    """The path as text, such as ``hosts.sql1.roles[0]``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text) or "all of it"
