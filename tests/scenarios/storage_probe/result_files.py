"""Result files of storage tools: fio's and bonnie++'s recorded, others written from documentation."""

from __future__ import annotations

DISKSPD_SPAN = """<TimeSpan>
<TestTimeSeconds>10.00</TestTimeSeconds>
<ThreadCount>2</ThreadCount>
<RequestCount>0</RequestCount>
<ProcCount>4</ProcCount>
{latency}{iops}<Thread>
<Id>0</Id>
<Target>
<Path>L:\\probe.dat</Path>
<BytesCount>40960000</BytesCount>
<FileSize>1073741824</FileSize>
<IOCount>5000</IOCount>
<ReadBytes>28672000</ReadBytes>
<ReadCount>3500</ReadCount>
<WriteBytes>12288000</WriteBytes>
<WriteCount>1500</WriteCount>
</Target>
</Thread>
<Thread>
<Id>1</Id>
<Target>
<Path>L:\\probe.dat</Path>
<BytesCount>40960000</BytesCount>
<FileSize>1073741824</FileSize>
<IOCount>5000</IOCount>
<ReadBytes>28672000</ReadBytes>
<ReadCount>3500</ReadCount>
<WriteBytes>12288000</WriteBytes>
<WriteCount>1500</WriteCount>
</Target>
</Thread>
</TimeSpan>
"""
_BUCKETS = "".join(
    f"<Bucket>\n<Percentile>{share}</Percentile>\n<ReadMilliseconds>{value / 2:.3f}</ReadMilliseconds>\n"
    f"<WriteMilliseconds>{value:.3f}</WriteMilliseconds>\n<TotalMilliseconds>{value:.3f}</TotalMilliseconds>\n"
    "</Bucket>\n"
    for share, value in (("0", 0.1), ("50", 2.0), ("95", 9.0), ("99", 12.5), ("99.9", 30.0), ("100", 41.25))
)
_LATENCY = (
    "<Latency>\n<AverageReadMilliseconds>3.000</AverageReadMilliseconds>\n"
    f"<AverageTotalMilliseconds>4.000</AverageTotalMilliseconds>\n{_BUCKETS}</Latency>\n"
)
_IOPS = (
    "<Iops>\n<ReadIopsStdDev>1.0</ReadIopsStdDev>\n"
    + "".join(
        f'<Bucket SampleMillisecond="{second * 1000}" Read="700" Write="300" Total="1000" '
        'ReadAvgLatencyMilliseconds="3.000" WriteAvgLatencyMilliseconds="6.000"/>\n'
        for second in range(1, 11)
    )
    + "</Iops>\n"
)


def diskspd(
    version: str = "2.2.0",
    *,
    target: str = "<Random>8192</Random>",
    cache: str = "<DisableOSCache>true</DisableOSCache><WriteThrough>true</WriteThrough>",
    span: str = DISKSPD_SPAN.format(latency=_LATENCY, iops=_IOPS),
    write_ratio: int = 30,
) -> str:
    """Return the output of ``diskspd -b8K -t2 -o4 -r -w30 -Sh -L -D -Rxml``."""
    return (
        "<Results>\n<System>\n<ComputerName>SQL1</ComputerName>\n<Tool>\n"
        f"<Version>{version}</Version>\n<VersionDate>2024/6/3</VersionDate>\n</Tool>\n"
        "<RunTime>2026/11/20 09:00:05 UTC</RunTime>\n</System>\n<Profile>\n<TimeSpans>\n<TimeSpan>\n"
        "<Duration>10</Duration>\n<ThreadCount>0</ThreadCount>\n<RequestCount>0</RequestCount>\n<Targets>\n"
        f"<Target>\n<Path>L:\\probe.dat</Path>\n<BlockSize>8192</BlockSize>\n{cache}\n{target}\n"
        f"<RequestCount>4</RequestCount>\n<WriteRatio>{write_ratio}</WriteRatio>\n<Throughput>0</Throughput>\n"
        "<ThreadsPerFile>2</ThreadsPerFile>\n</Target>\n</Targets>\n</TimeSpan>\n</TimeSpans>\n</Profile>\n"
        f"{span}</Results>"
    )


DISKSPD_PLAIN = diskspd("2.0.17", span=DISKSPD_SPAN.format(latency="", iops=""))
"""Output without ``-L`` and ``-D``."""

DISKSPD_NEWER = (
    diskspd(
        "2.3.0",
        cache="<DisableOSCache>true</DisableOSCache>\n<WriteThrough>true</WriteThrough>\n"
        "<BypassIO>Full</BypassIO>",
    )
    .replace(
        "<RunTime>",
        '<PowerScheme Name="Balanced" Guid=""/>\n<PageSize>4096</PageSize>\n'
        '<ProcessorTopology Heterogeneous="true">\n'
        '<Group Group="0" MaximumProcessors="1" ActiveProcessors="1" ActiveProcessorMask="0x1"/>\n'
        "</ProcessorTopology>\n<RunTime>",
    )
    .replace(
        "<Targets>\n",
        '<IoRing>\n<IoRingBatchSize Percent="false">75</IoRingBatchSize>\n</IoRing>\n'
        "<BufferSeparation>PDECacheLine</BufferSeparation>\n<Targets>\n",
    )
    .replace("<Throughput>0</Throughput>", '<Throughput unit="IOPS">0</Throughput>')
    .replace(
        "<Target>\n<Path>L:\\probe.dat</Path>\n<BytesCount>",
        "<SubmitCount>9</SubmitCount>\n<Target>\n<Path>L:\\probe.dat</Path>\n<BytesCount>",
    )
)
"""Output with the additions of later versions (from DiskSpd's own tests)."""

_RULE = "-" * 78
_CDM = f"""{_RULE}
CrystalDiskMark {{version}} x64 (C) 2007-2021 hiyohiyo
                                  Crystal Dew World: https://crystalmark.info/
{_RULE}
* MB/s = 1,000,000 bytes/s [SATA/600 = 600,000,000 bytes/s]
* KB = 1000 bytes, KiB = 1024 bytes

{{figures}}
"""
CDM_5 = _CDM.format(
    version="5.2.0",
    figures="""   Sequential Read (Q= 32,T= 1) :   140.647 MB/s
  Sequential Write (Q= 32,T= 1) :    89.082 MB/s
  Random Read 4KiB (Q= 32,T= 1) :    33.730 MB/s [  8234.9 IOPS]
 Random Write 4KiB (Q= 32,T= 1) :    15.586 MB/s [  3805.2 IOPS]
         Sequential Read (T= 1) :   156.034 MB/s
        Sequential Write (T= 1) :    96.884 MB/s
   Random Read 4KiB (Q= 1,T= 1) :    10.380 MB/s [  2534.2 IOPS]
  Random Write 4KiB (Q= 1,T= 1) :     0.000 MB/s [     0.0 IOPS]

  Test : 1024 MiB [E: 0.4% (26.4/7167.0 MiB)] (x5)  [Interval=5 sec]
  Date : 2026/11/20 9:00:05
    OS : Windows Server 2016 [10.0 Build 14393] (x64)""",
)
CDM_6 = CDM_5.replace("5.2.0", "6.0.2").replace("(Q= 32,T= 1) :    33.730", "(Q=  8,T= 8) :    33.730")
CDM_7 = _CDM.format(
    version="7.0.0",
    figures="""[Read]
Sequential 1MiB (Q=  8, T= 1):   101.514 MB/s [     96.8 IOPS] < 81970.32 us>
    Random 4KiB (Q= 32, T=16):     0.851 MB/s [    207.8 IOPS] <635043.04 us>

[Write]
Sequential 1MiB (Q=  8, T= 1):    88.490 MB/s [     84.4 IOPS] < 93668.80 us>

Profile: Default
   Test: 1 GiB (x5) [Interval: 5 sec] <DefaultAffinity=DISABLED>
   Date: 2026/11/20 9:00:05
     OS: Windows 10  [10.0 Build 18363] (x64)""",
)
CDM_8 = _CDM.format(
    version="8.0.4 Shizuku Edition",
    figures="""[Read]
  SEQ    1MiB (Q=  8, T= 1):   384.064 MB/s [    366.3 IOPS] < 21765.43 us>
  RND    4KiB (Q= 32, T= 1):    21.640 MB/s [   5283.2 IOPS] <  6020.22 us>

[Mix] Read 70%/Write 30%
  RND    4KiB (Q=  1, T= 1):    20.480 MB/s [   5000.0 IOPS] <   196.72 us>

Profile: Default [+Mix]
   Test: 1 GiB (x1) [F: 0% (0/119GiB)]
   Mode: [Admin]
   Time: Measure 10 sec / Interval 5 sec
   Date: 2026/11/20 9:00:05
     OS: Windows Server 2022 [10.0 Build 20348] (x64)
Comment: the log disk""",
)

_COLUMNS = (
    "Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,IOps,Read IOps,"
    "Write IOps,{units},Transactions per Second,Connections per Second,Average Response Time,"
    "Average Read Response Time,"
    "Average Write Response Time,Average Transaction Time,Average Connection Time,Maximum Response Time,"
    "Maximum Read Response Time,Maximum Write Response Time,Maximum Transaction Time,Maximum Connection Time,"
    "Errors,Read Errors,Write Errors,Bytes Read,Bytes Written,Starting Sector,Maximum Size,Queue Depth"
)


def _iometer(version: str, units: str, throughput: str) -> str:
    rest = "4.5,4,5,0,0,41.25,40,41.25,0,0,0,0,0,5242880,2621440,0,2097152,8"
    figures = f"1500,1000,500,{throughput},0,0,{rest}"
    return f"""'Test Type,Test Description
0,night
'Version
{version}
'Time Stamp
2026-11-20 09:00:05:123
'Access specifications
'Access specification name,default assignment
8K; 67% Read, random,0
'size,% of size,% reads,% random,delay,burst,align,reply
8192,100,67,100,0,1,8192,0
'End access specifications
'Results
'{_COLUMNS.format(units=units)}
ALL,All,8K; 67% Read, random,1,2,2,{figures}
MANAGER,WIN1,,,2,2,{figures}
DISK,PHYSICALDRIVE:3,,,,,{figures}
'Time Stamp
2026-11-20 09:05:05:123
"""


IOMETER_2006 = _iometer("2006.07.27", "MBps,Read MBps,Write MBps", "11.71875,7.8125,3.90625")
IOMETER_1_1 = _iometer(
    "1.1.0",
    "MBps (Binary),Read MBps (Binary),Write MBps (Binary),MBps (Decimal),Read MBps (Decimal),"
    "Write MBps (Decimal)",
    "11.71875,7.8125,3.90625,12.288,8.192,4.096",
)

FIO_3 = """a: (g=0): rw=randread, bs=(R) 8192B-8192B, ioengine=libaio, iodepth=4
fio: this platform does not support process shared mutexes, forcing use of threads.
{
  "fio version" : "fio-3.33",
  "timestamp" : 1795917775,
  "global options" : {"direct" : "1", "runtime" : "6"},
  "jobs" : [
    {
      "jobname" : "a",
      "groupid" : 0,
      "error" : 0,
      "job options" : {"filename" : "/srv/data/probe.data", "size" : "16m", "rw" : "randread", "bs" : "8k",
        "ioengine" : "libaio", "iodepth" : "4"},
      "read" : {
        "io_bytes" : 218677248, "bw_bytes" : 218458789, "bw" : 213338, "iops" : 26667.332667,
        "runtime" : 6001, "total_ios" : 160000,
        "clat_ns" : {"min" : 18933, "max" : 5376921, "mean" : 140606.92695, "N" : 160000,
          "percentile" : {"1.000000" : 71168, "50.000000" : 109056, "95.000000" : 230000,
            "99.000000" : 700416, "99.900000" : 2000000}},
        "lat_ns" : {"min" : 41744, "max" : 5379697, "mean" : 149264.21016, "N" : 160000}
      },
      "write" : {"bw_bytes" : 0, "bw" : 0, "iops" : 0, "runtime" : 0, "total_ios" : 0, "lat_ns" : {}}
    },
    {
      "jobname" : "b", "groupid" : 1, "error" : 0,
      "job options" : {"filename" : "/srv/data/probe.data", "rw" : "randrw", "rwmixread" : "70", "bs" : "4k",
        "numjobs" : "2", "sync" : "dsync"},
      "read" : {"bw_bytes" : 39208663, "iops" : 9572.427572, "runtime" : 6001, "total_ios" : 57400,
        "lat_ns" : {"max" : 4847955, "mean" : 95760.0,
          "bins" : {"68096" : 57000, "4800000" : 400}}},
      "write" : {"bw_bytes" : 16803712, "iops" : 4102.4, "runtime" : 6001, "total_ios" : 24600,
        "lat_ns" : {"max" : 9847955, "mean" : 195760.0, "bins" : {"180224" : 24600}}}
    },
    {
      "jobname" : "limited", "groupid" : 2, "error" : 0,
      "job options" : {"rw" : "write", "bs" : "64k", "rate_iops" : "100"},
      "read" : {"bw_bytes" : 0, "iops" : 0, "runtime" : 0, "total_ios" : 0, "lat_ns" : {}},
      "write" : {"bw_bytes" : 6553600, "iops" : 100, "runtime" : 6000, "total_ios" : 600, "lat_ns" : {}}
    }
  ],
  "disk_util" : []
}
"""
FIO_2 = """{
  "fio version" : "fio-2.2.10",
  "timestamp" : 1444144664,
  "time" : "Tue Oct  6 11:17:44 2015",
  "jobs" : [
    {
      "jobname" : "log", "groupid" : 0, "error" : 0,
      "job options" : {"rw" : "write", "bs" : "4k", "direct" : "1", "fdatasync" : "1"},
      "read" : {"io_bytes" : 0, "bw" : 0, "iops" : 0, "runtime" : 0, "total_ios" : 0,
        "clat" : {"min" : 0, "max" : 0, "mean" : 0.0, "percentile" : {"1.000000" : 0, "0.00" : 0}},
        "lat" : {"min" : 0, "max" : 0, "mean" : 0.0}},
      "write" : {"io_bytes" : 7116, "bw" : 1000, "iops" : 250.0, "runtime" : 25788, "total_ios" : 6447,
        "clat" : {"min" : 53, "max" : 6329, "mean" : 3900.0,
          "percentile" : {"50.000000" : 3500, "99.000000" : 5060, "99.900000" : 6100, "0.00" : 0}},
        "lat" : {"min" : 53, "max" : 6330, "mean" : 3950.0, "stddev" : 94.41}}
    },
    {
      "jobname" : "seq-old", "groupid" : 0, "error" : 0,
      "read" : {"io_bytes" : 44920, "bw" : 2048, "iops" : 5, "runtime" : 20000,
        "lat" : {"min" : 53, "max" : 6330, "mean" : 255.56}},
      "write" : {"io_bytes" : 0, "bw" : 0, "iops" : 0, "runtime" : 0, "lat" : {"mean" : 0.0, "max" : 0}}
    }
  ]
}
"""

BONNIE_98 = (
    "1.98,2.00a,db1,1,1795945064,16G,,8192,5,1406,73,204800,20,102400,30,2669,77,409600,30,512.5,12,16,16384,"
    "8192,,16,+++++,+++,2048,3,+++++,+++,100,1,+++++,+++,300,2,20941us,602ms,453us,28048us,2s,6525us,537us,57us,"
    "281us,352us,1002us,80us\n"
)
_FIELDS = BONNIE_98.strip().split(",")
BONNIE_97 = ",".join(["1.97", "1.97", *_FIELDS[2:7], *_FIELDS[9:]]) + "\n"

ALL = {
    "diskspd": (diskspd(), DISKSPD_PLAIN),
    "crystaldiskmark": (CDM_5, CDM_6, CDM_7, CDM_8),
    "iometer": (IOMETER_2006, IOMETER_1_1),
    "fio": (FIO_3, FIO_2),
    "bonnie": (BONNIE_98, BONNIE_97),
}
