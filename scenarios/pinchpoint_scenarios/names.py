"""What a person reads when a name is not known: every allowed name, and the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(what: str, found: str, allowed: Iterable[str]) -> str:
    """The sentence for an unknown name: ``unknown preset 'log-havy'; allowed: ...; nearest: log-heavy``."""
    names = sorted(allowed)
    sentence = f"unknown {what} {found!r}; allowed: {', '.join(names)}"
    near = difflib.get_close_matches(found, names, n=1)
    return f"{sentence}; nearest: {near[0]}" if near else sentence
