"""Tests of other processes that use this machine's CPU, with real programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinchpoint_collectors.linux.others import HYPERVISOR, METRIC, PROCESS, OtherProcesses
from pinchpoint_collectors.record import Processes

SPIN = "while True: pass"
COMPILE = """
import subprocess, sys
while True:
    subprocess.run([sys.argv[1], "-S", "-c", "for _ in range(1_000_000): pass"])
"""
ENDS_S = "import os, signal; signal.alarm(60)\n"
"""Limit on the life of each program, whatever happens."""


@contextmanager
def running(*commands: Sequence[str]) -> Iterator[list[int]]:
    """Start programs that are not children of this process; yield their main process ids."""
    script = "import subprocess, sys, json\n"
    script += "how = dict(start_new_session=True, stdout=subprocess.DEVNULL)\n"
    script += "started = [subprocess.Popen(c, **how) for c in json.loads(sys.argv[1])]\n"
    script += "print(*(one.pid for one in started))\n"

    told = subprocess.run(
        [sys.executable, "-c", script, json.dumps(commands)], stdout=subprocess.PIPE, text=True, check=True
    )
    pids = [int(word) for word in told.stdout.split()]
    try:
        yield pids
    finally:
        for pid in pids:
            os.killpg(pid, 9)


def program(folder: Path, name: str) -> str:
    """Return a copy of Python with another name."""
    path = folder / name
    path.symlink_to(Path(sys.executable).resolve())
    return str(path)


def shares(others: OtherProcesses, seconds: float = 2.0) -> dict[str, float]:
    others.read()
    time.sleep(seconds)
    return {sample.instance: sample.value or 0.0 for sample in others.read() if sample.metric == METRIC}


def test_busy_programs_are_told_by_name_and_share(tmp_path: Path) -> None:
    """Busy programs are reported by name and share; equal names are added, and long names are complete."""
    long = "a_program_with_a_long_name"
    spin = ["-S", "-c", ENDS_S + SPIN]
    commands = [[program(tmp_path, "hog"), *spin], [str(tmp_path / "hog"), *spin]]
    commands.append([program(tmp_path, long), *spin])
    with running(*commands):
        found = shares(OtherProcesses("generator1", []))
    assert found[f"{PROCESS}hog"] > 0.5 * found[f"{PROCESS}{long}"] > 0.02
    assert found[""] >= 0.8 * (found[f"{PROCESS}hog"] + found[f"{PROCESS}{long}"])
    assert found[HYPERVISOR] >= 0


def test_short_lived_children_count_for_who_started_them(tmp_path: Path) -> None:
    """The CPU of children of about 10 ms, as in a compile loop, counts for their parent."""
    command = [program(tmp_path, "compile_loop"), "-S", "-c", ENDS_S + COMPILE, program(tmp_path, "cc")]
    with running(command):
        found = shares(OtherProcesses("generator1", []))
    seen = found.get(f"{PROCESS}compile_loop", 0.0) + found.get(f"{PROCESS}cc", 0.0)
    assert seen > 0.5 / (os.cpu_count() or 1) * 0.4, found


def test_what_is_ours_is_none_of_the_others(tmp_path: Path) -> None:
    """This process, its children, and the farm's servers with their children are left out."""
    farm = [program(tmp_path, "farm_server"), "-S", "-c", ENDS_S + SPIN]
    child = subprocess.Popen([program(tmp_path, "load_worker"), "-S", "-c", SPIN])
    try:
        with running(farm) as pids:
            found = shares(OtherProcesses("generator1", [Processes(pids=tuple(pids))]))
    finally:
        child.kill()
        child.wait()
    assert not {f"{PROCESS}farm_server", f"{PROCESS}load_worker"} & set(found)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to read as another user")
def test_an_ordinary_user_sees_them_too(tmp_path: Path) -> None:
    """An ordinary user sees processes of other users as well."""
    script = (
        "import os, time\n"
        "from pinchpoint_collectors.linux.others import OtherProcesses\n"
        "os.setuid(65534)\n"
        "others = OtherProcesses('g', []); others.read(); time.sleep(1.5)\n"
        "print([sample.instance for sample in others.read()])"
    )
    with running([program(tmp_path, "roots_hog"), "-S", "-c", ENDS_S + SPIN]):
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "process:roots_hog" in told.stdout
