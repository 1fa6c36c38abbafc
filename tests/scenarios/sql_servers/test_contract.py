"""Contract of sql-mix on every server: counted operations are done, and other users' data is unchanged."""

# ruff: noqa: S608 - the tests use SQL texts of their own

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scenarios.sql_mix.helpers import LOG_ONLY, SMALL, loaded, performed, prepared
from scenarios.sql_servers.targets import SCHEMA, Maria, Postgres, Target
from scenarios.support import made, quiet
from support import until

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.odbc.address import parse
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_mix import SqlMixParams
from pinchpoint_scenarios.sql_mix.operations import OPERATIONS, SessionState
from pinchpoint_scenarios.sql_mix.params import PRESETS

SIZES: dict[str, Any] = {
    "scale": SMALL,
    "copy_rows": 60,
    "batch_rows": 30,
    "scan_rows": 100,
    "spill_bytes": "1MiB",
    "hot_rows": 3,
    "lock_rows": 2,
    "hold": "1ms",
}
TIMES, SESSION = 4, 5


def number(target: Target, statement: str) -> int:
    ((found,),) = target.ask(statement)
    return int(found or 0)


def snapshot_is_to_be_had(target: Target) -> bool:
    """Return True if the server offers snapshot isolation; otherwise assert the error's sentence."""
    driver = made("sql-mix", {"sql": target.endpoint}, {**LOG_ONLY, "isolation": "snapshot"})
    try:
        driver.check()
    except ScenarioError as error:
        if "isolation snapshot is not available" not in str(error):
            raise
        return False
    return True


def drawn(operation: str) -> list[tuple[Any, ...]]:
    """Return the values of a session's first operations."""
    params = SqlMixParams.model_validate({"operations": {operation: 1}, **SIZES})
    state = SessionState(Random(f"1:{SESSION}"), SESSION, params)
    values = []
    for _ in range(TIMES):
        state.random.random()  # the draw that chooses the next operation
        values.append(OPERATIONS[operation].draw(state))
    return values


def test_check_tells_server_version_driver_and_changes_nothing(target: Target) -> None:
    """``check`` returns facts for the manifest and creates nothing."""
    facts = made("sql-mix", {"sql": target.endpoint}, {"scale": SMALL}).check()["sql"]
    assert facts["server"] in ("postgresql", "mariadb", "sqlserver")
    assert facts["version"][0].isdigit()
    assert facts["settings"]
    assert facts["warnings"] == []
    if "+odbc" in target.endpoint.url:
        assert ".so" in facts["driver"] or ".dll" in facts["driver"].lower()
        assert facts["rights"] == ["may make its schema", "may know the size of the buffer cache"]
    assert target.schemas() == set()


def test_what_is_appended_is_there_byte_by_byte(target: Target) -> None:
    """Rows of ``log_append`` have the drawn bytes, one row per ok operation."""
    with prepared(target.endpoint, LOG_ONLY) as driver:
        assert target.tables() == {"log"}
        counts = performed(driver, TIMES, SESSION).counts()
        found = target.ask(f"SELECT session, sequence, payload FROM {SCHEMA}.log ORDER BY sequence")
    assert counts == {("log_append", "ok"): TIMES}
    assert [(a, b, bytes(c)) for a, b, c in found] == [
        (SESSION, sequence, payload) for _, sequence, payload in drawn("log_append")
    ]


def test_a_batch_is_cut_up_on_the_server(target: Target) -> None:
    """Every row of a ``log_batch`` has its own part of the sent bytes, in order."""
    with prepared(target.endpoint, {"operations": {"log_batch": 1}, **SIZES}) as driver:
        counts = performed(driver, TIMES, SESSION).counts()
        found = target.ask(f"SELECT sequence, payload FROM {SCHEMA}.log ORDER BY sequence")
    assert counts == {("log_batch", "ok"): TIMES}
    sent = [
        (first + row, content[row * width : (row + 1) * width])
        for _, first, rows, width, content in drawn("log_batch")
        for row in range(rows)
    ]
    assert [(sequence, bytes(payload)) for sequence, payload in found] == sent


def test_a_bulk_load_is_there_whole(target: Target) -> None:
    """Every row of each bulk load exists, with its session and its bytes."""
    with prepared(target.endpoint, {"operations": {"bulk_load": 1}, **SIZES}) as driver:
        counts = performed(driver, TIMES, SESSION).counts()
        table, column = target.quoted("bulk"), target.quoted("load")
        found = target.ask(f"SELECT session, {column}, payload FROM {SCHEMA}.{table}")
    assert counts == {("bulk_load", "ok"): TIMES}
    sent = Counter((SESSION, load, row) for _, _, load, rows in drawn("bulk_load") for row in rows)
    assert Counter((session, load, bytes(row)) for session, load, row in found) == sent


def test_the_bulk_table_never_grows_without_bound(target: Target) -> None:
    """With concurrent loads the bulk table stays below its bound plus one load per session, each complete."""
    params = {"operations": {"bulk_load": 1}, "copy_rows": 300, "bulk_bytes": "192KiB"}
    with prepared(target.endpoint, params) as driver:
        with loaded(driver, 3, 60.0) as recorder:
            until(lambda: len(recorder.rows) >= 18)
        left = number(target, f"SELECT COUNT(*) FROM {SCHEMA}.{target.quoted('bulk')}")
    assert set(recorder.counts()) == {("bulk_load", "ok")}
    assert left < 300 * len(recorder.rows), "it was emptied on the way"
    assert left % 300 == 0


def test_data_is_loaded_changed_read_and_used_again(target: Target) -> None:
    """The table has the plan's size, changes are counted, and the next run reuses it or repairs damage."""
    params = {"operations": {"data_update": 2, "point_read": 1, "range_scan": 1}, **SIZES}
    versions = f"SELECT SUM(version) FROM {SCHEMA}.data"
    with prepared(target.endpoint, params, keep_data=True) as driver:
        counts = performed(driver, 60).counts()
    rows = number(target, f"SELECT COUNT(*) FROM {SCHEMA}.data")
    assert {outcome for _, outcome in counts} == {"ok"}
    assert len(counts) == 3
    assert rows % 4 == 0
    assert number(target, versions) == counts["data_update", "ok"] > 0
    said: list[str] = []
    with prepared(target.endpoint, params, progress=said.append, keep_data=True):
        pass
    assert "it is used again" in "\n".join(said)
    assert number(target, versions) == counts["data_update", "ok"]
    target.ask(f"DELETE FROM {SCHEMA}.data WHERE id = 17")
    with prepared(target.endpoint, params) as third:
        assert number(target, versions) == 0
        assert number(target, f"SELECT COUNT(*) FROM {SCHEMA}.data") == rows
        target.ask(f"DELETE FROM {SCHEMA}.data WHERE id > 4")
        outcomes = performed(third, 40).counts()
    assert outcomes["range_scan", "missing_row"] > 0
    assert target.schemas() == set()


def test_hot_rows_are_changed_once_for_each_lock(target: Target) -> None:
    """With two locked rows per operation and several sessions no change is lost; deadlocks are retried."""
    params = {"operations": {"lock_contend": 1}, "hot_rows": 40, "lock_rows": 2, "hold": "1ms", "retries": 50}
    with prepared(target.endpoint, params) as driver:
        with loaded(driver, 3, 60.0) as recorder:
            until(lambda: len(recorder.rows) >= 40)
        changes = number(target, f"SELECT SUM(version) FROM {SCHEMA}.hot")
    assert set(recorder.counts()) == {("lock_contend", "ok")}
    assert changes == 2 * recorder.counts()["lock_contend", "ok"]
    assert all(row.end_ns - row.start_ns >= 2e6 for row in recorder.rows if "/" not in row.operation), (
        "both holds are service time"
    )


def test_every_preset_runs(odbc_target: Target) -> None:
    """Every preset's operations work on data that is loaded once."""
    for preset, weights in PRESETS.items():
        with prepared(odbc_target.endpoint, {"preset": preset, **SIZES}, keep_data=True) as driver:
            counts = performed(driver, 30).counts()
        assert {outcome for _, outcome in counts} == {"ok"}
        assert {operation for operation, _ in counts} <= set(weights)


def test_every_isolation_level_is_taken(target: Target) -> None:
    """Each isolation level works, or an error states how to enable it."""
    for level in ("read_committed", "repeatable_read", "serializable", "snapshot"):
        if level == "snapshot" and not snapshot_is_to_be_had(target):
            continue
        with prepared(target.endpoint, {**LOG_ONLY, "isolation": level}) as ready:
            assert performed(ready, 2).counts() == {("log_append", "ok"): 2}


def test_a_schema_without_our_mark_is_left_alone(target: Target) -> None:
    """Another user's schema of that name stops the run and survives ``finish``."""
    target.ask(f"CREATE {'DATABASE' if 'mysql' in target.endpoint.url else 'SCHEMA'} {SCHEMA}")
    target.ask(f"CREATE TABLE {SCHEMA}.log (theirs int)")
    driver = made("sql-mix", {"sql": target.endpoint}, LOG_ONLY)
    for action in (driver.check, lambda: driver.prepare(quiet), lambda: driver.finish(keep_data=False)):
        with pytest.raises(ScenarioError, match="'pinchpoint_test' is there already and was not made by"):
            action()
    assert target.tables() == {"log"}


def test_what_others_put_into_our_schema_survives(target: Target) -> None:
    """Only Pinchpoint's tables are dropped; a schema with other objects stays, and this is reported."""
    driver = made("sql-mix", {"sql": target.endpoint}, LOG_ONLY)
    driver.prepare(quiet)
    target.ask(f"CREATE TABLE {SCHEMA}.theirs (id int)")
    with pytest.raises(ScenarioError, match="was kept: something that is not Pinchpoint's"):
        driver.finish(keep_data=False)
    assert target.tables() == {"theirs"}


THEIRS = {
    "mysql": (
        "CREATE VIEW {schema}.theirs AS SELECT 1 AS one",
        "CREATE PROCEDURE {schema}.theirs() SELECT 1",
        "CREATE FUNCTION {schema}.theirs() RETURNS int DETERMINISTIC RETURN 1",
        "CREATE EVENT {schema}.theirs ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        "CREATE SEQUENCE {schema}.theirs",
    ),
    "postgresql": (
        "CREATE VIEW {schema}.theirs AS SELECT 1 AS one",
        "CREATE FUNCTION {schema}.theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SEQUENCE {schema}.theirs",
        "CREATE TYPE {schema}.theirs AS ENUM ('a')",
        "CREATE DOMAIN {schema}.theirs AS int",
        'CREATE COLLATION {schema}.theirs FROM "C"',
        "CREATE TEXT SEARCH DICTIONARY {schema}.theirs (TEMPLATE = pg_catalog.simple)",
    ),
}
"""Kinds of objects that another user may have in a schema, by a part of the endpoint's URL."""


def test_objects_of_every_kind_keep_a_schema(target: Target) -> None:
    """Each kind of object alone keeps the schema; some servers would drop events and routines silently."""
    kind = next((kind for kind in THEIRS if kind in target.endpoint.url), None)
    if kind is None:
        pytest.skip("no list of kinds for this server")
    for statement in THEIRS[kind]:
        driver = made("sql-mix", {"sql": target.endpoint}, LOG_ONLY)
        driver.prepare(quiet)
        target.ask(statement.format(schema=SCHEMA))
        with pytest.raises(ScenarioError, match=r"was kept: .*theirs"):
            driver.finish(keep_data=False)
        what = statement.removeprefix("CREATE ").partition(" {schema}")[0]
        target.ask(f"DROP {what} {SCHEMA}.theirs")
        driver.finish(keep_data=False)
        assert target.schemas() == set()


def test_two_runs_do_not_share_a_schema(target: Target) -> None:
    """A second run with the same scenario name is refused until the first has finished."""
    with prepared(target.endpoint, LOG_ONLY):
        second = made("sql-mix", {"sql": target.endpoint}, LOG_ONLY)
        with pytest.raises(ScenarioError, match="another run is using schema 'pinchpoint_test'"):
            second.prepare(quiet)
        second.finish(keep_data=True)
    with prepared(target.endpoint, LOG_ONLY):
        pass


def test_names_with_dashes_and_capitals_work(target: Target) -> None:
    """A scenario's name with dashes and capitals is quoted."""
    with prepared(target.endpoint, LOG_ONLY, name="My-Orders") as driver:
        assert performed(driver, 1).counts() == {("log_append", "ok"): 1}
        postgresql, names = "postgresql" in target.endpoint.url, target.schemas()
        assert {name.lower() for name in names} == {"pinchpoint_my-orders"}
        assert not postgresql or names == {"pinchpoint_My-Orders"}
    assert target.schemas() == set()
    with pytest.raises(ScenarioError, match="shorter name"):
        made("sql-mix", {"sql": target.endpoint}, LOG_ONLY, name="x" * (60 if postgresql else 130)).check()


def test_by_odbc_the_same_is_written_as_by_the_servers_own_library(postgres_odbc: Postgres) -> None:
    """From the same seed ODBC and the server's own library write the same rows."""
    seen = []
    for endpoint in (postgres_odbc.server, postgres_odbc.endpoint):
        params = {"operations": {"log_append": 1, "log_batch": 1, "data_update": 1}, **SIZES}
        with prepared(endpoint, params) as driver:
            rows = [
                (row.operation, row.outcome, row.size_bytes) for row in performed(driver, 12, SESSION).rows
            ]
            seen.append(
                (
                    rows,
                    postgres_odbc.ask(
                        f"SELECT session, sequence, md5(payload) FROM {SCHEMA}.log ORDER BY 1, 2"
                    ),
                    postgres_odbc.ask(f"SELECT id, version, md5(payload) FROM {SCHEMA}.data ORDER BY 1"),
                )
            )
    assert seen[0] == seen[1]


def test_mariadbs_data_is_as_large_as_was_asked_for_and_its_sorts_go_to_files(maria: Maria) -> None:
    """MariaDB has eight rows per page of 16 KiB, and its count of merge passes grows with each spill."""
    merges = "SHOW GLOBAL STATUS LIKE 'Sort_merge_passes'"
    params = {"operations": {"point_read": 1, "spill": 4}, "scale": 0.25, "spill_bytes": "4MiB"}
    with prepared(maria.endpoint, params) as driver:
        ((size,),) = maria.ask(
            "SELECT DATA_LENGTH FROM information_schema.TABLES "
            f"WHERE TABLE_SCHEMA = '{SCHEMA}' AND TABLE_NAME = 'data'"
        )
        before = int(maria.ask(merges)[0][1])
        counts = performed(driver, 8).counts()
        merged = int(maria.ask(merges)[0][1]) - before
    assert size == pytest.approx(0.25 * 64 * 2**20, rel=0.25)
    assert set(counts) == {("point_read", "ok"), ("spill", "ok")}
    assert merged >= counts["spill", "ok"] > 0


def test_a_data_source_is_asked_what_it_leads_to(
    odbc_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``odbc:///?dsn=NAME`` the data source gives driver, host and database, the server the dialect."""
    from pinchpoint_scenarios.databases.odbc.link import found_driver, keywords  # noqa: PLC0415 - needs libodbc

    given = parse(odbc_target.endpoint)
    driver = found_driver(odbc_target.endpoint, given)
    assert driver is not None
    known = keywords(given, driver, "tests")
    name = f"Payroll-{given.kind}"  # the driver manager caches a name for some time
    lines = [f"{key} = {value}" for key, value in known.items() if key not in ("UID", "PWD")]
    if given.kind == "postgresql":
        lines.append(f"Servername = {given.host}")  # psqlodbc's keyword, which works only in a file
    (tmp_path / "odbc.ini").write_text("\n".join([f"[{name}]", *lines]) + "\n")
    monkeypatch.setenv("ODBCINI", str(tmp_path / "odbc.ini"))
    login = odbc_target.endpoint.url.partition("://")[2].rpartition("@")[0]
    endpoint = Endpoint("sql", f"odbc://{login}@/?dsn={name}")
    with prepared(endpoint, {"operations": {"log_append": 1, "lock_contend": 1}}) as scenario:
        assert set(performed(scenario, 6).counts()) == {("log_append", "ok"), ("lock_contend", "ok")}
        facts = scenario.check()["sql"]
    assert facts["driver"].startswith(f"data source {name}, ")
    assert facts["rights"] == ["the schema is there and ours"]


@pytest.mark.parametrize("length", [1, 3999, 70_000, 1_300_000])
def test_a_long_value_arrives_whole(odbc_target: Target, length: int) -> None:
    """A long value arrives complete with each driver, although some lose values sent in pieces."""
    from pinchpoint_scenarios.databases.odbc.link import found_driver, open_link  # noqa: PLC0415 - needs libodbc

    given = parse(odbc_target.endpoint)
    text = "".join(chr(97 + place * 7 % 26) for place in range(length))
    link = open_link(given, found_driver(odbc_target.endpoint, given), "tests")
    try:
        ((found,),) = link.execute("SELECT $1", (text,)).fetchall()
    finally:
        link.close()
    assert found == text
