"""This Windows machine's own processes, by psutil: of processes, unlike of disks, it is exact there."""

from __future__ import annotations

from collections.abc import Mapping

import psutil

from pinchpoint_collectors.processes import Process
from pinchpoint_collectors.record import NotMeasured, Processes
from pinchpoint_collectors.windows.processes import PER_S, plain, with_true_parents

_ASKED = ["pid", "ppid", "name", "create_time", "cpu_times", "num_threads"]


def table() -> dict[int, Process]:
    """Every process that this user may ask for its times, by its id; CPU time and starts in 100 ns."""
    found = {}
    for one in psutil.process_iter(_ASKED):
        said = one.info
        times, begun = said["cpu_times"], said["create_time"]
        if times is None or begun is None or not said["pid"]:  # another's, or the idle one
            continue
        own = round((times.user + times.system) * PER_S)
        found[one.pid] = Process(
            one.pid,
            said["ppid"] or 0,
            plain(said["name"] or ""),
            round(begun * PER_S),
            said["num_threads"] or 1,
            own,
            0,
        )
    return with_true_parents(found)


def roots(wanted: Processes, there: Mapping[int, Process]) -> list[Process]:
    """Whom a tier begins with: by id, by the program's name, or by the port somebody listens on."""
    if wanted.pids:
        return [there[pid] for pid in wanted.pids if pid in there]
    if wanted.names:
        names = set(map(plain, wanted.names))
        return [one for one in there.values() if one.name in names]
    listening = {
        each.pid
        for each in psutil.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == wanted.port
    }
    return [there[pid] for pid in listening if pid is not None and pid in there]


def missing(tier: str, wanted: Processes) -> NotMeasured:
    """What is not measured where no process of a tier is there, or its user may not see it."""
    if wanted.pids:
        sought = f"id {', '.join(map(str, wanted.pids))}"
    elif wanted.names:
        sought = f"name {', '.join(wanted.names)}"
    else:
        sought = f"TCP port {wanted.port}"
    return NotMeasured(
        "cpu.busy_ratio",
        f"tier:{tier}",
        f"no process with the {sought} is seen",
        "start it before the run, or run Pinchpoint as an administrator: others' processes may be hidden",
    )
