"""Provides registries by name, and the error for an unknown name: allowed names and the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Protocol, TypeVar


class NamedEntry(Protocol):
    """An entry of a table whose keys are names."""

    @property
    def name(self) -> str:
        """Return the name."""
        ...


NamedT = TypeVar("NamedT", bound=NamedEntry)


def by_name(what: str, several: Iterable[NamedT]) -> dict[str, NamedT]:
    """Return name -> entry. Two entries with the same name raise ``ValueError``."""
    ts: dict[str, NamedT] = {}
    for each in several:
        if each.name in ts:
            raise ValueError(f"two {what} are named {each.name!r}")
        ts[each.name] = each
    return ts


def unknown(what: str, value: str, names: Iterable[str]) -> str:
    """Return the sentence for an unknown name: ``unknown preset 'log-havy'; allowed: ...; nearest: ...``."""
    return f"unknown {what} {value!r}; {allowed(value, sorted(names))}"


def allowed(value: str, names: Iterable[str]) -> str:
    """Return ``allowed: local, ssh; nearest: ssh``, in the order of the names."""
    known = list(names)
    return f"allowed: {', '.join(known)}{nearest(value, known)}"


def nearest(value: str, names: Iterable[str]) -> str:
    """Return ``; nearest: ssh``; empty if no name is similar."""
    near = nearest_name(value, names)
    return f"; nearest: {near}" if near else ""


def nearest_name(value: str, names: Iterable[str]) -> str | None:
    """Return the name that ``value`` probably means: a similar name, or one that begins with it."""
    known = list(names)
    near = difflib.get_close_matches(value, known, n=3, cutoff=0.6)
    # A wrong digit is more likely than an extra one: p33 means p30 and not p3.
    same = [name for name in near if value[-1:].isdigit() and len(name) == len(value)]
    begun = [name for name in known if len(value) >= SHORTEST_BEGIN and name.startswith(value)]
    return next(iter([*same, *near, *begun]), None)


SHORTEST_BEGIN = 3
"""Smallest number of letters that identify a name by its start."""
