"""Lists the tools that do the I/O of a probe, by the name in a job."""

from __future__ import annotations

from pinchpoint_collectors.common.names import by_name

from ..tool import Tool
from .bonnie import Bonnie
from .dd import Dd
from .fio import Fio
from .hdparm import Hdparm

TOOLS: dict[str, Tool] = by_name("tools", (Fio(), Dd(), Hdparm(), Bonnie()))
