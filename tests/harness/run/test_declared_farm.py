"""Runs against existing servers: real PostgreSQL and Valkey, observed locally."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from servers import redis
from support import end, frozen, run_cli, start_cli, until, wait_for_line

from pinchpoint.store.read import open_run

pytestmark = pytest.mark.farm

MEASURE_S = 6


@pytest.fixture
def farm(urls: tuple[str, str], tmp_path: Path) -> Path:
    return write_farm(tmp_path, *urls)


def write_farm(folder: Path, sql: str, nosql: str, **more: Any) -> Path:
    path = folder / "farm.yaml"
    content = {
        "name": "mine",
        "environment": "test",
        "endpoints": {"sql": {"url": sql}, "nosql": {"url": nosql}},
        "tiers": {
            "sql": {"hosts": {"db1": {"collect": [{"kind": "local"}], "disks": {"data": {"path": "/"}}}}},
            "nosql": {"hosts": {"kv1": {"collect": [{"kind": "local"}]}}},
        },
        **more,
    }
    path.write_text(json.dumps(content))
    return path


def write_plan(folder: Path, measure_s: int = MEASURE_S, **more: Any) -> Path:
    path = folder / "plan.yaml"
    content = {
        "name": "quick",
        "scenarios": {
            "orders": {
                "use": "sql-mix",
                "load": {"model": "open", "rate": "100/s"},
                "params": {"operations": {"log_append": 1}},
            },
            "burst": {
                "use": "nosql-burst",
                "load": {"model": "burst", "base": "20/s", "peak": "100/s", "every": "4s", "for": "1s"},
            },
        },
        "phases": {"warm_up": "2s", "measure": f"{measure_s}s"},
        **more,
    }
    path.write_text(json.dumps(content))
    return path


def fill(path: Path) -> None:
    """Write into a file until its disk is full."""
    with path.open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(65536))


def left_over() -> list[str]:
    """Return this test session's generator processes that are still alive."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        line = " ".join(process.info["cmdline"] or [])
        mark = (process.info["environ"] or {}).get("PINCHPOINT_TEST_SESSION")
        if "loadgen.local" in line and mark == os.environ["PINCHPOINT_TEST_SESSION"]:
            found.append(line)
    return found


@pytest.mark.alone
def test_a_run_counts_what_was_committed(farm: Path, urls: tuple[str, str], tmp_path: Path) -> None:
    """Every committed operation is a row in the database, and the run directory is complete."""
    out = tmp_path / "runs"
    done = run_cli("run", write_plan(tmp_path), "--farm", farm, "--out", out, "--keep-data")
    assert done.returncode in (0, 3), done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    names = "events.jsonl manifest.json operations.parquet report.html samples.parquet verdict.json"
    assert sorted(path.name for path in directory.iterdir()) == names.split()
    run = open_run(directory)
    committed = sum(
        row["count"] for row in run.operations.to_pylist()
        if row["operation"] == "log_append" and row["outcome"] == "ok"
    )  # fmt: skip
    with psycopg.connect(urls[0]) as connection:
        [rows] = connection.execute("SELECT count(*) FROM pinchpoint_orders.log").fetchone() or [0]
        connection.execute("DROP SCHEMA pinchpoint_orders CASCADE")
    assert committed == rows
    assert committed == pytest.approx(100 * (MEASURE_S + 2), rel=0.15)
    scenarios = json.loads((directory / "verdict.json").read_text())["scenarios"]
    assert scenarios["orders"]["throughput_per_s"] == pytest.approx(100, rel=0.2)
    assert urls[0].split(":")[2].split("@")[0] not in (directory / "manifest.json").read_text()
    hosts = {row["host"] for row in run.samples.to_table().to_pylist()}
    assert {"db1", "kv1", "generator1"} <= hosts


@pytest.mark.alone
def test_killed_controller_leaves_a_run_that_can_be_analysed(farm: Path, tmp_path: Path) -> None:
    """After SIGKILL of the controller, the generators end, and analyse judges the incomplete run."""
    out = tmp_path / "runs"
    process = start_cli("run", write_plan(tmp_path, 60), "--farm", farm, "--out", out)
    wait_for_line(process, "measuring")
    time.sleep(4)
    killed = time.time()
    end(process, signal.SIGKILL)
    until(lambda: not left_over())
    assert not left_over()
    [directory] = out.iterdir()
    done = run_cli("analyse", directory)
    assert done.returncode in (0, 3), done.stderr
    assert "incomplete" in done.stdout
    run = open_run(directory)
    assert run.manifest["state"] == "interrupted"
    last = max(run.operations["time_s"].to_pylist())
    assert killed - last < 2.5, "at most the last second is missing"
    assert killed - max(run.samples.to_table()["time_ns"].to_pylist()) / 1e9 < 2.5
    refused = run_cli("run", write_plan(tmp_path, 1), "--farm", farm, "--out", out)
    assert "if it was killed: pinchpoint run --take-over" in refused.stderr
    again = run_cli("run", write_plan(tmp_path, 1), "--farm", farm, "--out", out, "--take-over")
    assert again.returncode in (0, 3), again.stderr


def test_one_ctrl_c_keeps_and_reports(farm: Path, tmp_path: Path) -> None:
    """One Ctrl-C stops and reports the run: exit status 130, run directory as the last line."""
    process = start_cli("run", write_plan(tmp_path, 60), "--farm", farm, "--out", tmp_path / "runs")
    wait_for_line(process, "measuring")
    status, out, err = end(process, signal.SIGINT)
    assert status == 130, err
    directory = Path(out.splitlines()[-1])
    assert (directory / "report.html").exists()
    assert "interrupted" in (directory / "manifest.json").read_text()
    assert not left_over()


def test_two_ctrl_c_stop_at_once_without_orphans(farm: Path, tmp_path: Path) -> None:
    """Two Ctrl-C end the run without report or orphans, and its measurements can be recovered."""
    process = start_cli("run", write_plan(tmp_path, 60), "--farm", farm, "--out", tmp_path / "runs")
    wait_for_line(process, "measuring")
    status, _, err = end(process, signal.SIGINT, signal.SIGINT)
    assert status == 130, err
    assert "Traceback" not in err
    assert not left_over()
    [directory] = (tmp_path / "runs").iterdir()
    assert open_run(directory).operations.num_rows > 0


def test_ctrl_c_while_data_is_made_leaves_nothing(farm: Path, urls: tuple[str, str], tmp_path: Path) -> None:
    """Ctrl-C while data is created leaves no run and no table."""
    plan = write_plan(tmp_path)
    content = json.loads(plan.read_text())
    content["scenarios"]["orders"]["params"] = {"operations": {"point_read": 1}, "scale": 500}
    plan.write_text(json.dumps(content))
    process = start_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs")
    wait_for_line(process, "orders: ")
    status, _, err = end(process, signal.SIGINT)
    assert status == 130, err
    assert "Traceback" not in err
    assert list((tmp_path / "runs").iterdir()) == []
    assert not left_over()
    with psycopg.connect(urls[0]) as database:
        left = database.execute("SELECT tablename FROM pg_tables WHERE schemaname LIKE 'pinchpoint%'")
        assert left.fetchall() == []


def test_a_generator_that_dies_makes_the_run_invalid(farm: Path, tmp_path: Path) -> None:
    """A generator that dies makes the run invalid, with exit status 3 and one sentence."""
    process = start_cli("run", write_plan(tmp_path, 60), "--farm", farm, "--out", tmp_path / "runs")
    wait_for_line(process, "measuring")
    for child in psutil.Process(process.pid).children(recursive=True):
        if "loadgen.local" in " ".join(child.cmdline()):
            child.kill()
    status, out, err = end(process)
    assert status == 3, err
    verdict = json.loads((Path(out.splitlines()[-1]) / "verdict.json").read_text())
    assert verdict["outcome"] == "invalid"


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        (("postgresql:", "postgres-ql:"), 2, "allowed"),
        (("@127.0.0.1:", "@127.0.0.2:"), 5, "endpoint sql (127.0.0.2"),
        (("//loader:", "//loader:wrong"), 5, "password"),
        (("/loadtest", "/nosuchdb"), 5, "does not exist"),
    ],
)
def test_what_cannot_be_reached_is_one_clear_sentence(
    urls: tuple[str, str], tmp_path: Path, change: tuple[str, str], status: int, said: str
) -> None:
    """Wrong password, unknown database and malformed URL each give one sentence and the right status."""
    farm = write_farm(tmp_path, urls[0].replace(*change), urls[1])
    command = ("run", write_plan(tmp_path), "--farm", farm, "--out", tmp_path / "runs")
    done = run_cli(*command, starts_nothing=True)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert urls[0].split(":")[2].split("@")[0] not in done.stderr, "the password is never shown"
    assert not left_over()


@pytest.mark.slow
def test_redis_of_the_system_is_driven_too(urls: tuple[str, str], tmp_path: Path) -> None:
    """A Redis of the system is checked and loaded by its own URL scheme."""
    with redis() as nosql:
        farm, plan = write_farm(tmp_path, urls[0], nosql), write_plan(tmp_path)
        checked = run_cli("check", plan, "--farm", farm)
        assert checked.returncode == 0, checked.stdout
        assert "redis" in checked.stdout
        done = run_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs")
    assert done.returncode in (0, 3), done.stderr
    run = open_run(Path(done.stdout.splitlines()[-1]))
    outcomes = {row["outcome"] for row in run.operations.to_pylist() if row["scenario"] == "burst"}
    assert outcomes <= {"ok", "sent"}


def test_production_is_refused(urls: tuple[str, str], tmp_path: Path) -> None:
    """Production is refused with exit status 4 before any connection or file."""
    farm = write_farm(tmp_path, *urls, environment="production")
    command = ("run", write_plan(tmp_path), "--farm", farm, "--out", tmp_path / "runs")
    done = run_cli(*command, starts_nothing=True)
    assert done.returncode == 4
    assert "production" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small tmpfs")
def test_a_full_disk_is_said_and_nothing_is_lost(farm: Path, tmp_path: Path) -> None:
    """A disk that fills up during the run gives exit status 3, one sentence, and the data that fitted."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=210m", "tmpfs", small], check=True)
    try:
        process = start_cli("run", write_plan(tmp_path, 60), "--farm", farm, "--out", small)
        wait_for_line(process, "measuring")
        fill(small / "ballast")
        status, _, err = end(process)
        assert status == 3, err
        assert "Traceback" not in err
        assert "space" in err
        assert not left_over()
        (small / "ballast").unlink()
        [directory] = small.iterdir()
        assert open_run(directory).operations.num_rows > 0
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small tmpfs")
def test_a_disk_that_fills_up_after_the_measuring(farm: Path, tmp_path: Path) -> None:
    """A disk that fills up after measuring gives exit status 5, and `analyse` works with space again."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=210m", "tmpfs", small], check=True)
    try:
        process = start_cli("run", write_plan(tmp_path, 3), "--farm", farm, "--out", small)
        wait_for_line(process, "removing the data")
        with frozen(process.pid):
            fill(small / "ballast")
        status, _, err = end(process)
        assert status == 5, err
        assert "make room, then `pinchpoint analyse" in err
        (small / "ballast").unlink()
        [directory] = small.iterdir()
        assert run_cli("analyse", directory).returncode in (0, 1, 3)
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_run_directory_that_vanishes_after_the_measuring(farm: Path, tmp_path: Path) -> None:
    """A run directory that vanishes after measuring gives exit status 5, and no message promises data."""
    process = start_cli("run", write_plan(tmp_path, 3), "--farm", farm, "--out", tmp_path / "runs")
    wait_for_line(process, "removing the data")
    with frozen(process.pid):
        shutil.rmtree(tmp_path / "runs")
    status, _, err = end(process)
    assert status == 5, err
    assert "Nothing of this run is kept" in err
    assert "pinchpoint analyse" not in err
