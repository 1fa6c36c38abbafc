"""A folder as a content source: local, mounted, or an SMB share.

Access to a local file is defined by the permissions of its owner, its group and all others, and by the
entries of a POSIX access list.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from ...contract import Endpoint
from ..call_thread import CallThread
from ..failures import Failure, Skipped
from ..http import LARGEST_BYTES
from ..params import FullCrawlParams, SourceParams
from ..politeness import RequestLimits
from .contract import Changes, Fetched, Grant, Item, PoliteSource, Source
from .share import check_share, is_share

_ATTRIBUTE = "system.posix_acl_access"
_HEAD_BYTES = 4
_ENTRY = struct.Struct("<HHI")
_NAMED = {0x02: "uid", 0x08: "gid"}  # values in acl(5): ACL_USER, ACL_GROUP
_OWNING_GROUP, _MASK = 0x04, 0x10


def grants(descriptor: int, status: os.stat_result) -> tuple[Grant, ...]:
    """Return the access list of an open file, with user and group ids, because names differ between hosts.

    If there is an access list, the permissions of the group in the mode are its mask. Rights outside the mask
    are left out.
    """
    mode = status.st_mode
    entries = _entries(descriptor)
    mask = next((bits for tag, bits, _ in entries if tag == _MASK), 0o7)
    group = next((bits for tag, bits, _ in entries if tag == _OWNING_GROUP), (mode & stat.S_IRWXG) >> 3)
    result = [
        Grant(f"uid:{status.st_uid}", _rights((mode & stat.S_IRWXU) >> 6)),
        Grant(f"gid:{status.st_gid}", _rights(group & mask)),
        *(
            Grant(f"{_NAMED[tag]}:{number}", _rights(bits & mask))
            for tag, bits, number in entries
            if tag in _NAMED
        ),
        Grant("other", _rights(mode & stat.S_IRWXO)),
    ]
    return tuple(grant for grant in result if grant.rights != "---")


def _entries(descriptor: int) -> list[tuple[int, int, int]]:
    """Yield tag, permissions and id of each entry of the access list; none if there is no list."""
    if not hasattr(os, "getxattr"):
        return []
    try:
        value = os.getxattr(descriptor, _ATTRIBUTE)
    except OSError:  # the file has no list of its own, or the file system has no lists
        return []
    rest = value[_HEAD_BYTES : len(value) - (len(value) - _HEAD_BYTES) % _ENTRY.size]
    return [(tag, bits, number) for tag, bits, number in _ENTRY.iter_unpack(rest)]


def _rights(bits: int) -> str:
    return "".join(letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))


_CHUNK_BYTES = 2**20
_KINDS = {
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_found",
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.ETIMEDOUT: "timeout",
    errno.ESTALE: "connection_lost",
    errno.EIO: "io_error",
}
_PERMANENT = frozenset({"not_found", "permission"})
_SYMBOLIC_LINK = "symbolic link"
_SPECIAL = "not a regular file"


class FileRepository:
    """A folder or share as one process sees it (see ``Repository``)."""

    def __init__(self, endpoint: Endpoint, source: SourceParams, params: FullCrawlParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._access = source.access
        self._pace = RequestLimits(source.delay or 0.0, source.per_host)
        if is_share(endpoint):
            check_share(endpoint)

    def connect(self) -> Source:
        if is_share(self._endpoint):
            # Imported late: the library takes a tenth of a second to load.
            from .smb import ShareSource  # noqa: PLC0415 - see above

            return ShareSource(self._endpoint, self._params.timeout_s, self._pace, access=self._access)
        return FilesSource(self._endpoint, self._params, self._pace, access=self._access)

    def pause_s(self) -> float:
        return self._pace.pause_s()


class FilesSource(PoliteSource):
    """A folder as a source. Every directory is a container. Names are bytes, percent-encoded in URLs.

    The kernel waits for a file system, so calls run in a thread. A slow disk or mount then delays one session
    and not all sessions of the process.

    Args:
        endpoint: endpoint whose URL is the folder, as a path or as ``file://``.
        params: parameters of the crawl; ``timeout_s`` limits the reading of one file.
        pace: request limits of the folder.
        access: whether owner, group and permissions are read.
    """

    def __init__(
        self, endpoint: Endpoint, params: FullCrawlParams, pace: RequestLimits, *, access: bool
    ) -> None:
        super().__init__(pace)
        self._access = access
        given = endpoint.url
        self._root = _path(given) if given.startswith("file://") else os.fsencode(given)
        self._timeout_s = params.timeout_s
        self._call_thread = CallThread()

    def check(self) -> Mapping[str, Any]:
        """Check that the folder can be listed."""
        try:
            with os.scandir(self._root) as entries:
                next(entries, None)
        except OSError as error:
            raise _failure(error) from error
        return {"kind": "files", "path": os.fsdecode(self._root)}

    def root(self) -> Item:
        """Return the folder itself."""
        return Item("container", _url(self._root))

    def enumerate(self, container: Item) -> Sequence[Item]:
        """Return the entries of a directory, sorted by name.

        Links and devices become documents, which are skipped later.
        """
        return self._call_thread.call(lambda: self._listed(_path(container.url)))

    def _listed(self, path: bytes) -> Sequence[Item]:
        try:
            with os.scandir(path) as entries:
                result = [_item(path, entry) for entry in sorted(entries, key=lambda entry: entry.name)]
        except OSError as error:
            raise _failure(error) from error
        return [item for item in result if item is not None]

    def fetch(self, document: Item) -> Fetched:
        """Read a regular file. Never follows a link or waits for a pipe."""
        if document.detail:
            raise Skipped(document.detail)
        return self._call_thread.call(lambda: self._read(document))

    def _read(self, document: Item) -> Fetched:
        deadline = time.monotonic() + self._timeout_s
        start_ns = time.perf_counter_ns()
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(_path(document.url), flags)
        except OSError as error:
            if error.errno == errno.ELOOP:  # it became a link after the enumeration
                raise Skipped(_SYMBOLIC_LINK) from error
            raise _failure(error) from error
        try:
            status = os.fstat(descriptor)
            content = _content(descriptor, status, deadline)
            end_ns = time.perf_counter_ns()
            access = grants(descriptor, status) if self._access else None
            return Fetched(content, start_ns, end_ns, version=_version(status), access=access)
        except OSError as error:
            raise _failure(error) from error
        finally:
            os.close(descriptor)

    def token(self) -> str | None:
        """Return None: a folder has no change log, and versions show changes."""
        return None

    def changes(self, since: str) -> Changes:
        """Raises ``Failure``: not supported."""
        raise Failure("not_supported", f"a folder keeps no change log; asked since {since}", permanent=True)

    def close(self) -> None:
        """Let the thread end."""
        self._call_thread.close()


def _url(path: bytes) -> str:
    return "file://" + quote_from_bytes(path)


def _path(url: str) -> bytes:
    return unquote_to_bytes(urlsplit(url).path)


def _item(folder: bytes, entry: os.DirEntry[bytes]) -> Item | None:
    """Return one entry of a folder; None if it disappeared while the folder was read."""
    url = _url(folder.rstrip(b"/") + b"/" + entry.name)
    if entry.is_symlink():
        return Item("document", url, _SYMBOLIC_LINK)
    if entry.is_dir(follow_symlinks=False):
        return Item("container", url)
    if not entry.is_file(follow_symlinks=False):
        return Item("document", url, _SPECIAL)
    try:
        return Item("document", url, version=_version(entry.stat(follow_symlinks=False)))
    except FileNotFoundError:
        return None


def _version(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"


def _content(descriptor: int, status: os.stat_result, deadline: float) -> bytes:
    if not stat.S_ISREG(status.st_mode):
        raise Skipped(_SPECIAL)
    parts = []
    size = 0
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST_BYTES:
            raise Skipped(f"larger than {LARGEST_BYTES // 2**20} MiB")
        if time.monotonic() > deadline:
            raise Failure("timeout", "the file could not be read in time")
    return b"".join(parts)


def _failure(error: OSError) -> Failure:
    code = error.errno or 0
    kind = _KINDS.get(code) or errno.errorcode.get(code, "os_error").lower()
    return Failure(kind, error.strerror or "", permanent=kind in _PERMANENT)
