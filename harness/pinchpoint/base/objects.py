"""Defines the type of an object in a JSON file."""

from collections.abc import Mapping
from typing import Any

JsonObject = Mapping[str, Any]
"""A JSON object that is only read: a manifest, a verdict, a load of a plan, a row."""


def object_at(content: JsonObject | None, *keys: str) -> Any:
    """Return the object below these keys; an empty object if a key is missing or null."""
    for key in keys:
        content = (content or {}).get(key)
    return content or {}
