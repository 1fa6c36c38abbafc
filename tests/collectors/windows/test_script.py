"""Tests of the PowerShell script: syntax, commands of Windows PowerShell, and the protocol.

PowerShell is not available: tree-sitter checks the grammar, and the simulated machine the output.
"""

from __future__ import annotations

import json
import re

from collectors.windows.standin import CLASSES, CLOUD, FACTS, PROCESS_TYPES, Machine
from powershell import check_script, named, wrong

from pinchpoint_collectors.common.powershell import line_of
from pinchpoint_collectors.windows import openssh, winrm
from pinchpoint_collectors.windows.script import (
    PREFIX,
    PROPERTIES,
    SCRIPT,
    ProcessSelector,
    request,
    script,
    unix_ns,
    wanted,
)

COMMANDS = {
    *("ConvertFrom-Json", "ConvertTo-Json", "ForEach-Object", "Where-Object", "Write-Output", "New-Object"),
    *("Get-CimClass", "Get-CimInstance", "Get-Command", "Get-Item", "Get-ItemProperty", "Test-Path"),
    *("Get-PhysicalDisk", "Get-StorageAdvancedProperty", "Start-Sleep"),
}
"""Cmdlets of Windows PowerShell 5.1 and its modules CimCmdlets and Storage."""


def test_the_script_can_be_read_by_windows() -> None:
    check_script(SCRIPT, script())


def test_what_is_said_around_it_parses() -> None:
    """The SSH loader and the time request are valid PowerShell, one line each."""
    assert not wrong(openssh.LOADER)
    assert not wrong(winrm.TIME.format(asked=1))
    assert "\n" not in openssh.LOADER
    assert "\n" not in winrm.TIME


def test_every_command_is_its_own_or_powershell_s() -> None:
    """Each called command is defined in the script or part of PowerShell."""
    defined = set(re.findall(r"^function ([\w-]+)", script(), re.MULTILINE))
    called = {name for name in named(script(), "command_name") if "-" in name}
    own = {name for name in called if "Pinchpoint" in name}
    assert own == defined, "none is missing, and none is left over"
    assert called - own <= COMMANDS


def test_it_changes_nothing_on_the_machine() -> None:
    """The script only reads: it has no command that sets, removes, installs or writes a file."""
    verbs = {name.partition("-")[0] for name in named(script(), "command_name") if "-" in name}
    assert verbs.isdisjoint({"Set", "Remove", "Add", "Install", "Register", "Out", "Copy", "Import"})
    assert not re.search(r"WriteAll|Out-File|Add-Type|Set-Content|>>|Temp(?!db)", script())


def test_it_reads_the_classes_that_are_asked_for() -> None:
    """The script has the class prefix, the timestamps and the frequency that the formulas need."""
    assert f"$Prefix = '{PREFIX}'" in script()
    for stamp in ("Timestamp_PerfTime", "Timestamp_Sys100NS", "Frequency_PerfTime"):
        assert stamp in script()


def test_the_stand_in_speaks_as_the_script_does() -> None:
    """The simulated machine's lines have the fields of the script's lines."""
    said: dict[str, set[str]] = {}
    machine = Machine(failing={"PerfOS_System"}, facts=FACTS + CLOUD)
    sought = [ProcessSelector("service", ("MSSQLSERVER",))]
    texts = [*machine.hello(request(wanted(), 1, sought)), *machine.reading(), machine.time("1")]
    for line in map(json.loads, texts):
        said.setdefault(line["kind"], set()).update(set(line) - {"kind"})
    written: dict[str, set[str]] = {}
    for kind, body in re.findall(r"Write-PinchpointLine '(\w+)' @\{(.*?)\}", script(), re.DOTALL):
        written.setdefault(kind, set()).update(re.findall(r"(?:^|;|\n)\s*(\w+) = ", body))
    rows = re.search(r'Write-Output "\{(""kind"":""rows"".*)\}"', script())
    assert rows is not None
    written["rows"] = set(re.findall(r'""(\w+)"":', rows[1])) - {"kind"}
    assert written.pop("end") == {"why"}
    assert said == written


def test_a_request_is_one_line_that_the_script_understands() -> None:
    """A request is one line of ASCII with exactly the keys that the script reads."""
    text = request(wanted(), 0.5)
    assert text.isascii()
    assert "\n" not in text
    asked = json.loads(text)
    assert asked["interval_ms"] == 500
    used = set(re.findall(r"\$asked\.(\w+)", script()))
    assert used == set(asked)
    assert set(re.findall(r"\$wanted\.(\w+)", script())) == set(asked["classes"][0])


def test_processes_are_asked_for_where_a_tier_has_some() -> None:
    """Processes are requested only for tiers with processes, each search once."""
    assert "PerfProc_Process" not in request(wanted(), 1)
    by_name = json.loads(request(wanted(), 1, [ProcessSelector("process", ("sqlservr",))]))
    assert by_name["classes"][-1] == {"pattern": "PerfProc_Process", "properties": ",".join(PROPERTIES)}
    assert by_name["find"] == []
    line = ProcessSelector("command_line", ('-ap "Größe"', "-ap x"))
    looked_for = json.loads(request(wanted(), 1, [line, line, ProcessSelector("service", ("W3SVC",))]))[
        "find"
    ]
    assert looked_for == [
        {"what": "command_line", "text": '-ap "Größe"'},
        {"what": "command_line", "text": "-ap x"},
        {"what": "service", "text": "W3SVC"},
    ]
    assert set(re.findall(r"\$one\.(\w+)", script())) == set(looked_for[0])


def test_command_lines_stay_on_the_machine() -> None:
    """Command lines, which may contain passwords, are compared on the machine and never sent."""
    written = re.findall(r"Write-PinchpointLine '\w+' @\{(.*?)\}", script(), re.DOTALL)
    assert script().count("CommandLine") == 2
    assert not [body for body in written if "CommandLine" in body]


def test_every_column_of_the_stand_in_is_asked_for() -> None:
    """Each column of the simulated machine is requested from real machines."""
    asked = {name for one in wanted() for name in (*one.counters, *one.errors)}
    assert set(PROCESS_TYPES) == set(PROPERTIES)
    columns = {name.removesuffix("_Base") for _, counters in CLASSES.values() for name in counters}
    assert columns <= asked


def test_what_a_profile_prints_is_no_line() -> None:
    """Only JSON objects with a kind are lines; a profile's output is ignored."""
    for text in ("Welcome", "{ not json", "[1]", '{"a": 1}', '{"kind": 3}', ""):
        assert line_of(text) is None
    assert line_of(' {"kind": "ready"}\r') == {"kind": "ready"}


def test_windows_time_becomes_ours() -> None:
    """A FILETIME (2023-02-09T11:11:22.71Z, from a recorded counter) becomes Unix time."""
    assert unix_ns(133_204_146_827_100_000) == 1_675_941_082_710_000_000
