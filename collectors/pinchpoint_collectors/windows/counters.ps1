<#
.SYNOPSIS
Reads Windows' raw performance counters again and again, and writes them as lines of JSON.

.DESCRIPTION
Pinchpoint sends this file over WinRM or SSH to the machine it watches; nothing is installed or written there.
Each line is one object in ASCII; times ("utc") are 100 ns since 1601, as the machine's clock has them.

  host, volume, mount, disk, media, access, cache, sql_server, cloud, cloud_disk   what the machine is; one line each
  unknown    what of this could not be found out, and why
  class      a class that is read: its properties and their counter types, joined by commas, in the order of rows
  ready      from here on it is read
  found      the ids of processes that are looked for, joined by commas, and why if that is not known; from time to time
  rows       what a class has now: per instance the name, three time stamps, and the properties
  failed     a class that could not be read this time, and why
  reading    the end of one reading, and the CPU time of this process so far
  time       an answer to "time N": N, and the machine's time
  end        why it ends

Works on Windows PowerShell 5.1. The counters' classes do not depend on the language of the system:
  learn.microsoft.com/windows/win32/cimwin32prov/performance-counter-classes
  learn.microsoft.com/windows/win32/wmisdk/property-qualifiers-for-performance-counter-classes

.PARAMETER Request
{"interval_ms": 1000, "lease_s": 60, "classes": [{"pattern": "PerfDisk_LogicalDisk", "properties": "A,B"}],
 "find": [{"what": "service", "text": "MSSQLSERVER"}, {"what": "command_line", "text": "-ap"}]}
An interval of 0 says what the machine is, and ends.

.PARAMETER Listen
Listen to standard input: "time N" is answered; its end, or a silence of lease_s, ends the process.
#>
[CmdletBinding()]
param(
    [Parameter(Mandatory)] [string] $Request,
    [switch] $Listen
)

$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

$Prefix = 'Win32_PerfRawData_'
$FindEvery = 10
$Stamps = @('Timestamp_PerfTime', 'Timestamp_Sys100NS', 'Frequency_PerfTime')

# ---- lines ------------------------------------------------------------------------------------------

function ConvertTo-PinchpointAscii([string] $Text) {
    # The console's code page would spoil anything else, on one side or the other.
    $code = { param($match) '\u{0:x4}' -f [int][char] $match.Value }
    return [regex]::Replace($Text, '[^\x20-\x7e]', $code)
}

function Write-PinchpointLine([string] $Kind, [hashtable] $Fields) {
    # Scalars only: Windows PowerShell 5.1 writes an array that has been through a pipeline as an object.
    Write-Output (ConvertTo-PinchpointAscii (ConvertTo-Json -InputObject (@{ kind = $Kind } + $Fields) -Compress))
}

function Get-PinchpointUtc { return [DateTime]::UtcNow.ToFileTimeUtc() }

# ---- what the machine is ----------------------------------------------------------------------------

function Write-PinchpointFacts {
    # Each part by itself: what one user may not ask, or one version does not have, does not cost the rest.
    $parts = [ordered]@{
        host = { Write-PinchpointHost }
        volumes = { Write-PinchpointVolumes }
        disks = { Write-PinchpointDisks }
        caches = { Write-PinchpointCaches }
        sql_servers = { Write-PinchpointSqlServers }
        cloud = { Write-PinchpointCloud }
    }
    foreach ($name in $parts.Keys) {
        try { & $parts[$name] }
        catch { Write-PinchpointLine 'unknown' @{ what = $name; why = $_.Exception.Message } }
    }
}

function Write-PinchpointHost {
    $system = Get-CimInstance -ClassName Win32_ComputerSystem
    $os = Get-CimInstance -ClassName Win32_OperatingSystem
    $product = Get-CimInstance -ClassName Win32_ComputerSystemProduct
    $processor = @(Get-CimInstance -ClassName Win32_Processor)[0]
    $paging = [long] 0
    foreach ($file in Get-CimInstance -ClassName Win32_PageFileUsage) { $paging += [long] $file.AllocatedBaseSize }
    Write-PinchpointLine 'host' @{
        hostname = $env:COMPUTERNAME
        os = $os.Caption
        kernel = $os.Version
        started = $os.LastBootUpTime.ToFileTimeUtc()
        uuid = $product.UUID
        cpu_model = $processor.Name
        cores = [int] $system.NumberOfLogicalProcessors
        memory_kib = [long] $os.TotalVisibleMemorySize
        paging_mib = $paging
        manufacturer = $system.Manufacturer
        model = $system.Model
        hypervisor = [bool] $system.HypervisorPresent
    }
}

function Write-PinchpointVolumes {
    foreach ($volume in Get-CimInstance -ClassName Win32_Volume) {
        Write-PinchpointLine 'volume' @{
            volume = $volume.DeviceID
            letter = $volume.DriveLetter
            file_system = $volume.FileSystem
            block_bytes = $volume.BlockSize
            size_bytes = $volume.Capacity
        }
    }
    foreach ($mount in Get-CimInstance -ClassName Win32_MountPoint) {
        Write-PinchpointLine 'mount' @{ volume = $mount.Volume.DeviceID; path = $mount.Directory.Name }
    }
}

function Write-PinchpointDisks {
    $storage = 'root/Microsoft/Windows/Storage'
    foreach ($disk in Get-CimInstance -Namespace $storage -ClassName MSFT_Disk) {
        Write-PinchpointLine 'disk' @{
            number = $disk.Number
            model = $disk.FriendlyName
            size_bytes = $disk.Size
            location = $disk.Location
        }
    }
    foreach ($disk in Get-CimInstance -Namespace $storage -ClassName MSFT_PhysicalDisk) {
        # 3 is a hard disk, 4 a solid-state one; a virtual disk says 0, which is neither.
        Write-PinchpointLine 'media' @{ number = $disk.DeviceId; media = [int] $disk.MediaType }
    }
    foreach ($partition in Get-CimInstance -Namespace $storage -ClassName MSFT_Partition) {
        foreach ($path in $partition.AccessPaths) {
            Write-PinchpointLine 'access' @{ number = $partition.DiskNumber; path = $path }
        }
    }
}

function Write-PinchpointCaches {
    # Windows 10 1809 and Windows Server 2019 brought this cmdlet.
    if (-not (Get-Command Get-StorageAdvancedProperty -ErrorAction SilentlyContinue)) {
        throw 'this Windows has no Get-StorageAdvancedProperty'
    }
    foreach ($disk in Get-PhysicalDisk) {
        $said = $disk | Get-StorageAdvancedProperty
        Write-PinchpointLine 'cache' @{ number = $disk.DeviceId; enabled = $said.IsDeviceCacheEnabled }
    }
}

function Write-PinchpointSqlServers {
    $root = 'HKLM:\SOFTWARE\Microsoft\Microsoft SQL Server'
    $names = "$root\Instance Names\SQL"
    if (-not (Test-Path -LiteralPath $names)) { return }
    $key = Get-Item -LiteralPath $names
    foreach ($name in $key.GetValueNames()) {
        $instance = "$root\$($key.GetValue($name))"
        $setup = Get-Item -LiteralPath "$instance\Setup"
        # Where new databases go; without a setting of their own below the folder of the setup.
        $data = $log = $setup.GetValue('SQLDataRoot')
        $server = Get-Item -LiteralPath "$instance\MSSQLServer" -ErrorAction SilentlyContinue
        if ($server -and $server.GetValue('DefaultData')) { $data = $server.GetValue('DefaultData') }
        if ($server -and $server.GetValue('DefaultLog')) { $log = $server.GetValue('DefaultLog') }
        $version = $setup.GetValue('Version')
        $edition = $setup.GetValue('Edition')
        Write-PinchpointLine 'sql_server' @{
            instance = $name
            version = $version
            edition = $edition
            data = $data
            log = $log
            tempdb = Get-PinchpointTempdb $name
        }
    }
}

function Get-PinchpointTempdb([string] $Instance) {
    # No key of the registry has it: the server is asked, as the user that this runs as, whom it may refuse.
    $server = if ($Instance -eq 'MSSQLSERVER') { '.' } else { ".\$Instance" }
    $link = New-Object Data.SqlClient.SqlConnection "Data Source=$server;Integrated Security=SSPI;Connect Timeout=3"
    try {
        $link.Open()
        $command = $link.CreateCommand()
        $command.CommandText = 'SELECT TOP (1) physical_name FROM tempdb.sys.database_files WHERE type = 0'
        return [string] $command.ExecuteScalar()
    }
    catch { return $null }
    finally { $link.Dispose() }
}

function Get-PinchpointMetadata([string] $Path, [hashtable] $Fields, [string] $Method = 'GET') {
    # The service is a neighbour: no proxy leads to it, and where it is switched off nothing waits long for it.
    $request = [Net.WebRequest]::Create("http://169.254.169.254$Path")
    $request.Proxy = $null
    $request.Timeout = 2000
    $request.Method = $Method
    if ($Method -eq 'PUT') { $request.ContentLength = 0 }
    foreach ($name in $Fields.Keys) { $request.Headers.Add($name, $Fields[$name]) }
    $answer = $request.GetResponse()
    try { return (New-Object IO.StreamReader ($answer.GetResponseStream())).ReadToEnd() }
    finally { $answer.Dispose() }
}

function Write-PinchpointCloud {
    # Only where the firmware names a cloud: elsewhere nothing answers there, or something else.
    $maker = [string] (Get-CimInstance -ClassName Win32_ComputerSystem).Manufacturer
    $tags = @(Get-CimInstance -ClassName Win32_SystemEnclosure | ForEach-Object { $_.SMBIOSAssetTag })
    if ($tags -contains '7783-7084-3265-9085-8269-3286-77') {
        $said = ConvertFrom-Json (Get-PinchpointMetadata '/metadata/instance/compute?api-version=2021-02-01' @{ Metadata = 'true' })
        Write-PinchpointLine 'cloud' @{ region = $said.location; zone = $said.zone; machine_type = $said.vmSize }
        foreach ($disk in $said.storageProfile.dataDisks) {
            $kind = $disk.managedDisk.storageAccountType
            Write-PinchpointLine 'cloud_disk' @{ lun = [int] $disk.lun; type = $kind; size_gib = [int] $disk.diskSizeGB }
        }
    }
    elseif ($maker -like 'Amazon EC2*') {
        $token = Get-PinchpointMetadata '/latest/api/token' @{ 'X-aws-ec2-metadata-token-ttl-seconds' = '60' } 'PUT'
        $said = ConvertFrom-Json (Get-PinchpointMetadata '/latest/dynamic/instance-identity/document' @{ 'X-aws-ec2-metadata-token' = $token })
        Write-PinchpointLine 'cloud' @{ region = $said.region; zone = $said.availabilityZone; machine_type = $said.instanceType }
    }
    elseif ($maker -like 'Google*') {
        $said = ConvertFrom-Json (Get-PinchpointMetadata '/computeMetadata/v1/instance/?recursive=true' @{ 'Metadata-Flavor' = 'Google' })
        $zone = ($said.zone -split '/')[-1]
        Write-PinchpointLine 'cloud' @{ region = $zone -replace '-[^-]*$'; zone = $zone; machine_type = ($said.machineType -split '/')[-1] }
    }
}

# ---- the counters -----------------------------------------------------------------------------------

function Find-PinchpointClasses($Classes) {
    # Once for all: to look for a class by a pattern is to look through all of them.
    $there = @(Get-CimClass -ClassName "$Prefix*")
    foreach ($wanted in $Classes) {
        $properties = $wanted.properties -split ','
        foreach ($class in $there) {
            $name = $class.CimClassName.Substring($Prefix.Length)
            if ($name -notlike $wanted.pattern) { continue }
            $columns = @($properties | Where-Object { $null -ne $class.CimClassProperties[$_] })
            if ($columns.Count -eq 0) { continue }
            $columns += @($columns | ForEach-Object { "${_}_Base" } |
                Where-Object { $null -ne $class.CimClassProperties[$_] })
            $types = $columns | ForEach-Object {
                $type = $class.CimClassProperties[$_].Qualifiers['CounterType']
                if ($null -eq $type) { '' } else { [string] $type.Value }
            }
            @{ Name = $name; Pattern = $wanted.pattern; Columns = $columns; Types = @($types) }
        }
    }
}

function Write-PinchpointRows($Class) {
    $names = $Stamps + $Class.Columns
    $instances = @(Get-CimInstance -ClassName ($Prefix + $Class.Name) -Property (@('Name') + $names))
    $utc = Get-PinchpointUtc
    $rows = foreach ($instance in $instances) {
        # Whole numbers all of them: in a string they look alike in every culture.
        $cells = foreach ($name in $names) { if ($null -eq $instance.$name) { 'null' } else { "$($instance.$name)" } }
        $label = ConvertTo-PinchpointAscii (ConvertTo-Json -InputObject ([string] $instance.Name) -Compress)
        "[$label,$($cells -join ',')]"
    }
    Write-Output "{""kind"":""rows"",""class"":""$($Class.Name)"",""utc"":$utc,""rows"":[$($rows -join ',')]}"
}

function Write-PinchpointReading($Classes, [long] $Number) {
    foreach ($class in $Classes) {
        try { Write-PinchpointRows $class }
        catch {
            Write-PinchpointLine 'failed' @{
                class = $class.Name
                utc = Get-PinchpointUtc
                why = $_.Exception.Message
            }
        }
    }
    $spent = [Diagnostics.Process]::GetCurrentProcess().TotalProcessorTime.TotalSeconds
    Write-PinchpointLine 'reading' @{ number = $Number; utc = Get-PinchpointUtc; cpu_s = $spent }
}

# ---- processes --------------------------------------------------------------------------------------

function Get-PinchpointProcesses([string] $What, [string] $Text) {
    if ($What -eq 'service') {
        return Get-CimInstance -ClassName Win32_Service -Property @('Name', 'ProcessId') |
            Where-Object { $_.Name -eq $Text } | ForEach-Object { $_.ProcessId }
    }
    return Get-CimInstance -ClassName Win32_Process -Property @('ProcessId', 'CommandLine') |
        Where-Object { ([string] $_.CommandLine).IndexOf($Text, [StringComparison]::OrdinalIgnoreCase) -ge 0 } |
        ForEach-Object { $_.ProcessId }
}

function Write-PinchpointFound($Find) {
    # Command lines may hold passwords: they are compared here, and never leave the machine.
    foreach ($one in $Find) {
        $ids = @()
        $why = $null
        try {
            # Of a service that does not run the id is 0; what reads them is none of them itself.
            $ids = @(Get-PinchpointProcesses $one.what $one.text | Where-Object { $_ -gt 0 -and $_ -ne $PID })
        }
        catch { $why = $_.Exception.Message }
        Write-PinchpointLine 'found' @{ what = $one.what; text = $one.text; processes = $ids -join ','; why = $why }
    }
}

# ---- the time between -------------------------------------------------------------------------------

function Wait-PinchpointSlot($State, [long] $UntilMs) {
    while ($true) {
        $left = [int] [Math]::Max(0, $UntilMs - $State.Watch.ElapsedMilliseconds)
        if ($null -eq $State.Reader) {
            if ($left -gt 0) { Start-Sleep -Milliseconds $left }
            return
        }
        if (-not $State.Asked.Wait($left)) {
            if ($State.Watch.ElapsedMilliseconds - $State.HeardMs -gt $State.LeaseMs) {
                $State.Why = 'nobody has asked for so long: the link is lost'
            }
            return
        }
        $line = $State.Asked.Result
        if ($null -eq $line) {
            $State.Why = 'standard input has ended'
            return
        }
        $State.HeardMs = $State.Watch.ElapsedMilliseconds
        if ($line -match '^time (\d+)$') {
            Write-PinchpointLine 'time' @{ asked = [long] $Matches[1]; utc = Get-PinchpointUtc }
        }
        $State.Asked = $State.Reader.ReadLineAsync()
    }
}

function Invoke-PinchpointLoop($Classes, [long] $IntervalMs, $State) {
    $slot = [long] 0
    $number = [long] 0
    while ($null -eq $State.Why) {
        $number += 1
        # To ask for these costs more than a reading.
        if ($number % $FindEvery -eq 1) { Write-PinchpointFound $State.Find }
        Write-PinchpointReading $Classes $number
        # A slot that has passed meanwhile is left out, never made up for.
        $passed = [long] [Math]::Floor($State.Watch.ElapsedMilliseconds / $IntervalMs)
        $slot = [Math]::Max($slot, $passed) + 1
        Wait-PinchpointSlot $State ($slot * $IntervalMs)
    }
}

function Start-Pinchpoint {
    $asked = ConvertFrom-Json -InputObject $Request
    $state = @{
        Watch = [Diagnostics.Stopwatch]::StartNew()
        Reader = $null
        Asked = $null
        HeardMs = [long] 0
        LeaseMs = 1000 * [long] $asked.lease_s
        Find = $asked.find
        Why = $null
    }
    Write-PinchpointFacts
    if ($asked.interval_ms -gt 0) {
        $classes = @(Find-PinchpointClasses $asked.classes)
        foreach ($class in $classes) {
            Write-PinchpointLine 'class' @{
                class = $class.Name
                pattern = $class.Pattern
                columns = $class.Columns -join ','
                types = $class.Types -join ','
            }
        }
        Write-PinchpointLine 'ready' @{ utc = Get-PinchpointUtc }
        if ($Listen) {
            # Not Console.In, whose ReadLineAsync waits; whoever sends waits for "ready", so nothing is lost between.
            $state.Reader = New-Object IO.StreamReader ([Console]::OpenStandardInput())
            $state.Asked = $state.Reader.ReadLineAsync()
            $state.HeardMs = $state.Watch.ElapsedMilliseconds
        }
        Invoke-PinchpointLoop $classes ([long] $asked.interval_ms) $state
    }
    Write-PinchpointLine 'end' @{ why = $state.Why }
}

try { Start-Pinchpoint }
catch { Write-PinchpointLine 'end' @{ why = $_.Exception.Message } }
# Over SSH the shell around this would go on to wait for a link that is lost.
if ($Listen) { [Environment]::Exit(0) }
