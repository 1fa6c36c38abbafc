"""Helpers of sql-mix's tests: queries, prepared scenarios, load by threads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import psycopg
from scenarios.support import Recorder, made, quiet

from pinchpoint_scenarios.contract import Endpoint, Scenario

LOG_ONLY = {"operations": {"log_append": 1}}
_PLACED = ("host", "port", "dbname", "user", "password")
SMALL = 0.1  # a tenth of the server's cache: the tests need few rows


def ask(endpoint: Endpoint, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement as the endpoint's user and return its rows."""
    with psycopg.connect(endpoint.url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


def number(endpoint: Endpoint, statement: str) -> int:
    """Return the single number of a query."""
    ((found,),) = ask(endpoint, statement)
    return int(found or 0)


def with_options(endpoint: Endpoint, **settings: str) -> Endpoint:
    """Return the endpoint with other server settings for its connections."""
    separator = "&" if "?" in endpoint.url else "?"
    options = "%20".join(f"-c{name}%3D{value}" for name, value in settings.items())
    return Endpoint(endpoint.name, f"{endpoint.url}{separator}options={options}")


def other_url(endpoint: Endpoint, **changes: str) -> Endpoint:
    """Return the endpoint with another host, port, database or password; other keys go to its query."""
    given = psycopg.conninfo.conninfo_to_dict(endpoint.url) | changes
    where = f"{given['host']}:{given['port']}/{given['dbname']}"
    asked = {name: value for name, value in changes.items() if name not in _PLACED}
    query = f"?{urlencode(asked)}" if asked else ""
    return Endpoint("sql", f"postgresql://{given['user']}:{given['password']}@{where}{query}")


@contextmanager
def prepared(
    endpoint: Endpoint,
    params: dict[str, Any],
    name: str = "test",
    event: Callable[..., None] = lambda *_, **__: None,
    progress: Callable[[str], None] = quiet,
    *,
    keep_data: bool = False,
) -> Iterator[Scenario]:
    """Yield a prepared scenario; its data is removed at the end unless it is kept."""
    driver = made("sql-mix", {"sql": endpoint}, params, name=name, event=event)
    try:
        driver.prepare(progress)
        yield driver
    finally:
        driver.finish(keep_data=keep_data)


def tables(endpoint: Endpoint, schema: str = "pinchpoint_test") -> set[str]:
    """Return the tables of a schema."""
    return {row[0] for row in ask(endpoint, "SELECT tablename FROM pg_tables WHERE schemaname = %s", schema)}


def wait_until_reported(endpoint: Endpoint) -> None:
    """Wait until the closed sessions have ended on the server, which then has counted all their work."""
    deadline = time.monotonic() + 5
    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pinchpoint_test'"
    while number(endpoint, left) > 1:  # the session that holds the schema stays
        assert time.monotonic() < deadline
        time.sleep(0.02)


def performed(driver: Scenario, times: int, session_number: int = 0) -> Recorder:
    """Perform operations in one session and return the recorder."""
    recorder, session = Recorder(), driver.session(session_number)
    for _ in range(times):
        assert session.perform(recorder)
    session.close()
    return recorder


@contextmanager
def loaded(driver: Scenario, users: int, length_s: float) -> Iterator[Recorder]:
    """Run ``users`` threads during the block, for at most ``length_s`` seconds; yield the recorder.

    At the end of the block the users finish their operations, so that the recorder is complete.
    """
    recorder, stop = Recorder(), threading.Event()
    sessions = [driver.session(each) for each in range(users)]
    errors: list[BaseException] = []
    end = time.monotonic() + length_s

    def work(each: int) -> None:
        try:
            while time.monotonic() < end and not stop.is_set():
                sessions[each].perform(recorder)
        except BaseException as error:  # noqa: BLE001 - raised again by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in range(users)]
    for thread in threads:
        thread.start()
    try:
        yield recorder
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for session in sessions:
            session.close()
    assert errors == []


def press(endpoint: Endpoint, driver: Scenario, users: int, length_s: float) -> tuple[Recorder, Counter[str]]:
    """Run load for some time; return the recorder, and the counts of the server sessions' waits."""
    waits, end = Counter[str](), time.monotonic() + length_s
    with (
        loaded(driver, users, length_s) as recorder,
        psycopg.connect(endpoint.url, autocommit=True) as watching,
    ):
        while time.monotonic() < end - 0.1:
            seen = watching.execute(
                "SELECT coalesce(wait_event_type, 'none') FROM pg_stat_activity "
                "WHERE application_name = 'pinchpoint_test' AND state = 'active'"
            )
            waits.update(row[0] for row in seen)
            time.sleep(0.05)
        while time.monotonic() < end:
            time.sleep(0.01)
    return recorder, waits
