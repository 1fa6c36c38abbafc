"""The recorder under its unit's account, folders, limits and restrictions, on a machine without systemd.

`setpriv` sets the account and removes every capability, `unshare` makes a file system in which only the
unit's folder is writable, `prlimit` limits the number of tasks. Only systemd can apply the control groups
(memory, weights) and the filters of system calls and address families. For those the tests measure what the
recorder needs: its memory, its threads and its system calls.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from support import missing, require, until

import pinchpoint_collectors

UNIT = Path(__file__).parents[3] / "infra" / "systemd" / "pinchpoint-collect.service"
PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
ACCOUNT = 61184 + os.getpid() % 4000
"""A user id from the range that systemd gives to dynamic users: 61184 to 65519."""
_CONFINED = """
set -e
mount --make-rprivate /
cut -d' ' -f5 /proc/self/mountinfo | sort -u | while read -r at; do
  case $at in /proc*|/dev*) ;; *) mount -o remount,bind,ro "$(printf '%b' "$at")" 2>/dev/null || : ;; esac
done
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
mount -t tmpfs -o mode=755 none /run
mkdir -m "$2" "/run/$1"
chown "$3:$3" "/run/$1"
umask "$4"
shift 4
exec "$@"
"""
"""Shell script that makes everything but the unit's folder read-only; its arguments are the folder's name and
mode, the account and the umask."""


def said() -> dict[str, str]:
    """Return the unit's settings; of repeated settings the last."""
    return dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))


def confined(*command: str | Path) -> list[str | Path]:
    """Return a command line that runs another with the unit's restrictions."""
    unit = said()
    assert (unit["ProtectSystem"], unit["NoNewPrivileges"], unit["CapabilityBoundingSet"]) == (
        "strict",
        "yes",
        "",
    )
    drop = [
        *("--reuid", str(ACCOUNT), "--regid", str(ACCOUNT), "--clear-groups", "--no-new-privs"),
        *("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--pdeathsig", "KILL"),
    ]
    given = [unit["RuntimeDirectory"], unit["RuntimeDirectoryMode"], str(ACCOUNT), unit["UMask"]]
    return [
        *(require("unshare", "util-linux"), "--mount", "--ipc", "sh", "-c", _CONFINED, "sh", *given),
        *(require("prlimit", "util-linux"), f"--nproc={unit['TasksMax']}"),
        *(require("setpriv", "util-linux"), *drop),
        *command,
    ]


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """Yield a folder with the package and psutil that every account can read."""
    if os.geteuid() != 0:
        pytest.skip("needs root: other accounts, mount namespaces")
    if PYTHON is None or subprocess.run([PYTHON, "-c", "import tomllib"], check=False).returncode:
        missing("the system's Python, 3.11 or later, is missing (Debian: python3)")
    with tempfile.TemporaryDirectory(prefix="collect-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for package in (pinchpoint_collectors, psutil):
            source = Path(str(package.__file__)).parent
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        yield folder


def command(installed: Path, *arguments: str) -> list[str | Path]:
    """Return the command line of the installed ``pinchpoint-collect``."""
    start = "import sys; from pinchpoint_collectors.agent.command import main; sys.exit(main(sys.argv[1:]))"
    assert PYTHON is not None
    own = ["PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", f"PYTHONPATH={installed}"]
    return ["env", "-i", *own, PYTHON, "-c", start, *arguments]


@contextmanager
def recording(installed: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the unit's ExecStart with its restrictions; the process becomes the recorder itself."""
    starts = said()["ExecStart"].split()
    (installed / "collect.toml").write_text('folder = "/run/pinchpoint-collect"\ninterval_s = 0.2\n')
    arguments = [str(installed / "collect.toml") if each.startswith("/etc/") else each for each in starts[1:]]
    process = subprocess.Popen(confined(*command(installed, *arguments)), stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.root
def test_it_records_with_the_unit_s_account_and_nothing_more(installed: Path) -> None:
    """The recorder works without capabilities, writes one folder only, and sees disks and processes."""
    with recording(installed) as process:
        ring = Path(f"/proc/{process.pid}/root/run/pinchpoint-collect")
        until(lambda: any(each.stat().st_size > 4000 for each in ring.glob("readings-*")), process=process)
        text = Path(f"/proc/{process.pid}/status").read_text()
        status = dict(re.findall(r"^(\w+):\t(.*)$", text, re.MULTILINE))
        told = subprocess.run(
            ["nsenter", f"--target={process.pid}", "--mount", *command(installed, "tail", "--since", "0")],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout
        modes = {oct(path.stat().st_mode & 0o777) for path in ring.iterdir()}
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(20) == 0, process.communicate()
    assert status["Uid"].split() == [str(ACCOUNT)] * 4
    assert {status[each] for each in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert modes == {"0o640"}
    assert int(status["VmHWM"].split()[0]) * 1024 < _bytes(said()["MemoryMax"]) / 4
    assert int(status["Threads"]) < int(said()["TasksMax"]) / 2
    names = {metric for line in told.splitlines() for metric in re.findall(r'"([a-z]+\.[a-z_]+)"', line)}
    assert {"cpu.busy_ratio", "mem.available_bytes", "net.received_bytes_per_s"} <= names
    assert all(json.loads(line) for line in told.splitlines())


@pytest.mark.root
def test_what_confines_it_holds(installed: Path) -> None:
    """The restrictions are effective: only the recorder's own folder is writable."""
    places = ["/etc", "/usr", "/var/tmp", "/tmp", "/run", "/proc/sys/vm/swappiness", str(installed)]
    tried = (
        "for at; do (: >>$at/x || : >>$at) 2>/dev/null && echo $at; done; "
        "echo x >/run/pinchpoint-collect/x && echo own"
    )
    done = subprocess.run(
        confined("sh", "-c", tried, "sh", *places), capture_output=True, text=True, check=False, timeout=30
    )
    assert done.stdout.split() == ["own"], done.stderr


@pytest.mark.root
def test_the_unit_s_filter_allows_every_system_call_it_makes(installed: Path) -> None:
    """The filter, as systemd expands it, allows every system call that strace sees from start to end."""
    strace = require("strace", "strace")
    allowed = _allowed()
    log = installed / "calls"
    log.touch()
    log.chmod(0o666)
    traced = subprocess.Popen(
        [strace, "-f", "-qq", "-o", log, *command(installed, "record", "--config", _config(installed))],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: any((installed / "ring").glob("readings-*")), process=traced)
        time.sleep(2)
        for child in psutil.Process(traced.pid).children():
            child.terminate()
        traced.wait(30)
    finally:
        traced.kill()
        _, problem = traced.communicate()
    made = set(re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE))
    if not made:
        pytest.skip(f"strace may not trace here: {problem.strip()}")
    assert "pread64" in made, "it has read nothing"
    assert made - allowed == set()


def _config(folder: Path) -> str:
    (folder / "traced.toml").write_text(f'folder = "{folder}/ring"\ninterval_s = 0.2\n')
    return str(folder / "traced.toml")


def _allowed() -> set[str]:
    """Return the system calls that the unit's filter allows."""
    allowed: set[str] = set(_group("@default"))
    for line in re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(), re.MULTILINE):
        taken_away = line.startswith("~")
        for word in line.removeprefix("~").split():
            calls = _group(word)
            allowed = allowed - calls if taken_away else allowed | calls
    return allowed


def _group(name: str) -> set[str]:
    """Return the system calls of one of systemd's groups, nested groups included."""
    analyze = require("systemd-analyze", "systemd")
    done = subprocess.run(
        [analyze, "syscall-filter", name], capture_output=True, text=True, check=True, timeout=30
    )
    words = [line.strip() for line in done.stdout.splitlines()[1:] if line.strip()]
    found: set[str] = set()
    for word in words:
        if word.startswith("@"):
            found |= _group(word)
        elif not word.startswith("#"):
            found.add(word)
    return found


def _bytes(size: str) -> int:
    assert size.endswith("M"), size
    return int(size.removesuffix("M")) << 20


def test_the_unit_starts_the_command_that_the_role_installs() -> None:
    """The unit starts the path that the role installs, with the configuration that the role writes."""
    role = (UNIT.parents[1] / "ansible/roles/pinchpoint_collect/tasks/main.yml").read_text()
    starts = said()["ExecStart"].split()
    assert starts[1:] == ["record", "--config", "/etc/pinchpoint/collect.toml"]
    assert starts[0] in role
    assert starts[3] in role
