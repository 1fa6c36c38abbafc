"""A hold in Valkey or Redis: a key that the server forgets in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import valkey

from .hold import Other


class ValkeyLease:
    """A ``Lease``; see there.

    Args:
        key: the key.
        opened: makes a client, not connected yet.
    """

    def __init__(self, key: str, opened: Callable[[], valkey.Valkey]) -> None:
        self._key = key
        self._opened = opened
        self._client: valkey.Valkey | None = None

    def take(self, holder: str, for_s: int) -> Other | None:
        """See ``Lease``."""
        client, for_ms = self._connected(), for_s * 1000
        while True:  # more than once only where an entry ends between two commands
            found = cast("bytes | None", client.get(self._key))
            if found is None:
                if client.set(self._key, holder, nx=True, px=for_ms):
                    return None
            elif found != holder.encode():
                left_ms = cast("int", client.pttl(self._key))  # negative: gone by now, or lasting for ever
                return Other(found.decode(errors="replace"), max(0, left_ms) / 1000)
            elif client.pexpire(self._key, for_ms):  # not SET: a server that is full refuses it
                return None

    def leave(self, holder: str) -> None:
        """See ``Lease``."""
        client = self._connected()
        if client.get(self._key) == holder.encode():
            client.unlink(self._key)

    def close(self) -> None:
        """See ``Lease``."""
        if self._client is not None:
            self._client.close()  # type: ignore[no-untyped-call]  # valkey leaves it untyped
            self._client = None

    def _connected(self) -> valkey.Valkey:
        if self._client is None:
            self._client = self._opened()
        return self._client
