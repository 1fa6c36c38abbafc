"""Registries by name, and the error for an unknown name: what is allowed, and the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Protocol, TypeVar


class Named(Protocol):
    """What stands in a table by its name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


NamedT = TypeVar("NamedT", bound=Named)


def by_name(what: str, several: Iterable[NamedT]) -> dict[str, NamedT]:
    """Name -> each of them; two of one name raise ``ValueError``."""
    found: dict[str, NamedT] = {}
    for each in several:
        if each.name in found:
            raise ValueError(f"two {what} are named {each.name!r}")
        found[each.name] = each
    return found


def unknown(what: str, found: str, names: Iterable[str]) -> str:
    """The sentence for an unknown name: ``unknown preset 'log-havy'; allowed: ...; nearest: log-heavy``."""
    return f"unknown {what} {found!r}; {allowed(found, sorted(names))}"


def allowed(found: str, names: Iterable[str]) -> str:
    """``allowed: local, ssh; nearest: ssh``, in the order of the names."""
    known = list(names)
    return f"allowed: {', '.join(known)}{nearest(found, known)}"


def nearest(found: str, names: Iterable[str]) -> str:
    """``; nearest: ssh``; nothing where no name is near."""
    near = difflib.get_close_matches(found, list(names), n=1)
    return f"; nearest: {near[0]}" if near else ""
