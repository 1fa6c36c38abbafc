<#
.SYNOPSIS
Runs DiskSpd on one disk of a Windows machine, in a folder of its own that is removed at the end.

.DESCRIPTION
Pinchpoint sends this file over WinRM or SSH; nothing is installed. It takes requests and answers with lines of
JSON, one object each, in ASCII:

  request   {"do": "look", "id": 1, "path": "L:\\data"}     or "device": "L:"
  answers   {"kind": "disk", "folder": "L:\\data", ...}
            {"kind": "done", "id": 1}             or    {"kind": "error", "id": 1, "what": "missing", "why": "..."}

  look   what the disk is, how much of it is free, and what the machine is
  open   makes the folder; "tool": the path of diskspd.exe, or its name where it is in the PATH
  put    appends "data" (base64) to diskspd.exe in the folder
  run    runs DiskSpd in the folder with "arguments"; its output is one line of kind "output"
  stop   has DiskSpd stopped that another session runs in the folder below "path"
  bye    removes the folder

A folder of this name that another process of this script made, and that has ended, is removed first; any other
folder is left alone. What is removed is this folder alone. DiskSpd is stopped when a file "stop" appears in the
folder, or when the pipeline is stopped; by itself it ends after its measurement (-d).

Works on Windows PowerShell 5.1.

.PARAMETER Serve
Answer requests from standard input, a line each, until it ends; then the folder is removed.
#>
[CmdletBinding()]
param(
    [switch] $Serve
)

$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# Global, as over WinRM each request is a pipeline of its own in one runspace.
$global:PinchpointProbe = @{ Folder = ''; Tool = 'diskspd.exe'; Ended = $false }

# ---- lines ------------------------------------------------------------------------------------------

function Write-PinchpointLine([string] $Kind, [hashtable] $Fields) {
    # The console's code page would spoil anything but ASCII.
    $code = { param($match) '\u{0:x4}' -f [int][char] $match.Value }
    $text = ConvertTo-Json -InputObject (@{ kind = $Kind } + $Fields) -Compress
    Write-Output ([regex]::Replace($text, '[^\x20-\x7e]', $code))
}

function Stop-PinchpointRequest([string] $What, [string] $Why) {
    # The caller words what it knows, by $What.
    $failure = New-Object InvalidOperationException $Why
    $failure.Data['what'] = $What
    throw $failure
}

# ---- the disk ---------------------------------------------------------------------------------------

function Get-PinchpointFolder($Asked) {
    if ($Asked.path) { $folder = $Asked.path } else { $folder = $Asked.device.TrimEnd('\') + '\' }
    if (-not [IO.Directory]::Exists($folder)) { Stop-PinchpointRequest 'missing' "$folder is no folder" }
    return (Get-Item -LiteralPath $folder).FullName
}

function Show-PinchpointDisk($Asked) {
    $folder = Get-PinchpointFolder $Asked
    $system = Get-CimInstance Win32_OperatingSystem
    $root = [IO.Path]::GetPathRoot($folder)
    $drive = New-Object IO.DriveInfo $root
    $number = $null
    $model = $null
    try {
        $disk = Get-Partition -DriveLetter $root.Substring(0, 1) | Get-Disk
        $number = [string] $disk.Number
        $model = $disk.FriendlyName
    }
    catch { $number = $null }  # a volume over several disks, a network drive, or no right to see them
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $administrator = [Security.Principal.WindowsBuiltInRole]::Administrator
    Write-PinchpointLine 'disk' @{
        folder = $folder
        host = $env:COMPUTERNAME
        device = $number
        model = $model
        file_system = $drive.DriveFormat
        memory_bytes = [long] $system.TotalVisibleMemorySize * 1024
        free_bytes = $drive.AvailableFreeSpace
        total_bytes = $drive.TotalSize
        administrator = (New-Object Security.Principal.WindowsPrincipal $identity).IsInRole($administrator)
    }
}

# ---- the folder -------------------------------------------------------------------------------------

function Remove-PinchpointFolder {
    $folder = $global:PinchpointProbe.Folder
    if ($folder -and [IO.Directory]::Exists($folder)) { [IO.Directory]::Delete($folder, $true) }
    $global:PinchpointProbe.Folder = ''
}

function Clear-PinchpointLeft([string] $Folder) {
    $mark = Join-Path $Folder 'owner.json'
    if (-not [IO.File]::Exists($mark)) { Stop-PinchpointRequest 'theirs' "$Folder has no owner.json" }
    $owner = [IO.File]::ReadAllText($mark) | ConvertFrom-Json
    if (-not $owner.pinchpoint) { Stop-PinchpointRequest 'theirs' "$Folder is of another program" }
    if (Get-Process -Id $owner.pid -ErrorAction SilentlyContinue | Where-Object { $_.Id -ne $PID }) {
        Stop-PinchpointRequest 'used' ([string] $owner.pid)
    }
    [IO.Directory]::Delete($Folder, $true)
}

function Open-PinchpointFolder($Asked) {
    $folder = Join-Path (Get-PinchpointFolder $Asked) 'pinchpoint-probe'
    if ([IO.File]::Exists($folder)) { Stop-PinchpointRequest 'theirs' "$folder is a file" }
    if ([IO.Directory]::Exists($folder)) { Clear-PinchpointLeft $folder }
    [void] [IO.Directory]::CreateDirectory($folder)
    $global:PinchpointProbe.Folder = $folder
    $mark = ConvertTo-Json -InputObject @{ pinchpoint = $true; pid = $PID } -Compress
    [IO.File]::WriteAllText((Join-Path $folder 'owner.json'), $mark)
    if ($Asked.copied) { $global:PinchpointProbe.Tool = Join-Path $folder 'diskspd.exe' }
    else {
        $found = Get-Command $Asked.tool -CommandType Application -ErrorAction SilentlyContinue
        if (-not $found) { Stop-PinchpointRequest 'no_tool' "$($Asked.tool) was not found" }
        $global:PinchpointProbe.Tool = @($found)[0].Path
    }
    Write-PinchpointLine 'opened' @{ folder = $folder; tool = $global:PinchpointProbe.Tool }
}

function Add-PinchpointPiece([string] $Data) {
    $bytes = [Convert]::FromBase64String($Data)
    $file = [IO.File]::Open($global:PinchpointProbe.Tool, [IO.FileMode]::Append)
    try { $file.Write($bytes, 0, $bytes.Length) } finally { $file.Dispose() }
}

# ---- DiskSpd ----------------------------------------------------------------------------------------

function Invoke-PinchpointTool([string] $Arguments) {
    $folder = $global:PinchpointProbe.Folder
    if (-not [IO.Directory]::Exists($folder)) { Stop-PinchpointRequest 'gone' "$folder is gone" }
    $stop = Join-Path $folder 'stop'
    $start = New-Object Diagnostics.ProcessStartInfo
    $start.FileName = $global:PinchpointProbe.Tool
    $start.Arguments = $Arguments
    $start.WorkingDirectory = $folder
    $start.UseShellExecute = $false
    $start.CreateNoWindow = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $process = [Diagnostics.Process]::Start($start)
    try {
        $output = $process.StandardOutput.ReadToEndAsync()
        $errors = $process.StandardError.ReadToEndAsync()
        while (-not $process.WaitForExit(200)) {
            if ([IO.File]::Exists($stop)) { $process.Kill() }
        }
        $process.WaitForExit()
        $fields = @{ status = $process.ExitCode; stdout = $output.Result; stderr = $errors.Result }
        Write-PinchpointLine 'output' $fields
    }
    finally {
        if (-not $process.HasExited) { $process.Kill() }
    }
}

function Stop-PinchpointTool($Asked) {
    $folder = Join-Path (Get-PinchpointFolder $Asked) 'pinchpoint-probe'
    if ([IO.Directory]::Exists($folder)) { [IO.File]::WriteAllText((Join-Path $folder 'stop'), '') }
}

# ---- requests ---------------------------------------------------------------------------------------

function Invoke-PinchpointRequest([string] $Text) {
    $id = $null
    try {
        $asked = $Text | ConvertFrom-Json
        $id = $asked.id
        switch ($asked.do) {
            'look' { Show-PinchpointDisk $asked }
            'open' { Open-PinchpointFolder $asked }
            'put' { Add-PinchpointPiece $asked.data }
            'run' { Invoke-PinchpointTool $asked.arguments }
            'stop' { Stop-PinchpointTool $asked }
            'bye' { Remove-PinchpointFolder; $global:PinchpointProbe.Ended = $true }
            default { Stop-PinchpointRequest 'request' "no request '$($asked.do)' is known" }
        }
        Write-PinchpointLine 'done' @{ id = $id }
    }
    catch {
        $reason = $_.Exception
        if ($reason.InnerException) { $reason = $reason.InnerException }
        $what = [string] $_.Exception.Data['what']
        Write-PinchpointLine 'error' @{ id = $id; what = $what; why = $reason.Message }
    }
}

function Start-PinchpointServing {
    try {
        while (-not $global:PinchpointProbe.Ended) {
            $line = [Console]::In.ReadLine()
            if ($null -eq $line) { break }
            Invoke-PinchpointRequest $line
        }
    }
    finally { Remove-PinchpointFolder }
}

if ($Serve) { Start-PinchpointServing }
