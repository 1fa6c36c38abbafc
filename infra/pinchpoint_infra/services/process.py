"""Common functions of the services: configuration, process name, start and end."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

_SHUTDOWN_S = 2
"""Seconds that requests in flight have to complete when the service ends."""
_LONGEST_HEAD_BYTES = 2**17
"""Largest accepted head of a request in bytes. A path has up to 4,096 bytes, percent-encoded twice."""


def configuration(needed: set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the JSON object in the file of the command line.

    An invalid file ends the process with a message.
    """
    if len(sys.argv) != 2:
        sys.exit("name one file: the service's configuration in JSON")
    path = Path(sys.argv[1])
    try:
        result = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: cannot be read as JSON: {error}")
    if not isinstance(result, dict) or set(result) - optional != needed:
        beside = f"; beside them there may be {', '.join(sorted(optional))}" if optional else ""
        sys.exit(f"{path}: needs exactly the keys {', '.join(sorted(needed))}{beside}")
    return result


def serve(app: ASGIApp, name: str, port: int) -> None:
    """Serve on the loopback interface until SIGTERM, with this process name."""
    comm = Path("/proc/self/comm")
    if comm.exists():  # elsewhere than on Linux, the process has the name of the interpreter
        comm.write_text(name)
    # uvicorn ends normally at SIGTERM and then raises the signal again. A requested stop is not a crash.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD_BYTES,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
