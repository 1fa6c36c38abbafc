"""The programs that do a probe's I/O, by the name a job gives."""

from __future__ import annotations

from collections.abc import Iterable

from ..tool import Tool
from .bonnie import Bonnie
from .dd import Dd
from .fio import Fio
from .hdparm import Hdparm


def table(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Name -> tool; two of one name raise ``ValueError``."""
    found: dict[str, Tool] = {}
    for each in tools:
        if each.name in found:
            raise ValueError(f"two tools are named {each.name!r}")
        found[each.name] = each
    return found


TOOLS: dict[str, Tool] = table((Fio(), Dd(), Hdparm(), Bonnie()))
