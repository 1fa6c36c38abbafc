"""Finds plug-ins of other packages by their entry points: scenarios and kinds of collectors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any


class PlugInError(Exception):
    """The entry point of a package cannot be used. The message names the package and the remedy."""


@dataclass(frozen=True, slots=True)
class PlugIn:
    """One entry point of a package.

    Attributes:
        name: name in farm.yaml and plan.yaml.
        package: distribution of the plug-in.
        value: ``module:Class``.
        clash: other package with the same name; None: no other package has it.
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
def _entry_points() -> Any:  # type EntryPoints; in Python 3.11 SelectableGroups
    """Return the entry points of all packages. Reading them takes 20 ms."""
    return entry_points()


def plug_ins(group: str, taken: Collection[str]) -> dict[str, PlugIn]:
    """Return name -> entry point of a group. An entry point with a name in use is refused."""
    ins: dict[str, PlugIn] = {}
    for entry in _entry_points().select(group=group):
        package = entry.dist.name if entry.dist else entry.value
        other = "Pinchpoint" if entry.name in taken else None
        if entry.name in ins and ins[entry.name].package != package:
            other = ins[entry.name].package
        ins[entry.name] = PlugIn(entry.name, package, entry.value, other)
    return ins
