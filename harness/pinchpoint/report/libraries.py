"""Imports the libraries of the extra ``documents`` when they are needed.

A missing one gives a clear message.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pinchpoint.base.errors import InputError


def library(name: str, wanted_by: str) -> Any:
    """Return the module. Raises InputError if its package is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{wanted_by}: the package of {name.partition('.')[0]!r} is not installed; "
            "install it with: pip install 'pinchpoint[documents]'"
        ) from error
