"""Real sshd hosts on this machine, in network namespaces whose links can be cut, or without a namespace.

A namespace has no name: it ends with its sshd, and with it its end of the link. All hosts share this
machine's processes and disks; only their network is separate.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from typing import Any

import psutil
import pytest
from support import missing, require, until

from pinchpoint_infra.ports import free_port

_READY_S = 20.0
_OWN_RUN = (
    "awk '$2 ~ /pinchpoint/ {print $2}' /proc/self/mounts | sort -r | xargs -r umount -l; "
    "mount -t tmpfs none /run && mkdir -p /run/sshd"
)
"""Commands that give sshd, as root, a new /run in a mount namespace of its own. The namespace has no copies
of emulated disks' mounts, because a copy would keep a stopped farm from freeing its devices."""
_numbers = random.SystemRandom()


@dataclass
class SshdHost:
    """One host with an sshd.

    Attributes:
        address: IP address of the host.
        port: TCP port of sshd.
        user: user name for the login.
        folder: path of the host's keys and files, removed at the end.
        client_config: path of an ssh configuration with the host's key and the client's key.
        pid: process id of sshd.
    """

    address: str
    port: int
    user: str
    folder: Path
    client_config: Path
    pid: int
    _link: str | None = field(default=None)

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the keys of a ``collect`` entry for this host."""
        where = {"address": self.address, "port": self.port, "user": self.user}
        return {**where, "config": str(self.client_config), **more}

    def cut(self) -> None:
        """Cut the link: packets in both directions are lost without an error."""
        self._inside("ip", "link", "set", "eth0", "down")

    def mend(self) -> None:
        """Restore the link."""
        self._inside("ip", "link", "set", "eth0", "up")

    def sessions(self) -> list[psutil.Process]:
        """Return the processes of the host's ssh sessions, with all their children."""
        return psutil.Process(self.pid).children(recursive=True)

    def ours(self) -> list[psutil.Process]:
        """Return the processes with the host's mark, whatever their parent; without sshd's own."""
        found = []
        for process in psutil.process_iter():
            try:
                marked = process.environ().get("PINCHPOINT_SSHD_HOST") == str(self.folder)
                if marked and process.name() not in ("sshd", "sshd-session") and process.pid != self.pid:
                    found.append(process)
            except psutil.Error:
                continue  # the process has ended, or belongs to another user
        return found

    def _inside(self, *command: str) -> None:
        assert self._link is not None, "this host has no link of its own"
        subprocess.run(
            ["nsenter", f"--target={self.pid}", "--net", *command], check=True, capture_output=True
        )


@contextmanager
def sshd_host(shell: str | None = None) -> Iterator[SshdHost]:
    """Run an sshd on 127.0.0.1 without a namespace; an ordinary user logs in as that user.

    Args:
        shell: command that replaces the login shell (sshd's ForceCommand).
    """
    with _folder() as folder:
        port = free_port()
        command = _prepared(folder, "127.0.0.1", port, shell)
        if os.geteuid() == 0:
            command = ["unshare", "--mount", "sh", "-c", f'{_OWN_RUN} && exec "$@"', "sh", *command]
        with _running(command, folder) as process:
            host = SshdHost("127.0.0.1", port, getuser(), folder, folder / "client_config", process.pid)
            _wait_ready(host)
            _skip_unless_let_in(host)
            yield host


def _skip_unless_let_in(host: SshdHost) -> None:
    """Skip the test if the account may not log in, as many service accounts may not."""
    if os.geteuid() == 0:
        return
    command = [
        "ssh",
        "-F",
        str(host.client_config),
        "-p",
        str(host.port),
        f"{host.user}@{host.address}",
        "true",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_READY_S, check=False)
    if "not available" in done.stdout or "Permission denied" in done.stderr:
        said = (done.stdout + done.stderr).strip().splitlines()[-1]
        pytest.skip(f"the account {host.user} of these tests may not log in over ssh: {said}")


Cable = Callable[[str, str, int, str], AbstractContextManager[object]]
"""Connects this namespace with a process's namespace: (device here, address here, process id, address of the
far eth0)."""


@contextmanager
def _veth(link: str, ours: str, pid: int, theirs: str) -> Iterator[None]:
    _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    try:
        _ip("addr", "add", f"{ours}/30", "dev", link)
        _ip("link", "set", link, "up")
        inside = ["nsenter", f"--target={pid}", "--net", "ip", "addr", "add", f"{theirs}/30", "dev", "eth0"]
        subprocess.run(inside, check=True, capture_output=True)
        yield
    finally:
        subprocess.run(["ip", "link", "del", link], check=False, capture_output=True)


@contextmanager
def sshd_hosts(count: int, cable: Cable = _veth) -> Iterator[list[SshdHost]]:
    """Run ``count`` hosts, each in a network namespace of its own. Needs root."""
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces")
    for program, package in (("ip", "iproute2"), ("nsenter", "util-linux"), ("unshare", "util-linux")):
        require(program, package)
    with ExitStack() as stack:
        yield [stack.enter_context(_namespaced(cable)) for _ in range(count)]


@contextmanager
def _namespaced(cable: Cable) -> Iterator[SshdHost]:
    number = _numbers.randrange(1 << 20)  # a network of four addresses among the 2^20 of 10.128.0.0/10
    net = (10 << 24) + (1 << 23) + number * 4
    ours, theirs = (".".join(str(net + at >> shift & 255) for shift in (24, 16, 8, 0)) for at in (1, 2))
    link = f"ppt{number:x}"
    with _folder() as folder:
        sshd = _prepared(folder, "0.0.0.0", 22, None)
        # Mount a new /sys, which shows the namespace's own interfaces.
        inside = f'{_OWN_RUN} && mount -t sysfs none /sys && ip link set lo up && exec "$@"'
        command = ["unshare", "--net", "--mount", "sh", "-c", inside, "sh", *sshd]
        with _running(command, folder) as process:
            host = SshdHost(theirs, 22, "root", folder, folder / "client_config", process.pid, link)
            _wait_for_namespace(process.pid)
            with cable(link, ours, process.pid, theirs):
                host.mend()
                _wait_ready(host)
                yield host


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sshd-") as folder:
        yield Path(folder)


def _prepared(folder: Path, address: str, port: int, shell: str | None) -> list[str]:
    """Write keys and configuration of client and server; return the command that starts sshd."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if sshd is None:
        missing("sshd is missing (Debian: openssh-server)")
    keygen = require("ssh-keygen", "openssh-client")
    for name in ("host_key", "key"):
        subprocess.run(
            [keygen, "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", folder / name], check=True
        )
    (folder / "authorized_keys").write_text((folder / "key.pub").read_text())
    (folder / "known_hosts").write_text(f"* {(folder / 'host_key.pub').read_text()}")
    (folder / "client_config").write_text(
        f"Host *\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile none\n"
    )
    lines = [
        f"ListenAddress {address}",
        f"Port {port}",
        f"HostKey {folder}/host_key",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        "StrictModes no",
        "UsePAM no",
        "PidFile none",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin yes",
        "MaxStartups 200",
        f"SetEnv PINCHPOINT_SSHD_HOST={folder}",
        *([f"ForceCommand {shell}"] if shell else []),
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    return [sshd, "-D", "-e", "-f", str(folder / "sshd_config")]


@contextmanager
def _running(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    # sshd ends with this process, also if this process is killed.
    command = [require("setpriv", "util-linux"), "--pdeathsig", "KILL", *command]
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )
    try:
        yield process
    finally:
        # The ssh sessions are not in sshd's process group, because each starts a session of its own.
        left = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        for one in left:
            try:
                one.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue  # the process has already ended
        process.kill()
        process.wait()


def _wait_for_namespace(pid: int) -> None:
    own = os.readlink("/proc/self/ns/net")  # noqa: PTH115 - the link's text, not a path
    until(lambda: os.readlink(f"/proc/{pid}/ns/net") != own, "no network namespace")  # noqa: PTH115 - as above


def _wait_ready(host: SshdHost) -> None:
    def greets() -> bool:
        try:
            with socket.create_connection((host.address, host.port), 1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    try:
        until(greets, "sshd does not answer")
    except AssertionError as error:
        raise AssertionError((host.folder / "sshd.log").read_text()) from error
