"""Prepare one cell of ``make faults``: real servers, the files of a run, and handles for its processes."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from infra.services.serving import serving
from scenarios.full_crawl_sources.sites import samba
from servers import postgres, valkey
from soak import agent
from sshd_hosts import SshdHost, sshd_host
from stalling import StallingProxy, stalling_proxy
from support import PINCHPOINT

from pinchpoint.loadgen.permits import TOKEN_VARIABLE
from pinchpoint_infra.content.filling import ingest
from pinchpoint_infra.ports import free_port

MARK = "PINCHPOINT_FAULTS"
"""Environment variable that marks all processes of a cell."""
TOKEN = "a-token-of-the-faults-and-of-nothing-else"
DISK_MB = {"tmpfs": 210, "ext4": 260}  # ext4 uses part of the space itself


@dataclass(slots=True)
class Cell:
    """A run against real servers, and handles for the faults.

    Attributes:
        out: path of the run directories, on a small disk of its own. sql, nosql: the servers' own URLs; the
            run reaches SQL through the proxy.
        process: the controller's process.
        killed: True if the controller was killed; it then cleans up nothing, and the next run takes over.
        gone: True if a server, or the connection to it, is lost for good.
        listen: TCP port on which the controller listens for a remote worker; None without a worker.
        link: the proxy between a remote worker and the controller.
        worker: the remote worker's process.
        host: the host that is watched over ssh.
        agent: the process that records this machine.
        crawled: URL of the server that a crawl needs, by tier (web, search, files).
    """

    out: Path
    farm: Path
    plan: Path
    sql: str
    nosql: str
    proxy: StallingProxy
    mark: str
    process: subprocess.Popen[str] | None = None
    killed: bool = False
    gone: bool = False
    listen: int | None = None
    link: StallingProxy | None = None
    worker: subprocess.Popen[bytes] | None = None
    host: SshdHost | None = None
    agent: psutil.Process | None = None
    crawled: dict[str, str] = field(default_factory=dict)
    _ends: list[Callable[[], object]] = field(default_factory=list)

    @property
    def controller(self) -> psutil.Process:
        """The controller's process."""
        assert self.process is not None
        return psutil.Process(self.process.pid)

    def generators(self) -> list[psutil.Process]:
        """The load generators on this machine."""
        children = self.controller.children(recursive=True)
        return [one for one in children if "loadgen" in " ".join(one.cmdline())]

    def readers(self) -> list[psutil.Process]:
        """The ssh clients with which the controller reads hosts."""
        return [one for one in self.controller.children(recursive=True) if one.name() == "ssh"]

    def remote(self) -> list[psutil.Process]:
        """The remote worker and the generator that it has started."""
        assert self.worker is not None
        worker = psutil.Process(self.worker.pid)
        return [*worker.children(recursive=True), worker]

    def started(self, said: Path, *more: str) -> subprocess.Popen[str]:
        """Start a run of the plan, and a remote worker if the run waits for one; return the run's process."""
        environment = os.environ | {MARK: self.mark, TOKEN_VARIABLE: TOKEN, "PYTHONFAULTHANDLER": "1"}
        if self.listen is not None:
            self.link = StallingProxy(self.listen)
            self._ends.append(self.link.close)
            more += ("--workers", "1", "--listen", f"127.0.0.1:{self.listen}", "--remote-workers", "1")
            way = f"127.0.0.1:{self.link.port}"
            self.worker = subprocess.Popen(
                [PINCHPOINT, "worker", "--master", way, "--once"],
                env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            self._ends += [self.worker.wait, self.worker.kill]
        with said.open("w") as file:
            return subprocess.Popen(
                [PINCHPOINT, "run", self.plan, "--farm", self.farm, "--out", self.out, *more],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )

    def end(self) -> None:
        """End the remote workers and their proxies."""
        while self._ends:
            self._ends.pop()()


@contextmanager
def _small_disk(folder: Path, kind: str) -> Iterator[Path]:
    """Yield a folder on a small disk of its own; without root, an ordinary folder."""
    out = folder / "runs"
    out.mkdir()
    if os.geteuid():
        yield out
        return
    if kind == "ext4":
        image = folder / "disk"
        with image.open("wb") as file:
            file.truncate(DISK_MB[kind] << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        mount_ext4(out)
    else:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB[kind]}m", "tmpfs", out], check=True)
    try:
        yield out
    finally:
        subprocess.run(["umount", "-l", out], check=True)


def mount_ext4(out: Path) -> None:
    """Mount the disk of ``_small_disk`` at its folder."""
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", out.with_name("disk"), out], check=True)


@contextmanager
def prepared(*parts: str) -> Iterator[Cell]:
    """Yield a cell with servers, a proxy and the run's files.

    ``parts`` adds ``worker``, ``ssh``, ``agent``, ``crawl`` or ``ext4``.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pinchpoint-faults-")))
        out = stack.enter_context(_small_disk(folder, "ext4" if "ext4" in parts else "tmpfs"))
        sql, nosql = stack.enter_context(postgres()), stack.enter_context(valkey())
        port = urlsplit(sql).port
        assert port is not None
        proxy = stack.enter_context(stalling_proxy(port))
        farm, plan = folder / "farm.yaml", folder / "plan.yaml"
        cell = Cell(out, farm, plan, sql, nosql, proxy, uuid.uuid4().hex)
        hosts: dict[str, Any] = {"db1": {"collect": [{"kind": "local"}]}}
        if "worker" in parts:
            cell.listen = free_port()
            stack.callback(cell.end)
        if {"ssh", "agent"} & set(parts):
            cell.host = stack.enter_context(sshd_host())
        if "ssh" in parts:
            assert cell.host is not None
            hosts["db2"] = {"collect": [{"kind": "ssh", **cell.host.options()}]}
        if "agent" in parts:
            assert cell.host is not None
            hosts["db3"] = {"collect": [stack.enter_context(agent(cell.host, folder))]}
            [cell.agent] = [one for one in psutil.Process().children() if "record" in one.cmdline()]
        through = sql.replace(f":{port}", f":{proxy.port}", 1)
        crawled = _crawled(stack, cell, folder) if "crawl" in parts else {}
        farm.write_text(
            json.dumps(
                {
                    "name": "faults",
                    "environment": "test",
                    "endpoints": {"sql": {"url": through}, "nosql": {"url": nosql}, **crawled},
                    "tiers": {"sql": {"hosts": hosts}},
                }
            )
        )
        # A worker is reported as lost after four seconds of silence, a collector after three; the plan must
        # be longer.
        write_plan(cell, 16 if {"worker", "ssh", "agent"} & set(parts) else 8)
        yield cell


def _crawled(stack: ExitStack, cell: Cell, folder: Path) -> dict[str, Any]:
    """Start the servers of a crawl and return their endpoints; the file server needs root."""
    docs, user, password = folder / "docs", getpass.getuser(), "a word of the faults"
    for place in (docs, folder / "web", folder / "search", folder / "share"):
        place.mkdir()
    for number in range(200):
        (docs / f"{number}.txt").write_text(f"document {number}\n" * 20)
    content = stack.enter_context(postgres())
    ingest(docs, None, content, None, lambda _: None)
    login = {"token": TOKEN}
    web = stack.enter_context(
        serving("pinchpoint_infra.services.web", folder / "web", **login, database_url=content, people=5)
    )
    index = {"directory": str(folder / "search"), "login": TOKEN}
    search = stack.enter_context(
        serving("pinchpoint_infra.services.search", folder / "search", **login, **index)
    )
    cell.crawled = {"web": web.url, "search": search.url}
    endpoints: dict[str, Any] = {
        "sharepoint": {"url": web.url, "auth": "bearer", **login},
        "search": {"url": search.url, "kind": "pinchpoint", **login},
    }
    if os.geteuid() == 0:
        folder.chmod(0o755)
        url, _ = stack.enter_context(samba(folder / "share", docs, user, password))
        cell.crawled["files"] = url
        endpoints["files"] = {"path": url, "user": user, "password": password}
    return endpoints


def write_plan(cell: Cell, measure_s: int) -> None:
    """Write a plan of two scenarios, three with a crawl, that measures for this many seconds."""
    load = {"model": "open", "rate": "40/s"}
    operations = {"operations": {"log_append": 3, "point_read": 1}, "scale": 5}
    scenarios: dict[str, Any] = {
        "orders": {"use": "sql-mix", "load": load, "params": operations},
        "burst": {"use": "nosql-burst", "load": load},
    }
    if cell.crawled:
        scenarios["crawl"] = {"use": "full-crawl", "load": {"model": "closed", "users": 2}}
    phases = {"warm_up": "4s", "measure": f"{measure_s}s"}
    cell.plan.write_text(json.dumps({"name": "faults", "scenarios": scenarios, "phases": phases}))
