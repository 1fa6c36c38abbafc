"""`check` on many hosts: unreachable ones cost one timeout in all, and the order is kept."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.plan import Farm, load_farm
from pinchpoint.run import preflight
from pinchpoint.run.preflight import WriteTest, connect, prove
from pinchpoint_collectors import registry
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch

TIMEOUT_S = 2.0


class Machine:
    """A machine that reads a ratio and a rate, and takes a moment to close."""

    def __init__(self, host: str, kind: Kind) -> None:
        self._host, self._kind = host, kind

    def read(self) -> Sequence[Sample]:
        values = (("cpu.busy_ratio", 0.5), ("mem.available_bytes", 1e9))
        return [Sample(time.time_ns(), 1.0, self._host, metric, "", value) for metric, value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        return {self._host: {"machine_id": self._kind.machine_ids.get(self._host, self._host)}}

    def close(self) -> None:
        time.sleep(0.2)
        self._kind.closed.append(self._host)


class Kind:
    """A collector kind that connects to an address; without an answer in time the host is unreachable."""

    name = "answering"
    options = frozenset({"address"})
    public = options

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.machine_ids: dict[str, str] = {}

    def machine(self, watch: Watch) -> str:
        return str(watch.options["machine"]) if watch.options.get("odd") else watch.host

    def connect(self, watches: Sequence[Watch]) -> Collector:
        watch = watches[0]
        if watch.options.get("odd"):
            raise RuntimeError("a driver's own error")
        with socket.create_connection(watch.options["address"], TIMEOUT_S) as connection:
            try:
                assert connection.recv(1)
            except TimeoutError as error:
                raise CollectorError(f"{watch.host} says nothing") from error
        return Machine(watch.host, self)


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Return the collector kind, registered for the test."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    registry.register(made := Kind())
    return made


@pytest.fixture
def living() -> Iterator[tuple[str, int]]:
    """Yield the address of a server that greets."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:

        def greet() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"x")

        thread = threading.Thread(target=greet)
        thread.start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.fixture
def dead() -> Iterator[tuple[str, int]]:
    """Yield the address of a server that accepts connections and stays silent."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()


def watch(host: str, address: tuple[str, int], **more: Any) -> tuple[str, Watch]:
    return "answering", Watch(host, "sql", options={"address": address, **more})


def test_three_dead_ones_of_fifty_cost_one_timeout(
    kind: Kind, living: tuple[str, int], dead: tuple[str, int]
) -> None:
    """Three silent hosts of fifty cost one timeout; results are in order, and all are closed at once."""
    watches = [watch(f"h{n}", dead if n in (3, 20, 41) else living) for n in range(50)]
    begun_s = time.monotonic()
    with ExitStack() as stack:
        found = list(connect(watches, stack))
        connected_s = time.monotonic() - begun_s
    closed_s = time.monotonic() - begun_s - connected_s
    assert [check.about for check, _ in found] == [((name, each.host),) for name, each in watches]
    assert [check.found for check, _ in found if not check.ok] == [f"h{n} says nothing" for n in (3, 20, 41)]
    assert connected_s < 2 * TIMEOUT_S
    assert sorted(kind.closed) == sorted(each.host for check, each in _pairs(found, watches) if check.ok)
    assert closed_s < 47 * 0.2 / 2


def _pairs(found: Sequence[Any], watches: Sequence[tuple[str, Watch]]) -> list[tuple[Any, Watch]]:
    return [(check, each) for (check, _), (_, each) in zip(found, watches, strict=True)]


def test_a_driver_s_own_error_is_that_host_s_alone(kind: Kind, living: tuple[str, int]) -> None:
    """A driver's error is reported with its type for that host only."""
    with ExitStack() as stack:
        found = list(connect([watch("a", living), watch("b", living, odd=True), watch("c", living)], stack))
    assert [(check.ok, check.found) for check, _ in found][1] == (False, "RuntimeError: a driver's own error")
    assert [check.ok for check, _ in found] == [True, False, True]
    assert sorted(kind.closed) == ["a", "c"]


def test_who_cannot_tell_its_inventory_is_not_relied_on(
    kind: Kind, living: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inventory is read once while connected, as a run could not report its failure."""
    monkeypatch.setattr(Machine, "inventory", lambda self: {}[self._host])
    with ExitStack() as stack:
        ((check, connected),) = connect([watch("a", living)], stack)
    assert (check.ok, check.found, connected) == (False, "KeyError: 'a'", None)


def test_writes_on_one_machine_are_made_one_after_the_other(
    kind: Kind, living: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write proofs of one machine run one after the other, and those of others concurrently."""
    kind.machine_ids = {"a": "one", "b": "one", "c": "another"}
    now: list[str] = []
    together: list[set[str]] = []

    def write(_collector: Collector, _kind: str, each: Watch, _role: str, _folder: str) -> WriteTest:
        now.append(each.host)
        time.sleep(0.5)
        together.append(set(now))
        now.remove(each.host)
        return WriteTest("ok", "seen")

    monkeypatch.setattr(preflight, "prove_write", write)
    watches = [
        (name, Watch(each.host, each.tier, {"data": str(tmp_path)}, options={**each.options, "verify": True}))
        for name, each in (watch(host, living) for host in "abc")
    ]
    checks, proofs = prove(_farm(tmp_path), watches)
    assert all(check.ok for check in checks)
    assert [each.host for each in proofs if each.what == "write data"] == ["a", "b", "c"]
    assert not [hosts for hosts in together if {"a", "b"} <= hosts]
    assert [hosts for hosts in together if "c" in hosts and len(hosts) > 1]


def _farm(folder: Path) -> Farm:
    farm = {
        "name": "f",
        "environment": "test",
        "endpoints": {"web": {"url": "http://127.0.0.1:9"}},
        "tiers": {"sql": {"hosts": {"a": {}}}},
    }
    (folder / "farm.yaml").write_text(json.dumps(farm))
    return load_farm(folder / "farm.yaml")
