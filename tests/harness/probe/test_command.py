"""``pinchpoint probe`` on a local folder as a user calls it: figures, files, refusals, Ctrl-C."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import psutil
import pytest
from support import disk_folder, end, require, run_cli, start_cli, wait_for_line

from pinchpoint.base.errors import GuardError, InputError, PinchpointError
from pinchpoint.cli.probe import probe

STARTS = pytest.mark.slow
"""A new process takes seconds; in CI only Ctrl-C needs one."""
SMALL = ("--size", "64MiB", "--repeat", "1")


@pytest.fixture
def disk() -> Iterator[Path]:
    """Yield a folder on a real disk (not in memory), and check that the probes leave it unchanged."""
    folder = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/var/tmp"))
    (folder / "precious").write_text("x")
    try:
        yield folder
        left = {path.name for path in folder.iterdir()}
    finally:
        shutil.rmtree(folder)
    assert left == {"precious"}


def probed(*arguments: str | Path) -> tuple[Path, dict[str, Any], str]:
    """Return (directory, probe.json, stderr) of a successful probe, run in this process to save time."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = probe.main([str(word) for word in arguments], standalone_mode=False)
    assert status == 0, err.getvalue()
    directory = Path(out.getvalue().splitlines()[-1])
    return directory, json.loads((directory / "probe.json").read_text()), err.getvalue()


def test_a_suite_leaves_figures_a_page_and_nothing_else(disk: Path, tmp_path: Path) -> None:
    """Each cell of the database suite has consistent rates, latencies and percentiles."""
    require("fio", "fio")
    directory, content, said = probed(
        disk,
        "--suite",
        "database",
        *SMALL,
        "--time-per-cell",
        "200ms",
        "--out",
        tmp_path,
        "--profile",
        "azure/p10",
    )
    assert "estimate: 13 measurements" in said
    assert (content["schema"], content["state"], content["suite"]) == (
        "pinchpoint.probe/1",
        "finished",
        "database",
    )
    assert content["declared"]["profile"] == "azure/p10"
    assert content["versions"]["fio"].startswith("fio-")
    assert content["prepared"]["bytes"] == 64 * 2**20
    for row in content["cells"]:
        one = row["figures"]
        assert (one["trials"], one["failed"]) == (1, []), row["name"]
        assert one["bytes_per_s"]["mean"] == pytest.approx(one["iops"]["mean"] * row["block_bytes"], rel=0.01)
        assert 0 < one["p50_s"] <= one["p95_s"] <= one["p99_s"] <= one["p999_s"] <= one["max_s"] * 1.05
        [trial] = row["trials"]
        reads = trial["reads_per_s"] / one["iops"]["mean"]
        assert reads == pytest.approx(row["read_ratio"], abs=0.15), row["name"]
    assert "<svg" in (directory / "report.html").read_text()
    assert content["verdict"]["summary"]


def test_threads_share_what_is_outstanding(disk: Path, tmp_path: Path) -> None:
    """Four threads of eight have 32 outstanding by Little's law, and their seconds are added."""
    require("fio", "fio")
    _, content, _ = probed(
        disk, "--suite", "stability", *SMALL, "--time-per-cell", "6s", "--threads", "4", "--out", tmp_path
    )
    [row] = content["cells"]
    [trial] = row["trials"]
    assert (row["outstanding"], content["options"]["threads"]) == (32, 4)
    assert trial["writes_per_s"] * trial["mean_s"] == pytest.approx(32, rel=0.15)
    steps = trial["series"]["iops"]
    assert sum(steps) / len(steps) == pytest.approx(trial["writes_per_s"], rel=0.3)
    assert content["where"]["read_ahead_bytes"] > 0


def test_sequential_by_dd(disk: Path, tmp_path: Path) -> None:
    """The tool dd writes and reads the file; hdparm's row has a figure or a reason."""
    _, content, _ = probed(disk, "--suite", "sequential", *SMALL, "--out", tmp_path)
    rows = {row["name"]: row["figures"] for row in content["cells"]}
    for name in ("dd write, 1 outstanding", "dd read"):
        assert rows[name]["bytes_per_s"]["mean"] > 1e6
        assert rows[name]["mean_s"] is None
    hdparm = rows["hdparm read"]
    assert hdparm["bytes_per_s"] or hdparm["failed"]


@pytest.mark.slow  # sixteen thousand files, twice
def test_bonnie_itself(disk: Path, tmp_path: Path) -> None:
    """bonnie++'s present CSV is read: figures, or a note that it was too fast for its clock."""
    require("bonnie++", "bonnie++")
    _, content, _ = probed(disk, "--suite", "bonnie", *SMALL, "--out", tmp_path)
    rows = {row["name"]: row["figures"] for row in content["cells"]}
    assert rows["bonnie create files in order"]["iops"]["mean"] > 10
    assert rows["bonnie create files in order"]["max_s"] > 0
    assert all(one["trials"] == 1 or "too fast" in one["failed"][0] for one in rows.values())
    assert content["versions"]["bonnie++"].startswith("Version: 2")
    assert any("memory was measured" in warning for warning in content["warnings"])


@STARTS
def test_json_is_one_document(disk: Path, tmp_path: Path) -> None:
    require("fio", "fio")
    done = run_cli(
        "probe", disk, "--suite", "stability", *SMALL, "--time-per-cell", "1s", "--json", "--out", tmp_path
    )
    content = json.loads(done.stdout)
    assert not any(content["verdict"]["caps"].values())
    assert content["options"] == {
        "repeat": 1,
        "time_per_cell_s": 1.0,
        "size_bytes": 64 * 2**20,
        "line_s": 0.02,
    }


@pytest.mark.slow  # sixteen seconds; CI has twenty minutes
def test_ctrl_c_keeps_what_was_measured_and_it_is_gone_on_with(disk: Path, tmp_path: Path) -> None:
    """Ctrl-C gives exit status 130, a clean folder and no fio; --resume measures only the rest."""
    require("fio", "fio")
    asked = ("--suite", "crystaldiskmark", *SMALL, "--time-per-cell", "200ms", "--out", tmp_path)
    process = start_cli("probe", disk, *asked)
    wait_for_line(process, "[3/12]")
    status, out, err = end(process, signal.SIGINT)
    assert status == 130, err
    directory = Path(out.splitlines()[-1])
    before = json.loads((directory / "probe.json").read_text())
    measured = [row["name"] for row in before["cells"] if row["trials"]]
    assert before["state"] == "interrupted"
    assert 3 <= len(measured) < 12
    assert "not finished" in out
    assert [path.name for path in disk.iterdir()] == ["precious"]
    done = run_cli("probe", "--resume", directory)
    assert done.returncode == 0, done.stderr
    after = json.loads((directory / "probe.json").read_text())
    assert after["state"] == "finished"
    assert all(len(row["trials"]) == 1 for row in after["cells"])
    firsts = {row["name"]: row["trials"][0]["started"] for row in after["cells"]}
    assert all(firsts[row["name"]] == row["trials"][0]["started"] for row in before["cells"] if row["trials"])
    with pytest.raises(InputError, match="is finished"):
        probe.main(["--resume", str(directory)], standalone_mode=False)


@STARTS
def test_a_killed_probe_takes_fio_with_it(disk: Path, tmp_path: Path) -> None:
    """After SIGKILL fio ends at once where setpriv exists, and the next probe removes the folder."""
    require("fio", "fio")
    require("setpriv", "util-linux")
    process = start_cli(
        "probe", disk, "--suite", "stability", *SMALL, "--time-per-cell", "60s", "--out", tmp_path
    )
    wait_for_line(process, "estimate")
    fio = wait_for_fio(process.pid)
    process.kill()
    process.communicate(timeout=20)
    psutil.wait_procs([fio], timeout=10)
    with contextlib.suppress(psutil.NoSuchProcess):
        assert fio.status() == psutil.STATUS_ZOMBIE
    assert (disk / "pinchpoint-probe").exists()
    probed(disk, "--suite", "stability", *SMALL, "--time-per-cell", "200ms", "--out", tmp_path)


def wait_for_fio(parent: int) -> psutil.Process:
    """Return the fio process with which a probe measures."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(psutil.Error):  # it has just ended, or has not started the program yet
            children = psutil.Process(parent).children(recursive=True)
            found = [child for child in children if child.name() == "fio"]
            if found and "--name=cell" in found[0].cmdline():
                return found[0]
        time.sleep(0.05)
    raise AssertionError("no fio was started")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("{disk}",), 2, "--suite: needed"),
        (("--suite", "database"), 2, "give either DIR"),
        (("{disk}", "--suite", "databse"), 2, "nearest: database"),
        (("{disk}/precious", "--suite", "database"), 4, "did not create"),
        (("/dev/null", "--suite", "database"), 4, "raw device"),
        (("{disk}/nowhere", "--suite", "database"), 2, "is not a folder"),
        (("{disk}", "--suite", "database", "--profile", "azure/p11"), 2, "nearest: azure/p1"),
        (("{disk}", "--suite", "database", "--profile", "azure/ds12"), 2, "is a machine"),
        (("{disk}", "--suite", "database", "--time-per-cell", "5"), 2, "has no unit"),
        (("{disk}", "--suite", "database", "--size", "1KiB"), 2, "too small"),
        (("{disk}", "--suite", "database", "--size", "1000TB"), 5, "does not fit"),
        (("{disk}", "--suite", "database", "--disk", "sql.log"), 2, "--farm"),
        (("--resume", "{disk}"), 2, "it is not a probe"),
        (("--resume", "{disk}", "--repeat", "2", "--size", "1GiB"), 2, "so --repeat, --size cannot be given"),
        (("--resume", "{disk}", "--line", "5ms"), 2, "so --line cannot be given"),
        (("{disk}", "--suite", "sequential", "--time-per-cell", "5s"), 2, "makes it shorter is --size"),
        (("{disk}", "--suite", "bonnie", "--calibrate"), 2, "give it with --farm"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    disk: Path, tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    given = [word.replace("{disk}", str(disk)) for word in arguments]
    with pytest.raises(PinchpointError) as raised:
        probe.main([*given, "--out", str(tmp_path / "runs")], standalone_mode=False)
    assert (raised.value.exit_status, words in str(raised.value)) == (status, True), str(raised.value)
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


def test_an_empty_folder_is_not_the_current_one() -> None:
    """`probe "$DISK"` with an unset variable is refused and writes nothing."""
    with pytest.raises(click.BadParameter, match="is empty"):
        probe.main(["", "--suite", "database"], standalone_mode=False)


FARM = {
    "name": "ours",
    "environment": "staging",
    "endpoints": {"sql": {"url": "postgresql://loader@sql1/loadtest"}},
    "tiers": {"sql": {"hosts": {"sql1": {"collect": [{"kind": "local"}], "disks": {}}}}},
}


def farm_file(folder: Path, disks: dict[str, Any], **changed: Any) -> Path:
    content = json.loads(json.dumps(FARM)) | changed
    content["tiers"]["sql"]["hosts"]["sql1"]["disks"] = disks
    path = folder / "farm.yaml"
    path.write_text(json.dumps(content))
    return path


def test_a_disk_of_a_farm_with_what_it_is_declared_to_be(disk: Path, tmp_path: Path) -> None:
    require("fio", "fio")
    roles = {"log": {"path": str(disk), "profile": "azure/p30"}, "data": {"path": str(disk)}}
    farm = farm_file(tmp_path, roles)
    quick = ("--suite", "stability", *SMALL, "--time-per-cell", "200ms", "--out", tmp_path)
    _, content, _ = probed("--farm", farm, "--disk", "sql.log", *quick)
    assert (content["where"]["farm"], content["where"]["disk"]) == ("ours", "sql.log")
    assert content["declared"]["limits"]["iops"] == 5000
    with pytest.raises(InputError, match=r"one of: sql\.data, sql\.log"):
        probe.main(["--farm", str(farm), "--suite", "stability"], standalone_mode=False)
    with pytest.raises(InputError, match=r"nearest: sql\.log"):
        probe.main(["--farm", str(farm), "--disk", "sql.lgo", "--suite", "stability"], standalone_mode=False)


def test_a_production_farm_is_refused(disk: Path, tmp_path: Path) -> None:
    farm = farm_file(tmp_path, {"log": {"path": str(disk)}}, environment="production")
    given = ["--farm", str(farm), "--suite", "stability", "--out", str(tmp_path / "runs")]
    with pytest.raises(GuardError, match="is production"):
        probe.main(given, standalone_mode=False)


@STARTS
def test_a_folder_in_memory_is_said_to_be_none_of_a_disk(tmp_path: Path) -> None:
    """A folder in memory is measured with a warning where direct I/O works, and else refused."""
    require("fio", "fio")
    memory = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/dev/shm"))
    try:
        out = tmp_path / "runs"
        done = run_cli(
            "probe", memory, "--suite", "stability", *SMALL, "--time-per-cell", "200ms", "--out", out
        )
        if done.returncode == 0:
            assert "lies on no disk" in done.stdout
        else:
            assert done.returncode == 5
            assert "without direct I/O" in done.stderr
        assert not list(memory.iterdir())
    finally:
        shutil.rmtree(memory)
