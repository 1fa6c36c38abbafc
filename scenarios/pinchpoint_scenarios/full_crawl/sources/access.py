"""Who may do what with a local file: owner, group, others, and the entries of a POSIX access list."""

from __future__ import annotations

import os
import stat
import struct

from .contract import Grant

_ATTRIBUTE = "system.posix_acl_access"
_HEAD_BYTES = 4
_ENTRY = struct.Struct("<HHI")
_NAMED = {0x02: "uid", 0x08: "gid"}  # acl(5): ACL_USER, ACL_GROUP
_OWNING_GROUP, _MASK = 0x04, 0x10


def grants(descriptor: int, status: os.stat_result) -> tuple[Grant, ...]:
    """The access list of an open file, by number, for names differ from host to host.

    The group's permissions in the mode are the mask where there is an access list: what it hides is left out.
    """
    mode = status.st_mode
    entries = _entries(descriptor)
    mask = next((bits for tag, bits, _ in entries if tag == _MASK), 0o7)
    group = next((bits for tag, bits, _ in entries if tag == _OWNING_GROUP), (mode & stat.S_IRWXG) >> 3)
    found = [
        Grant(f"uid:{status.st_uid}", _rights((mode & stat.S_IRWXU) >> 6)),
        Grant(f"gid:{status.st_gid}", _rights(group & mask)),
        *(
            Grant(f"{_NAMED[tag]}:{number}", _rights(bits & mask))
            for tag, bits, number in entries
            if tag in _NAMED
        ),
        Grant("other", _rights(mode & stat.S_IRWXO)),
    ]
    return tuple(grant for grant in found if grant.rights != "---")


def _entries(descriptor: int) -> list[tuple[int, int, int]]:
    """Tag, permissions and number of each entry of the access list; none where there is no list."""
    if not hasattr(os, "getxattr"):
        return []
    try:
        value = os.getxattr(descriptor, _ATTRIBUTE)
    except OSError:  # no list of its own, or a file system without
        return []
    rest = value[_HEAD_BYTES : len(value) - (len(value) - _HEAD_BYTES) % _ENTRY.size]
    return [(tag, bits, number) for tag, bits, number in _ENTRY.iter_unpack(rest)]


def _rights(bits: int) -> str:
    return "".join(letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
