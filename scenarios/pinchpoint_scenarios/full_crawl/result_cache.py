"""A cache for results of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ResultCache(dict[K, V]):
    """``memo[key]`` is ``function(key)``, computed once.

    A dictionary instead of ``lru_cache``: a page has a dozen links, each looked up several times, and a
    dictionary takes a third of the time. A full one is emptied: values in use are computed again.

    Args:
        function: computes the values; exceptions are not kept.
        most: largest number of entries.
    """

    def __init__(self, function: Callable[[K], V], most: int) -> None:
        super().__init__()
        self.ask = function
        """Computes a value without storing it."""
        self._most = most

    def __missing__(self, key: K) -> V:
        if len(self) >= self._most:
            self.clear()
        value = self[key] = self.ask(key)
        return value
