"""Lists of cores as the kernel writes them: ``0-3,8``."""

from __future__ import annotations


def parse(text: str) -> list[int]:
    """The core numbers, ascending; an empty text is no core."""
    cores: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cores.extend(range(int(first), int(last or first) + 1))
    return sorted(cores)
