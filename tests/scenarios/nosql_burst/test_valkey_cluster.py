"""Tests of nosql-burst on real clusters and behind real Sentinels: slots, redirects, failovers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from scenarios.support import Events, Recorder, made, quiet
from servers import Group, valkey_cluster, valkey_sentinels
from support import until
from valkey.cluster import ValkeyCluster
from valkey.crc import key_slot

from pinchpoint_scenarios.contract import Endpoint, Scenario
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError

PARAMS = {"keys": 60, "fields": 1, "field_bytes": 40, "verify": "all"}
_LOGIN = ":sesame@"


@pytest.fixture(params=["valkey", "redis"], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Group]:
    """Yield three primaries of either product."""
    with valkey_cluster(product=request.param) as group:
        yield group


def named(*ports: int, scheme: str = "valkey", login: str = _LOGIN, rest: str = "") -> Endpoint:
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return Endpoint("nosql", f"{scheme}://{login}{hosts}{rest}")


def records(group: Group) -> dict[int, int]:
    """Return the number of keys on each node."""
    return {port: int(group.ask(port, "DBSIZE")) for port in group}


def performed(driver: Scenario, count: int, session: int = 0) -> Recorder:
    recorder, running = Recorder(), driver.session(session)
    for _ in range(count):
        assert running.perform(recorder)
    running.close()
    return recorder


@pytest.mark.parametrize("form", ["one node", "all nodes", "cluster scheme", "first seed away"])
@pytest.mark.parametrize("fields", [1, 3])
def test_records_reach_the_node_of_their_slot(cluster: Group, form: str, fields: int) -> None:
    """With each form of address the counted records are on all nodes, and all are deleted afterwards."""
    ports = list(cluster)
    endpoint = {
        "one node": named(ports[0]),
        "all nodes": named(*ports, rest="/0"),
        "cluster scheme": named(ports[1], scheme="redis+cluster"),
        "first seed away": named(1, ports[2]),
    }[form]
    events = Events()
    driver = made("nosql-burst", {"nosql": endpoint}, {**PARAMS, "fields": fields}, event=events)
    facts = driver.check()["nosql"]
    assert facts["version"]
    assert "a failover may lose the last ones" in facts["warnings"][-1]
    driver.prepare(quiet)
    try:
        recorder = performed(driver, 200)
        assert recorder.counts() == {("update", "ok"): 200}
        assert all(count > 5 for count in records(cluster).values()), records(cluster)
        driver.verify()  # type: ignore[attr-defined]  # see contract.Verified
    finally:
        driver.finish(keep_data=False)
    (read,) = events.named("writes_read_back")
    assert read["acknowledged"] == 200
    assert read["confirmed"] == read["records"] > 40
    assert set(records(cluster).values()) == {0}


def test_a_batch_with_a_time_to_live_and_reads(cluster: Group) -> None:
    """One operation writes several keys on several nodes; the records for reads are loaded before."""
    operations = {"update": 1, "read": 1, "read_modify_write": 1}
    params = {**PARAMS, "fields": 2, "batch": 8, "ttl": "60s", "operations": operations}
    driver = made("nosql-burst", {"nosql": named(*cluster)}, params)
    driver.prepare(quiet)
    try:
        assert sum(records(cluster).values()) == 62
        assert {outcome for _, outcome in performed(driver, 60).counts()} == {"ok"}
    finally:
        driver.finish(keep_data=False)
    assert set(records(cluster).values()) == {0}


def test_a_slot_that_moves_under_load_costs_no_operation(cluster: Group) -> None:
    """While a slot moves (ASK, then MOVED), every operation is done once on the right node."""
    source, target = list(cluster)[:2]
    driver = made("nosql-burst", {"nosql": named(*cluster)}, {**PARAMS, "keys": 3000})
    driver.prepare(quiet)
    recorder, ended = Recorder(), threading.Event()
    session = driver.session(0)

    def load() -> None:
        while not ended.is_set():
            session.perform(recorder)

    loading = threading.Thread(target=load)
    loading.start()
    try:
        until(lambda: len(recorder.rows) > 3000)
        slots = {key_slot(f"pinchpoint:test:{item}".encode()) for item in range(3000)}
        moving = sorted(slot for slot in slots if slot < 5461)[:40]
        ids = {port: cluster.ask(port, "CLUSTER", "MYID") for port in cluster}
        for slot in map(str, moving):
            cluster.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
            cluster.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        before = len(recorder.rows)
        until(lambda: len(recorder.rows) > before + 2000)  # redirected by ASK
        for slot in map(str, moving):
            while keys := cluster.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, "100"):
                cluster.ask(
                    source,
                    "MIGRATE",
                    "127.0.0.1",
                    str(target),
                    "",
                    "0",
                    "5000",
                    "AUTH",
                    "sesame",
                    "KEYS",
                    *keys,
                )
            for port in (target, source):
                cluster.ask(port, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])
        before = len(recorder.rows)
        until(lambda: len(recorder.rows) > before + 2000)  # redirected by MOVED
    finally:
        ended.set()
        loading.join()
        session.close()
    assert int(cluster.ask(target, "CLUSTER", "COUNTKEYSINSLOT", str(moving[0]))) >= 1
    try:
        assert {outcome for _, outcome in recorder.counts()} == {"ok"}
    finally:
        driver.finish(keep_data=False)
        for slot in map(str, moving):
            # IMPORTING raises the owner's epoch; otherwise another node may keep the earlier owner.
            cluster.ask(source, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[target])
            for port in (source, *(one for one in cluster if one != source)):
                cluster.ask(port, "CLUSTER", "SETSLOT", slot, "NODE", ids[source])
    assert set(records(cluster).values()) == {0}


def test_keys_are_where_the_reference_client_looks_for_them(cluster: Group) -> None:
    """valkey-py's own cluster client finds the written records."""
    driver = made("nosql-burst", {"nosql": named(*cluster)}, PARAMS)
    driver.prepare(quiet)
    performed(driver, 100)
    with ValkeyCluster(host="127.0.0.1", port=next(iter(cluster)), password="sesame") as reference:
        found = [reference.get(f"pinchpoint:test:{item}") for item in range(60)]
    keys = sum(records(cluster).values())
    driver.finish(keep_data=False)
    assert sum(value is not None for value in found) == keys - 2 > 30  # all but the mark and the hold


def test_a_user_without_cluster_slots_goes_by_redirects(cluster: Group) -> None:
    """Without the right to CLUSTER SLOTS the slots come from redirects, and check reports it."""
    for port in cluster:
        cluster.ask(port, "ACL", "SETUSER", "plain", "on", ">plain", "~*", "+@all", "-cluster", "-info")
    endpoint = named(*cluster, login="plain:plain@")
    try:
        driver = made("nosql-burst", {"nosql": endpoint}, PARAMS)
        warnings = "".join(driver.check()["nosql"]["warnings"])
        assert "may not use CLUSTER SLOTS" in warnings
        assert "may not use INFO" in warnings
        assert performed(driver, 100).counts() == {("update", "ok"): 100}
        assert all(records(cluster).values())
    finally:
        for port in cluster:
            cluster.ask(port, "FLUSHALL")
            cluster.ask(port, "ACL", "DELUSER", "plain")


def test_check_says_which_node_cannot_be_reached(cluster: Group) -> None:
    """A cluster that announces unreachable addresses is reported with the node."""
    last = list(cluster)[-1]
    cluster.ask(last, "CONFIG", "SET", "cluster-announce-port", "1")
    try:
        until(lambda: ":1@" in cluster.ask(last, "CLUSTER", "NODES"))
        with pytest.raises(EndpointUnreachable) as caught:
            made("nosql-burst", {"nosql": named(last)}).check()
    finally:
        cluster.ask(last, "CONFIG", "SET", "cluster-announce-port", "0")
    assert "the cluster names its node 127.0.0.1:1, which cannot be reached from here" in str(caught.value)
    assert "cluster-announce-ip" in str(caught.value)


def test_several_hosts_of_no_cluster_are_refused(nosql: Endpoint) -> None:
    """Several hosts without a cluster are refused with one sentence and the remedy."""
    url = nosql.url.replace("127.0.0.1:", "127.0.0.1:1,127.0.0.1:", 1)
    with pytest.raises(EndpointUnreachable, match="the server is not part of a cluster; name one server"):
        made("nosql-burst", {"nosql": Endpoint("nosql", url)}).check()


def _load_over_failover(
    endpoint: Endpoint, primary: int, group: Group, how: signal.Signals
) -> tuple[Recorder, Events]:
    """Load with four sessions during a failover, until writes to all records succeed again."""
    events = Events()
    params = {**PARAMS, "keys": 300, "timeout_s": "1s"}
    driver = made("nosql-burst", {"nosql": endpoint}, params, event=events)
    removing = made("nosql-burst", {"nosql": endpoint}, params)
    removing.prepare(quiet)
    recorders, ended = [Recorder() for _ in range(4)], threading.Event()

    def load(number: int) -> None:
        session = driver.session(number)
        while not ended.is_set():
            session.perform(recorders[number])
        session.close()

    loads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    for each in loads:
        each.start()
    try:
        until(lambda: all(len(each.rows) > 500 for each in recorders))
        process = group[primary]
        os.killpg(process.pid, how)
        until(lambda: all(any(row.outcome != "ok" for row in each.rows) for each in recorders))
        until(lambda: all({row.outcome for row in each.rows[-500:]} == {"ok"} for each in recorders))
    finally:
        ended.set()
        for each in loads:
            each.join()
        if how == signal.SIGSTOP:
            os.killpg(group[primary].pid, signal.SIGCONT)
    driver.verify()  # type: ignore[attr-defined]
    removing.finish(keep_data=False)  # this scenario does not know of the failover
    whole = Recorder()
    for recorder in recorders:
        whole.rows.extend(recorder.rows)
    return whole, events


def _accounted(recorder: Recorder, events: Events) -> None:
    """Assert that each operation is counted once and each lost record is reported."""
    (read,) = events.named("writes_read_back")
    ok = sum(row.outcome == "ok" for row in recorder.rows)
    assert read["acknowledged"] == ok
    assert not read["not_read"]
    assert read["records"] == read["confirmed"] + read["missing"]
    failures = {row.outcome for row in recorder.rows} - {"ok"}
    assert failures, "the failover was not seen"
    assert failures <= {"connection_lost", "unreachable", "timeout", "cluster_down", "read_only", "loading"}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_a_cluster_fails_over_in_mid_run(how: signal.Signals) -> None:
    """When a primary ends, its records fail and others continue; after the failover all succeed."""
    with valkey_cluster(primaries=3, replicas=3) as group:
        ports = list(group)
        recorder, events = _load_over_failover(named(*ports[:3]), ports[0], group, how)
        assert "master" in str(group.ask(ports[3], "ROLE"))
        _accounted(recorder, events)
        assert {int(group.ask(port, "DBSIZE")) for port in ports[1:4]} == {0}


@pytest.mark.parametrize("product", ["valkey", "redis"])
def test_sentinels_name_the_master_and_its_successor(product: str) -> None:
    """When the master is killed in mid-run, sessions continue with the one that the Sentinels promote."""
    with valkey_sentinels(product=product) as (servers, sentinels):
        master, replica = servers
        endpoint = named(*sentinels, scheme=f"{product}+sentinel", rest="/orders/0")
        login = {"sentinel_password": "sesame"}
        endpoint = Endpoint("nosql", endpoint.url, login)
        facts = made("nosql-burst", {"nosql": endpoint}).check()["nosql"]
        assert "a failover may lose the last ones" in facts["warnings"][-1]
        recorder, events = _load_over_failover(endpoint, master, servers, signal.SIGKILL)
        _accounted(recorder, events)
        assert "master" in str(servers.ask(replica, "ROLE"))
        assert int(servers.ask(replica, "DBSIZE")) == 0

        for url, options, words in (
            (
                endpoint.url.replace("orders", "order"),
                login,
                r"watch no master 'order'; known to them: orders",
            ),
            (
                endpoint.url,
                {},
                r"no Sentinel answered \(.*\); start them, or correct hosts, ports and sentinel_password",
            ),
        ):
            with pytest.raises(EndpointUnreachable, match=words):
                made("nosql-burst", {"nosql": Endpoint("nosql", url, options)}).check()


def test_a_replica_named_by_mistake_is_refused() -> None:
    """A replica as the address is refused, because it would refuse every write."""
    with valkey_sentinels() as (servers, _):
        master, replica = servers
        with pytest.raises(
            ScenarioError, match=rf"is a replica and takes no writes; name its primary 127.0.0.1:{master}"
        ):
            made("nosql-burst", {"nosql": named(replica)}).check()
