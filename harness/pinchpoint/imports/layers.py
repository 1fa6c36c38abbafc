"""Finds devices that lie on others (LVM, RAID, multipath, loop) and repeat their I/O.

Foreign files do not say what lies on what, only names do. Counted twice, one slow disk would be two suspects.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_WHOLE = re.compile(r"(sd|vd|xvd|hd|dasd)[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+|d?rbd\d+")
"""How Linux names a machine's own disks."""
_NUMBERED = re.compile(r"dev(\d+)-(\d+)")
"""How sar may name them: by the kernel's numbers (its ``devices.txt``), the driver's and the device's."""
_STEP = 16
"""This many numbers a disk of these has, itself first and then its partitions."""
_DISKS = frozenset({8, *range(65, 72), *range(128, 136), 202})
"""Drivers of disks: sd, xvd."""
_MANY = 259
"""Major numbers from here on are assigned dynamically, as NVMe's are: disks and partitions share one."""
_GIVEN_OUT = range(234, 255)
"""Numbers that drivers get as they are loaded: virtio's disks, and what device mapper makes of others."""
_ON_OTHERS = frozenset({7, 9})
"""Drivers of what lies on others: loop, md."""
_SHOWN = 5
"""At most this many of hundreds of names are shown."""


def counted_once(disks: Collection[str], named: Collection[str]) -> set[str]:
    """The disks of a Linux host that are to be judged, each I/O on one of them.

    Args:
        disks: all that a file has.
        named: those whose role was given. Where one of them lies on others, only these are.
    """
    numbers = _numbers(disks)
    whole = {disk for disk in disks if _WHOLE.fullmatch(disk) or _is_disk(disk, numbers)}
    if not whole or whole == set(disks):
        return set(disks)
    return set(named) if set(named) - whole else whole


def left_out_words(host: str, left: Sequence[str]) -> str:
    """A warning about the devices that are left out."""
    unknown = [disk for disk in left if (number := _number(disk)) and not _is_known(number[0])]
    uncertain = f" (the number does not show whether {_shown(unknown)} does)" if unknown else ""
    return (
        f"{host}: {_shown(left)} ignored: virtual devices (loop, LVM, RAID) repeat the I/O of the disks "
        f"below{uncertain}. To use one, name every disk to use: --disk {host}:{(unknown or left)[0]}=sql.log"
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])


def _number(disk: str) -> tuple[int, int] | None:
    """The driver's number and the device's, of a disk that is named by them."""
    match = _NUMBERED.fullmatch(disk)
    return (int(match[1]), int(match[2])) if match else None


def _numbers(disks: Collection[str]) -> dict[int, set[int]]:
    """Each driver's devices."""
    numbers: dict[int, set[int]] = {}
    for disk in disks:
        if number := _number(disk):
            numbers.setdefault(number[0], set()).add(number[1])
    return numbers


def _is_disk(disk: str, numbers: dict[int, set[int]]) -> bool:
    number = _number(disk)
    if number is None:
        return False
    driver, device = number
    if driver in _GIVEN_OUT:
        # Device mapper counts its devices one by one; several that are 16 apart are virtio's disks.
        return len(numbers[driver]) > 1 and all(each % _STEP == 0 for each in numbers[driver])
    return driver == _MANY or (driver in _DISKS and device % _STEP == 0)


def _is_known(driver: int) -> bool:
    return driver in _DISKS or driver in _ON_OTHERS
