"""Facts about this machine, for the manifest."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from pinchpoint_collectors.linux.files import read_fact, read_text
from pinchpoint_collectors.proc import meminfo


def machine_id() -> str:
    """The same for everything that runs under this kernel, containers included; another after a reboot."""
    return read_text("/proc/sys/kernel/random/boot_id").strip()


def usable_cores() -> list[int]:
    """The cores the first process may use: the machine's, or its container's.

    Not our own affinity: whoever keeps load and watching apart may have put us on one core.
    """
    return sorted(os.sched_getaffinity(1))


def machine_facts() -> dict[str, Any]:
    """What is the same for every host that is this machine (keys: collectors/README.md, "Inventory")."""
    memory = meminfo.parse(read_text("/proc/meminfo"))
    cores = usable_cores()
    clock = read_fact("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return {
        "machine_id": machine_id(),
        "hostname": platform.node(),
        "cpu_model": _cpu_model(),
        "cores": len(cores),
        "usable_cores": cores,
        "memory_bytes": memory["MemTotal"],
        "swap_bytes": memory.get("SwapTotal", 0),
        "kernel": platform.release(),
        "os": _os_name(),
        "virtualisation": _virtualisation(),
        "clock_source": clock,
    }


def interfaces() -> dict[str, float | None]:
    """The network interfaces that are not down, with their speed in bytes/s (None: they tell none)."""
    speeds = {}
    for entry in sorted(Path("/sys/class/net").glob("*")):
        if entry.is_dir() and read_fact(f"{entry}/operstate") != "down":
            megabits = int(read_fact(f"{entry}/speed") or -1)  # a virtual interface says -1 or EINVAL
            speeds[entry.name] = megabits * 1e6 / 8 if megabits > 0 else None
    return speeds


def _cpu_model() -> str:
    """The name in /proc/cpuinfo; ARM machines have it in the device tree or not at all."""
    for line in read_text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return (read_fact("/sys/firmware/devicetree/base/model") or platform.machine()).rstrip("\0")


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:  # no os-release file: the kernel is all there is to say
        return platform.system()


def _virtualisation() -> str | None:
    """Who made the virtual machine, as its firmware says; None on real hardware."""
    if " hypervisor" not in read_text("/proc/cpuinfo"):
        return None
    dmi = Path("/sys/class/dmi/id")
    names = [read_fact(str(dmi / name)) for name in ("sys_vendor", "product_name")]
    return " ".join(name for name in names if name) or "a hypervisor that does not say its name"
