"""Untrusted peers: without the token no message is accepted; with it, a bad peer ends only itself."""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq
from harness.loadgen.crews import OPEN, RATE, TOKEN, crew, elsewhere
from harness.loadgen.rogue import OTHER, Peer, peer
from servers import valkey

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.messages import LARGEST_BYTES
from pinchpoint.store import histogram
from pinchpoint_infra.ports import free_port


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with valkey() as nosql:
        yield nosql


def listening(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("no controller listens")


def test_without_the_token_no_message_gets_in_and_no_run_is_disturbed(url: str, tmp_path: Path) -> None:
    """Wrong keys, endless handshakes and noise disturb no run, and a worker with the token joins."""
    port = free_port()
    with crew(tmp_path, url, OPEN, 1, port) as one:
        listening(port)
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for number, slow in enumerate(idle):
            slow.sendall(
                (b"\xff\0\0\0\0\0\0\0\1\x7f\3\1CURVE", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64)[number % 3]
            )
        with peer(zmq.DEALER, None, port) as plain, peer(zmq.DEALER, OTHER, port) as wrong, elsewhere(port):
            for rogue in (plain, wrong):
                with suppress(zmq.Again):
                    rogue.hello()
                    rogue.socket.send(b"\xc1" * 1000)
                    rogue.socket.send(b"x" * 100_000_000)
            assert one.pool.wait_joined(1, lambda: False, 90) == 1
            one.start()
            one.check_workers(6)
            assert plain.hear(0) is None
            assert wrong.hear(0) is None
            assert one.pool.wait_joined(2, lambda: False, 0) == 0
            one.end()
        for slow in idle:
            slow.settimeout(1)
            with suppress(ConnectionResetError):
                while slow.recv(4096):
                    pass  # ZeroMQ's greeting; the test is that the other side closes the connection
            slow.close()
    assert one.pool.failures() == []
    assert one.events_of("worker_lost") == one.events_of("worker_dropped") == []
    assert one.events_of("connections_unproved")
    assert one.done()["failed"] == []
    assert min(one.done()["workers"].values()) > RATE


def second(work: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return a second that a worker may send, with changes in its only row."""
    row = {
        "time_s": int(time.time()), "interval_s": 1.0, "worker": work["name"], "scenario": "burst",
        "operation": "write", "outcome": "ok", "count": 1, "bytes": 0, "service": None, "response": None,
        "dropped": 0,
    } | changed  # fmt: skip
    return {"type": "second", "rows": [list(row.values())], "samples": [], "progress": {}}


def raw(data: bytes) -> Callable[[Peer, dict[str, Any]], None]:
    return lambda rogue, _: rogue.socket.send(data)


def said(message: dict[str, Any]) -> Callable[[Peer, dict[str, Any]], None]:
    return lambda rogue, _: rogue.say(message)


def row(**changed: Any) -> Callable[[Peer, dict[str, Any]], None]:
    return lambda rogue, work: rogue.say(second(work, **changed))


def replay(rogue: Peer, work: dict[str, Any]) -> None:
    rogue.say(second(work))
    again = json.dumps({"number": rogue.number, "message": second(work)}).encode()
    rogue.socket.send(again)


def several_parts(rogue: Peer, _: dict[str, Any]) -> None:
    rogue.socket.send_multipart([b"{}", b"{}"])


def flood(rogue: Peer, _: dict[str, Any]) -> None:
    for _again in range(3000):
        rogue.say({"type": "ready"})


TWO = histogram.encoded(histogram.counted(np.array([5_000_000, 6_000_000])))
GARBAGE: dict[str, Callable[[Peer, dict[str, Any]], None]] = {
    "noise": raw(b"\xc1\xff" * 50),
    "nothing": raw(b""),
    "deep": raw(b"[" * 1_000_000),
    "a huge number": raw(b'{"number": ' + b"9" * 1_000_000 + b"}"),
    "oversize": raw(b"x" * (LARGEST_BYTES + 1)),
    "several parts": several_parts,
    "no such message": said({"type": "spawn"}),
    "a field too many": said({"type": "ready", "worker": "g0"}),
    "not a number": said({"type": "busy", "for_s": float("nan")}),
    "for ever": said({"type": "busy", "for_s": 1e300}),
    "another's scenario": said({"type": "working", "scenario": "orders", "working": False}),
    "a forged phase": said({"type": "event", "event": "phase", "scenario": "burst", "phase": "measure"}),
    "a forged sender": said({"type": "event", "event": "logged", "scenario": "burst", "worker": "g0"}),
    "an unasked answer": said({"type": "pong", "sent_ns": 0, "utc_ns": 2**62}),
    "a replayed second": replay,
    "a flood": flood,
    "another's operations": row(worker="g0"),
    "operations of tomorrow": row(time_s=int(time.time()) + 86_400),
    "a negative count": row(count=-5),
    "a count beyond reason": row(count=10**15),
    "no histogram": row(service="AAAA"),
    "more times than operations": row(service=TWO),
}


def test_a_worker_that_sends_garbage_is_dropped_by_name_and_the_run_goes_on(url: str, tmp_path: Path) -> None:
    """Workers that send one bad message are dropped by name, and the remaining one does all the work."""
    port = free_port()
    with crew(tmp_path, url, OPEN, 1, port) as one, ExitStack() as peers:
        rogues = [peers.enter_context(peer(zmq.DEALER, TOKEN, port)) for _ in GARBAGE]
        for rogue in rogues:
            rogue.hello()
        left = list(rogues)

        def meanwhile() -> bool:
            for rogue in left:
                rogue.take_part()
            return False

        assert one.pool.wait_joined(len(rogues), meanwhile, 90) == len(rogues)
        one.start(meanwhile)
        for number, (what, misbehave) in enumerate(GARBAGE.items(), 1):
            rogue = left.pop(0)
            misbehave(rogue, rogue.work)
            one.check_workers(until=lambda: meanwhile() or len(one.events_of("worker_lost")) == number)  # noqa: B023
            assert one.pool.failures() == [], what
            dropped = one.events_of("worker_dropped")
            assert len(dropped) == number, what
            assert dropped[-1]["machine"] == "rogue1"
            assert "sent what no load worker sends" in one.events_of("worker_lost")[-1]["why"]
            assert "refused" in rogue.until("refused")
        alone_s = math.ceil(time.time())
        one.check_workers(4)
        one.end()
        lasted_s = time.time() - alone_s
        found = one.done(alone_s)
    assert one.pool.failures() == []
    assert found["ok"] + found["dropped"] == pytest.approx(RATE * lasted_s, abs=RATE)
    assert list(found["workers"]) == ["g0"]


def test_one_that_goes_bad_before_the_load_begins_ends_itself_alone(url: str, tmp_path: Path) -> None:
    """A worker that fails before the load begins ends only itself, and the load is complete."""
    port = free_port()
    with crew(tmp_path, url, OPEN, 1, port) as one, peer(zmq.DEALER, TOKEN, port) as rogue:
        rogue.hello()
        assert one.pool.wait_joined(1, rogue.take_part, 90) == 1
        one.pool.start()
        rogue.until("assignment")
        rogue.say({"type": "nonsense"})
        one.pool.wait_ready(lambda: False)
        assert one.pool.failures() == []
        one.pool.begin(["burst"])
        one.begun_s = time.monotonic()
        one.check_workers(3)
        lasted_s = one.end()
        found = one.done()
    assert [lost["worker"] for lost in one.events_of("worker_lost")] == ["generator2"]
    assert found["ok"] == pytest.approx(RATE * lasted_s, abs=0.7 * RATE)


@pytest.mark.parametrize("token", [None, OTHER])
def test_a_worker_tells_a_controller_without_the_token_nothing(
    url: str, tmp_path: Path, token: str | None
) -> None:
    """A worker sends nothing to a controller without the token, and joins one that has it."""
    port = free_port()
    with elsewhere(port) as worker:
        with peer(zmq.ROUTER, token, port) as rogue:
            assert worker.stdout is not None
            assert "do not share a token" in worker.stdout.readline()
            assert rogue.hear(1) is None
            assert worker.poll() is None
        with crew(tmp_path, url, OPEN, 1, port) as one:
            assert one.pool.wait_joined(1, lambda: False, 90) == 1


def work(url: str, **changed: Any) -> dict[str, Any]:
    given = {"use": "nosql-burst", "params": {}, "load": OPEN, "repeat_s": None}
    assignment = Assignment(
        name="generator1", worker=0, cores=[], beat_s=0.3, journal="", seed=1,
        endpoints={"nosql": {"url": url}}, scenarios={"burst": given},
        slots={"burst": list(range(840))}, ranks={"burst": (0, 1)},
    )  # fmt: skip
    return {"assignment": assignment.to_json() | changed}


@pytest.mark.parametrize(
    ("given", "named", "option"),
    [
        (
            {"endpoints": {"nosql": {"url": "redis://:${CANARY_SECRET}@127.0.0.1:{port}/0"}}},
            "CANARY_SECRET",
            "--allow-env",
        ),
        (
            {"scenarios": {"burst": {"use": "/srv/evil.py", "params": {}, "load": OPEN, "repeat_s": None}}},
            "/srv/evil.py",
            "--allow-path",
        ),
    ],
)
def test_a_worker_refuses_what_its_operator_does_not_permit(
    given: dict[str, Any], named: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker refuses unpermitted variables and paths by name with the option, and connects nowhere."""
    monkeypatch.setenv("CANARY_SECRET", "canary-that-must-not-travel")
    port = free_port()
    with socket.socket() as target, peer(zmq.ROUTER, TOKEN, port) as controller, elsewhere(port) as worker:
        target.bind(("127.0.0.1", 0))
        target.listen()
        target.settimeout(0.2)
        here = str(target.getsockname()[1])
        changed = json.loads(json.dumps(given).replace("{port}", here))
        refusal = answer(controller, work(f"redis://127.0.0.1:{here}/0", **changed))
        assert refusal["kind"] == "environment"
        assert named in refusal["why"]
        assert option in refusal["why"]
        assert "canary-that" not in refusal["why"]
        with pytest.raises(TimeoutError):
            target.accept()
        assert worker.wait(60) == 0
        assert worker.stdout is not None
        assert named in worker.stdout.read()


def answer(controller: Peer, command: dict[str, Any]) -> dict[str, Any]:
    """Return a worker's answer to its assignment."""
    parts = controller.hear(90)
    assert parts is not None
    identity = parts[0]
    controller.say(command, identity)
    while True:
        message = controller.message(90)
        if message["type"] not in ("hello", "waiting"):
            return message


def test_what_is_permitted_is_used(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable's name and the folder permitted, the worker takes part."""
    monkeypatch.setenv("CANARY_HOST", url.partition("@")[2])
    folder = tmp_path / "allowed"
    folder.mkdir()
    farm = {
        "nosql": {"url": f"{url.partition('@')[0]}@${{CANARY_HOST}}"},
        "files": {"url": str(folder)},
    }
    port = free_port()
    with (
        peer(zmq.ROUTER, TOKEN, port) as controller,
        elsewhere(port, variables=["CANARY_HOST"], folders=[str(tmp_path)]),
    ):
        assert answer(controller, work(url, endpoints=farm))["type"] in ("ready", "second")


@pytest.mark.parametrize("command", [{"quit": True}, {"assignment": {}}])
def test_a_controller_that_sends_garbage_ends_the_worker_with_a_sentence(command: dict[str, Any]) -> None:
    """A controller that sends a bad message ends the worker with exit status 5 and a sentence."""
    port = free_port()
    with peer(zmq.ROUTER, TOKEN, port) as controller, elsewhere(port) as worker:
        parts = controller.hear(90)
        assert parts is not None
        controller.say(command, parts[0])
        assert worker.wait(60) == 5
        assert worker.stdout is not None
        assert "sent what no controller sends" in worker.stdout.read()
