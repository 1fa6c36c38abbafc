"""A probe of a Windows disk: DiskSpd over WinRM and ssh, with stand-ins behind real servers."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.probe.windows_standin import FOLDER, Machine, result
from powershell import named, wrong
from psrpcore.types import NETException
from sshd_hosts import sshd_host
from support import run_cli
from winrmserver import PASSWORD, USER, Shell, WinRmServer

from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.probe import windows
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import load
from pinchpoint.probe.target import explained
from pinchpoint_collectors.common.powershell import POWERSHELL
from pinchpoint_scenarios.storage_probe import SUITES, Cell, Job, ProbePlace, ToolFailed, ToolMissing
from pinchpoint_scenarios.storage_probe.process import ProbeStopped
from pinchpoint_scenarios.storage_probe.tools.diskspd import DiskSpd

TESTS = Path(__file__).parents[2]
PLACE = ProbePlace(Path("/x"), 2**30, None, 2**34)


class MachineShell(Shell):
    """A runspace that answers requests after it got the script."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine
        self._loaded = False

    def run(self, pipeline: Any) -> None:
        (command,) = pipeline.metadata.commands
        pipeline.start()
        if command.is_script:
            self._loaded = command.command_text == windows.script()
        elif not self._loaded or command.command_text != "Invoke-PinchpointRequest":
            pipeline.write_error(NETException(Message=f"{command.command_text} is not recognized"))
        else:
            ((_, text),) = command.parameters
            for line in self._machine.answer(str(text)):
                pipeline.write_output(line)
        pipeline.complete()


@contextmanager
def winrm(machine: Machine, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the farm.yaml entry of the machine behind WinRM."""
    server = WinRmServer(
        lambda: MachineShell(machine), folder, "Microsoft.PowerShell", tls=True, login="basic"
    )
    try:
        login = {"user": USER, "password": PASSWORD, "auth": "basic", "ca": str(server.ca)}
        yield {"address": "127.0.0.1", "port": server.port, **login}
    finally:
        server.end()


@contextmanager
def ssh(folder: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield the farm.yaml entry of the machine behind sshd, and the log of its requests."""
    log, shell = folder / "asked", folder / "shell"
    shell.write_text(
        f'#!/bin/sh\n[ "$SSH_ORIGINAL_COMMAND" = {shlex.quote(POWERSHELL)} ] || exit 127\n'
        f"PYTHONPATH={shlex.quote(str(TESTS))} exec {shlex.quote(sys.executable)} -m "
        f"harness.probe.windows_standin {shlex.quote(str(log))}\n"
    )
    shell.chmod(0o755)
    with sshd_host(str(shell)) as host:
        yield host.options(transport="ssh"), log


def test_a_suite_over_winrm(tmp_path: Path) -> None:
    """A suite over WinRM from farm.yaml gives figures, verdict and disk facts as on Linux."""
    machine = Machine()
    with winrm(machine, tmp_path) as options:
        farm = {
            "name": "prod",
            "environment": "test",
            "tiers": {
                "sql": {
                    "hosts": {
                        "sql1": {
                            "disks": {"data": {"path": "L:/data", "limits": {"iops": 2000}}},
                            "collect": [{"kind": "windows", **options, "diskspd": "C:\\Tools\\diskspd.exe"}],
                        }
                    }
                }
            },
            "endpoints": {},
        }
        farm["tiers"]["sql"]["hosts"]["sql1"]["disks"]["data"]["path"] = FOLDER  # type: ignore[index]
        (tmp_path / "farm.yaml").write_text(json.dumps(farm))
        ended = run_cli(
            *("probe", "--farm", tmp_path / "farm.yaml", "--disk", "sql.data", "--suite", "crystaldiskmark"),
            *("--repeat", "2", "--out", tmp_path / "out"),
        )
    assert ended.returncode == 0, ended.stderr
    probe = load(Path(ended.stdout.splitlines()[-1]))
    assert (probe.state, probe.where.host, probe.where.device) == ("finished", "SQL1", "disk 2")
    assert probe.versions == {"diskspd": "version 2.2.0 (2024/6/3)"}
    one = figures(probe)[Cell("RND4K read", 4096, 1.0, 1.0, 32)]
    assert one.iops is not None
    assert (one.trials, one.iops.mean) == (2, 2000)
    assert one.p99_s == pytest.approx(0.016, rel=0.01)
    assert "RND4K read" in ended.stdout
    assert "at a limit of the disk" in " ".join(ended.stdout.split())
    assert machine.asked[1]["tool"] == "C:\\Tools\\diskspd.exe"
    assert machine.asked[-1]["do"] == "bye"


def test_a_suite_over_ssh(tmp_path: Path) -> None:
    """Over ssh a profile's greeting is skipped, and the folder is removed at the end."""
    with ssh(tmp_path) as (options, log):
        looked = windows.look(options, FOLDER, None, "prod", "sql.data")
        with windows.there(options, looked, None, 2**20) as machine:
            job = SUITES["stability"].jobs(5.0)[0]
            tool = machine.tool(job.tool)
            [command] = tool.commands(job, PLACE)
            said = machine.run(tool, command, lambda: False)
            [measured] = tool.read(job, PLACE, said.stdout, said.stderr).values()
        asked = [json.loads(line)["do"] for line in log.read_text().splitlines()]
    assert (measured.writes_per_s, measured.seconds) == (2000, 5)
    assert measured.series is not None
    assert asked.count("bye") >= 2
    assert asked[-1] == "bye"


def test_ctrl_c_stops_diskspd(tmp_path: Path) -> None:
    """Ctrl-C stops DiskSpd through another session, because the first one is busy."""
    with ssh(tmp_path) as (options, log):
        looked = windows.look(options, FOLDER, None, "prod", "sql.data")
        with windows.there(options, looked, None, 2**20) as machine:
            tool = machine.tool("fio")
            [command] = tool.commands(SUITES["stability"].jobs(60.0)[0], PLACE)
            with pytest.raises(ProbeStopped):
                machine.run(tool, command, lambda: log.read_text().count('"run"') > 0)
        assert '"stop"' in log.read_text()


def test_the_tool_is_copied(tmp_path: Path) -> None:
    """DiskSpd is copied where the user allows it; else the message says what to do."""
    tool = tmp_path / "diskspd.exe"
    tool.write_bytes(bytes(range(256)) * 400)
    machine = Machine(tool=False)
    with winrm(machine, tmp_path) as options:
        looked = windows.look(options, None, "L:", "prod", "sql.data")
        with (
            pytest.raises(FarmUnavailable, match="--copy-tool"),
            windows.there(options, looked, None, 2**20),
        ):
            pass
        with windows.there(options, looked, tool, 2**20):
            assert machine.content == tool.read_bytes()


@pytest.mark.parametrize(
    ("state", "words"), [("theirs", "was not created by Pinchpoint"), ("used", "process 4711")]
)
def test_a_folder_that_is_not_ours(tmp_path: Path, state: str, words: str) -> None:
    with winrm(Machine(state=state), tmp_path) as options:
        looked = windows.look(options, FOLDER, None, "prod", "sql.data")
        with pytest.raises(GuardError, match=words), windows.there(options, looked, None, 2**20):
            pass


def test_a_folder_that_somebody_removes(tmp_path: Path) -> None:
    """If the folder is removed, the probe ends and creates no other."""
    machine = Machine()
    with winrm(machine, tmp_path) as options:
        looked = windows.look(options, FOLDER, None, "prod", "sql.data")
        with windows.there(options, looked, None, 2**20) as there:
            machine.state = ""
            with pytest.raises(FarmUnavailable, match="another process has removed it"):
                there.run(there.tool("fio"), ["diskspd", "-?"], lambda: False)


def test_what_cannot_be_reached(tmp_path: Path) -> None:
    """A missing folder, lack of space and a refused login give one sentence each."""
    with winrm(Machine(), tmp_path) as options:
        with pytest.raises(InputError, match=r"correct path: or device:"):
            windows.look(options, "X:\\none", None, "prod", "sql.data")
        looked = windows.look(options, FOLDER, None, "prod", "sql.data")
        with (
            pytest.raises(FarmUnavailable, match="does not fit"),
            explained(),
            windows.there(options, looked, None, 2**40),
        ):
            pass
        with pytest.raises(FarmUnavailable, match="the login was refused"):
            windows.look({**options, "password": "wrong"}, FOLDER, None, "prod", "sql.data")
    with pytest.raises(FarmUnavailable, match=r"127\.0\.0\.1"):
        windows.look(options, FOLDER, None, "prod", "sql.data")


def test_what_diskspd_is_asked_for() -> None:
    """Each cell has DiskSpd's options; a cell that DiskSpd cannot do is not measured."""
    tool, commands = DiskSpd(), {}
    for job in SUITES["database"].jobs(5.0):
        if job.flush_every:
            with pytest.raises(ToolFailed, match="cannot flush after every 512 writes"):
                tool.commands(job, PLACE)
            continue
        [command] = tool.commands(job, PLACE)
        commands[job.name] = " ".join(command)
    assert "-b4096 -o1 -t1 -w100 -d5 -W1 -Sh" in commands["log 4K write, 1 outstanding"]
    assert "-b8192 -o64 -t1 -w30 -r -d5 -W1 -Su" in commands["data 8K 70 % read, 64 outstanding"]
    half = Job("fio", (Cell("x", 8192, 0.67, 0.5, 4),), 5.0)
    assert "-w33 -rs50" in " ".join(tool.commands(half, PLACE)[0])
    with pytest.raises(ToolFailed, match="did not print the XML"):
        tool.read(half, PLACE, "Error opening file", "")
    with pytest.raises(ToolMissing, match="no program of Windows"):
        windows.Windows.tool(None, "hdparm")  # type: ignore[arg-type] # it does not look at itself
    assert "<Results>" in result(commands["log 4K write, 1 outstanding"])


# ---- the script ---------------------------------------------------------------------------------------

COMMANDS = {
    *("ConvertTo-Json", "ConvertFrom-Json", "Write-Output", "New-Object", "Get-Item", "Get-CimInstance"),
    *("Get-Partition", "Get-Disk", "Join-Path", "Get-Process", "Where-Object", "Get-Command"),
}
"""Cmdlets of Windows PowerShell 5.1 and its modules CimCmdlets and Storage."""


def test_the_script() -> None:
    """The script parses, calls known functions only, and removes nothing but its folder."""
    text = windows.script()
    assert not wrong(text)
    assert text.isascii()
    defined = set(re.findall(r"^function ([\w-]+)", text, re.MULTILINE))
    called = {name for name in named(text, "command_name") if "-" in name}
    assert {name for name in called if "Pinchpoint" in name} | {"Invoke-PinchpointRequest"} == defined
    assert called - defined <= COMMANDS
    deleted = re.findall(r"Delete\(([^,]+), \$true\)", text)
    assert deleted == ["$folder", "$Folder"]


def test_the_stand_in_answers_as_the_script_does() -> None:
    """The stand-in has the script's requests and the same fields in each kind of line."""
    text = windows.script()
    machine = Machine()
    requests: dict[str, dict[str, Any]] = {
        "look": {"path": FOLDER, "device": None},
        "open": {"path": FOLDER, "tool": "x", "copied": True},
        "put": {"data": "AAAA"},
        "run": {"arguments": "-b4096 -o1 -w0 -d1 -r"},
        "stop": {"path": FOLDER},
        "bye": {},
    }
    assert set(re.findall(r"^            '(\w+)' \{", text, re.MULTILINE)) == set(requests)
    assert set(re.findall(r"\$[Aa]sked\.(\w+)", text)) == {"do", "id"} | {
        name for fields in requests.values() for name in fields
    }
    said: dict[str, set[str]] = {}
    for name, fields in requests.items():
        for line in map(json.loads, machine.answer(json.dumps({"do": name, "id": 1, **fields}))):
            said.setdefault(line["kind"], set()).update(set(line) - {"kind"})
    machine.state = "theirs"
    said["error"] = set(json.loads(machine.answer(json.dumps({"do": "open", "id": 1}))[-1])) - {"kind"}
    written = {
        kind: set(re.findall(r"(?:^|;|\n)\s*(\w+) = ", body))
        for kind, body in re.findall(r"Write-PinchpointLine '(\w+)' @\{(.*?)\}", text, re.DOTALL)
    }
    [output] = re.findall(r"\$fields = @\{(.*?)\}", text)
    written["output"] = set(re.findall(r"(?:^|;)\s*(\w+) = ", output))
    assert said == written
    reasons = set(re.findall(r"Stop-PinchpointRequest '(\w+)'", text))
    assert reasons == {"missing", "theirs", "used", "no_tool", "gone", "request"}
