"""A cache for results of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ResultCache(dict[K, V]):
    """``memo[key]`` is ``function(key)``, computed once.

    A dictionary and no ``lru_cache``, because a page is a dozen links and each is looked up several times: in
    a loop a dictionary's look-up costs a third. When it is full it begins anew: what is needed comes back.

    Args:
        function: computes the values; exceptions are not kept.
        most: this many are kept.
    """

    def __init__(self, function: Callable[[K], V], most: int) -> None:
        super().__init__()
        self.ask = function
        """Finds a value out without keeping it."""
        self._most = most

    def __missing__(self, key: K) -> V:
        if len(self) >= self._most:
            self.clear()
        value = self[key] = self.ask(key)
        return value
