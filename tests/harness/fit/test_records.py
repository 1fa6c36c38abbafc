"""Stores of records: what is read out of their own figures, and what is said of those that fail."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from harness.fit.exports import comments, fitted, pair

from pinchpoint.base.errors import InputError
from pinchpoint.fit.fit import fit
from pinchpoint.fit.stores import mongodb
from pinchpoint.fit.stores.fitted import MOST_KEYS, span_s

AT_S = 1_795_000_000
SET_BYTES = 3 * 100 + 40
"""What one SET of the recorded server's took in its file: about 300 bytes and what frames them."""


def info(second: int, **changed: float | str) -> str:
    """One answer to ``INFO all``: lines of Valkey 9, of its sections those that are read."""
    known: dict[str, float | str] = {
        "run_id": "2eccb8a4f09c50a54ddc1b67ef339e5de8ab74d4",
        "sets": 0, "gets": 0, "dels": 0, "keys": 1000, "expires": 0, "avg_ttl": 0, "expired": 0,
        "aof_enabled": 1, "aof_current_size": 0, "input": 0, "output": 0, "misses": 0,
        "role": "master", "more": "",
    }  # fmt: skip
    at = known | changed
    gets, sets = float(at["gets"]), float(at["sets"])
    keyspace = f"db0:keys={at['keys']},expires={at['expires']},avg_ttl={at['avg_ttl']}"
    lines = [
        "# Server", "redis_version:7.2.4", "valkey_version:9.1.2", f"run_id:{at['run_id']}", "tcp_port:6379",
        f"uptime_in_seconds:{100 + second}", f"server_time_usec:{(AT_S + second) * 1_000_000}", "",
        "# Memory", "used_memory:900000", "used_memory_dataset:400000", "",
        "# Persistence", f"aof_enabled:{at['aof_enabled']}", f"aof_current_size:{at['aof_current_size']}",
        "aof_base_size:0", "",
        "# Stats", f"total_net_input_bytes:{at['input']}", f"total_net_output_bytes:{at['output']}",
        f"expired_keys:{at['expired']}", "evicted_keys:0", f"keyspace_hits:{gets - float(at['misses'])}",
        f"keyspace_misses:{at['misses']}", "",
        "# Replication", f"role:{at['role']}", "",
        "# Commandstats",
        f"cmdstat_set:calls={sets:.0f},usec={sets * 12:.0f},usec_per_call=12.00,rejected_calls=0",
        f"cmdstat_get:calls={gets:.0f},usec={gets * 6:.0f},usec_per_call=6.00,rejected_calls=0",
        f"cmdstat_del:calls={at['dels']},usec=5,usec_per_call=1.00,rejected_calls=0,failed_calls=0",
        "cmdstat_config|get:calls=3,usec=24,usec_per_call=8.00,rejected_calls=0,failed_calls=0",
        *str(at["more"]).splitlines(),
        "# Latencystats", "latency_percentiles_usec_get:p50=6.015,p99=10.047,p99.9=106.495", "",
        "# Keyspace", *([keyspace] if at["keys"] else []), "",
    ]  # fmt: skip
    return "\r\n".join(lines)


def file(path: Path, *texts: str) -> str:
    """Answers one after the other, as ``valkey-cli -r`` prints them."""
    path.write_text("\n".join(texts), encoding="utf-8")
    return str(path)


def refused(said: str, *sources: str) -> None:
    """The sources are, with that sentence."""
    with pytest.raises(InputError, match=said):
        fit(sources, 1, lambda _: None)


def test_two_answers_make_a_plan(tmp_path: Path) -> None:
    """Rates, weights, size, number of records; what they do not tell is said."""
    after = info(
        100, sets=1000, gets=3000, keys=1200, aof_current_size=1000 * SET_BYTES, input=1000 * 340 + 3000 * 45
    )
    sources = file(tmp_path / "before.txt", info(0)), file(tmp_path / "after.txt", after)
    plan, text = fitted(tmp_path, *sources)
    (scenario,) = plan["scenarios"].values()
    assert scenario["use"] == "nosql-burst"
    assert scenario["load"] == {"model": "open", "rate_per_s": 40, "arrivals": "poisson"}
    params = scenario["params"]
    assert params["operations"] == {"insert": 2, "update": 8, "read": 30}
    assert (params["fields"], params["keys"], params.get("ttl")) == (1, 1200, None)
    # A SET of ours with a key of 23 to 32 letters takes some 50 bytes besides.
    assert SET_BYTES - 60 <= params["field_bytes"] <= SET_BYTES - 45
    figures = plan["production"]
    assert figures["record_writes_per_s"] == 10
    assert figures["record_reads_per_write"] == 3
    assert figures["record_insert_ratio"] == 0.2
    assert figures["record_log_bytes_per_write"] == SET_BYTES
    assert figures["record_received_bytes"] == pytest.approx((340 + 3 * 45) / 4, rel=1e-3)
    assert figures["record_server_s"] == pytest.approx((12e-6 + 3 * 6e-6) / 4, rel=1e-3)
    assert "record_durable_ratio" not in figures
    said = comments(text)
    assert "Valkey 9.1.2 (before.txt, after.txt)" in said
    assert "2 readings tell a mean and no bursts" in said
    assert "own time for get since its start: p50 6.015 µs, p99 10.05 µs" in said
    assert "Not told: acknowledged writes that are on the disk; needed: CONFIG GET appendfsync" in said


def test_many_answers_tell_bursts(tmp_path: Path) -> None:
    """Ten times as much for 10 s every 60, in readings of 5 s, in one file."""
    texts, sets = [], 0
    for reading in range(61):
        texts.append(info(5 * reading, sets=sets, aof_current_size=sets * SET_BYTES))
        sets += 1000 if reading % 12 >= 10 else 100
    plan, text = fitted(tmp_path, file(tmp_path / "day.txt", *texts))
    load = plan["scenarios"]["records"]["load"]
    assert load["model"] == "burst"
    assert (load["base_per_s"], load["peak_per_s"]) == (20, 200)
    assert (load["every_s"], load["for_s"]) == (60, 10)
    assert plan["production"]["record_peak_per_s"] == 200
    assert plan["production"]["record_base_per_s"] == 20
    assert plan["phases"]["measure"]["at_most_s"] == 180
    assert "10 times as much for 10 s every 60 s, at once (seen every 5 s)" in comments(text)


def test_records_that_expire_are_a_scenario_of_their_own(tmp_path: Path) -> None:
    """Of 1,000 writes 400 are of sessions that live 20 s; CONFIG GET beside INFO tells durability."""
    settings = "appendfsync\neverysec\nappendonly\nyes\n"
    before = info(0, keys=1080, expires=80, avg_ttl=10_000)
    after = info(
        100,
        sets=1000,
        gets=1000,
        keys=1080,
        expires=80,
        avg_ttl=10_000,
        expired=400,
        aof_current_size=340_000,
    )
    plan, text = fitted(
        tmp_path, file(tmp_path / "a.txt", before, settings), file(tmp_path / "b.txt", after, settings)
    )
    stay, go = plan["scenarios"]["records"], plan["scenarios"]["expiring"]
    assert stay["params"]["operations"] == {"update": 6, "read": 10}
    assert go["params"]["operations"] == {"insert": 4}
    assert (stay["load"]["rate_per_s"], go["load"]["rate_per_s"]) == (16, 4)
    assert (stay["params"].get("ttl"), go["params"]["ttl"]) == (None, "20s")
    assert (stay["params"]["keys"], go["params"]["keys"]) == (1080, 80)
    assert plan["production"]["record_expiring_ratio"] == 0.4
    assert plan["production"]["record_durable_ratio"] == 0
    said = comments(text)
    assert "40% of the records written expire" in said
    assert "is not yet on the disk in production (b.txt: appendfsync everysec)" in said


def test_what_cannot_be_alike_is_said(tmp_path: Path) -> None:
    """Deletions, scripts, hashes, reads that find nothing, more records than are loaded."""
    more = "cmdstat_eval:calls=900,usec=9,failed_calls=0\ncmdstat_hset:calls=500,usec=9"
    none = "cmdstat_eval:calls=0,usec=0\ncmdstat_hset:calls=0,usec=0"
    after = info(
        10, sets=500, gets=1000, dels=400, misses=300, keys=3_000_000, more=more, aof_current_size=1e6
    )
    _, text = fitted(tmp_path, file(tmp_path / "x.txt", info(0, keys=3_000_000, more=none), after))
    said = comments(text)
    assert "Not alike: 40/s deletions in production, none here" in said
    assert "Not alike: 50% of the writes are of hashes" in said
    assert "Not alike: 27% of the commands are none on records: eval" in said
    assert "Not alike: 30% of the reads find nothing" in said
    assert f"Not alike: 3,000,000 records in production, {MOST_KEYS:,} here" in said
    assert f"keys: {MOST_KEYS}  #" in text


def test_a_restart_or_a_reset_between_two_answers_is_left_out(tmp_path: Path) -> None:
    """Of the others the rates; where none is left, that is refused."""
    texts = [
        info(0),
        info(10, sets=100),
        info(20, sets=20, run_id="f" * 40),
        info(30, sets=120, run_id="f" * 40),
    ]
    plan, text = fitted(tmp_path, file(tmp_path / "r.txt", *texts))
    assert plan["production"]["record_writes_per_s"] == 10
    assert "1 of 3 stretches were left out: the server was restarted in them" in comments(text)
    refused(
        r"the server was restarted, or its counters were reset, between each two of them",
        file(tmp_path / "two.txt", info(0, sets=500), info(10, sets=20)),
    )


def test_answers_that_will_not_do_are_said(tmp_path: Path) -> None:
    """Which file, which line, what was found, what is needed."""
    good = info(0)
    one = file(tmp_path / "one.txt", good)
    refused(r"one\.txt: 1 answer of INFO; needed: two", one)
    refused("no record was read or written between them", one, file(tmp_path / "idle.txt", info(9)))
    bare = "\r\n".join(line for line in good.splitlines() if not line.startswith("cmdstat"))
    refused(
        r"bare\.txt:1: has no section Commandstats; needed: INFO all", one, file(tmp_path / "bare.txt", bare)
    )
    broken = good.replace("cmdstat_get:calls=0,", "cmdstat_get:calls=viele,")
    refused(r"broken\.txt:3\d: cmdstat_get: found 'calls=viele'", one, file(tmp_path / "broken.txt", broken))
    odd = good.replace("# Memory", "# Memory\r\nCould not connect")
    refused(r"odd\.txt:10: found 'Could not connect'", one, file(tmp_path / "odd.txt", odd))
    timeless = good.replace("server_time_usec", "server_time")
    refused(r"old\.txt:1: this version does not say its time; put it before: \{ date", one,
            file(tmp_path / "old.txt", timeless))  # fmt: skip
    plan, _ = fitted(
        tmp_path,
        file(tmp_path / "t1.txt", "captured_at: 2026-11-20T09:00:00Z", timeless),
        file(
            tmp_path / "t2.txt",
            "captured_at: 2026-11-20T09:00:10Z",
            timeless.replace("set:calls=0", "set:calls=50"),
        ),
    )
    assert plan["production"]["record_writes_per_s"] == 5
    refused(r"replica\.txt:1: is of a replica", one, file(tmp_path / "replica.txt", info(9, role="slave")))
    commands = "\n".join(line for line in good.splitlines() if line.startswith("cmdstat"))
    refused(r"cut\.txt: has no section Server", one, file(tmp_path / "cut.txt", commands))
    refused("no server of that kind can be watched; allowed: postgresql, valkey", "cassandra://c1/shop")
    refused("all are of the same time", one, one)
    refused("is no URL", "valkey://u:geheim@[::bad/0")
    refused("a setting in it, cannot be read; correct it", "valkey://:geheim@127.0.0.1:1/?nope=3")
    refused("correct the url", "mongodb://u:geheim@")
    refused("(?s)it begins with 'nobody knows'.*statistics: a CSV export, with its header, of pg_stat",
            file(tmp_path / "odd2.txt", "nobody knows"))  # fmt: skip


STATUS: dict[str, Any] = {
    "host": "db1",
    "version": "7.0.14",
    "pid": 2717,
    "uptimeMillis": 100_000,
    "localTime": datetime(2026, 11, 20, 9, tzinfo=UTC),
    "network": {"bytesIn": 1000, "bytesOut": 2000},
    "opcounters": {"insert": 10, "query": 20, "update": 30, "delete": 0, "getmore": 0, "command": 100},
    "metrics": {"document": {"returned": 20}, "ttl": {"deletedDocuments": 0}},
    "wiredTiger": {"log": {"log bytes written": 5000}},
}


def later(seconds: int, **grown: int) -> dict[str, Any]:
    """The same MongoDB, some seconds later."""
    status: dict[str, Any] = deepcopy(STATUS)
    status["uptimeMillis"] += 1000 * seconds
    status["localTime"] += timedelta(seconds=seconds)
    for name, value in grown.items():
        status["opcounters"][name] += value
    writes, reads = grown.get("insert", 0) + grown.get("update", 0), grown.get("query", 0)
    status["network"] = {"bytesIn": 1000 + writes * 900 + reads * 200, "bytesOut": 2000 + reads * 700}
    status["metrics"]["document"]["returned"] += reads
    status["wiredTiger"]["log"]["log bytes written"] += writes * 400
    return status


def test_what_a_watched_mongodb_answers_is_its_load() -> None:
    """Counters between two answers; sizes by what was received and sent; a restart tells nothing."""
    found = mongodb.store([STATUS, later(100, insert=200, update=300, query=1500)], "db1")
    assert found.product == "MongoDB 7.0.14"
    (stretch,) = found.stretches
    assert (stretch.reads, stretch.inserts, stretch.writes, stretch.log_bytes) == (1500, 200, 500, 200_000)
    assert 700 <= found.sizes[0].value <= 850, "a write had 900 bytes, with what a driver sends besides"
    for answers, said in (
        ([STATUS], "1 answer of serverStatus"),
        ([STATUS, later(9, query=9) | {"host": "db2"}], "of one life of one server"),
        ([STATUS, later(100, query=1500) | {"uptimeMillis": 140_000}], "without a restart"),
        ([STATUS, later(9)], "no document was read or written"),
    ):
        with pytest.raises(InputError, match=said):
            mongodb.store(answers, "db1")


def test_a_plan_has_one_store() -> None:
    """Sources of two cannot be told apart in one plan."""
    one = mongodb.store([STATUS, later(100, query=1500)], "db1")
    with pytest.raises(InputError, match="a plan has one store of records; give the sources of one"):
        span_s([one, replace(one, family="valkey")])


def both(folder: Path) -> Sequence[str]:
    """Two answers of a Valkey."""
    return file(folder / "i1.txt", info(0)), file(
        folder / "i2.txt", info(10, sets=100, aof_current_size=34_000)
    )


def test_a_database_and_a_store_are_two_scenarios(tmp_path: Path) -> None:
    """Of one plan."""
    statements = pair(tmp_path, {"query": "SELECT 1", "calls": 1005, "rows": 1005, "shared_blks_hit": 1005})
    plan, _ = fitted(tmp_path, *statements, *both(tmp_path))
    assert {name: each["use"] for name, each in plan["scenarios"].items()} == {
        "production": "sql-mix",
        "records": "nosql-burst",
    }
    assert plan["production"]["reads_per_s"] == 10
    assert plan["production"]["record_writes_per_s"] == 10
