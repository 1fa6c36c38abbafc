"""/proc/PID/cgroup and the CPU caps of control groups, versions 1 and 2."""

from __future__ import annotations


def parse(text: str) -> dict[str, str]:
    """The group's path by controller (version 1), and under ``""`` the path of version 2's tree."""
    paths = {}
    for line in text.splitlines():
        _number, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def cap_cores(cpu_max: str) -> float | None:
    """Cores a group may use, from version 2's ``cpu.max`` (``50000 100000``); None where it is ``max``."""
    quota, _, period = cpu_max.strip().partition(" ")
    return None if quota == "max" else int(quota) / int(period or 100_000)


def cap_cores_v1(quota_us: str, period_us: str) -> float | None:
    """Cores a group may use, from ``cpu.cfs_quota_us`` (-1: None) and ``cpu.cfs_period_us``."""
    return None if int(quota_us) < 0 else int(quota_us) / int(period_us)
