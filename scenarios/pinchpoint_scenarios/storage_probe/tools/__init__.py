"""The programs that do a probe's I/O, by the name a job gives."""

from __future__ import annotations

from pinchpoint_collectors.common.names import by_name

from ..tool import Tool
from .bonnie import Bonnie
from .dd import Dd
from .fio import Fio
from .hdparm import Hdparm

TOOLS: dict[str, Tool] = by_name("tools", (Fio(), Dd(), Hdparm(), Bonnie()))
