"""Lists of cores as the kernel writes them: ``0-3,8``."""

from __future__ import annotations


def parse(text: str) -> list[int]:
    """The cores of a list, in order."""
    cores: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cores += range(int(first), int(last or first) + 1)
    return cores
