"""Foreign objects in each store: byte for byte unchanged after runs, a kill, and the removal."""

# ruff: noqa: S608 -- statements are made of this file's own names

from __future__ import annotations

import getpass
import json
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from cassandra.cluster import Cluster
from harness.run.test_stalls import NOSQL, SQL
from infra.services.serving import serving
from javaservers import cassandra, mongo
from mariadbserver import mariadb
from pymongo import MongoClient
from scenarios.full_crawl_sources.sites import samba
from servers import postgres, valkey, valkey_cluster
from stalling import stalling_proxy
from support import end, missing, start_cli, until, wait_for_line
from valkey import ResponseError, Valkey

from pinchpoint_infra.content.filling import ingest

pytestmark = [pytest.mark.farm, pytest.mark.timeout(600)]

Look = Callable[[], dict[str, Any]]
"""The content of a store: each object with everything that may change."""

NAMES = ("pinchpoint", "pinchpoint_wor", "pinchpoint_work2", "pinchpointXwork", "xpinchpoint_work")
"""Names near ``pinchpoint_work``, which a pattern that is too wide would match."""


def _rows(database: psycopg.Connection[Any], query: str) -> list[Any]:
    return database.execute(query).fetchall()


def _postgres_look(url: str) -> dict[str, Any]:
    """Return tables with files and rows (and their transactions), routines, types and rights."""
    with psycopg.connect(url) as database:
        found: dict[str, Any] = {}
        for name, kind, file in _rows(
            database,
            "SELECT format('%I.%I', nspname, relname), relkind, pg_relation_filenode(c.oid) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname !~ '^pg_' AND "
            "nspname <> 'information_schema'",
        ):
            found[name] = (kind, file)
            if kind == "r":
                found[f"{name} rows"] = _rows(
                    database, f"SELECT ctid, xmin, t::text FROM {name} t ORDER BY ctid"
                )
        found["schemas"] = _rows(database, "SELECT nspname, nspacl::text FROM pg_namespace ORDER BY 1")
        found["routines"] = _rows(
            database, "SELECT proname, prosrc FROM pg_proc WHERE oid > 16384 ORDER BY 1, 2"
        )
    return found


def _postgres_planted(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        for name in NAMES:
            database.execute(f'CREATE SCHEMA "{name}"')
            database.execute(f'CREATE TABLE "{name}".log (id int, theirs text)')
            database.execute(f"""INSERT INTO "{name}".log VALUES (1, '{name}')""")
        database.execute("CREATE TABLE public.log AS SELECT generate_series(1, 100) AS theirs")
        database.execute("CREATE FUNCTION public.theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'")


def _folder_look(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path)] = (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, content)
        found[f"{path} names"] = (status.st_ino, status.st_nlink, os.listxattr(path, follow_symlinks=False))
    return found


def _folder_planted(folder: Path) -> None:
    (folder / "sub").mkdir(parents=True)
    for number in range(30):
        (folder / "sub" / f"{number}.txt").write_text(f"theirs {number}")
    for name in NAMES:
        (folder / name).write_bytes(name.encode())
    (folder / "link").symlink_to("sub/1.txt")


def _crawl(source: dict[str, Any]) -> dict[str, Any]:
    params = {"sources": [source]}
    return {"use": "full-crawl", "load": {"model": "closed", "users": 2}, "params": params}


@contextmanager
def _postgresql(_: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Look]]:
    with postgres() as url:
        _postgres_planted(url)
        yield {"sql": {"url": url}}, SQL, lambda: _postgres_look(url)


@contextmanager
def _mariadb(_: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Look]]:
    with mariadb() as server:
        for name in NAMES:
            server.ask(f"CREATE DATABASE `{name}`")
            server.ask(f"CREATE TABLE `{name}`.log (id int PRIMARY KEY, theirs text)")
            server.ask(f"INSERT INTO `{name}`.log VALUES (1, '{name}')")
            server.ask(f"CREATE VIEW `{name}`.view AS SELECT id FROM `{name}`.log")

        def look() -> dict[str, Any]:
            tables = server.ask(
                "SELECT table_schema, table_name, table_type, create_time FROM information_schema.tables "
                "WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
            )
            found: dict[str, Any] = {}
            for schema, name, kind, made in tables:
                found[f"{schema}.{name}"] = (kind, made, server.ask(f"CHECKSUM TABLE `{schema}`.`{name}`"))
            found["schemas"] = sorted(server.ask("SHOW DATABASES"))
            return found

        yield {"sql": {"url": server.url}}, SQL, look


def _keys_planted(client: Valkey) -> None:
    for name in NAMES:
        for key in (name.replace("_", ":"), f"{name.replace('_', ':')}:1", f"{name}:0"):
            client.set(key, f"theirs {key}")
    client.hset("pinchpoint:worker", mapping={"field0": "theirs"})
    client.rpush("pinchpoint*work:0", "theirs", "too")
    client.set("pinchpoint:wor:expires", "theirs", ex=86_400)


def _keys_look(client: Valkey) -> dict[str, Any]:
    return {
        repr(key): (client.dump(key), client.ttl(key) > 0)  # type: ignore[operator]
        for key in client.scan_iter(count=1000)
    }


@contextmanager
def _valkey(_: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Look]]:
    with valkey() as url, Valkey.from_url(url) as client:
        _keys_planted(client)
        yield {"nosql": {"url": url}}, NOSQL, lambda: _keys_look(client)


@contextmanager
def _valkey_cluster(_: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Look]]:
    with valkey_cluster() as group:
        first = next(iter(group))

        def planted(key: str) -> None:
            for port in group:  # the node that has the slot answers
                with suppress(ResponseError):  # MOVED, from the other nodes
                    group.ask(port, "SET", key, f"theirs {key}")

        for name in NAMES:
            planted(name.replace("_", ":"))
            planted(f"{name.replace('_', ':')}:1")

        def look() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for port in group:
                with Valkey(port=port, password="sesame") as client:
                    found |= _keys_look(client)
            return found

        yield {"nosql": {"url": f"valkey://:sesame@127.0.0.1:{first}"}}, NOSQL, look


@contextmanager
def _cassandra(_: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Look]]:
    with cassandra() as server:
        parts = urlsplit(server.url)
        with Cluster([parts.hostname], port=parts.port) as cluster:
            session = cluster.connect()
            session.default_timeout = 60
            for keyspace in ("loadtest", "pinchpoint"):
                session.execute(
                    f"CREATE KEYSPACE {keyspace} WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}"
                )
                for name in NAMES:
                    session.execute(f'CREATE TABLE {keyspace}."{name}" (id int PRIMARY KEY, theirs text)')
                    session.execute(f"""INSERT INTO {keyspace}."{name}" (id, theirs) VALUES (1, '{name}')""")

            def look() -> dict[str, Any]:
                found: dict[str, Any] = {}
                for keyspace in ("loadtest", "pinchpoint"):
                    query = (
                        f"SELECT table_name, id FROM system_schema.tables WHERE keyspace_name = '{keyspace}'"
                    )
                    for name, identity in session.execute(query):
                        found[f"{keyspace}.{name}"] = identity
                        if name in NAMES:
                            rows = session.execute(
                                f'SELECT id, theirs, writetime(theirs) FROM {keyspace}."{name}"'
                            )
                            found[f"{keyspace}.{name} rows"] = list(rows)
                return found

            yield {"nosql": {"url": server.url}}, NOSQL, look


@contextmanager
def _mongodb(_: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], Look]]:
    with mongo() as server, MongoClient[dict[str, Any]](server.url) as client:
        for database in ("loadtest", "pinchpoint"):
            for name in NAMES:
                for number in range(5):
                    client[database][name].insert_one({"_id": number, "theirs": name})

        def look() -> dict[str, Any]:
            return {
                f"{database}.{name}": sorted(map(repr, client[database][name].find()))
                for database in client.list_database_names()
                for name in client[database].list_collection_names()
            }

        yield {"nosql": {"url": server.url}}, NOSQL, look


@contextmanager
def _crawled(folder: Path, endpoints: dict[str, Any], source: dict[str, Any], of: Look) -> Iterator[Any]:
    """Yield a source's content, and foreign schemas beside the crawl database."""
    with postgres() as url:
        _postgres_planted(url)
        given = {"sql": {"url": url}, "search": {"kind": "none"}, **endpoints}
        yield given, _crawl(source), lambda: of() | _postgres_look(url)


@contextmanager
def _local_folder(folder: Path) -> Iterator[Any]:
    _folder_planted(folder / "docs")
    source = {"kind": "files", "path": str(folder / "docs")}
    with _crawled(folder, {}, source, lambda: _folder_look(folder / "docs")) as found:
        yield found


@contextmanager
def _share(folder: Path) -> Iterator[Any]:
    if os.geteuid() != 0:
        missing("Samba's server needs root to change to the user who logs in")
    folder.chmod(0o755)
    _folder_planted(folder / "docs")
    user, password = getpass.getuser(), "a secret word"
    with samba(folder, folder / "docs", user, password) as (url, _):
        endpoints = {"files": {"path": url, "user": user, "password": password}}
        with _crawled(folder, endpoints, {"kind": "files"}, lambda: _folder_look(folder / "docs")) as found:
            yield found


@contextmanager
def _sharepoint(folder: Path) -> Iterator[Any]:
    _folder_planted(folder / "docs")
    (folder / "docs" / "link").unlink()
    with postgres() as content, ExitStack() as stack:
        ingest(folder / "docs", None, content, None, lambda _: None)
        service = stack.enter_context(
            serving("pinchpoint_infra.services.web", folder, token="a-token", database_url=content, people=5)
        )
        endpoints = {"sharepoint": {"url": service.url, "auth": "bearer", "token": "a-token"}}
        source = {"kind": "sharepoint"}
        yield stack.enter_context(_crawled(folder, endpoints, source, lambda: _content(content)))


def _content(url: str) -> dict[str, Any]:
    """Return the documents; the service adds a table when a client first asks for changes."""
    found = _postgres_look(url)
    return {
        f"content {name}": rows
        for name, rows in found.items()
        if name.endswith(" rows") and "changes" not in name
    }


STORES: dict[str, Callable[[Path], Any]] = {
    "valkey": _valkey,
    "postgresql": _postgresql,
    "mariadb": _mariadb,
    "valkey cluster": _valkey_cluster,
    "cassandra": _cassandra,
    "mongodb": _mongodb,
    "local folder": _local_folder,
    "share": _share,
    "sharepoint": _sharepoint,
}


def _command(folder: Path, endpoints: dict[str, Any], scenario: dict[str, Any]) -> tuple[str | Path, ...]:
    """Return the command of a six-second run of the scenario."""
    farm, plan = folder / "farm.yaml", folder / "plan.yaml"
    farm.write_text(json.dumps({"name": "f", "environment": "test", "endpoints": endpoints}))
    phases = {"warm_up": "1s", "measure": "6s"}
    plan.write_text(json.dumps({"name": "p", "scenarios": {"work": scenario}, "phases": phases}))
    return "run", plan, "--farm", farm, "--out", folder / "runs"


def _check_theirs(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Check that foreign objects are unchanged; the list of schemas may also have ours."""
    assert {name: after.get(name) for name in before if name != "schemas"} == {
        name: value for name, value in before.items() if name != "schemas"
    }


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["reset", "garbled"])
@pytest.mark.parametrize("store", ["valkey", "mariadb", "postgresql", "mongodb", "cassandra"])
def test_what_is_not_ours_stays_behind_a_faulty_link(store: str, fault: str, tmp_path: Path) -> None:
    """Foreign objects stay unchanged when the link fails during writing and a second run takes over."""
    (tmp_path / "store").mkdir()
    with STORES[store](tmp_path / "store") as (endpoints, scenario, look):
        [[name, given]] = endpoints.items()
        port = urlsplit(given["url"]).port
        with stalling_proxy(port) as proxy:
            through = {name: {**given, "url": given["url"].replace(f":{port}", f":{proxy.port}", 1)}}
            command = _command(tmp_path, through, scenario)
            before = look()
            process = start_cli(*command)
            wait_for_line(process, "measuring", 120)
            getattr(proxy, fault).set()
            status, _, err = end(process, timeout_s=200)
            assert status in (0, 1, 3, 5), err
            _check_theirs(before, look())
            getattr(proxy, fault).clear()
            status, _, err = end(start_cli(*command, "--take-over"), timeout_s=150)
            assert status in (0, 1, 3), err
            assert look() == before


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a mount")
@pytest.mark.parametrize(("store", "size"), [("postgresql", "240m"), ("mariadb", "300m")])
def test_what_is_not_ours_stays_on_a_full_disk(
    store: str, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Foreign objects stay unchanged when the disk is full during writing and a second run takes over."""
    small = Path(tempfile.mkdtemp(prefix="full-"))  # where the server's own user has access
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", small], check=True)
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(small))
        with STORES[store](small) as (endpoints, scenario, look):
            monkeypatch.setattr(tempfile, "tempdir", None)
            command = _command(tmp_path, endpoints, scenario)
            before = look()
            process = start_cli(*command)
            wait_for_line(process, "measuring", 120)
            assert any(small.iterdir())  # the server's files
            filler = small / "filler"
            with filler.open("wb") as file, suppress(OSError):
                while True:
                    file.write(bytes(2**20))
            status, _, err = end(process, timeout_s=200)
            assert status in (0, 1, 3, 5), err
            filler.unlink()
            until(lambda: _answers(look))
            _check_theirs(before, look())
            status, _, err = end(start_cli(*command, "--take-over"), timeout_s=150)
            assert status in (0, 1, 3), err
            assert look() == before
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)
        small.rmdir()


def _answers(look: Look) -> bool:
    """Return whether the server answers again."""
    with suppress(Exception):
        look()
        return True
    return False


@pytest.mark.parametrize(
    "store",
    [pytest.param(name, marks=[pytest.mark.slow] if number else []) for number, name in enumerate(STORES)],
)
def test_what_is_not_ours_stays_as_it_is(store: str, tmp_path: Path) -> None:
    """Foreign objects stay unchanged after a run, after a kill under load, and after the removal."""
    (tmp_path / "store").mkdir()
    with STORES[store](tmp_path / "store") as (endpoints, scenario, look):
        command = _command(tmp_path, endpoints, scenario)
        before = look()
        assert len(before) > len(NAMES)

        status, _, err = end(start_cli(*command), timeout_s=150)
        assert status in (0, 1, 3), err
        assert look() == before

        process = start_cli(*command)
        wait_for_line(process, "measuring", 120)
        os.killpg(process.pid, signal.SIGKILL)
        end(process)
        _check_theirs(before, look())

        status, _, err = end(start_cli(*command, "--take-over"), timeout_s=150)
        assert status in (0, 1, 3), err
        assert look() == before
