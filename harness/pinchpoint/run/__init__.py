"""Runs one plan against one farm: preflight checks, phases, decisions during the run, sets of runs."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A module that is also a function (docs/decisions/run-is-a-package-and-a-function.md)."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return import_module("pinchpoint.api").run(*given, **named)


sys.modules[__name__].__class__ = _Callable
