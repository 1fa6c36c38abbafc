"""Which cores the farm gets and which the load generators: different ones where there are two or more."""

from __future__ import annotations

import os


def shared_out(
    usable: set[int] | None = None, *, share: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(farm's cores, generators' cores); both are all of them where there is only one.

    Generators get a quarter, at least one: FACTS puts one generator core against about three of a farm.

    Args:
        usable: the cores this process may use; asked of the system by default.
        share: the farm may use the generators' cores as well.
    """
    cores = sorted(os.sched_getaffinity(0) if usable is None else usable)
    if len(cores) < 2:
        return tuple(cores), tuple(cores)
    generators = max(1, len(cores) // 4)
    return tuple(cores if share else cores[:-generators]), tuple(cores[-generators:])
