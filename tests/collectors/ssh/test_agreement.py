"""Comparison of `local`, `ssh` and iostat on one host: disk and CPU over a minute under load."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sshd_hosts import sshd_host
from support import require

from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.sampler import Sampler
from pinchpoint_collectors.ssh import SshKind

_SECONDS = 60
_METRICS = ("disk.writes_per_s", "disk.write_bytes_per_s", "disk.busy_ratio", "disk.outstanding")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Run several hundred flushed writes of 64 KiB a second, and some CPU load."""
    over = threading.Event()

    def work() -> None:
        with (folder / "written").open("wb") as file:
            while not over.is_set():
                file.seek(0)
                for _ in range(4):
                    file.write(b"x" * 65536)
                    file.flush()
                    subprocess.run(["sync", "-d", str(folder / "written")], check=True)
                over.wait(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def mean(samples: Sequence[Sample], metric: str, instance: str, from_s: float, to_s: float) -> float:
    """Return the mean over a time span; each sample is weighted by its part of the span."""
    total = covered = 0.0
    for each in samples:
        if (each.metric, each.instance) == (metric, instance) and each.value is not None:
            end = each.time_ns / 1e9
            part = min(end, to_s) - max(end - each.interval_s, from_s)
            if part > 0:
                total += each.value * part
                covered += part
    assert covered > 0.95 * (to_s - from_s), (metric, covered)
    return total / covered


def iostat(device: str) -> subprocess.Popen[str]:
    command = ["iostat", "-d", "-c", "-x", "-k", "-y", "-o", "JSON", device, str(_SECONDS), "1"]
    return subprocess.Popen([require("iostat", "sysstat"), *command[1:]], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow  # watches for a minute
def test_local_ssh_and_iostat_agree_over_a_minute_under_load(
    tmp_path: Path, real_disk: Callable[[Path], str]
) -> None:
    """`local`, `ssh` and iostat, which prints two decimals, differ by at most 1 %."""
    device = real_disk(tmp_path)
    here: list[Sample] = []
    there: list[Sample] = []
    local = LocalKind().connect([Watch("h", "sql")])
    with sshd_host() as host:
        ssh = SshKind().connect([Watch("h", "sql", options=host.options())])

        def quiet(*_: Any, **__: Any) -> None:
            return

        with (
            writing(tmp_path),
            Sampler(local, "local", ["h"], here.extend, on_event=quiet),
            Sampler(ssh, "ssh", ["h"], there.extend, on_event=quiet),
        ):
            time.sleep(3)
            peer = iostat(device)
            begin_s = time.time()
            out, _ = peer.communicate(timeout=_SECONDS + 30)
            end_s = time.time()
            time.sleep(3)
        ssh.close()
    report = json.loads(out)["sysstat"]["hosts"][0]["statistics"][-1]
    (disk,) = report["disk"]
    its = {
        "disk.writes_per_s": disk["w/s"],
        "disk.write_bytes_per_s": disk["wkB/s"] * 1024,
        "disk.busy_ratio": disk["util"] / 100,
        "disk.outstanding": disk["aqu-sz"],
    }
    for metric in _METRICS:
        mine = mean(here, metric, device, begin_s, end_s)
        far = mean(there, metric, device, begin_s, end_s)
        assert far == pytest.approx(mine, rel=0.01), metric
        assert mine == pytest.approx(its[metric], rel=0.01, abs=0.006), metric
        assert far == pytest.approx(its[metric], rel=0.01, abs=0.006), metric
    busy = [mean(each, "cpu.busy_ratio", "", begin_s, end_s) for each in (here, there)]
    assert busy[0] == pytest.approx(busy[1], rel=0.01)
    idle = report["avg-cpu"]["idle"] + report["avg-cpu"]["iowait"] + report["avg-cpu"]["steal"]
    assert busy[0] == pytest.approx(1 - idle / 100, abs=0.02)
