"""A farm under load as a closed network of queues: the one model behind ``what-if`` and ``probe --predict``.

``network.py`` (users who come round, stations, and where they settle), ``commit.py`` (group commit at a log),
``curve.py`` (latency over what is outstanding). Numbers only: where stations come from is not known here; a
run, the catalogue and a probe give them (``what_if/parts.py``).
"""

from pinchpoint.queueing.commit import Sessions, flush_of
from pinchpoint.queueing.curve import Curve
from pinchpoint.queueing.network import (
    OPEN_USERS,
    Commit,
    Model,
    Queue,
    Solution,
    Station,
    Users,
    fitted,
    is_open,
    solve,
)

__all__ = [
    "OPEN_USERS",
    "Commit",
    "Curve",
    "Model",
    "Queue",
    "Sessions",
    "Solution",
    "Station",
    "Users",
    "fitted",
    "flush_of",
    "is_open",
    "solve",
]
