"""Record stores: what is read from their own figures, and the messages for those that fail."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.base.errors import InputError
from pinchpoint.fit.stores import mongodb
from pinchpoint.fit.stores.fitted import span_s

AT_S = 1_795_000_000


def info(second: int, **changed: float | str) -> str:
    """Return an answer to ``INFO all`` with the lines of Valkey 9 that are read."""
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
    """Return answers one after the other, as ``valkey-cli -r`` prints them."""
    path.write_text("\n".join(texts), encoding="utf-8")
    return str(path)


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
    """Return the same MongoDB some seconds later."""
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
    """MongoDB's load is the difference of counters, with sizes from network bytes; a restart gives none."""
    found = mongodb.store([STATUS, later(100, insert=200, update=300, query=1500)], "db1")
    assert found.product == "MongoDB 7.0.14"
    (stretch,) = found.stretches
    assert (stretch.reads, stretch.inserts, stretch.writes, stretch.log_bytes) == (1500, 200, 500, 200_000)
    assert 700 <= found.sizes[0].value <= 850, "a write had 900 bytes, with what a driver sends besides"
    for answers, said in (
        ([STATUS], "1 answer of serverStatus"),
        ([STATUS, later(9, query=9) | {"host": "db2"}], "the server was restarted between its answers"),
        ([STATUS, later(100, query=1500) | {"uptimeMillis": 140_000}], "without a restart"),
        ([STATUS, later(9)], "no document was read or written"),
    ):
        with pytest.raises(InputError, match=said):
            mongodb.store(answers, "db1")


def test_a_plan_has_one_store() -> None:
    """Sources of two stores in one plan are refused."""
    one = mongodb.store([STATUS, later(100, query=1500)], "db1")
    with pytest.raises(InputError, match="a plan has one store of records; give the sources of one"):
        span_s([one, replace(one, family="valkey")])
