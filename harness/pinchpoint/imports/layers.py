"""Devices that lie on others (LVM, RAID, multipath, loop): they show their disks' I/O once more.

Foreign files do not say what lies on what, only names do. Counted twice, one slow disk would be two suspects.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_WHOLE = re.compile(r"(sd|vd|xvd|hd|dasd)[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+|d?rbd\d+|dev(8|259)-\d+")
"""How Linux names a machine's own disks; sar may name them by their numbers."""
_SHOWN = 5
"""So many names are shown where there may be hundreds."""


def counted_once(disks: Collection[str], named: Collection[str]) -> set[str]:
    """The disks of a Linux host that are to be judged, each I/O on one of them.

    Args:
        disks: all that a file has.
        named: those whose role somebody said. Where one of them lies on others, only these are.
    """
    whole = {disk for disk in disks if _WHOLE.fullmatch(disk)}
    if not whole or whole == set(disks):
        return set(disks)
    return set(named) if set(named) - whole else whole


def left_out_words(host: str, left: Sequence[str]) -> str:
    """What a reader must know of those that are not."""
    shown = ", ".join([*left[:_SHOWN], *(["..."] if len(left) > _SHOWN else [])])
    return (
        f"{host}: {shown}: left out, as what lies on other disks (LVM, RAID) shows their I/O once more; "
        f"--disk {host}:{left[0]}=sql.log takes one in, and then those alone that --disk names"
    )
