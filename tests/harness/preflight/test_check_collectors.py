"""``pinchpoint check`` proves each collector of each host on real machines, as a user calls it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sshd_hosts import SshdHost, sshd_host
from support import require, run_cli, until

from pinchpoint.farm.ready import standing_farm
from pinchpoint.plan import load_farm
from pinchpoint.run.preflight import Connected, FirstReadings, ProofCheck, here, prove
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.disks import Disks
from pinchpoint_collectors.record import Sample, Watch


@pytest.fixture(scope="module")
def host() -> Iterator[SshdHost]:
    with sshd_host() as found:
        yield found


def farm_of(folder: Path, collect: dict[str, Any], disks: dict[str, Any], environment: str = "test") -> Path:
    """Return farm.yaml of one host."""
    host = {"collect": [collect], "disks": disks}
    farm = {
        "name": "f",
        "environment": environment,
        "endpoints": {"web": {"url": "http://127.0.0.1:9"}},
        "tiers": {"sql": {"hosts": {"sql1": host}}},
    }
    (folder / "farm.yaml").write_text(json.dumps(farm))
    return folder / "farm.yaml"


def proofs(farm_file: Path) -> dict[str, ProofCheck]:
    """Return the result of each proof by name."""
    farm = load_farm(farm_file)
    live = standing_farm(farm)
    assert live is not None
    _, found = prove(farm, live.watches)
    return {each.what: each for each in found}


def checked(folder: Path, farm: Path, *options: str) -> tuple[int, str]:
    """Return exit status and output for a simple plan."""
    require("fio", "fio")
    plan = {
        "name": "p",
        "scenarios": {"probe": {"use": "storage-probe", "load": {"model": "closed", "users": 1}}},
        "phases": {"warm_up": "1s", "measure": "1s"},
    }
    (folder / "plan.yaml").write_text(json.dumps(plan))
    done = run_cli(
        "check", folder / "plan.yaml", "--farm", farm, "--out", folder, *options, starts_nothing=True
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def other_device(disk: str) -> str:
    """Return a block device without any test folder."""
    for path in sorted(Path("/sys/class/block").iterdir()):
        if path.name != disk and not (path / "partition").exists() and disk not in _members(path.name):
            return path.name
    return pytest.skip("needs a second block device (a loop device will do)")


def _members(device: str) -> list[str]:
    return Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text())).below(device)


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith((".pinchpoint", "tmp"))]


def test_a_local_host_is_proved(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """A local host's readings are plausible and timely; a write of 16 MiB is seen on its disk."""
    disk = real_disk(tmp_path)
    data = {"path": str(tmp_path), "write_test": str(tmp_path)}
    status, said = checked(tmp_path, farm_of(tmp_path, {"kind": "local"}, {"data": data}), "--json")
    document = json.loads(said)
    assert status == 0, said
    assert document["schema"] == "pinchpoint.check/1"
    assert document["ok"] is True
    found = {each["what"]: each for each in document["collectors"]}
    for what in ("reached", "read twice", "units", "clock"):
        assert found[what]["outcome"] == "ok", found[what]
    write = found["write data"]
    assert write["outcome"] in ("ok", "warning"), write  # other processes may write to other disks meanwhile
    assert f"seen on {disk}" in write["found"]
    assert left(tmp_path) == []


def test_a_host_over_ssh_is_proved(host: SshdHost, tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """Over ssh the clock's offset and error are found, and the write uses the host's own tools."""
    disk = real_disk(tmp_path)
    data = {"path": str(tmp_path), "write_test": str(tmp_path)}
    found = proofs(farm_of(tmp_path, {"kind": "ssh", **host.options()}, {"data": data}))
    assert {each.outcome for each in found.values()} <= {"ok", "warning", "not measured"}
    assert found["read twice"].outcome == "ok"
    assert "give or take" in found["clock"].found
    write = found["write data"]
    assert write.outcome in ("ok", "warning"), write
    assert f"seen on {disk}" in write.found
    assert left(tmp_path) == []


def test_a_role_on_the_wrong_disk_fails(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """A role on the wrong disk fails with exit status 5 and names the disk that was written."""
    disk = real_disk(tmp_path)
    data = {"device": other_device(disk), "write_test": str(tmp_path)}
    disks = {"data": data, "os": {"path": str(tmp_path)}}
    status, said = checked(tmp_path, farm_of(tmp_path, {"kind": "local"}, disks))
    assert status == 5, said
    assert "FAIL" not in said, "the collector itself is well"
    (line,) = (line for line in said.splitlines() if "write data" in line)
    assert "failed" in line
    assert disk in line
    assert "to do: say `device:" in said


def test_nothing_is_written_where_nobody_allowed_it(tmp_path: Path) -> None:
    """Without `write_test:` there is no write, and in production the message says why."""
    data = {"path": str(tmp_path)}
    assert "write data" not in proofs(farm_of(tmp_path, {"kind": "local"}, {"data": data}))
    data["write_test"] = str(tmp_path)
    write = proofs(farm_of(tmp_path, {"kind": "local"}, {"data": data}, "production"))["write data"]
    assert write.outcome == "not measured"
    assert "production" in write.found


def test_a_folder_that_may_not_be_written_was_not_measured(
    host: SshdHost, tmp_path: Path, real_disk: Callable[[Path], str]
) -> None:
    """A missing folder is not measured, with the remedy, locally and over ssh."""
    real_disk(tmp_path)
    missing = str(tmp_path / "missing")
    data = {"path": str(tmp_path), "write_test": missing}
    write = proofs(farm_of(tmp_path, {"kind": "ssh", **host.options()}, {"data": data}))["write data"]
    assert write.outcome == "not measured"
    assert missing in write.found
    assert write.remedy
    with pytest.raises(CollectorError, match=f"cannot write in {re.escape(missing)}"):
        here(Watch("sql1", "sql"), missing)


def test_a_host_that_is_not_reached_fails(tmp_path: Path) -> None:
    """An unreachable host fails its proof."""
    collect = {"kind": "ssh", "address": "127.0.0.1", "port": 1, "user": "nobody"}
    found = proofs(farm_of(tmp_path, collect, {}))
    assert list(found) == ["reached"]
    assert found["reached"].outcome == "failed"
    assert "nothing listens there" in found["reached"].found


def test_a_clock_that_is_off_and_a_counter_that_is_broken(tmp_path: Path) -> None:
    """A clock offset is a warning; a broken counter is not measured, and fails where required."""
    samples = [
        Sample(at, 1.0, "sql1", metric, "", value)
        for at in (1_000_000_000, 2_000_000_000)
        for metric, value in (("cpu.busy_ratio", 37.0), ("mem.available_bytes", 1e9))
    ]

    class Broken:
        """A collector with percent values and a slow clock."""

        def read(self) -> list[Sample]:
            return samples

        def inventory(self) -> dict[str, dict[str, Any]]:
            return {"sql1": {"clock": {"offset_s": -3.0, "error_s": 0.01}}}

        def close(self) -> None:
            pass

    readings = FirstReadings.of(Connected("ssh", ("sql1",), Broken()))
    found = {each.what: each for each in readings.proofs("sql1", required=False)}
    assert found["clock"].outcome == "warning"
    assert found["clock"].found == "3 s behind, give or take 10 ms"
    assert found["units"].outcome == "not measured"
    assert found["units"].remedy
    required = {each.what: each for each in readings.proofs("sql1", required=True)}
    assert required["units"].outcome == "failed"


def test_a_folder_of_ours_is_written_to_without_a_word(
    tmp_path: Path, real_disk: Callable[[Path], str]
) -> None:
    """An embedded farm's own folder is written without `write_test:` in farm.yaml."""
    disk = real_disk(tmp_path)
    farm = load_farm(farm_of(tmp_path, {"kind": "local"}, {}))
    watch = Watch("sql1", "sql", {"data": str(tmp_path)}, options={"verify": True})
    _, found = prove(farm, [("local", watch)])
    (write,) = (each for each in found if each.what == "write data")
    assert write.outcome in ("ok", "warning"), write
    assert f"seen on {disk}" in write.found
    assert left(tmp_path) == []


def test_a_host_that_records_itself_is_proved(
    host: SshdHost, tmp_path: Path, real_disk: Callable[[Path], str]
) -> None:
    """A host of kind `agent` is proved by its recorder, which sees a write over ssh."""
    disk = real_disk(tmp_path)
    collect = Path(sys.executable).with_name("pinchpoint-collect")
    (tmp_path / "collect.toml").write_text(f'folder = "{tmp_path}/ring"\ninterval_s = 0.5\n')
    recorder = subprocess.Popen([collect, "record", "--config", tmp_path / "collect.toml"])
    try:
        until(lambda: list(tmp_path.glob("ring/readings-*")), "nothing is recorded")
        options = host.options(command=str(collect), folder=f"{tmp_path}/ring")
        data = {"path": str(tmp_path), "write_test": str(tmp_path)}
        found = proofs(farm_of(tmp_path, {"kind": "agent", **options}, {"data": data}))
    finally:
        recorder.terminate()
        recorder.wait(20)
    assert {found[what].outcome for what in ("reached", "read twice", "units", "clock")} == {"ok"}
    assert found["write data"].outcome in ("ok", "warning"), found["write data"]
    assert f"seen on {disk}" in found["write data"].found


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[dict[int, int]]:
    """Start two servers of one name with their own ports and folders; return process id to port."""
    program = tmp_path / "pp_twin"
    program.symlink_to(Path(sys.executable).resolve())
    servers = {}
    for number in range(2):
        (tmp_path / f"cluster{number}").mkdir()
        command = [str(program), "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]
        server = subprocess.Popen(
            [*command, "-d", f"cluster{number}"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert server.stdout
        port = re.search(rb"port (\d+)", server.stdout.readline())
        assert port
        servers[server] = int(port[1])
    yield {server.pid: port for server, port in servers.items()}
    for server in servers:
        server.kill()
        server.communicate()


def test_several_servers_of_one_name_are_shown_and_one_can_be_chosen(
    twins: dict[int, int], tmp_path: Path
) -> None:
    """Two servers of one name give a warning with port and folder; port or command selects one."""
    both = proofs(farm_of(tmp_path, {"kind": "local", "process": "pp_twin"}, {}))["processes"]
    assert both.outcome == "warning"
    assert "2 servers named pp_twin are counted" in both.found
    for pid, port in twins.items():
        assert f"pp_twin {pid} (port {port}, {tmp_path})" in both.found
    assert "`port: N`" in str(both.remedy)
    second, port = list(twins.items())[1]
    of_second = ("ok", f"pp_twin {second} (port {port}, {tmp_path})")
    for chosen in ({"port": port}, {"process": "pp_twin", "command_line": "-d cluster1"}):
        one = proofs(farm_of(tmp_path, {"kind": "local", **chosen}, {}))["processes"]
        assert (one.outcome, one.found) == of_second
    # The SQL endpoint selects the loaded server; behind a pooler neither listens there.
    for asked, expected in ((port, of_second), (9, (both.outcome, both.found))):
        farm = json.loads(farm_of(tmp_path, {"kind": "local", "process": "pp_twin"}, {}).read_text())
        farm["endpoints"]["sql"] = {"url": f"postgresql://loader@127.0.0.1:{asked}/loadtest"}
        (tmp_path / "farm.yaml").write_text(json.dumps(farm))
        one = proofs(tmp_path / "farm.yaml")["processes"]
        assert (one.outcome, one.found) == expected


def test_quiet_prints_problems_and_whether_it_is_ready(tmp_path: Path) -> None:
    """--quiet prints problems only, and the last line says if the farm is ready."""
    disks = {"data": {"path": str(tmp_path / "missing")}}
    status, said = checked(tmp_path, farm_of(tmp_path, {"kind": "local"}, disks), "--quiet")
    *problems, last = said.splitlines()
    assert status != 0, said
    assert re.fullmatch(r"not ready: \d+ problems?", last)
    assert problems
    assert not any(line.startswith("ok") for line in problems)


@pytest.mark.parametrize(
    ("load", "measure", "said"),
    [
        ("{model: steps, start: 1/s, step: 1/s, each: 15s, at_most: 4/s}", "2m", "medium at most: 4 load "),
        ("{model: steps, start: 1/s, step: 1/s, each: 15s, at_most: 6/s}", "2m", None),
        ("{model: open, rate: 1/s}", "2m", "medium at most: one load level; 6 "),
        ("{model: open, rate: 1/s}", "20s", "low at most: 20 s are measured; 30 s are needed"),
    ],
)
def test_the_confidence_that_a_plan_can_reach(
    load: str, measure: str, said: str | None, tmp_path: Path
) -> None:
    """``check`` shows the confidence that the plan can reach, and the load machine's CPU use."""
    (tmp_path / "farm.yaml").write_text("name: f\nenvironment: test\nembedded: {tiers: [sql]}\n")
    (tmp_path / "plan.yaml").write_text(
        f"name: p\nscenarios: {{a: {{use: sql-mix, load: {load}}}}}\nphases: {{measure: {measure}}}\n"
    )
    found = json.loads(run_cli("check", tmp_path, "--out", tmp_path, "--json", starts_nothing=True).stdout)[
        "checks"
    ]
    by_name = {each["what"]: each["found"] for each in found}
    assert "busy before the load begins" in by_name["load generator (this machine)"]
    assert ("confidence" in by_name) == (said is not None)
    assert by_name.get("confidence", "").startswith(said or "")
