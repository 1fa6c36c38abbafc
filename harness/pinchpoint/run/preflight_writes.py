"""A write of known size, and which disk saw it: the proof that a role's figures are those of its own disk.

It is made where a person allowed it (``write_test:`` of a disk in farm.yaml: a folder on that host) or where
the folder is ours (an embedded farm's), and never on a farm that is production.
"""

from __future__ import annotations

import mmap
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint.base.units import bytes_
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.ssh import Address

SIZE_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 20
_LEAST_FREE_BYTES = 16 * SIZE_BYTES
"""With less, a server that lies on the disk might be what runs out of room."""
_SEEN_RATIO = 0.98
_ATTEMPTS = 3
_LIMIT_S = 30.0
_PATIENCE_S = 10.0
_SLACK_NS = 100_000_000
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What a write of known size showed.

    Attributes:
        outcome: as ``preflight_collectors.Proof`` has it.
        why: the figures behind it.
        remedy: what to do; None where it is well.
    """

    outcome: Literal["ok", "warning", "not measured", "failed"]
    why: str
    remedy: str | None = None


def here(_watch: Watch, folder: str) -> int:
    """Write a file on this machine, have it reach the disk, and remove it; the bytes written.

    The file has no name: nothing is left of it, not even after SIGKILL. Past the page cache (O_DIRECT) where
    the file system can. Stops after ``_LIMIT_S``. Raises ``CollectorError`` where it cannot be written.
    """
    try:
        free = shutil.disk_usage(folder).free
        if free < _LEAST_FREE_BYTES:
            raise CollectorError(_no_room(folder, free))
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return _fill(file.fileno(), f"/proc/self/fd/{file.fileno()}")
    except OSError as error:
        raise CollectorError(f"cannot write in {folder}: {error.strerror}") from error


def _fill(plain: int, path: str) -> int:
    direct = None
    with suppress(OSError):  # a file system without O_DIRECT: fsync brings it to the disk as well
        direct = os.open(path, os.O_WRONLY | getattr(os, "O_DIRECT", 0))
    written, end_s = 0, time.monotonic() + _LIMIT_S
    with mmap.mmap(-1, _BLOCK_BYTES) as block:  # aligned to a page, as O_DIRECT wants it
        block.write(os.urandom(_BLOCK_BYTES))
        try:
            while written < SIZE_BYTES and time.monotonic() < end_s:
                written += os.write(plain if direct is None else direct, block)
            os.fsync(plain)
        finally:
            if direct is not None:
                os.close(direct)
    return written


_SCRIPT = """
cd -- {folder} || exit 1
df -Pk . | {{ read -r line; read -r name size used free rest; test "$free" -ge {free_kib}; }} || {{
  echo "too little room there: {free_mib} MiB free are wanted" >&2; exit 1
}}
file=$(mktemp .pinchpoint-write-XXXXXX) || exit 1
trap 'rm -f -- "$file"' 0
trap 'exit 1' 1 2 13 15
from='if=/dev/urandom bs={block} count={count}'
dd $from of="$file" iflag=fullblock oflag=direct conv=fsync 2>/dev/null ||
  dd $from of="$file" conv=fsync 2>/dev/null || {{ echo "dd could not write 16 MiB there" >&2; exit 1; }}
wc -c <"$file"
"""


def there(watch: Watch, folder: str) -> int:
    """Likewise on a Linux host over ssh, by its own ``dd``; the shell there removes the file in any case."""
    script = _SCRIPT.format(
        folder=shlex.quote(folder),
        free_kib=_LEAST_FREE_BYTES >> 10,
        free_mib=_LEAST_FREE_BYTES >> 20,
        block=_BLOCK_BYTES,
        count=SIZE_BYTES // _BLOCK_BYTES,
    )
    said = ssh.run(Address.of(watch.options), "exec /bin/sh", given=script, timeout_s=_LIMIT_S + 20)
    return int(said)


WRITERS: Mapping[str, Callable[[Watch, str], int]] = {"local": here, "ssh": there, "agent": there}
"""By kind of collector: who writes on its hosts."""


def prove(collector: Collector, kind: str, watch: Watch, role: str, folder: str) -> Seen:
    """Write under ``folder`` and look at the collector's own figures for the role's disk.

    Others may write at the same time: it is tried up to three times, and once is enough.
    """
    facts = collector.inventory()[watch.host]
    device = facts.get("roles", {}).get(role, {}).get("device")
    if device is None:
        return Seen("not measured", f"no disk is known for {watch.disks[role]}", "say `device:` in farm.yaml")
    if kind not in WRITERS:
        return Seen(
            "not measured", f"kind {kind} cannot write on its hosts", "compare with the host's own tools"
        )
    last = Seen("not measured", "not tried")
    try:
        for _ in range(_ATTEMPTS):
            written, by_device = _written(collector, kind, watch, folder)
            last = judge(folder, device, written, by_device, facts.get("disks", {}))
            if last.outcome == "ok":
                return last
    except CollectorError as error:
        remedy = f"allow it (another folder as `write_test:` of {role}), or leave `write_test:` out"
        return Seen("not measured", str(error), remedy)
    return last


def _written(
    collector: Collector, kind: str, watch: Watch, folder: str
) -> tuple[int, dict[str, float | None]]:
    """Bytes written, and bytes each disk says were written to it meanwhile; None: it did not say."""
    collector.read()
    begin_ns = time.time_ns()
    written = WRITERS[kind](watch, folder)
    end_ns = time.time_ns() + _SLACK_NS
    seen: dict[str, float | None] = {}
    until_s = time.monotonic() + _PATIENCE_S
    latest_ns = 0
    while latest_ns < end_ns:
        if time.monotonic() > until_s:
            raise CollectorError(f"no reading came for {_PATIENCE_S:.0f} s after the write")
        time.sleep(0.2)
        for sample in collector.read():
            if (sample.host, sample.metric) != (watch.host, "disk.write_bytes_per_s"):
                continue
            latest_ns = max(latest_ns, sample.time_ns)
            if sample.time_ns < begin_ns:
                continue
            before = seen.get(sample.instance, 0.0)
            lost = sample.value is None or before is None
            seen[sample.instance] = None if lost else (before or 0) + (sample.value or 0) * sample.interval_s
    return written, seen


def judge(
    folder: str,
    device: str,
    written: int,
    by_device: Mapping[str, float | None],
    disks: Mapping[str, Mapping[str, Any]],
) -> Seen:
    """What was seen of ``written`` bytes under ``folder``, which ought to be on ``device``.

    Args:
        folder: where it was written.
        device: the role's.
        written: bytes.
        by_device: bytes each disk counted meanwhile.
        disks: the inventory's: a disk made of others shows the same bytes as they do.
    """
    kin = {device, *disks.get(device, {}).get("members", ())}
    kin |= {name for name, facts in disks.items() if device in facts.get("members", ())}
    on_it = by_device.get(device)
    if on_it is None:
        why = f"{bytes_(written)} were written in {folder}; {device} did not say what it wrote"
        return Seen("not measured", why, "look at the host's own counters")
    others = [
        name
        for name, seen in by_device.items()
        if name not in kin and seen is not None and seen >= written * _SEEN_RATIO
    ]
    said = f"{bytes_(written)} written in {folder}, {bytes_(on_it)} seen on {device}"
    if on_it >= written * _SEEN_RATIO:
        if not others:
            return Seen("ok", f"{said}, on no other disk as much")
        why = f"{said}, and as much on {', '.join(others)}"
        return Seen("warning", why, "mirrored, or others write there: try again when the host is quiet")
    if others:
        remedy = (
            f"say `device: {others[0]}` or a path that lies on {device}, as `write_test:` and as the role's"
        )
        return Seen("failed", f"{said}; it was seen on {', '.join(others)}", remedy)
    return Seen(
        "failed", f"{said}, and on no other disk", "the disk's counters are broken, or it is hidden here"
    )


def _no_room(folder: str, free: int) -> str:
    return f"too little room in {folder}: {bytes_(free)} free, {bytes_(_LEAST_FREE_BYTES)} wanted"
