"""The exporters whose series are known: one line each."""

from __future__ import annotations

from collections.abc import Collection

from pinchpoint_collectors.exporters.means import Exporter
from pinchpoint_collectors.exporters.node import NODE
from pinchpoint_collectors.exporters.windows import WINDOWS

EXPORTERS: tuple[Exporter, ...] = (NODE, WINDOWS)


def whose(names: Collection[str]) -> Exporter | None:
    """The exporter to which the most of these series belong; None where none of them is one's."""
    counts = {each.name: len(each.names & set(names)) for each in EXPORTERS}
    best = max(EXPORTERS, key=lambda each: counts[each.name])
    return best if counts[best.name] else None
