"""Records from JSON: dataclasses of plain types, of paths and of other such records."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def record(kind: type[T], content: Any) -> T:
    """The record whose ``dataclasses.asdict`` gave ``content``. Raises ``ValueError`` for other content."""
    return TypeAdapter(kind).validate_python(content)
