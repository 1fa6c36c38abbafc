"""Tests of the role that installs ``pinchpoint-collect``: ansible-playbook on real sshd hosts.

Each host has a network namespace and its own copies of the folders that the role writes, so that nothing
changes this machine. No host runs systemd, so the unit is verified but not started.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sshd_hosts import SshdHost, sshd_hosts
from support import missing, require

from pinchpoint_collectors import registry
from pinchpoint_collectors.record import Watch

ROOT = Path(__file__).parents[3]
ANSIBLE = ROOT / "infra" / "ansible"
UNIT = ROOT / "infra" / "systemd" / "pinchpoint-collect.service"
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
"""Python of the hosts, not of the tests' environment."""
_OWN = """
set -e
mount -t tmpfs none "$1"
for name in etc opt usr/local/bin; do
  mkdir -p "$1/$name/upper" "$1/$name/work"
  mount -t overlay none -o "lowerdir=/$name,upperdir=$1/$name/upper,workdir=$1/$name/work" "/$name"
done
mkdir -p "$1/tmp" && mount --bind "$1/tmp" /root
"""
"""Commands that mount the host's written folders in memory; they vanish with the host."""


def in_host(host: SshdHost, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command on the host without ssh."""
    return subprocess.run(
        ["nsenter", f"--target={host.pid}", "--net", "--mount", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[SshdHost]]:
    with sshd_hosts(2) as found:
        for host in found:
            (host.folder / "own").mkdir()
            done = in_host(host, "sh", "-c", _OWN, "sh", host.folder / "own")
            if done.returncode != 0:
                missing(f"overlay file systems are not allowed here: {done.stderr.strip()}")
        yield found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Build the distribution's wheel, and download psutil's wheel for a host without a package index."""
    folder = tmp_path_factory.mktemp("wheels")
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, "build", "--quiet", "--package", "pinchpoint-collectors", "--wheel", "-o", folder],
        check=True,
        cwd=ROOT,
        timeout=60,
    )
    python = PYTHON
    if (
        python is None
        or subprocess.run([python, "-c", "import pip, venv, ensurepip"], check=False).returncode
    ):
        missing("the system's Python with pip and venv is missing (Debian: python3-pip, python3-venv)")
    got = subprocess.run(
        [python, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, "psutil>=7.2"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if got.returncode:
        missing(f"psutil's wheel cannot be had from the package index: {got.stderr.strip()[-200:]}")
    (ours,), (psutil,) = folder.glob("pinchpoint_*.whl"), folder.glob("psutil-*.whl")
    return {"pinchpoint_collect_wheel": str(ours), "pinchpoint_collect_dependencies": [str(psutil)]}


def play(
    hosts: list[SshdHost], folder: Path, given: dict[str, object]
) -> tuple[int, str, dict[str, dict[str, int]]]:
    """Run the playbook; return (exit status, output, counts of ok, changed and failed tasks by address)."""
    lines = [
        f"{host.address} ansible_user={host.user} ansible_port={host.port} "
        f"ansible_ssh_common_args='-F {host.client_config}' ansible_python_interpreter={PYTHON}"
        for host in hosts
    ]
    (folder / "inventory").write_text("\n".join(lines) + "\n")
    variables = {
        "pinchpoint_collect_become": False,
        "pinchpoint_collect_start": False,
        "pinchpoint_collect_python": PYTHON,
        **given,
    }
    (folder / "variables.json").write_text(json.dumps(variables))
    done = subprocess.run(
        [
            PLAYBOOK,
            "-i",
            folder / "inventory",
            ANSIBLE / "collect.yml",
            "-e",
            f"@{folder / 'variables.json'}",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
        env={
            **os.environ,
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=no",
            "ANSIBLE_PIPELINING": "1",
            "LC_ALL": "C.UTF-8",
        },
    )
    recap = {
        line.split()[0]: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}
        for line in done.stdout.partition("PLAY RECAP")[2].splitlines()
        if "ok=" in line
    }
    return done.returncode, done.stdout + done.stderr, recap


@contextmanager
def recording(host: SshdHost) -> Iterator[None]:
    """Run the installed command on the host as its unit starts it."""
    text = UNIT.read_text()
    command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert command is not None
    process = subprocess.Popen(
        ["nsenter", f"--target={host.pid}", "--net", "--mount", *command[1].split()], stderr=subprocess.PIPE
    )
    try:
        time.sleep(2)
        assert process.poll() is None, process.communicate()
        yield
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()


@pytest.mark.root
@pytest.mark.slow  # installs on two hosts: a minute on a busy machine
def test_it_installs_once_and_what_it_installs_works(
    hosts: list[SshdHost], wheels: dict[str, object], tmp_path: Path
) -> None:
    """A second play changes nothing, and the installed recorder works for a watched host."""
    given = {
        **wheels,
        "pinchpoint_collect_readers": ["root"],
        "pinchpoint_collect_interval_s": 0.5,
        "pinchpoint_collect_size_bytes": 300 << 20,
    }
    status, said, recap = play(hosts, tmp_path, given)
    assert status == 0, said
    assert all(counts["changed"] > 5 for counts in recap.values()), said
    status, said, recap = play(hosts, tmp_path, given)
    assert status == 0, said
    assert {address: counts["changed"] for address, counts in recap.items()} == {
        host.address: 0 for host in hosts
    }, said
    host = hosts[0]
    assert "root" in in_host(host, "getent", "group", "pinchpoint").stdout
    assert "interval_s = 0.5" in in_host(host, "cat", "/etc/pinchpoint/collect.toml").stdout
    memory = in_host(host, "cat", "/etc/systemd/system/pinchpoint-collect.service.d/memory.conf").stdout
    assert f"MemoryMax={428 << 20}" in memory, "the ring lies in memory, and counts as the service's"
    assert not Path("/opt/pinchpoint-collect").exists(), "it was to reach the hosts alone"
    with (
        recording(host),
        closing(registry.kind("agent").connect([Watch("sql1", "sql", options=host.options())])) as collector,
    ):
        seen = {
            sample.instance for _ in range(4) for sample in collector.read() if sample.metric[:4] == "net."
        }
    assert "eth0" in seen, "the host's own interface"


@pytest.mark.root
def test_what_is_missing_is_said(hosts: list[SshdHost], tmp_path: Path) -> None:
    """Without a wheel the play stops before any change and says how to make one."""
    status, said, recap = play(hosts[:1], tmp_path, {})
    assert status != 0
    assert "uv build --package pinchpoint-collectors --wheel" in " ".join(said.split())
    assert recap[hosts[0].address]["changed"] == 0


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """`systemd-analyze verify` reports no problem, and the exposure level is low."""
    analyze = require("systemd-analyze", "systemd")
    unit = tmp_path / UNIT.name
    # The unit's program is not installed here; another program replaces it.
    unit.write_text(
        UNIT.read_text().replace("/opt/pinchpoint-collect/venv/bin/pinchpoint-collect", "/bin/true")
    )
    done = subprocess.run(
        [analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False, timeout=30
    )
    ours = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, ours) == (0, []), done.stderr
    judged = subprocess.run(
        [analyze, "security", "--offline=yes", unit], capture_output=True, text=True, check=False, timeout=30
    )
    level = re.search(r"exposure level for .*: ([\d.]+)", judged.stdout)
    if level is None:
        pytest.skip(f"this systemd-analyze judges no file: {judged.stderr.strip()}")
    assert float(level[1]) < 2.5
