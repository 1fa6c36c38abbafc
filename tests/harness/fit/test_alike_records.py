"""A record load on a real Valkey is fitted from INFO and replayed: both are compared."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from servers import valkey
from support import require, run_cli
from valkey import Valkey

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.fit.fit import fit
from pinchpoint.plan import load_plan

pytestmark = pytest.mark.farm

BASE, PEAK, EVERY_S, FOR_S = 60, 240, 8.0, 3.0
"""Operations per second of the recorded application, over all clients, and its bursts in seconds."""
CLIENTS = 4
WORK = ("read", "update", "read", "update", "read", "session", "read", "update", "read", "session")
"""The repeated order: five reads, three updates, two new records that expire."""
LIVES_S = 5
ALIKE = (
    "record_writes_per_s",
    "record_reads_per_s",
    "record_reads_per_write",
    "record_insert_ratio",
    "record_expiring_ratio",
    "record_log_bytes_per_write",
    "record_received_bytes",
    "record_base_per_s",
    "record_peak_per_s",
    "record_burst_every_s",
)


@contextmanager
def application(url: str) -> Iterator[None]:
    """Read and change profiles and add expiring sessions, with bursts, during the block."""
    with Valkey.from_url(url) as client:
        client.mset({f"profile:{n}": b"p" * 300 for n in range(2000)})
    stop, errors, begun = threading.Event(), list[BaseException](), time.monotonic()

    def work(number: int) -> None:
        try:
            with Valkey.from_url(url) as client:
                due = 0.0
                for done, what in enumerate(cycle(WORK)):
                    key = f"profile:{(done * 7919 + number) % 2000}"
                    if what == "read":
                        client.get(key)
                    elif what == "update":
                        client.set(key, b"q" * 300)
                    else:
                        client.set(f"session:{number}:{done}", b"s" * 200, ex=LIVES_S)
                    rate = PEAK if due % EVERY_S >= EVERY_S - FOR_S else BASE
                    due += CLIENTS / rate
                    if stop.wait(max(0.0, begun + due - time.monotonic())):
                        return
        except BaseException as error:  # noqa: BLE001 - raised again by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2 * LIVES_S)  # as many sessions expire as are added
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    assert not errors, errors


@pytest.mark.slow  # two minutes of one server; the parts have tests of their own
@pytest.mark.timeout(400)
def test_a_replay_is_like_what_it_was_fitted_to(tmp_path: Path) -> None:
    """Rates, weights, bytes and bursts agree within 10 %, from the server's own figures alone."""
    with valkey() as url:
        with application(url):
            text = fit([url], 5 * EVERY_S, lambda _: None)
        with Valkey.from_url(url) as client:
            client.flushall()
        shorter = re.sub(r"measure: \d+s", f"measure: {8 * EVERY_S:.0f}s", text)
        (tmp_path / "plan.yaml").write_text(shorter, encoding="utf-8")
        collect = [{"kind": "valkey", "endpoint": "nosql"}]
        farm = {"name": "copy", "environment": "test", "endpoints": {"nosql": {"url": url}}}
        farm |= {"tiers": {"nosql": {"hosts": {"nosql1": {"collect": collect}}}}}
        (tmp_path / "farm.yaml").write_text(json.dumps(farm))
        done = run_cli(
            "run", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path, timeout_s=300
        )
    run = Path(done.stdout.splitlines()[-1])
    assert "Production and this run" in run_cli("analyse", run, "--explain").stdout, done.stderr
    assert run_cli("report", run, "--format", "json,md").returncode == 0
    tables = json.loads((run / "report.json").read_text())["tables"]
    found = {row["name"]: row for row in tables["similarity"]}
    print(text, json.dumps(list(found.values()), indent=1))
    for name in ALIKE:
        assert found[name]["ratio"] == pytest.approx(1, abs=0.1), (name, found[name], text)
    assert found["record_durable_ratio"]["ratio"] == 1
    assert found["record_expiring_ratio"]["production"] == pytest.approx(0.4, abs=0.03)
    assert found["record_insert_ratio"]["production"] == pytest.approx(0.4, abs=0.03)
    assert found["record_reads_per_write"]["production"] == pytest.approx(1, abs=0.03)


def test_what_valkey_cli_prints_is_read(tmp_path: Path) -> None:
    """INFO answers of a real server, recorded as the README says, are read from one file."""
    program = require("redis-cli", "redis-tools")
    with valkey() as url, Valkey.from_url(url) as client:
        client.mset({f"k{n}": b"x" * 100 for n in range(50)})
        parts = urlsplit(url)
        asked = f"'{program}' -h 127.0.0.1 -p {parts.port}"
        command = f"{asked} INFO all; {asked} CONFIG GET 'append*'"
        environment = os.environ | {"REDISCLI_AUTH": str(parts.password)}
        file = tmp_path / "infos.txt"
        for number in range(3):
            with file.open("ab") as out:
                subprocess.run(["sh", "-c", command], stdout=out, check=True, timeout=30, env=environment)
            for n in range(40):
                client.set(f"k{n}", b"y" * 100)
                client.get(f"k{n}")
            time.sleep(0.2 * number)
    text = fit([str(file)], 1, lambda _: None)
    (tmp_path / "plan.yaml").write_text(text, encoding="utf-8")
    plan = load_plan(tmp_path / "plan.yaml").to_json()
    assert plan["production"]["record_reads_per_write"] == 1
    assert plan["production"]["record_insert_ratio"] == 0
    assert plan["production"]["record_durable_ratio"] == 1
    params = plan["scenarios"]["records"]["params"]
    # The keys are shorter here, so the records are, too; the written bytes are the same.
    assert 70 <= params["field_bytes"] <= 100
    assert params["keys"] == 50
    assert "infos.txt: appendfsync always" in text


def test_a_store_that_cannot_be_asked_is_said() -> None:
    """A missing server and a wrong password give messages without the password."""
    with pytest.raises(
        FarmUnavailable, match=r"127\.0\.0\.1:1/0: .*[Cc]onnection refused.*INFO all"
    ) as caught:
        fit(["valkey://:geheim@127.0.0.1:1/0"], 0.1, lambda _: None)
    assert "geheim" not in str(caught.value)
    with valkey() as url:
        wrong = re.sub(r"://:[^@]+@", "://:geheim@", url)
        with pytest.raises(FarmUnavailable, match="invalid username-password pair") as caught:
            fit([wrong], 0.1, lambda _: None)
    assert "geheim" not in str(caught.value)
