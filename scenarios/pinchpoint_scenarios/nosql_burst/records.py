"""The records nosql-burst writes: the same ones for the same seed and session."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random


def records(
    seed: int, session: int, *, prefix: str, keys: int, fields: int, field_bytes: int
) -> Iterator[tuple[str, list[bytes]]]:
    """Endless records of one session: a key ``PREFIX<n>``, n in [0, keys) at random, and its fields."""
    random = Random(f"{seed}:{session}")  # noqa: S311 - workload, no secret
    while True:
        key = f"{prefix}{random.randrange(keys)}"
        block = random.randbytes(fields * field_bytes)
        yield key, [block[at : at + field_bytes] for at in range(0, len(block), field_bytes)]
