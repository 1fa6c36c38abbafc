"""Tests of the collector `valkey` with real servers: Valkey 9 and the system's Redis."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
import valkey
from collectors.asking import asking, found
from collectors.server_contract import README, Peer, ServerContract
from servers import redis, running
from support import run_cli, until

from pinchpoint.farm.ready import standing_farm
from pinchpoint.plan import load_farm
from pinchpoint_collectors.databases.valkey_driver import ValkeyServerConnection
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Watch
from pinchpoint_collectors.registry import kind
from pinchpoint_infra.embedded.tiers.nosql import MAY, NoSql


class Server:
    """A Valkey with the URLs of an administrator and a watcher, and an administrator's client."""

    def __init__(self, url: str, monitor: str) -> None:
        self.url, self.monitor = url, monitor
        self.client = valkey.Valkey.from_url(url, decode_responses=True)

    def do(self, *command: str | int) -> Any:
        """Run one command as the administrator."""
        return self.client.execute_command(*command)  # type: ignore[no-untyped-call]

    def hold_up(self, time_s: float) -> None:
        """Keep the server's thread busy with one command for this time."""
        self.do("EVAL", f"local begun = os.clock() while os.clock() - begun < {time_s} do end", 0)

    @property
    def process(self) -> psutil.Process:
        """Return the server's process."""
        return psutil.Process(self.do("INFO", "server")["process_id"])

    def close(self) -> None:
        """Close the client."""
        self.client.close()  # type: ignore[no-untyped-call]
        self.client.connection_pool.disconnect()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Run Valkey with the users of an embedded farm."""
    with running(NoSql) as tier:
        urls = tier.endpoint()
        found = Server(urls["url"], urls["monitor"])
        try:
            yield found
        finally:
            found.close()


@pytest.fixture(scope="module")
def peer(server: Server) -> Peer:
    def count() -> int:
        return int(server.do("CLIENT", "LIST").count("user=monitor "))

    return Peer(server.monitor, lambda: [server.process.pid], count)


class TestContract(ServerContract):
    KIND = "valkey"
    SEVERAL = False
    UNREACHABLE: ClassVar = {
        "valkey://monitor:wrong-secret@{place}": "correct user and password in farm.yaml",
        "valkey://{place}": "give user and password in farm.yaml",
        "valkey://127.0.0.1:1": "start the server, or correct host and port in farm.yaml",
        "valkey://{place}?socket_timeout=soon": "correct the url in farm.yaml",
    }


watching = partial(asking, "valkey", "kv1", "nosql")


def test_durable_writes_are_the_files_share_of_the_busy_thread(server: Server) -> None:
    """With durable writes most of the thread's busy time is file I/O, and little is CPU.

    No part is larger than the whole.
    """
    with watching(server.monitor) as collector:
        begun = time.monotonic()
        for number in range(500):
            server.do("SET", f"key{number % 50}", "x" * 200)
        took_s = time.monotonic() - begun
        samples = collector.read()
    values, interval_s = found(samples), samples[0].interval_s
    busy = values["db.main_thread.busy_ratio", ""] or 0
    wait = values["db.aof.wait_ratio", ""] or 0
    commands = values["db.main_thread.commands_ratio", ""] or 0
    assert took_s <= interval_s < took_s + 5
    assert 0 < commands < wait < busy <= 1.02
    assert wait + commands <= busy * 1.02
    assert 0 < (values["db.main_thread.cpu_ratio", ""] or 0) <= busy * 1.2
    assert 500 <= (values["db.commands_per_s", ""] or 0) * interval_s <= 520
    assert (values["db.aof.bytes_per_s", ""] or 0) * interval_s > 500 * 200
    cycles = (values["db.main_thread.cycles_per_s", ""] or 0) * interval_s
    assert cycles >= 500
    assert (values["db.main_thread.cycle_s", ""] or 0) * cycles / interval_s == pytest.approx(busy, rel=0.1)
    assert values["db.aof.failing", ""] == 0


def test_reads_leave_the_file_alone(server: Server) -> None:
    """With reads only, the file I/O share of a busy thread is near zero."""
    with watching(server.monitor) as collector:
        asking = server.client.pipeline(transaction=False)
        for _ in range(20_000):
            asking.get("key1")
        asking.execute()  # type: ignore[no-untyped-call]
        values = found(collector.read())
    assert (values["db.aof.wait_ratio", ""] or 0) < (values["db.main_thread.busy_ratio", ""] or 0) / 2
    assert values["db.aof.bytes_per_s", ""] == 0


def test_clients_that_wait_and_that_are_refused_are_counted(server: Server) -> None:
    """A client in a blocking command, and one above maxclients, are counted."""
    waiting = valkey.Valkey.from_url(server.url)
    thread = threading.Thread(target=waiting.blpop, args=("nothing-comes", 20))
    limit = server.do("CONFIG GET", "maxclients")["maxclients"]
    with watching(server.monitor) as collector:
        thread.start()
        try:
            server.do("CONFIG", "SET", "maxclients", 3)
            time.sleep(0.2)
            with pytest.raises(valkey.ConnectionError, match="max number of clients"):
                Server(server.url, "").do("PING")
            values = found(collector.read())
        finally:
            server.do("CONFIG", "SET", "maxclients", limit)
            server.do("RPUSH", "nothing-comes", "1")
            thread.join(20)
            waiting.close()  # type: ignore[no-untyped-call]
    assert values["db.clients_blocked", ""] == 1
    assert values["db.connections", ""] == 3, "ours included"
    assert values["db.connections_ratio", ""] == 1
    assert (values["db.connections_rejected_per_s", ""] or 0) > 0


def test_memory_that_is_full_evicts(server: Server) -> None:
    """With a memory limit the ratio and the evicted keys are reported."""
    with watching(server.monitor) as collector:
        assert ("db.memory_ratio", "") not in found(collector.read())
        server.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        used = int(server.do("INFO", "memory")["used_memory"])
        server.do("CONFIG", "SET", "maxmemory", used + 100_000)
        try:
            for number in range(40):
                server.do("SET", f"large{number}", "x" * 10_000)
            values = found(collector.read())
        finally:
            server.do("CONFIG", "SET", "maxmemory", 0)
            server.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert (values["db.evicted_keys_per_s", ""] or 0) > 0
    assert 0.5 < (values["db.memory_ratio", ""] or 0) <= 1.05


def test_a_delay_the_server_noted_is_told_once(server: Server) -> None:
    """A delay before the first reading is ignored; a new one is reported once by its kind, then null."""
    server.hold_up(0.05)
    with watching(server.monitor) as collector:
        before = found(collector.read())
        # the server keeps the longest delay of each second, so the next one needs a new second
        time.sleep(1.1)
        server.hold_up(0.04)
        during, after = found(collector.read()), found(collector.read())
    assert before["db.spike_s", "command"] is None
    assert 0.04 <= (during["db.spike_s", "command"] or 0) < 5
    assert after["db.spike_s", "command"] is None


def test_a_rewrite_forks_and_makes_the_files_growth_unknown(server: Server) -> None:
    """A fork's time has its weight; when a rewrite shrinks the file, its growth is unknown."""
    for _ in range(100):
        server.do("SET", "again", "x" * 2000)
    with watching(server.monitor) as collector:
        server.do("BGREWRITEAOF")
        until(lambda: not server.do("INFO", "persistence")["aof_rewrite_in_progress"])
        samples = collector.read()
    (fork,) = [each for each in samples if each.metric == "db.fork_latency_s"]
    assert fork.weight == 1
    assert 0 < (fork.value or 0) < 5
    assert found(samples)["db.aof.bytes_per_s", ""] is None


def test_the_documented_user_is_enough_and_may_do_nothing_else(server: Server) -> None:
    """The documented user gets all metrics, and no access to keys, settings and others' connections."""
    with watching(server.monitor) as collector:
        facts = collector.inventory()["kv1"]
    watcher = Server(server.monitor, "")
    for command in (
        ("GET", "key1"),
        ("CONFIG", "GET", "requirepass"),
        ("CONFIG", "SET", "maxmemory", "1"),
        ("CLIENT", "LIST"),
        ("KEYS", "*"),
    ):
        with pytest.raises(valkey.exceptions.NoPermissionError):
            watcher.do(*command)
    watcher.close()
    assert f"ACL SETUSER watcher on >... resetkeys resetchannels {MAY}\n" in README
    assert facts["database"]["server"] == "valkey"
    assert facts["database"]["role"] == "monitor"
    assert facts["database"]["settings"]["appendonly"] == "yes"
    assert facts["database"]["settings"]["appendfsync"] is None
    assert facts["database"]["append_only"] is True
    assert [each["metric"] for each in facts["not_measured"]] == ["db.memory_ratio"]
    assert json.loads(json.dumps(facts)) == facts
    assert "://" not in json.dumps(facts), "no address, and so no password"


def test_it_asks_for_nothing_it_may_not(server: Server) -> None:
    """The collector causes no refused command, which intrusion detection would report."""
    server.do("CONFIG", "RESETSTAT")
    server.do("ACL", "LOG", "RESET")
    with watching(f"{server.monitor}/7") as collector:
        collector.inventory()
        collector.read()
    stats = server.do("INFO", "commandstats")
    assert server.do("ACL", "LOG") == []
    asked = {name.removeprefix("cmdstat_") for name in stats}
    assert asked - {"config|resetstat", "acl|log"} == {
        "auth", "info", "latency|latest", "latency|history", "latency|doctor",
    }  # fmt: skip


def test_a_user_who_may_only_ask_info_is_told_what_is_missing(server: Server) -> None:
    """A user with only INFO gets all metrics but the delays; settings come from INFO."""
    server.do("ACL", "SETUSER", "narrow", "on", ">narrow", "-@all", "+info")
    try:
        url = server.monitor.replace("//monitor:", "//narrow:narrow-not-")
        with watching(url, user="narrow", password="narrow") as collector:
            facts, values = collector.inventory()["kv1"], found(collector.read())
    finally:
        server.do("ACL", "DELUSER", "narrow")
    assert values["db.aof.wait_ratio", ""] is not None
    assert not [metric for metric, _ in values if metric == "db.spike_s"]
    assert facts["database"]["settings"]["appendonly"] == "yes"
    assert facts["database"]["role"] == "narrow"
    remedies = {each["metric"]: each["remedy"] for each in facts["not_measured"]}
    assert (
        remedies["db.spike_s"] == "run: ACL SETUSER narrow +latency|latest +latency|history +latency|doctor"
    )


def test_a_lost_connection_costs_nothing(server: Server) -> None:
    """After a kill of the collector's session, the next reading reconnects and has its differences."""
    with watching(server.monitor) as collector:
        assert server.do("CLIENT", "KILL", "USER", "monitor") == 1
        assert found(collector.read())["db.commands_per_s", ""] is not None


def test_after_a_move_to_another_server_one_interval_has_no_counters(server: Server) -> None:
    """After another server takes over the address, one interval has no counters."""
    with running(NoSql) as tier:
        other = tier.endpoint()["monitor"]
        with watching(server.monitor) as collector:
            there = kind("valkey").connect([Watch("kv1", "nosql", options={"url": other})])
            collector._server, there._server = there._server, collector._server  # type: ignore[attr-defined]
            try:
                first, second = found(collector.read()), found(collector.read())
            finally:
                there.close()
    assert first["db.connections", ""] == 1
    assert ("db.commands_per_s", "") not in first
    assert (second["db.commands_per_s", ""] or 0) > 0


def test_a_server_that_only_speaks_the_protocol_is_explained(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers INFO but is not Valkey is reported at connect, without a traceback."""
    run = ValkeyServerConnection._run

    def poorer(self: ValkeyServerConnection, *args: Any) -> list[Any]:
        basic, *others = run(self, *args)
        return [{key: basic[key] for key in basic if key != "aof_enabled"}, *others]

    monkeypatch.setattr(ValkeyServerConnection, "_run", poorer)
    with pytest.raises(CollectorError, match=r"\(INFO\) has no aof_enabled; .* leave this collector out"):
        kind("valkey").connect([Watch("kv1", "nosql", options={"url": server.monitor})])


def test_redis_is_read_with_what_it_has() -> None:
    """Redis 7.0 lacks the event loop's time, which is listed and never 0; other counters are there."""
    with redis() as url, watching_when_up(url) as collector:
        facts = collector.inventory()["kv1"]
        client = Server(url, "")
        for _ in range(300):
            client.do("SET", "key", "x" * 200)
        client.close()
        samples = collector.read()
    values, interval_s = found(samples), samples[0].interval_s
    assert facts["database"]["server"] == "redis"
    assert facts["database"]["role"] == "default"
    assert 300 <= (values["db.commands_per_s", ""] or 0) * interval_s <= 340, "some of them ours"
    assert 0 < (values["db.main_thread.cpu_ratio", ""] or 0) <= 1.1
    assert (values["db.aof.bytes_per_s", ""] or 0) * interval_s > 300 * 200
    missing = {each["metric"]: each["remedy"] for each in facts["not_measured"]}
    version = tuple(map(int, facts["database"]["version"].split(".")[:2]))
    for metric in ("db.main_thread.busy_ratio", "db.aof.wait_ratio"):
        assert (metric in missing) == (version < (7, 2))
        assert ((metric, "") in values) == (version >= (7, 2))
    assert missing["db.spike_s"] == "run: CONFIG SET latency-monitor-threshold 5"
    assert {metric for metric, _ in values if f"`{metric}`" not in README} == set()


@contextmanager
def watching_when_up(url: str) -> Iterator[Collector]:
    """Yield a collector of a server that may not listen yet."""
    deadline = time.monotonic() + 15
    while True:
        try:
            with watching(url) as collector:
                yield collector
        except CollectorError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@pytest.mark.farm
@pytest.mark.alone
@pytest.mark.slow  # starts and stops a farm: most of a minute on two busy cores
def test_an_embedded_farm_is_watched_by_itself(tmp_path: Path) -> None:
    """A watched embedded farm has the server's view, by a user that scenarios do not have."""
    path = tmp_path / "farm.yaml"
    path.write_text(json.dumps({"name": "own", "environment": "test", "embedded": {"tiers": ["nosql"]}}))
    try:
        assert run_cli("farm", "up", path).returncode == 0
        live = standing_farm(load_farm(path))
        assert live is not None
        assert set(live.endpoints["nosql"]) == {"url"}
        (host,) = [watch for name, watch in live.watches if name == "valkey"]
        collector = kind("valkey").connect([host])
        try:
            facts = collector.inventory()["nosql1"]
        finally:
            collector.close()
    finally:
        run_cli("farm", "down", path)
    assert facts["database"]["settings"]["appendonly"] == "yes"
    assert facts["database"]["settings"]["appendfsync"] is None
    assert [each["metric"] for each in facts["not_measured"]] == ["db.memory_ratio"]
