"""Caches the results of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ResultCache(dict[K, V]):
    """``memo[key]`` is ``function(key)``, calculated once.

    It is a dictionary and not ``lru_cache``: a page has a dozen links, each looked up several times, and a
    dictionary takes a third of the time. A full cache is emptied, and values in use are calculated again.

    Args:
        function: calculates the values. Exceptions are not stored.
        most: largest number of entries.
    """

    def __init__(self, function: Callable[[K], V], most: int) -> None:
        super().__init__()
        self.ask = function
        """Calculates a value without storing it."""
        self._most = most

    def __missing__(self, key: K) -> V:
        if len(self) >= self._most:
            self.clear()
        value = self[key] = self.ask(key)
        return value
