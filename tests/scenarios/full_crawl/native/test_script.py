"""Tests of the PowerShell script: syntax, and the protocol that the simulated farm uses.

PowerShell is not available: tree-sitter checks the grammar, and the simulated farm the answers.
"""

from __future__ import annotations

import re

from powershell import check_script, named
from scenarios.full_crawl.native.farm import Farm, Source

from pinchpoint_scenarios.full_crawl.native.link import SCRIPT, script

FUNCTIONS_OF_SHAREPOINT = {
    "Get-SPEnterpriseSearchServiceApplication",
    "Get-SPEnterpriseSearchCrawlContentSource",
    "Get-SPFarm",
}


def test_the_script_can_be_read_by_windows() -> None:
    check_script(SCRIPT, script())


def test_every_command_is_its_own_powershell_s_or_sharepoint_s() -> None:
    """Each called command is defined in the script, or part of PowerShell or SharePoint."""
    defined = set(re.findall(r"^function ([\w-]+)", script(), re.MULTILINE))
    called = {name for name in named(script(), "command_name") if "-" in name}
    own = {name for name in called if "Pinchpoint" in name}
    assert own <= defined
    assert defined - own <= {"Invoke-PinchpointRequest"}, "no function is left over"
    shell = {
        "Add-PSSnapin",
        "ConvertFrom-Json",
        "ConvertTo-Json",
        "ForEach-Object",
        "Get-Command",
        "Get-Module",
    }
    shell |= {"Get-PSSnapin", "Import-Module", "Join-Path", "New-Object", "Out-Null", "Start-Sleep"}
    shell |= {"Where-Object", "Write-Output", "Write-Verbose"}
    assert called - own <= shell | FUNCTIONS_OF_SHAREPOINT


def test_the_stand_in_speaks_as_the_script_does() -> None:
    """The simulated farm knows the script's requests and has the same fields of a content source."""
    answers = script().partition("switch -CaseSensitive")[2].partition("default {")[0]
    requests = set(re.findall(r"^ +'(\w+)' \{", answers, re.MULTILINE)) | {"bye"}
    farm = Farm([Source("Intranet")])
    told = {"grace_s": 1, "name": farm.application, "id": 1}
    for request in requests:
        last = farm.session().answer(f'{{"do": "{request}", {str(told)[1:-1].replace(chr(39), chr(34))}}}')[
            -1
        ]
        assert '"done"' in last, last
    body = script().partition("function Write-PinchpointSource")[2].partition("\n}")[0]
    fields = set(re.findall(r"^        (\w+) = ", body, re.MULTILINE))
    assert fields == set(Source("Intranet").line())
