"""Chance that can be had again: what a script drew by chance it draws again when it is made again."""

from __future__ import annotations

from random import Random


class Chance:
    """A session's chance, with a memory of the operation that is going on.

    Args:
        random: the session's generator, seeded from the plan's seed and the session's number.
    """

    def __init__(self, random: Random) -> None:
        self._draw = random.random
        self._drawn: list[float] = []
        self._at = 0

    def random(self) -> float:
        """A number from 0 up to, but without, 1."""
        at = self._at
        self._at = at + 1
        if at < len(self._drawn):
            return self._drawn[at]
        number = self._draw()
        self._drawn.append(number)
        return number

    def begin(self) -> None:
        """A new operation begins: what was drawn before is forgotten."""
        self._drawn.clear()
        self._at = 0

    def again(self) -> None:
        """The same operation is made again, with the same numbers."""
        self._at = 0
