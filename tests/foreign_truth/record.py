"""Record real servers, healthy and with a fault, for ``foreign_truth/own``; needs root.

``python -m foreign_truth.record FOLDER [SETUP ...]``. A setup is a server in a container of its own: a
control group with a CPU quota and a disk of its own. The servers are PostgreSQL, MariaDB, Redis and nginx;
the load comes from pgbench, sysbench, redis-benchmark, wrk or a client with a fixed rate. A fault is a load
above the limit of the quota or the disk, another program in the container (stress-ng, fio), a lock that a
session holds, or a slow call to a service outside the container. The recorder reads what a container's
exporter would: CPU relative to its quota, memory relative to its limit, the disk's counters, the network
interface's bytes, and the server's count of finished operations.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import valkey
from emulateddisks import EmulatedDisks, emulated_disks

from foreign_truth.written import write_labels, write_rows
from pinchpoint_infra.disks import DiskSpec
from pinchpoint_infra.ports import free_port

QUOTA = 0.2
"""CPU quota of a container, in cores."""
MEMORY_BYTES = 1 << 30
WARM_UP_S, WHOLE_S, WINDOW_S = 5.0, 90, (45, 105, 150)
"""Warm-up; length of a recording with a fault throughout; begin and end of a fault in the middle, and length
of its recording. All in seconds."""
SATURATED = 0.5
"""Minimum ratio of scheduler periods with throttling for a label "CPU". On a busy machine or with a slow
client a container does not reach it."""
GROUPS = Path("/sys/fs/cgroup")
COLUMNS = {
    "cpu": {"metric": "cpu.busy_ratio"},
    "available": {"metric": "mem.available_ratio"},
    "reads": {"metric": "disk.reads_per_s", "instance": "data"},
    "writes": {"metric": "disk.writes_per_s", "instance": "data"},
    "read_bytes": {"metric": "disk.read_bytes_per_s", "instance": "data"},
    "write_bytes": {"metric": "disk.write_bytes_per_s", "instance": "data"},
    "r_await": {"metric": "disk.read_latency_s", "instance": "data", "weight": "reads"},
    "w_await": {"metric": "disk.write_latency_s", "instance": "data", "weight": "writes"},
    "outstanding": {"metric": "disk.outstanding", "instance": "data"},
    "busy": {"metric": "disk.busy_ratio", "instance": "data"},
    "net": {"metric": "net.used_ratio", "instance": "eth0"},
    "finished": {"metric": "db.requests_per_s"},
    "active": {"metric": "db.sessions_active"},
    "blocked": {"metric": "db.lock_waiters"},
}
DISKS = {
    "fast": DiskSpec(size_bytes=2 << 30),
    "capped": DiskSpec(iops=120, size_bytes=2 << 30),
    "slow": DiskSpec(latency_s=0.030, size_bytes=2 << 30),
}
NET_BYTES_PER_S = 125e6


class Container:
    """A control group, with the disk of its server's data."""

    def __init__(self, name: str, folder: Path, device: str) -> None:
        self.name, self.folder, self.device = name, folder, device
        self._groups = [GROUPS / kind / f"foreign-{name}" for kind in ("cpu", "cpuacct", "memory")]
        for group in self._groups:
            group.mkdir(exist_ok=True)
        (self._groups[0] / "cpu.cfs_period_us").write_text("100000")
        (self._groups[0] / "cpu.cfs_quota_us").write_text(str(round(QUOTA * 100000)))
        (self._groups[2] / "memory.limit_in_bytes").write_text(str(MEMORY_BYTES))
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str], user: str | None = None) -> subprocess.Popen[bytes]:
        """Start a program in the container and return its process."""
        enter = "".join(f"echo $$ >{group}/cgroup.procs; " for group in self._groups)
        become = f"setpriv --reuid {user} --clear-groups " if user else ""
        process = subprocess.Popen(
            ["sh", "-c", f'{enter}exec {become}"$@"', "sh", *command],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder.parent / f"{self.name}.log").open("ab"),
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def counters(self) -> dict[str, float]:
        """Return the counters that a container's exporter would report."""
        stat = dict(line.split() for line in (self._groups[2] / "memory.stat").read_text().splitlines())
        memory = int((self._groups[2] / "memory.usage_in_bytes").read_text())
        disks = Path("/proc/diskstats").read_text().splitlines()
        device = next(line.split() for line in disks if f" {self.device} " in line)
        reads, sectors_read, ms_read, writes, sectors_written, ms_write = (
            int(device[at]) for at in (3, 5, 6, 7, 9, 10)
        )
        net = next(line for line in Path("/proc/net/dev").read_text().splitlines() if "lo:" in line)
        return {
            "cpu": int((self._groups[1] / "cpuacct.usage").read_text()) / 1e9,
            "memory": memory - int(stat["total_inactive_file"]),
            "reads": reads,
            "read_bytes": sectors_read * 512,
            "read_s": ms_read / 1e3,
            "writes": writes,
            "write_bytes": sectors_written * 512,
            "write_s": ms_write / 1e3,
            "busy_s": int(device[12]) / 1e3,
            "net": int(net.split()[1]),
        }

    def throttled(self) -> tuple[int, int]:
        """Return (number of scheduler periods with an exhausted quota, number of all periods)."""
        stat = dict(line.split() for line in (self._groups[0] / "cpu.stat").read_text().splitlines())
        return int(stat["nr_throttled"]), int(stat["nr_periods"])

    def close(self) -> None:
        """End the container's programs and remove the control group."""
        for process in self._started:
            with suppress(ProcessLookupError):
                process.terminate()
        deadline = time.monotonic() + 20
        while (
            left := (self._groups[0] / "cgroup.procs").read_text().split()
        ) and time.monotonic() < deadline:
            time.sleep(0.2)
        for pid in left:
            subprocess.run(["kill", "-9", pid], check=False)
        for process in self._started:
            process.wait()
        time.sleep(0.5)
        for group in self._groups:
            group.rmdir()


@dataclass
class Server:
    """A server in its container.

    Attributes:
        finished: function that asks the server for (finished operations, active sessions, sessions that wait
            for a lock).
        light: load below the limits: a function that runs until the event is set.
        heavy: load of reads that saturates the CPU quota.
        writing: load of writes that saturates the disk.
        locked: load that holds a lock that all writers need; None: the server has no such lock.
        outside: function that makes the calls of ``light`` wait for an external service; None: not possible.
    """

    container: Container
    finished: Callable[[], tuple[float, float, float]]
    light: Callable[[threading.Event], None]
    heavy: Callable[[threading.Event], None]
    writing: Callable[[threading.Event], None]
    locked: Callable[[threading.Event], None] | None = None
    outside: Callable[[threading.Event], None] | None = None


def row(before: dict[str, float], after: dict[str, float], active: float, blocked: float) -> dict[str, Any]:
    """Return the row that an exporter would report for the time between two readings."""
    took = after["at"] - before["at"]
    grown = {name: after[name] - before[name] for name in after}
    waited = grown["read_s"] + grown["write_s"]
    return {
        "time": round(after["at"], 3),
        "cpu": round(grown["cpu"] / took / QUOTA, 4),
        "available": round(1 - after["memory"] / MEMORY_BYTES, 4),
        "reads": round(grown["reads"] / took, 2),
        "writes": round(grown["writes"] / took, 2),
        "read_bytes": round(grown["read_bytes"] / took),
        "write_bytes": round(grown["write_bytes"] / took),
        "r_await": round(grown["read_s"] / grown["reads"], 5) if grown["reads"] else "",
        "w_await": round(grown["write_s"] / grown["writes"], 5) if grown["writes"] else "",
        "outstanding": round(waited / took, 3),
        "busy": round(min(grown["busy_s"] / took, 1.0), 4),
        "net": round(grown["net"] / took / NET_BYTES_PER_S, 5),
        "finished": round(grown["finished"] / took, 2),
        "active": active,
        "blocked": blocked,
    }


def recorded(server: Server, seconds: float) -> list[dict[str, Any]]:
    """Return one row a second for this many seconds."""
    rows: list[dict[str, Any]] = []
    begin = time.time()
    before: dict[str, float] | None = None
    while time.time() < begin + seconds + 0.5:
        finished, active, blocked = server.finished()
        after = {**server.container.counters(), "finished": finished, "at": time.time()}
        if before is not None:
            rows.append(row(before, after, active, blocked))
        before = after
        time.sleep(max(0.0, 1.0 - time.time() % 1.0))
    return rows


@contextmanager
def going_on(*loads: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run the loads in the background until the end of the block."""
    end = threading.Event()
    threads = [threading.Thread(target=load, args=(end,), daemon=True) for load in loads]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join(30)


def program(command: Sequence[str]) -> Callable[[threading.Event], None]:
    """Return a load that runs a program outside the container and restarts the program when it ends."""

    def run(end: threading.Event) -> None:
        while not end.is_set():
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while process.poll() is None and not end.wait(0.1):
                pass
            process.terminate()
            process.wait()

    return run


def often(ask: Callable[[], object], per_s: float) -> Callable[[threading.Event], None]:
    """Return a load that calls ``ask`` at a fixed rate."""

    def run(end: threading.Event) -> None:
        while not end.wait(1 / per_s):
            with suppress(Exception):
                ask()

    return run


def inside(container: Container, command: Sequence[str]) -> Callable[[threading.Event], None]:
    """Return a load that runs another program in the container until the event is set."""

    def run(end: threading.Event) -> None:
        process = container.start(command)
        end.wait()
        subprocess.run(["pkill", "-TERM", "-s", str(process.pid)], check=False)
        process.wait()

    return run


def after(
    load: Callable[[threading.Event], None], from_s: float, to_s: float
) -> Callable[[threading.Event], None]:
    """Return a load that runs only from ``from_s`` to ``to_s``."""

    def run(end: threading.Event) -> None:
        if end.wait(from_s):
            return
        with going_on(load):
            end.wait(to_s - from_s)

    return run


def bursts(load: Callable[[threading.Event], None]) -> Callable[[threading.Event], None]:
    """Return a load that runs for six of every thirty seconds, which is no limit over thirty seconds."""

    def run(end: threading.Event) -> None:
        while not end.wait(24):
            with going_on(load):
                end.wait(6)

    return run


def answers(ask: Callable[[], object], within_s: float = 90.0) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            ask()
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
        else:
            return


@contextmanager
def postgresql(container: Container) -> Iterator[Server]:
    """Yield PostgreSQL under pgbench."""
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"))
    data, port = container.folder / "pg", free_port()
    data.mkdir()
    shutil.chown(data, "nobody")
    initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "admin", "-A", "trust", "--no-sync"]
    subprocess.run(
        ["setpriv", "--reuid", "nobody", "--clear-groups", *initdb], check=True, capture_output=True
    )
    command = [str(binaries / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port)]
    settings = ("unix_socket_directories=", "shared_buffers=32MB", "dynamic_shared_memory_type=mmap")
    container.start([*command, *(f"-c{setting}" for setting in settings)], user="nobody")
    url = f"postgresql://admin@127.0.0.1:{port}/postgres"
    answers(lambda: psycopg.connect(url, connect_timeout=2).close())
    place = ["-h", "127.0.0.1", "-p", str(port), "-U", "admin"]
    subprocess.run(
        ["pgbench", "-i", "-s", "2", *place, "postgres"], check=True, capture_output=True, timeout=300
    )
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("CREATE TABLE delay AS SELECT 0.002::float8 AS s")
    connection.execute(
        "CREATE FUNCTION call_out() RETURNS void LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep((SELECT s FROM delay)); END $$"
    )
    script = container.folder.parent / f"{container.name}.sql"
    script.write_text(
        "\\set aid random(1, 200000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\nSELECT call_out();\n"
    )

    def finished() -> tuple[float, float, float]:
        commits, active, blocked = connection.execute(
            "SELECT (SELECT sum(xact_commit) FROM pg_stat_database), (SELECT count(*) FROM pg_stat_activity "
            "WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()), "
            "(SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted)"
        ).fetchone() or (0, 0, 0)
        return float(commits), float(active), float(blocked)

    def locked(end: threading.Event) -> None:
        with psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE pgbench_accounts IN EXCLUSIVE MODE")
            end.wait()

    def outside(end: threading.Event) -> None:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("UPDATE delay SET s = 2.0")
            end.wait()
            other.execute("UPDATE delay SET s = 0.002")

    bench = ["pgbench", "-n", "-T", "3600", *place]
    yield Server(
        container,
        finished,
        light=program([*bench, "-c", "4", "-R", "12", "-f", str(script), "postgres"]),
        heavy=program([*bench, "-S", "-c", "8", "postgres"]),
        writing=program([*bench, "-N", "-c", "8", "postgres"]),
        locked=locked,
        outside=outside,
    )
    connection.close()


@contextmanager
def mariadb(container: Container) -> Iterator[Server]:
    """Yield MariaDB under sysbench."""
    data, port = container.folder / "maria", free_port()
    data.mkdir()
    shutil.chown(data, "mysql")
    own = ["--no-defaults", f"--datadir={data}", "--user=mysql"]
    install = ["mariadb-install-db", *own, "--skip-test-db", "--auth-root-authentication-method=normal"]
    subprocess.run(install, check=True, capture_output=True, timeout=120)
    socket = data / "sock"
    settings = ("innodb-buffer-pool-size=64M", "innodb-lock-wait-timeout=300", "max-connections=60")
    container.start(
        ["mariadbd", *own, f"--port={port}", f"--socket={socket}", f"--pid-file={data}/pid",
         "--bind-address=127.0.0.1", *(f"--{setting}" for setting in settings)]
    )  # fmt: skip

    def connect() -> Any:
        return pymysql.connect(unix_socket=str(socket), user="root", autocommit=True, connect_timeout=3)

    answers(lambda: connect().close())
    connection = connect()
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE sbtest")
        cursor.execute("CREATE USER bench@'127.0.0.1' IDENTIFIED BY 'bench'")
        cursor.execute("GRANT ALL ON sbtest.* TO bench@'127.0.0.1'")
    bench = ["sysbench", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=bench",
             "--mysql-password=bench", "--tables=1", "--table-size=20000", "--time=3600"]  # fmt: skip
    subprocess.run([*bench, "oltp_read_write", "prepare"], check=True, capture_output=True, timeout=300)

    def finished() -> tuple[float, float, float]:
        with connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS")
            status = dict(cursor.fetchall())
        names = ("Questions", "Threads_running", "Innodb_row_lock_current_waits")
        asked, running, waits = (float(status[name]) for name in names)
        return asked, running - 1, waits

    def locked(end: threading.Event) -> None:
        holder = connect()
        with holder.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT count(*) FROM (SELECT id FROM sbtest.sbtest1 FOR UPDATE) AS every_row")
            end.wait()
            cursor.execute("ROLLBACK")
        holder.close()

    yield Server(
        container,
        finished,
        light=program([*bench, "--threads=4", "--rate=12", "oltp_update_index", "run"]),
        heavy=program([*bench, "--threads=8", "oltp_read_only", "run"]),
        writing=program([*bench, "--threads=8", "oltp_update_non_index", "run"]),
        locked=locked,
    )
    connection.close()


@contextmanager
def redis(container: Container) -> Iterator[Server]:
    """Yield Redis, which flushes every write, under redis-benchmark."""
    port = free_port()
    container.start(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(container.folder),
         "--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    )  # fmt: skip
    client: Any = valkey.Valkey(port=port)
    answers(client.ping)
    numbers = iter(range(10**9))

    def finished() -> tuple[float, float, float]:
        stats = client.info()
        return float(stats["total_commands_processed"]), float(stats["connected_clients"] - 1), 0.0

    bench = ["redis-benchmark", "-p", str(port), "-n", "100000000", "-c", "8"]
    yield Server(
        container,
        finished,
        light=often(lambda: client.set(f"key:{next(numbers) % 1000}", b"x" * 200), 20),
        heavy=program([*bench, "EVAL", "for i = 1, 20000 do end", "0"]),
        writing=program([*bench, "-r", "10000", "-d", "200", "-t", "set"]),
    )
    client.close()


@contextmanager
def nginx(container: Container) -> Iterator[Server]:
    """Yield nginx under wrk; nginx writes only its access log."""
    port, folder = free_port(), container.folder
    (folder / "page").write_bytes(b"x" * 20_000)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/errors; worker_processes 2; user root;\n"
        f"events {{}}\nhttp {{ access_log {folder}/log; gzip on; gzip_types *; gzip_proxied any;\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; location /status {{ stub_status; }} }} }}\n"
    )
    container.start(["nginx", "-c", str(folder / "nginx.conf")])

    def get(path: str) -> bytes:
        command = ["curl", "-sf", "--compressed", f"http://127.0.0.1:{port}/{path}"]
        return subprocess.run(command, check=True, capture_output=True).stdout

    answers(lambda: get("status"))

    def finished() -> tuple[float, float, float]:
        words = get("status").split()
        return float(words[9]), float(words[-3]) - 1, 0.0

    bench = [
        "wrk",
        "-t",
        "1",
        "-c",
        "8",
        "-d",
        "3600",
        "-H",
        "Accept-Encoding: gzip",
        f"http://127.0.0.1:{port}/page",
    ]
    heavy = program(bench)
    yield Server(container, finished, light=often(lambda: get("page"), 10), heavy=heavy, writing=heavy)


SETUPS: dict[str, tuple[Callable[[Container], Any], str]] = {
    **{
        f"{server.__name__}-{disk}": (server, disk)
        for server in (postgresql, mariadb, redis)
        for disk in DISKS
    },
    "nginx-fast": (nginx, "fast"),
}

Case = tuple[str, str, tuple[Callable[[threading.Event], None], ...], bool]
"""(name, answer, loads, True if the fault lasts only for the window)."""


def cases(server: Server, disk: str) -> Iterator[Case]:
    """Yield the cases of a setup; a fault in the window begins and ends within the recording."""
    from_s, to_s, _ = WINDOW_S
    light, heavy, writing = server.light, server.heavy, server.writing

    def window(load: Callable[[threading.Event], None]) -> Callable[[threading.Event], None]:
        return after(load, from_s, to_s)

    def busy(*arguments: str) -> Callable[[threading.Event], None]:
        return inside(server.container, ["stress-ng", *arguments, "--timeout", "600"])

    fio = ["fio", "--name=other", "--rw=randwrite", "--bs=4k", "--direct=1", "--iodepth=8", "--size=64m",
           "--ioengine=libaio", "--time_based", "--runtime=600", "--filename=other"]  # fmt: skip
    if disk == "fast":
        yield "idle", "healthy", (), False
        yield "light", "healthy", (light,), False
        yield "light-again", "healthy", (light,), False
        yield "bursts", "healthy", (light, bursts(heavy)), False
        yield "half", "healthy", (light, busy("--cpu", "1", "--cpu-load", "8")), False
        yield "heavy", "cpu", (heavy,), False
        yield "heavy-window", "cpu", (light, window(heavy)), True
        yield "stress-window", "cpu", (light, window(busy("--cpu", "2"))), True
        yield "stress", "cpu", (light, busy("--matrix", "1")), False
        if server.locked:
            yield "lock-window", "lock", (light, window(server.locked)), True
        if server.outside:
            yield "outside-window", "elsewhere", (light, window(server.outside)), True
        return
    if disk == "capped":
        yield "light", "healthy", (light,), False
    yield "writing", "disk", (writing,), False
    yield "writing-window", "disk", (light, window(writing)), True
    yield "fio-window", "disk", (light, window(inside(server.container, fio))), True
    yield "fio", "disk", (light, inside(server.container, fio)), False


def record(setup: str, disks: EmulatedDisks, folder: Path) -> list[dict[str, str]]:
    """Record all cases of a setup and return their rows of ``labels.csv``."""
    make, kind = SETUPS[setup]
    disk = disks.build(replace(DISKS[kind]), f"own.{setup.replace('-', '')}")
    disk.apply(on=True, group=None)
    place = disks.mount(disk)
    place.chmod(0o755)
    device = Path(str(disk.describe()["device"])).name
    container = Container(setup, place, device)
    labels: list[dict[str, str]] = []
    try:
        with make(container) as server:
            for name, answer, loads, is_window in cases(server, kind):
                case, (throttled, periods) = f"{setup}-{name}", container.throttled()
                with going_on(*loads):
                    time.sleep(WARM_UP_S)
                    begin_s = time.time() - WARM_UP_S
                    rows = recorded(server, WINDOW_S[2] if is_window else WHOLE_S)
                after_it = container.throttled()
                share = (after_it[0] - throttled) / max(1, after_it[1] - periods)
                if answer == "cpu" and share < SATURATED * (WINDOW_S[0] / WHOLE_S if is_window else 1):
                    print(
                        f"{case}: left out: the quota was used up in {share:.0%} of the time only", flush=True
                    )
                    continue
                write_rows(folder / f"{case}.csv", rows)
                times = {
                    field: datetime.fromtimestamp(begin_s + at, UTC)
                    .replace(tzinfo=None)
                    .isoformat("T", "seconds")
                    for field, at in (("from", WINDOW_S[0]), ("to", WINDOW_S[1]))
                }
                labels.append(
                    {
                        "case": case,
                        "set": f"own {setup.partition('-')[0]}",
                        "file": f"{case}.csv",
                        "map": "map.yaml",
                        "answer": answer,
                        **(times if is_window else {}),
                    }
                )
                print(case, flush=True)
                time.sleep(3)
    finally:
        container.close()
    return labels


def main(folder: Path, setups: Sequence[str]) -> None:
    """Record all setups, three at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {
        "time": {"column": "time", "format": "unix"},
        "host": "container",
        "interval": "1s",
        "columns": COLUMNS,
    }
    (folder / "map.yaml").write_text(json.dumps(mapping, indent=1), encoding="utf-8")
    labels: list[dict[str, str]] = []
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        for found in pool.map(
            lambda setup: record(setup, stack.enter_context(emulated_disks()), folder), setups or list(SETUPS)
        ):
            labels += found
            write_labels(folder, labels)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
