"""Disks of servers without a collector on the host (a managed database), from the database's counters.

A database counts its requests to the operating system. The I/O of the disk differs: the page cache may join
writes or serve reads, and a file system adds its own I/O. Such a disk is judged by the same rules, but every
finding names the source of its counts, and the host counts as not measured: low confidence at most
(docs/rules.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pinchpoint.data.inputs import COMMIT_ROLES, DiskRole, Inputs
from pinchpoint.data.series import Floats, Key, added

LOG_FILES = ("log", "wal", "binlog")
FILES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(COMMIT_ROLES, LOG_FILES),
    "data": ("data",),
    "tempdb": ("temp",),
}
"""Disk role -> the kinds of files on it, as instances of the collectors' ``db.*`` metrics."""

ALL_FILES = "innodb"
"""All files of a server that does not count them separately (MariaDB without its performance schema)."""

TIMES = ("read", "write", "extend", "fsync")
"""Timed calls of a database. The seconds of a call per second are the number of processes in that call."""


def files_of(inputs: Inputs, role: DiskRole) -> tuple[str, ...]:
    """The kinds of files that a database counted on a disk of this role; empty if it counted none.

    A data disk also has the log and the temporary files if these have no separate disk.
    """
    own = {disk.role for disk in inputs.disks if disk.host == role.host}
    names = FILES.get(role.role, ())
    if role.role == "data":
        names += () if own & set(COMMIT_ROLES) else LOG_FILES
        names += () if "tempdb" in own else FILES["tempdb"]
    there = {key.instance for key in inputs.samples.keys("db.writes_per_s") if key.host == role.host}
    if role.role == "data" and ALL_FILES in there and not there & set(FILES["data"]):
        return () if own & {*COMMIT_ROLES, "tempdb"} else (ALL_FILES,)
    return tuple(name for name in names if name in there)


def columns_of(inputs: Inputs, host: str, files: Sequence[str]) -> dict[str, Floats]:
    """The columns of a disk, as in ``devices.disk_columns``, from a database's counts of these files.

    A flush is no separate I/O: it completes the write before it. The busy time of the disk is not reported;
    the time that all processes together spent in I/O is its upper bound, and is used instead.
    """

    def total(metric: str) -> Floats:
        return added(inputs.samples.steps(host, f"db.{metric}", name) for name in files)

    outstanding = added(total(f"{name}_s_per_s") for name in TIMES)
    unknown = np.full(inputs.window.steps, np.nan)
    values = {
        "reads": total("reads_per_s"),
        "writes": added((total("writes_per_s"), total("extends_per_s"))),
        "bytes": added((total("read_bytes_per_s"), total("write_bytes_per_s"))),
        "read_bytes": total("read_bytes_per_s"),
        "outstanding": outstanding,
        "busy": np.minimum(1.0, outstanding),
        "pressure": unknown,
    }
    # A missing count of reads is 0: nothing reads a log while it is written.
    values["reads"] = np.where(np.isfinite(values["writes"]), np.nan_to_num(values["reads"]), values["reads"])
    for ours, theirs in (("read", "read"), ("write", "write"), ("flush", "fsync")):
        latency, weight = _latency(inputs, host, f"db.{theirs}_latency_s", files)
        values |= {f"{ours}_latency": latency, f"{ours}_weight": weight}
    return values


def reported_by(inputs: Inputs, host: str, files: Sequence[str]) -> dict[str, Key]:
    """Metric of a disk -> the database's series that reports it, for the kind of files with the most I/O."""

    def level(metric: str, name: str) -> float:
        return inputs.samples.mean(host, metric, name) or 0.0

    def most(metric: str) -> Key:
        return Key(host, metric, max(files, key=lambda name: level(metric, name)))

    keys = {
        f"disk.{way}{of}_per_s": most(f"db.{way}{of}_per_s")
        for way in ("read", "write")
        for of in ("s", "_bytes")
    }
    spent = max((most(f"db.{name}_s_per_s") for name in TIMES), key=lambda key: level(*key[1:]))
    durable = most("db.fsync_latency_s")
    durable = durable if level(*durable[1:]) else most("db.write_latency_s")
    return {
        **keys,
        "disk.read_latency_s": most("db.read_latency_s"),
        "disk.write_latency_s": durable,
        "disk.outstanding": spent,
        "disk.busy_ratio": spent,
    }


def database_row(inputs: Inputs, role: DiskRole) -> dict[str, float | None] | None:
    """The row of a disk that only a database counts, for the verdict's table; None if nothing was counted."""
    files = files_of(inputs, role)
    if not files:
        return None
    result = columns_of(inputs, role.host, files)
    io = result["reads"] + result["writes"]
    io = io[np.isfinite(io)]
    return {
        "write_latency_mean_s": _mean(result, "write"),
        "write_latency_max_s": _most(result["write_latency"]),
        "read_latency_mean_s": _mean(result, "read"),
        "flush_latency_mean_s": _mean(result, "flush"),
        "iops_mean": float(io.mean()) if len(io) else None,
        "iops_max": float(io.max()) if len(io) else None,
    }


def _latency(inputs: Inputs, host: str, metric: str, files: Sequence[str]) -> tuple[Floats, Floats]:
    """(mean latency over all operations, number of operations) of several kinds of files together."""
    weights = [inputs.samples.weights(host, metric, name) for name in files]
    means = [inputs.samples.steps(host, metric, name) for name in files]
    weight = np.sum(weights, axis=0)
    spent = np.sum([np.nan_to_num(mean) * of for mean, of in zip(means, weights, strict=True)], axis=0)
    return np.divide(spent, weight, out=np.full(len(weight), np.nan), where=weight > 0), weight


def _mean(values: Mapping[str, Floats], way: str) -> float | None:
    latency, weight = values[f"{way}_latency"], values[f"{way}_weight"]
    usable = np.isfinite(latency) & (weight > 0)
    return float(np.average(latency[usable], weights=weight[usable])) if usable.any() else None


def _most(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None
