"""An SMB share as a content source. It is accessed directly, without a mount."""

from __future__ import annotations

import logging
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import smbclient
from smbprotocol.exceptions import SMBException, SMBOSError, SMBResponseException
from smbprotocol.open import FilePipePrinterAccessMask, SMB2QueryInfoRequest, SMB2QueryInfoResponse
from smbprotocol.security_descriptor import AccessAllowedAce, AccessDeniedAce, AclPacket
from spnego.exceptions import SpnegoError

from ...contract import Endpoint
from ..failures import Failure, Skipped
from ..http import LARGEST_BYTES
from ..politeness import RequestLimits
from .contract import Changes, Fetched, Grant, Item, PoliteSource
from .share import check_share

T = TypeVar("T")

# The library's log about a reset connection is not needed, because a failure reports it.
logging.getLogger("smbprotocol").addHandler(logging.NullHandler())

_CHUNK_BYTES = 2**20
_CONNECT_TIMEOUT_S = 5.0
_LOG_OFF_S = 2.0
# values of SMB2_0_INFO_SECURITY; OWNER_ and DACL_SECURITY_INFORMATION
_SECURITY, _OWNER_AND_LIST = 3, 0x1 | 0x4
_LARGEST_LIST_BYTES = 65_535
_DESCRIPTOR = struct.Struct("<BBHIIII")  # MS-DTYP 2.4.6: offsets of owner, group, SACL, DACL after the flags
_KINDS = {
    0xC0000034: "not_found", 0xC000003A: "not_found", 0xC00000CC: "not_found", 0xC000000F: "not_found",
    0xC0000225: "not_found",
    0xC0000022: "permission", 0xC0000043: "sharing_violation",
    0xC000006D: "authentication", 0xC000006E: "authentication", 0xC0000071: "authentication",
    0xC0000072: "authentication", 0xC000015B: "authentication", 0xC0000234: "authentication",
    0xC000020C: "connection_lost", 0xC00000B5: "timeout",
}  # fmt: skip
_PERMANENT = frozenset({"not_found", "permission", "authentication"})


class ShareSource(PoliteSource):
    r"""One session's connection to a share. Every directory is a container; links are not followed.

    Args:
        endpoint: endpoint with the URL ``smb://HOST[:PORT]/SHARE[/PATH]`` and the options ``user``
            (``DOMAIN\user``) and ``password``; without them the login of this process is used (Kerberos).
        timeout_s: time limit in seconds of a request, and of reading one file.
        pace: request limits of the share.
        access: whether access lists are read.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float, pace: RequestLimits, *, access: bool) -> None:
        super().__init__(pace)
        self._share = check_share(endpoint)
        self._timeout_s = timeout_s
        self._access = access
        self._connections: dict[str, Any] = {}
        self._options = {
            "username": endpoint.options.get("user") or None,
            "password": endpoint.options.get("password") or None,
            "port": self._share.port,
            "connection_timeout": min(_CONNECT_TIMEOUT_S, timeout_s),
            "connection_cache": self._connections,
        }

    def check(self) -> Mapping[str, Any]:
        """Check that the folder can be listed."""

        def first() -> None:
            with smbclient.scandir(self._path(self.root().url), **self._options) as entries:
                next(entries, None)

        self._act(first)
        return {"kind": "files", "path": self.root().url}

    def root(self) -> Item:
        """Return the share, or the folder in it."""
        return Item("container", self._url(self._share.path))

    def enumerate(self, container: Item) -> Sequence[Item]:
        """Return the entries of a directory, sorted by name."""
        path, local = self._path(container.url), self._local(container.url)

        def listed() -> list[Item]:
            with smbclient.scandir(path, **self._options) as entries:
                return [self._item(local, entry) for entry in sorted(entries, key=lambda entry: entry.name)]

        return self._act(listed)

    def fetch(self, document: Item) -> Fetched:
        """Fetch a file with its access list."""
        if document.detail:
            raise Skipped(document.detail)
        path = self._path(document.url)

        def read() -> Fetched:
            mask = FilePipePrinterAccessMask
            wanted = mask.FILE_READ_DATA | mask.FILE_READ_ATTRIBUTES
            wanted |= mask.READ_CONTROL if self._access else 0
            start_ns = time.perf_counter_ns()
            with smbclient.open_file(
                path, mode="rb", buffering=0, share_access="rwd", desired_access=wanted, **self._options
            ) as file:
                content = _content(file)
                end_ns = time.perf_counter_ns()
                access = _grants(file.fd) if self._access else None
            return Fetched(content, start_ns, end_ns, version=document.version, access=access)

        return self._act(read)

    def token(self) -> str | None:
        """Return None: a share has no change log, and versions show changes."""
        return None

    def changes(self, since: str) -> Changes:
        """Raises ``Failure``: not supported."""
        raise Failure("not_supported", f"a share keeps no change log; asked since {since}", permanent=True)

    def close(self) -> None:
        """Log off and close the connection. A second call does nothing."""
        # A share that no longer answers is not waited for: ``_drop`` closes the connections.
        with self._limited(min(_LOG_OFF_S, self._timeout_s)):
            for connection in list(self._connections.values()):
                with suppress(SMBException, OSError, ValueError):
                    connection.disconnect()
        self._connections.clear()

    def _act(self, action: Callable[[], T]) -> T:
        """Run an action within the time limit. After a failure, the connection is closed."""
        with self._limited(self._timeout_s) as is_over:
            try:
                return action()
            except SMBResponseException as error:
                raise _failure(error.status, str(error)) from error
            except SMBOSError as error:
                raise _failure(error.ntstatus, error.strerror or "") from error
            except (SMBException, SpnegoError, OSError, ValueError) as error:
                connected = bool(self._connections)
                self._drop()
                if is_over():
                    raise Failure("timeout", "the share did not answer in time") from error
                if isinstance(error, SpnegoError):
                    raise Failure("authentication", str(error), permanent=True) from error
                raise Failure("connection_lost" if connected else "unreachable", str(error)) from error

    @contextmanager
    def _limited(self, within_s: float) -> Iterator[Callable[[], bool]]:
        """Close the connection at the time limit, which ends any wait, because the library has no limit."""
        over = threading.Event()

        def give_up() -> None:
            over.set()
            self._drop()

        timer = threading.Timer(within_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield over.is_set
        finally:
            timer.cancel()

    def _drop(self) -> None:
        for connection in list(self._connections.values()):
            with suppress(OSError):
                connection.transport.close()
        self._connections.clear()

    def _url(self, path: str) -> str:
        port = "" if self._share.port == 445 else f":{self._share.port}"
        return f"smb://{self._share.host}{port}/{quote(path, safe='/', errors='surrogatepass')}"

    def _local(self, url: str) -> str:
        return unquote(urlsplit(url).path, errors="surrogatepass").strip("/")

    def _path(self, url: str) -> str:
        inside = self._local(url).replace("/", "\\")
        return rf"\\{self._share.host}\{inside}"

    def _item(self, folder: str, entry: Any) -> Item:
        url = self._url(f"{folder}/{entry.name}")
        info = entry.smb_info
        if info.file_attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT:
            return Item("document", url, "symbolic link")
        if info.file_attributes & stat.FILE_ATTRIBUTE_DIRECTORY:
            return Item("container", url)
        return Item("document", url, version=f"{info.last_write_time.isoformat()}-{info.end_of_file}")


def _content(file: Any) -> bytes:
    parts = []
    size = 0
    while chunk := file.read(_CHUNK_BYTES):
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST_BYTES:
            raise Skipped(f"larger than {LARGEST_BYTES // 2**20} MiB")
    return b"".join(parts)


def _grants(opened: Any) -> tuple[Grant, ...] | None:
    """Return the access list of an open file: SIDs, and rights as hexadecimal masks."""
    request = SMB2QueryInfoRequest()
    request["info_type"] = _SECURITY
    request["additional_information"] = _OWNER_AND_LIST
    request["output_buffer_length"] = _LARGEST_LIST_BYTES
    request["file_id"] = opened.file_id
    tree = opened.tree_connect
    sent = opened.connection.send(request, tree.session.session_id, tree.tree_connect_id)
    answer = SMB2QueryInfoResponse()
    answer.unpack(opened.connection.receive(sent)["data"].get_value())
    return descriptor_grants(answer["buffer"].get_value())


def descriptor_grants(descriptor: bytes) -> tuple[Grant, ...] | None:
    """Return the entries of a self-relative security descriptor (MS-DTYP 2.4.6), including deny entries.

    Returns None if the descriptor is incomplete, or has flags or a revision that are unknown here.
    """
    result = AclPacket()
    try:
        *_, list_at = _DESCRIPTOR.unpack_from(descriptor)
        if not list_at:
            return (Grant("S-1-1-0", "0x1f01ff"),)  # without a list, everyone has all rights
        result.unpack(descriptor[list_at:])
    except (struct.error, ValueError):
        return None
    return tuple(
        Grant(
            str(entry["sid"].get_value()),
            f"{entry['mask'].get_value():#x}",
            isinstance(entry, AccessAllowedAce),
        )
        for entry in result["aces"].get_value()
        if isinstance(entry, AccessAllowedAce | AccessDeniedAce)
    )


def _failure(status: int, detail: str) -> Failure:
    kind = _KINDS.get(status, f"smb_{status:08x}")
    return Failure(kind, detail, permanent=kind in _PERMANENT)
