"""The type of what JSON files hold."""

from collections.abc import Mapping
from typing import Any

JsonObject = Mapping[str, Any]
"""An object of JSON that is only read: a manifest, a verdict, a load of a plan, a row."""
