"""A schema of our own: made with a mark, held by one run, and nothing else is ever touched."""

from __future__ import annotations

import pytest
from scenarios.sql_mix.helpers import LOG_ONLY, ask, prepared, tables
from scenarios.support import Recorder, made, quiet

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.schema import MARKER
from pinchpoint_scenarios.errors import ScenarioError


def test_only_the_tables_that_are_needed_are_made_and_all_go(sql: Endpoint) -> None:
    """No table for an operation that is not in the mix; nothing is left at the end."""
    with prepared(sql, LOG_ONLY):
        assert tables(sql) == {"log"}
    assert ask(sql, "SELECT FROM pg_namespace WHERE nspname = 'pinchpoint_test'") == []


def test_a_schema_without_our_mark_is_left_alone(sql: Endpoint) -> None:
    """Somebody's schema of that name stops the run, and survives ``finish``."""
    ask(sql, "CREATE SCHEMA pinchpoint_test")
    ask(sql, "CREATE TABLE pinchpoint_test.log (theirs int)")
    driver = made("sql-mix", {"sql": sql}, LOG_ONLY)
    for action in (driver.check, lambda: driver.prepare(quiet), lambda: driver.finish(keep_data=False)):
        with pytest.raises(ScenarioError, match="'pinchpoint_test' is there already and was not made by"):
            action()
    assert tables(sql) == {"log"}


def test_what_others_put_into_our_schema_survives(sql: Endpoint) -> None:
    """Only our tables are dropped; the schema stays while anything else lies in it, and that is said."""
    driver = made("sql-mix", {"sql": sql}, LOG_ONLY)
    driver.prepare(quiet)
    ask(sql, "CREATE TABLE pinchpoint_test.theirs (id int)")
    with pytest.raises(ScenarioError, match="was kept: something that is not Pinchpoint's"):
        driver.finish(keep_data=False)
    assert tables(sql) == {"theirs"}


def test_two_runs_do_not_share_a_schema(sql: Endpoint) -> None:
    """The second run of the same scenario name is told so; after the first has finished it may."""
    with prepared(sql, LOG_ONLY):
        second = made("sql-mix", {"sql": sql}, LOG_ONLY)
        with pytest.raises(ScenarioError, match="another run is using schema 'pinchpoint_test'"):
            second.prepare(quiet)
        second.finish(keep_data=True)
    with prepared(sql, LOG_ONLY):
        pass


def test_names_with_dashes_and_capitals_work(sql: Endpoint) -> None:
    """A scenario's name is quoted, not spelt into SQL."""
    with prepared(sql, LOG_ONLY, name="My-Orders") as driver:
        session = driver.session(0)
        recorder = Recorder()
        session.perform(recorder)
        session.close()
        assert recorder.counts() == {("log_append", "ok"): 1}
        assert tables(sql, "pinchpoint_My-Orders") == {"log"}
    with pytest.raises(ScenarioError, match="shorter name"):
        made("sql-mix", {"sql": sql}, LOG_ONLY, name="x" * 60)


def test_the_marker_is_what_is_written(sql: Endpoint) -> None:
    """What lets a later run recognise its schema is the comment on it."""
    with prepared(sql, LOG_ONLY):
        query = "SELECT obj_description('pinchpoint_test'::regnamespace, 'pg_namespace')"
        assert ask(sql, query) == [(MARKER,)]
