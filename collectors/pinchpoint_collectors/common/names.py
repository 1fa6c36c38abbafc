"""What a person reads when a name is not known: every allowed name, and the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
