"""What ``pinchpoint-collect tail`` says: the readings of a ring, and answers to who follows it.

Lines of JSON both ways. First ``{"hello": ...}``; then readings (``codec``); with ``follow`` also answers:
``{"time": N}`` is answered by ``{"time": N, "ns": ..., "cpu_s": ...}`` and ``{"watch": {"host", "tier",
"disks"}}`` by ``{"inventory": HOST, "facts": ...}``, or ``"error"`` in place of the facts.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pinchpoint_collectors.agent.codec import VERSION, Encoder
from pinchpoint_collectors.agent.ring import RingReader
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Watch

_LOOK_S = 0.1
"""How often the ring is looked at for what is new."""


def tail(folder: Path, since_ns: int | None, *, follow: bool) -> None:
    """Say on standard output what was recorded after ``since_ns`` (None: now).

    With ``follow`` it goes on until its input ends.

    Raises ``CollectorError`` where nobody records, ``BrokenPipeError`` when nobody listens any more.
    """
    reader = RingReader(folder, since_ns)
    hello = {
        "version": VERSION,
        **reader.about,
        "oldest_ns": reader.oldest_ns,
        "dropped": reader.dropped,
        "now_ns": time.time_ns(),
    }
    _say({"hello": hello})
    encoder, given = Encoder(), b""
    try:
        while True:
            for reading in reader.new():
                sys.stdout.write(encoder.encode(reading))
            sys.stdout.flush()
            if not follow:
                return
            if not select.select([0], [], [], _LOOK_S)[0]:
                continue
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return  # who followed has gone, or the link was cut
            *lines, given = (given + chunk).split(b"\n")
            for line in lines:
                _say(_answer(json.loads(line), reader.about))
    finally:
        reader.close()


def _answer(asked: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    if "time" in asked:
        return {"time": asked["time"], "ns": time.time_ns(), "cpu_s": time.process_time()}
    wanted = asked["watch"]
    options = {"process": about["process"]} if about.get("process") else {}
    watch = Watch(wanted["host"], wanted["tier"], wanted["disks"], options=options)
    try:
        collector = LocalKind().connect([watch])
        facts = collector.inventory()[watch.host]
        collector.close()
    except CollectorError as error:
        return {"inventory": watch.host, "error": str(error)}
    except Exception as error:  # noqa: BLE001 - who asked is to hear it, not that the tail ended
        return {"inventory": watch.host, "error": f"{type(error).__name__}: {error}"}
    return {"inventory": watch.host, "facts": facts}


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()
