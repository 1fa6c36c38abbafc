"""Results that storage tools have written to files, whoever ran them: one format a file.

``record.py`` is the contract; a new format is a file, and one entry here.
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
    """The kind of a file that begins so; None: of none of these."""
    return next((kind for kind in RESULTS.values() if kind.recognises(head)), None)


__all__ = ["RESULTS", "CellResult", "ResultFile", "ResultKind", "recognised"]
