"""Finds free ports on this machine."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a TCP port of the loopback interface on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
