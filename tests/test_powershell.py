"""Every PowerShell script of the product keeps to PSScriptAnalyzer's rules, checked without PowerShell."""

from __future__ import annotations

from pathlib import Path

import pytest
from powershell import findings

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    path
    for part in ("collectors", "harness", "infra", "scenarios")
    for path in sorted((ROOT / part).rglob("*.ps1"))
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_of_the_product(path: Path) -> None:
    """A script of the product has no alias, no unused variable, and nothing newer than PowerShell 5.1."""
    assert findings(path.read_text("utf-8")) == []


def test_there_are_scripts() -> None:
    assert {"counters.ps1", "diskspd.ps1", "pinchpoint-crawl.ps1"} <= {path.name for path in SCRIPTS}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gci | Where-Object { $_.Name }", "PSAvoidUsingCmdletAliases gci"),
        ("Invoke-Expression 'x'", "PSAvoidUsing invoke-expression"),
        ("Get-WmiObject Win32_Disk", "PSAvoidUsing get-wmiobject"),
        ("function Get-X($A) { if ($A -eq $null) { return 1 } }", "PSPossibleIncorrectComparisonWithNull"),
        ("try { Get-Item x } catch { }", "PSAvoidUsingEmptyCatchBlock"),
        ("function Get-X { $a = 1; return 2 }", "PSUseDeclaredVarsMoreThanAssignments a"),
        ("function Get-X($A) { return 2 }", "PSReviewUnusedParameter a"),
        ("function Get-X { return $Typo }", "typo is read and nowhere assigned"),
        ("function Get-X { foreach ($input in 1..3) { Get-Item $input } }", "AutomaticVariable input"),
        ("function Fetch-X { return 1 }", "PSUseApprovedVerbs Fetch-X"),
        ("function Get-X { return 1", "parse error"),
        ("$a = 1 ?? 2; Get-Item $a", "error"),
        ("Get-Item x && Get-Item y", "pipeline chain"),
    ],
)
def test_a_rule(text: str, words: str) -> None:
    """Each rule reports its violation."""
    assert any(words in one for one in findings(text)), findings(text)


def test_what_is_right_is_left_alone() -> None:
    """Correct code has no finding: members, casts, strings with variables, splatting, script variables."""
    text = """param([string] $Name)
$Prefix = 'x'
$global:State = @{ A = 1 }
function Show-It($Row) {
    [string] $text = "$Prefix $($Row.A) $Name"
    $global:State.A = $text
    foreach ($one in $Row) { Write-Output $one }
    if ($null -eq $Row) { return $env:COMPUTERNAME }
}
Show-It 1
"""
    assert findings(text) == []
