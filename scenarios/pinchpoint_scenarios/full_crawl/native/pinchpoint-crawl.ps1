<#
.SYNOPSIS
Starts full crawls of a SharePoint farm's content sources, tells how they go on, and stops them.

.DESCRIPTION
Pinchpoint sends this file over WinRM or SSH to a server of the farm that has SharePoint's cmdlets; nothing is
installed there. It takes requests and answers with lines of JSON, one object each, in ASCII:

  request   {"do": "state", "id": 7, "application": "Search", "sources": ["Intranet"]}
  answers   {"kind": "source", "source": "Intranet", "state": "CrawlingFull", ...}
            {"kind": "done", "id": 7}                 or    {"kind": "error", "id": 7, "why": "..."}

  check       the farm, the search service application, and every content source
  start       a full crawl of each of the sources; one line each: started, or why not
  watch       these crawls are looked after by this session from now on
  state       what each of the sources is doing, and the counts of its crawl
  statistics  crawl history, errors and item counts of each source, as the crawl log has them
  stop        StopCrawl for each of the sources that is not Idle; "state" tells when it is
  reset       empties the index; only with "name" equal to the search service application's name
  bye         the session ends, crawls that are going on are left to themselves

When the requests end without "bye" the link was lost. The crawls that this session looks after are stopped then,
unless another session has begun to look after them within "grace_s" seconds.

Works on Windows PowerShell 5.1. The object model is Microsoft.Office.Server.Search.Administration:
  ContentSource       learn.microsoft.com/previous-versions/office/sharepoint-server/ms562343(v=office.15)
  CrawlStatus         .../ms493887(v=office.15)   StartFullCrawl .../ms547665(v=office.15)
  StopCrawl           .../ms560494(v=office.15)   Reset          .../ee580479(v=office.15)
  CrawlLog            .../jj264855(v=office.15)   GetCrawlHistory .../jj265306(v=office.15)
  GetCrawlErrors      .../jj296537(v=office.15)   GetCrawlStatisticsByContentSource .../jj277512(v=office.15)

.PARAMETER Request
Requests to answer, by hand: .\pinchpoint-crawl.ps1 -Request '{"do": "check"}'

.PARAMETER Serve
Answer requests from standard input, a line each, until it ends.
#>
[CmdletBinding()]
param(
    [string[]] $Request,
    [switch] $Serve
)

$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# What this session knows; global, as over WinRM each request is a pipeline of its own in one runspace.
$global:PinchpointCrawl = @{
    Session = [guid]::NewGuid().ToString()
    Lease = Join-Path ([IO.Path]::GetTempPath()) 'pinchpoint-crawl.lease'
    Application = ''
    Watched = @()
    GraceS = 600
    Ended = $false
}

# ---- lines ------------------------------------------------------------------------------------------

function Write-PinchpointLine([string] $Kind, [hashtable] $Fields) {
    $line = @{ kind = $Kind } + $Fields
    $text = ConvertTo-Json -InputObject $line -Compress -Depth 6
    # The console's code page would spoil anything else, on one side or the other.
    $ascii = { param($match) '\u{0:x4}' -f [int][char] $match.Value }
    Write-Output ([regex]::Replace($text, '[^\x20-\x7e]', $ascii))
}

function ConvertTo-PinchpointValue($Value) {
    if ($null -eq $Value -or $Value -is [DBNull]) { return $null }
    if ($Value -is [datetime]) { return ConvertTo-PinchpointTime $Value }
    $plain = $Value -is [bool] -or $Value -is [int] -or $Value -is [long] -or $Value -is [int16]
    if ($plain -or $Value -is [byte] -or $Value -is [double] -or $Value -is [single] -or $Value -is [decimal]) {
        return $Value
    }
    return $Value.ToString()
}

function ConvertTo-PinchpointTime($Time) {
    # 1899-12-30 stands for never, and for a crawl that has not ended:
    # learn.microsoft.com/openspecs/sharepoint_protocols/ms-dadmws/6a36363a-6a2d-4f66-b338-4fb51f259268
    if ($null -eq $Time -or $Time.Year -lt 1901) { return $null }
    return $Time.ToString('o')
}

function ConvertTo-PinchpointRow($Row) {
    $found = @{}
    foreach ($column in $Row.Table.Columns) {
        $found[$column.ColumnName] = ConvertTo-PinchpointValue $Row[$column.ColumnName]
    }
    return $found
}

# ---- the farm ---------------------------------------------------------------------------------------

function Import-PinchpointCmdlets {
    if (Get-Command Get-SPEnterpriseSearchServiceApplication -ErrorAction SilentlyContinue) { return }
    # SharePoint keeps memory of every thread that used it; one thread is enough.
    $Host.Runspace.ThreadOptions = 'ReuseThread'
    if (Get-PSSnapin -Registered -Name Microsoft.SharePoint.PowerShell -ErrorAction SilentlyContinue) {
        Add-PSSnapin Microsoft.SharePoint.PowerShell
    }
    elseif (Get-Module -ListAvailable -Name SharePointServer) {
        Import-Module SharePointServer
    }
    else {
        throw "$env:COMPUTERNAME has no SharePoint cmdlets (neither the snap-in Microsoft.SharePoint.PowerShell nor the module SharePointServer); connect to a server of the farm"
    }
}

function Get-PinchpointApplication([string] $Name) {
    Import-PinchpointCmdlets
    $found = @(Get-SPEnterpriseSearchServiceApplication)
    $names = @($found | ForEach-Object { $_.Name }) -join ', '
    if ($found.Count -eq 0) {
        throw 'the farm has no search service application, or this user may not see it'
    }
    if (-not $Name) {
        if ($found.Count -gt 1) { throw "the farm has several search service applications: $names; name one of them" }
        return $found[0]
    }
    $chosen = @($found | Where-Object { $_.Name -ceq $Name })
    if ($chosen.Count -ne 1) { throw "the farm has no search service application '$Name'; there are: $names" }
    return $chosen[0]
}

function Get-PinchpointSources($Application, $Names) {
    # Asked for anew each time, so that no count is an old one.
    $found = @(Get-SPEnterpriseSearchCrawlContentSource -SearchApplication $Application)
    if (-not $Names) { return $found }
    $known = @($found | ForEach-Object { $_.Name })
    foreach ($name in $Names) {
        if ($known -cnotcontains $name) {
            throw "no content source '$name'; there are: $($known -join ', ')"
        }
    }
    return @($found | Where-Object { $Names -ccontains $_.Name })
}

function Get-PinchpointState($Source) {
    return $Source.CrawlStatus.ToString()
}

function Write-PinchpointSource($Source) {
    $seconds = $null
    $completed = ConvertTo-PinchpointTime $Source.CrawlCompleted
    if ($completed) { $seconds = ($Source.CrawlCompleted - $Source.CrawlStarted).TotalSeconds }
    Write-PinchpointLine 'source' @{
        source = $Source.Name
        type = $Source.GetType().Name
        state = Get-PinchpointState $Source
        started = ConvertTo-PinchpointTime $Source.CrawlStarted
        completed = $completed
        duration_s = $seconds
        success = ConvertTo-PinchpointValue $Source.SuccessCount
        warning = ConvertTo-PinchpointValue $Source.WarningCount
        error = ConvertTo-PinchpointValue $Source.ErrorCount
        top_level_error = ConvertTo-PinchpointValue $Source.LevelHighErrorCount
        deleted = ConvertTo-PinchpointValue $Source.DeleteCount
    }
}

# ---- what can be asked ------------------------------------------------------------------------------

function Show-PinchpointFarm($Application) {
    Write-PinchpointLine 'farm' @{
        application = $Application.Name
        build = (Get-SPFarm).BuildVersion.ToString()
        server = $env:COMPUTERNAME
        user = [Security.Principal.WindowsIdentity]::GetCurrent().Name
        # Why it may be paused: learn.microsoft.com/sharepoint/search/manage-a-paused-search-service-application
        paused = [int] $Application.IsPaused()
    }
    Get-PinchpointSources $Application | ForEach-Object { Write-PinchpointSource $_ }
}

function Start-PinchpointCrawls($Application, $Names) {
    foreach ($source in Get-PinchpointSources $Application $Names) {
        $why = $null
        try {
            $state = Get-PinchpointState $source
            if ($state -ne 'Idle') { throw "it is not Idle but $state" }
            $source.StartFullCrawl()
        }
        catch { $why = $_.Exception.Message }
        Write-PinchpointLine 'start' @{ source = $source.Name; started = ($null -eq $why); why = $why }
    }
}

function Show-PinchpointStatistics($Application, $Names) {
    $log = New-Object Microsoft.Office.Server.Search.Administration.CrawlLog $Application
    $items = @($log.GetCrawlStatisticsByContentSource().Rows | ForEach-Object { ConvertTo-PinchpointRow $_ })
    Write-PinchpointLine 'items' @{ rows = $items }
    foreach ($source in Get-PinchpointSources $Application $Names) {
        # No host is named: -1 is all of them, as a negative content source is all sources in GetCrawlHistory.
        $history = @($log.GetCrawlHistory(1, $source.Id).Rows | ForEach-Object { ConvertTo-PinchpointRow $_ })
        $errors = @($log.GetCrawlErrors($source.Id, -1).Rows | ForEach-Object { ConvertTo-PinchpointRow $_ })
        Write-PinchpointLine 'statistics' @{ source = $source.Name; history = $history; errors = $errors }
    }
}

function Stop-PinchpointCrawls($Application, $Names) {
    foreach ($source in Get-PinchpointSources $Application $Names) {
        $state = Get-PinchpointState $source
        if ($state -ne 'Idle' -and $state -ne 'CrawlStopping') { $source.StopCrawl() }
        Write-PinchpointLine 'stop' @{ source = $source.Name; was = $state }
    }
}

function Reset-PinchpointIndex($Application, [string] $Name) {
    if ($Name -cne $Application.Name) {
        throw "the index is reset only when its name is given: '$Name' is not '$($Application.Name)'"
    }
    $busy = @(Get-PinchpointSources $Application | Where-Object { (Get-PinchpointState $_) -ne 'Idle' })
    if ($busy.Count) {
        throw "not reset: being crawled are $(@($busy | ForEach-Object { $_.Name }) -join ', ')"
    }
    # Alerts would tell every reader of every item; an unreachable server must not keep half of an old index.
    $Application.Reset($true, $false)
    Write-PinchpointLine 'reset' @{ application = $Application.Name }
}

function Set-PinchpointWatch($Application, $Asked) {
    $global:PinchpointCrawl.Application = $Application.Name
    $watched = @(Get-PinchpointSources $Application $Asked.sources | ForEach-Object { $_.Name })
    $global:PinchpointCrawl.Watched = $watched
    if ($Asked.grace_s) { $global:PinchpointCrawl.GraceS = [double] $Asked.grace_s }
    [IO.File]::WriteAllText($global:PinchpointCrawl.Lease, $global:PinchpointCrawl.Session)
}

function Clear-PinchpointWatch {
    if (Test-PinchpointLease) { [IO.File]::Delete($global:PinchpointCrawl.Lease) }
    $global:PinchpointCrawl.Watched = @()
    $global:PinchpointCrawl.Ended = $true
}

function Test-PinchpointLease {
    $lease = $global:PinchpointCrawl.Lease
    return [IO.File]::Exists($lease) -and [IO.File]::ReadAllText($lease) -eq $global:PinchpointCrawl.Session
}

function Invoke-PinchpointRequest([string] $Text) {
    $id = $null
    try {
        $asked = ConvertFrom-Json $Text
        $id = $asked.id
        if ($asked.do -eq 'bye') { Clear-PinchpointWatch }
        else {
            $application = Get-PinchpointApplication $asked.application
            switch -CaseSensitive ($asked.do) {
                'check' { Show-PinchpointFarm $application }
                'start' { Set-PinchpointWatch $application $asked; Start-PinchpointCrawls $application $asked.sources }
                'watch' { Set-PinchpointWatch $application $asked }
                'state' {
                    Get-PinchpointSources $application $asked.sources | ForEach-Object { Write-PinchpointSource $_ }
                }
                'statistics' { Show-PinchpointStatistics $application $asked.sources }
                'stop' { Stop-PinchpointCrawls $application $asked.sources }
                'reset' { Reset-PinchpointIndex $application $asked.name }
                default { throw "'$($asked.do)' cannot be asked for" }
            }
        }
        Write-PinchpointLine 'done' @{ id = $id }
    }
    catch {
        Write-PinchpointLine 'error' @{ id = $id; why = $_.Exception.Message; at = $_.InvocationInfo.ScriptLineNumber }
    }
}

# ---- standard input ---------------------------------------------------------------------------------

function Wait-PinchpointSuccessor {
    # The link is lost: whoever takes over says so in the lease; without anybody, the load must end.
    if (-not $global:PinchpointCrawl.Watched) { return }
    $until = [datetime]::UtcNow.AddSeconds($global:PinchpointCrawl.GraceS)
    while ([datetime]::UtcNow -lt $until) {
        if (-not (Test-PinchpointLease)) { return }
        Start-Sleep -Milliseconds 1000
    }
    $application = Get-PinchpointApplication $global:PinchpointCrawl.Application
    $names = $global:PinchpointCrawl.Watched
    Stop-PinchpointCrawls $application $names | Out-Null
    $until = [datetime]::UtcNow.AddMinutes(30)
    while ([datetime]::UtcNow -lt $until) {
        $busy = @(Get-PinchpointSources $application $names | Where-Object { (Get-PinchpointState $_) -ne 'Idle' })
        if (-not $busy) { break }
        Start-Sleep -Seconds 2
    }
    Clear-PinchpointWatch
}

function Start-PinchpointServing {
    try {
        while (-not $global:PinchpointCrawl.Ended) {
            $line = [Console]::In.ReadLine()
            if ($null -eq $line) { break }
            if ($line.Trim()) {
                Invoke-PinchpointRequest $line | ForEach-Object {
                    [Console]::Out.WriteLine($_)
                    [Console]::Out.Flush()
                }
            }
        }
    }
    catch [IO.IOException] {
        # Nobody reads: the link was lost while an answer was being written.
        Write-Verbose $_.Exception.Message
    }
    if (-not $global:PinchpointCrawl.Ended) { Wait-PinchpointSuccessor }
}

if ($Serve) { Start-PinchpointServing }
elseif ($Request) { $Request | ForEach-Object { Invoke-PinchpointRequest $_ } }
