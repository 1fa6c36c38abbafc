"""Collects facts about a machine for the manifest."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from pinchpoint_collectors.linux import cloud, meminfo
from pinchpoint_collectors.linux.files import HERE, HostFiles


def usable_cores(files: HostFiles = HERE) -> list[int]:
    """Return the cores of the machine; in a container those of its first process.

    The affinity of this process is not used, because load and collectors may be pinned to separate cores.
    Outside of a container the affinity of the first process is not used either: `isolcpus` and systemd's
    `CPUAffinity` keep it off the cores of a database.
    """
    online = core_list(files.fact("/sys/devices/system/cpu/online") or "")
    if online and _is_whole(files):
        return online
    status = files.fact("/proc/1/status") or ""  # an ordinary user may not see it (hidepid)
    return allowed_cores(status) or online


def _is_whole(files: HostFiles) -> bool:
    """Return whether this is the machine and not a container, which shows no kernel threads."""
    second = files.fact("/proc/2/status") or ""
    return bool(
        re.search(r"^Name:\s*kthreadd$", second, re.MULTILINE)
        and re.search(r"^PPid:\s*0$", second, re.MULTILINE)
    )


def core_list(text: str) -> list[int]:
    """Return the cores in a list of the kernel (``0-3,8``), in order."""
    cores: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cores += range(int(first), int(last or first) + 1)
    return cores


def allowed_cores(status: str) -> list[int]:
    """Return the cores that a process may use, from its /proc/PID/status; none if the file lacks them."""
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return core_list(allowed[1]) if allowed else []


def machine_id(files: HostFiles = HERE) -> str | None:
    """Return an id that everything on this kernel shares, including containers. It changes at a reboot."""
    return files.fact("/proc/sys/kernel/random/boot_id")


def machine_facts(files: HostFiles = HERE) -> dict[str, Any]:
    """Return facts that all hosts on this machine share (keys: docs/metrics.md, "Inventory")."""
    memory = meminfo.parse(files.fact("/proc/meminfo") or "")
    cores = usable_cores(files)
    return {
        "machine_id": machine_id(files),
        "hostname": files.fact("/proc/sys/kernel/hostname"),
        "cpu_model": _cpu_model(files),
        "cores": len(cores),
        "usable_cores": cores,
        "memory_bytes": memory["MemTotal"],
        "swap_bytes": memory.get("SwapTotal", 0),
        "kernel": files.fact("/proc/sys/kernel/osrelease"),
        "os": _os_name(files),
        "virtualisation": _virtualisation(files),
        "clock_source": files.fact("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        **cloud.from_firmware(files),
    }


def interfaces(files: HostFiles = HERE) -> dict[str, float | None]:
    """Return the network interfaces that are not down, with their speed in bytes/s (None: not reported)."""
    speeds = {}
    for name in files.names("/sys/class/net"):
        entry = str(PurePosixPath("/sys/class/net") / name)
        state = files.fact(f"{entry}/operstate")
        if state is not None and state != "down":
            megabits = int(files.fact(f"{entry}/speed") or -1)  # a virtual interface reports -1 or EINVAL
            speeds[name] = megabits * 1e6 / 8 if megabits > 0 else None
    return speeds


def _cpu_model(files: HostFiles) -> str | None:
    """Return the model in /proc/cpuinfo; on ARM that of the device tree, or only the kind of processor."""
    named = re.search(r"^model name\s*:\s*(.+)$", files.fact("/proc/cpuinfo") or "", re.MULTILINE)
    if named:
        return named[1].strip()
    model = files.fact("/sys/firmware/devicetree/base/model") or files.fact("/proc/sys/kernel/arch")
    return model.rstrip("\0") if model else None


def _os_name(files: HostFiles) -> str:
    text = files.fact("/etc/os-release") or files.fact("/usr/lib/os-release") or ""
    named = re.search(r"^PRETTY_NAME=([\"']?)(.*)\1$", text, re.MULTILINE)
    return named[2] if named else "Linux"  # no os-release file: only the kernel is known


def _virtualisation(files: HostFiles) -> str | None:
    """Return the vendor of the virtual machine, from its firmware; None on real hardware."""
    if " hypervisor" not in (files.fact("/proc/cpuinfo") or ""):
        return None
    names = [files.fact(f"/sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")]
    return " ".join(name for name in names if name) or "a hypervisor of unknown kind"
