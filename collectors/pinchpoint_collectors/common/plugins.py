"""Plug-ins of other packages, found by their entry points: scenarios and kinds of collectors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


class PlugInError(Exception):
    """A package's entry point cannot be used; the message names the package and the remedy."""


@dataclass(frozen=True, slots=True)
class PlugIn:
    """One entry point.

    Attributes:
        name: the name in farm.yaml and plan.yaml.
        package: the distribution of the plug-in.
        value: ``module:Class``.
        clash: the other package with that name; None: no other.
    """

    name: str
    package: str
    value: str
    clash: str | None = None

    def load(self, attribute: str) -> Any:
        """Import the class, whose ``attribute`` is its registered name. Raises ``PlugInError``."""
        where = f"{self.name!r} of the package {self.package}"
        if self.clash is not None:
            raise PlugInError(
                f"{where} has the name of one of {self.clash}; rename it, or uninstall {self.package}"
            )
        try:
            result = EntryPoint(self.name, self.value, "").load()
        except (ImportError, AttributeError, SyntaxError) as error:
            raise PlugInError(
                f"{where} ({self.value}) cannot be imported: {error}; install it again"
            ) from error
        if getattr(result, attribute, None) != self.name:
            answer = getattr(result, attribute, None)
            raise PlugInError(f"{where} ({self.value}): {attribute}: found {answer!r}; needed: {self.name!r}")
        return result


@cache
def _entry_points() -> Any:  # EntryPoints; in Python 3.11 SelectableGroups
    """The entry points of all packages: to read them takes 20 ms."""
    return entry_points()


def plug_ins(group: str, taken: Collection[str]) -> dict[str, PlugIn]:
    """Name -> entry point of that group; an entry point with a name in use is refused."""
    ins: dict[str, PlugIn] = {}
    for entry in _entry_points().select(group=group):
        package = entry.dist.name if entry.dist else entry.value
        other = "Pinchpoint" if entry.name in taken else None
        if entry.name in ins and ins[entry.name].package != package:
            other = ins[entry.name].package
        ins[entry.name] = PlugIn(entry.name, package, entry.value, other)
    return ins
