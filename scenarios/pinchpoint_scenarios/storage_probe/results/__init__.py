"""Reads result files of storage tools. Each file format has a module.

``record.py`` defines the contract. A new format needs a module and an entry here.
"""

from __future__ import annotations

from pinchpoint_collectors.common.names import by_name

from .bonnie import BonnieCsv
from .crystaldiskmark import CrystalDiskMark
from .diskspd import DiskSpdXml
from .fio import FioJson
from .iometer import IometerCsv
from .record import CellResult, ResultFile, ResultKind

RESULTS: dict[str, ResultKind] = by_name(
    "results", (DiskSpdXml(), CrystalDiskMark(), IometerCsv(), FioJson(), BonnieCsv())
)


def recognised(head: str) -> ResultKind | None:
    """Return the kind of a result file from the start of its text; None if the format is unknown."""
    return next((kind for kind in RESULTS.values() if kind.recognises(head)), None)


__all__ = ["RESULTS", "CellResult", "ResultFile", "ResultKind", "recognised"]
