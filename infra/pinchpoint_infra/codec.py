"""Converts JSON to records: dataclasses of plain types, paths and other such records."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def record(kind: type[T], content: Any) -> T:
    """Return the record with the content of ``dataclasses.asdict``.

    Raises ``ValueError`` for other content.
    """
    return TypeAdapter(kind).validate_python(content)
