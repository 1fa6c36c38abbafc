"""A recorded host: a database server with LVM, RAID, multipath, btrfs and a loop device.

The text is made from /proc and /sys of such machines, in the form that loop.sh prints.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from pinchpoint_collectors.linux_over_ssh.script import RECEIVE

_FACTS = """\
/proc/sys/kernel/arch:x86_64
/proc/cpuinfo:processor	: 0
/proc/cpuinfo:model name	: Intel(R) Xeon(R) Platinum 8272CL CPU @ 2.60GHz
/proc/cpuinfo:flags		: fpu vme sse hypervisor lahf_lm
/proc/meminfo:MemTotal:       16384000 kB
/proc/meminfo:MemAvailable:    8192000 kB
/proc/meminfo:SwapTotal:       2048000 kB
/proc/1/status:Name:	systemd
/proc/1/status:Cpus_allowed_list:	0-2,4
/proc/sys/kernel/hostname:sql1
/proc/sys/kernel/osrelease:6.1.0-18-amd64
/proc/sys/kernel/random/boot_id:7c3b7b8e-2a1f-4f0e-9f59-0c1df0a7a6c1
/etc/os-release:PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
/etc/os-release:ID=debian
/sys/devices/system/clocksource/clocksource0/current_clocksource:hyperv_clocksource_tsc_page
/sys/class/dmi/id/sys_vendor:Microsoft Corporation
/sys/class/dmi/id/product_name:Virtual Machine
/sys/class/net/eth0/operstate:up
/sys/class/net/eth0/speed:10000
/sys/class/net/lo/operstate:unknown
/sys/class/net/docker0/operstate:down
/proc/self/mountinfo:27 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,discard
/proc/self/mountinfo:30 27 253:0 / /var/lib/postgresql rw,noatime - xfs /dev/mapper/vg0-data rw,attr2
/proc/self/mountinfo:31 27 9:0 / /wal rw,relatime - ext4 /dev/md0 rw
/proc/self/mountinfo:32 27 253:2 / /san rw,relatime - xfs /dev/mapper/mpatha rw
/proc/self/mountinfo:33 27 0:41 /@content /content rw,relatime - btrfs /dev/sdg1 rw,subvol=/@content
/proc/self/mountinfo:34 27 0:42 / /tmp rw - tmpfs tmpfs rw
/proc/self/mountinfo:35 27 0:43 / /share rw - nfs4 nas:/share rw
/proc/self/mountinfo:36 27 7:0 / /image rw - ext4 /dev/loop0 rw
"""
_DISKS = {
    "sda": ("8:0", {"size": "62914560", "queue/rotational": "1", "queue/scheduler": "[mq-deadline] none"}),
    "sdb": (
        "8:16",
        {"size": "2097152", "device/model": "Virtual Disk    ", "queue/write_cache": "write back"},
    ),
    "sdc": ("8:32", {"size": "2097152"}),
    "sdd": ("8:48", {"size": "2097152"}),
    "sde": ("8:64", {"size": "4194304"}),
    "sdf": ("8:80", {"size": "4194304"}),
    "sdg": ("8:96", {"size": "4194304"}),
    "sr0": ("11:0", {"size": "0"}),
    "md0": ("9:0", {"size": "4190208"}),
    "dm-0": ("253:0", {"size": "4190208"}),
    "dm-2": ("253:2", {"size": "4194304"}),
    "loop0": ("7:0", {"size": "2048", "loop/backing_file": "/var/lib/postgresql/image"}),
}
_PARTITIONS = {"sda1": ("sda", "8:1"), "sdb1": ("sdb", "8:17"), "sdg1": ("sdg", "8:97")}
_SLAVES = {"dm-0": ("sdb1", "sdc"), "md0": ("sdc", "sdd"), "dm-2": ("sde", "sdf")}
_PLACES = (
    ("path", "/var/lib/postgresql/16/main", "/var/lib/postgresql"),
    ("path", "/wal", "/wal"),
    ("path", "/san/data", "/san/data"),
    ("path", "/content", "/content"),
    ("path", "/tmp", "/tmp"),
    ("path", "/share", "/share"),
    ("path", "/image", "/image"),
    ("none", "", "/no/such"),
    ("device", "/dev/dm-0", "/dev/mapper/vg0-data"),
    ("device", "/dev/sdg1", "/dev/sdg1"),
    ("path", "/var/lib/postgresql/image", "/var/lib/postgresql/image"),
)


def hello(*more: str, fractions: str = "yes", nanoseconds: str = "yes") -> str:
    """Return the text with further lines of a test."""
    lines = [
        "Welcome to sql1. Authorised use only.",
        "#pinchpoint",
        f"fractions {fractions}",
        f"nanoseconds {nanoseconds}",
        "page_bytes 4096",
        "ticks_per_s 100",
        *_FACTS.splitlines(),
    ]
    for name, (number, files) in _DISKS.items():
        lines += [f"/sys/block/{name}/{file}:{content}" for file, content in files.items()]
        lines.append(f"/sys/class/block/{name}/dev:{number}")
        virtual = name.startswith(("md", "dm-", "loop"))
        where = "virtual" if virtual else "pci0000:00/host0/target0:0:0"
        lines.append(f"link /sys/class/block/{name} ../../devices/{where}/block/{name}")
    for name, (disk, number) in _PARTITIONS.items():
        lines.append(f"/sys/class/block/{name}/dev:{number}")
        lines.append(f"/sys/class/block/{name}/partition:1")
        lines.append(f"link /sys/class/block/{name} ../../devices/pci0000:00/host0/block/{disk}/{name}")
    for name, slaves in _SLAVES.items():
        lines += [f"name /sys/block/{name}/slaves/{slave}" for slave in slaves]
    lines += ["\t".join(("place", kind, real, given)) for kind, real, given in _PLACES]
    return "\n".join([*lines, *more])


def answered(said: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a local shell, as sshd does, and return the result."""
    return subprocess.run(
        ["sh", "-c", RECEIVE],
        input=said,
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        start_new_session=True,
    )
