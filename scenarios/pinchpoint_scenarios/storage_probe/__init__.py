"""Storage probes: what I/O a suite sends to one disk, by which tool, and what that tool said.

A *suite* is a list of *jobs*; a job is one call of a tool (fio, dd, hdparm, bonnie++) and fills one or more
*cells*; a cell is one figure of the suite's table. No I/O is done by this package itself: the tools do it.
Who runs the jobs, keeps what they measured and judges it lives elsewhere.
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
