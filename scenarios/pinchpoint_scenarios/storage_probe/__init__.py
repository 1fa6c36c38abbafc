"""Storage probes: the I/O that a suite sends to one disk, its tool, and the tool's results.

A *suite* is a list of *jobs*; a job is one call of a tool (fio, dd, hdparm, bonnie++) and fills one or more
*cells*; a cell is one figure of the suite's table. The tools do all I/O; running jobs, storing and judging
results are in other packages.
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
