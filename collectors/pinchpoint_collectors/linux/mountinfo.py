"""Parses /proc/PID/mountinfo: the mount table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple


class Mount(NamedTuple):
    """One mount. ``device`` is ``major:minor``, and ``root`` the mounted part of the file system."""

    device: str
    root: str
    mount_point: str
    options: str
    file_system: str
    source: str
    super_options: str


def parse(text: str) -> list[Mount]:
    """Return the mounts in file order. Of two mounts on one point, the later one hides the earlier one."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        _id, _parent, device, root, mount_point, options, *_tags = left.split(" ")
        file_system, source, super_options = right.split(" ", 2)
        mounts.append(
            Mount(
                device, _plain(root), _plain(mount_point), options, file_system, _plain(source), super_options
            )
        )
    return mounts


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """Return the mount of an absolute path without symbolic links; None if the list has no root."""
    above = {path, *map(str, PurePosixPath(path).parents)}
    result = None
    for mount in mounts:
        if mount.mount_point in above and (
            result is None or len(mount.mount_point) >= len(result.mount_point)
        ):
            result = mount
    return result


def _plain(text: str) -> str:
    r"""Undo the kernel's escapes of space, tab, newline and backslash (``\040``)."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
