"""The type of what JSON files hold."""

from collections.abc import Mapping
from typing import Any

JsonObject = Mapping[str, Any]
"""An object of JSON that is only read: a manifest, a verdict, a load of a plan, a row."""


def object_at(content: JsonObject | None, *keys: str) -> Any:
    """The object below these keys; an empty one where one of them is missing or null."""
    for key in keys:
        content = (content or {}).get(key)
    return content or {}
