"""Defines storage probes: the I/O that a suite sends to one disk, the tool that does it, and the results.

A *suite* is a list of *jobs*. A job is one call of a tool (fio, dd, hdparm, bonnie++) and measures one or
more *cells*. A cell is one row of the suite's table. The tools do all I/O. Other packages run jobs, and store
and judge results.
"""

from .cell import Cell, CellFigures, CellSeries, Job, ProbePlace
from .suites import SUITES, Suite, suite
from .tool import Tool, ToolFailed, ToolMissing
from .tools import TOOLS

__all__ = [
    "SUITES",
    "TOOLS",
    "Cell",
    "CellFigures",
    "CellSeries",
    "Job",
    "ProbePlace",
    "Suite",
    "Tool",
    "ToolFailed",
    "ToolMissing",
    "suite",
]
