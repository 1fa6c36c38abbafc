"""Pinchpoint: plan, run, store, analyse, report, and the command line.

In Python, ``pinchpoint.run(plan, farm)`` makes a run and ``pinchpoint.Run(directory)`` opens one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Run", "run"]


def __getattr__(name: str) -> Any:
    """Import them on request: the command line needs neither for its help."""
    if name == "run":
        return import_module("pinchpoint.run")
    if name == "Run":
        return import_module("pinchpoint.api").Run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
