"""Finds the disks of a run: every device with a role, once per machine, with its measured columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Literal

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.resources.base import DiskShift, Resource
from pinchpoint.analysis.resources.disk.limits import DISK, share_columns, with_credits
from pinchpoint.analysis.resources.disk.managed import columns_of, files_of, reported_by
from pinchpoint.analysis.resources.disk.service_time import fit_service_time
from pinchpoint.analysis.sessions import waiting_sessions
from pinchpoint.analysis.stores import store_view
from pinchpoint.analysis.thresholds import LEVEL_SHIFT, MIN_SAMPLES, SAME_MIX
from pinchpoint.data.changes import BATCH, find_early_fall, find_shift
from pinchpoint.data.inputs import COMMIT_ROLES, ROLE_ORDER, DiskRole, Inputs
from pinchpoint.data.series import Floats, Samples, spread


def find_disks(inputs: Inputs) -> Iterator[Resource]:
    """Every device with a role, once per machine, and every disk known only by a database's counters."""
    known = [disk for disk in inputs.disks if disk.device is not None]
    order = sorted(known, key=lambda disk: (disk.machine, disk.device or "", role_rank(disk.role)))
    for (machine, device), group in groupby(order, key=lambda disk: (disk.machine, disk.device or "")):
        roles = tuple(group)
        hosts = inputs.names_on(machine)
        columns = disk_columns(inputs.samples, hosts, device)
        each_s = disk_reading_s(inputs.samples, hosts, device)
        yield with_credits(_disk(inputs, roles, device, columns, each_s))
    for role in inputs.disks:
        files = () if role.seen else files_of(inputs, role)
        if files:
            columns = columns_of(inputs, role.host, files)
            result = _disk(inputs, (role,), role.role, columns, float(inputs.window.step_s))
            yield with_credits(replace(result, reported_by=reported_by(inputs, role.host, files)))


def _disk(
    inputs: Inputs, roles: tuple[DiskRole, ...], device: str, columns: dict[str, Floats], step_s: float
) -> Resource:
    sessions, view = waiting_sessions(inputs, roles), store_view(inputs, roles)
    return Resource(
        key=f"disk:{roles[0].machine}:{device}",
        type="disk",
        machine=roles[0].machine,
        hosts=tuple(dict.fromkeys(role.host for role in roles)),
        tiers=tuple(dict.fromkeys(role.tier for role in roles)),
        instance=device,
        roles=roles,
        limits=next((role.limits for role in roles if role.limits), None),
        commit_path=any(_on_commit_path(role, inputs.disks) for role in roles),
        shift=_disk_shift(columns),
        service_time=fit_service_time(columns, step_s),
        step_s=step_s,
        columns={
            **columns,
            **share_columns(
                inputs.samples, [role.host for role in roles], [DISK], [role.role for role in roles]
            ),
            "sessions": np.where(np.isfinite(view.waiting), np.nan_to_num(sessions) + view.waiting, sessions),
            "log_waits": view.share,
        },
        views=tuple(dict.fromkeys(view.series)),
    )


def _disk_shift(columns: Mapping[str, Floats]) -> DiskShift | None:
    """The change of level of the I/O rate, else of the byte rate; None without a change."""
    usable = np.isfinite(columns["reads"] + columns["writes"] + columns["outstanding"])
    kept = {name: column[usable] for name, column in columns.items()}
    busy = np.where(np.isfinite(kept["busy"]), kept["busy"], 1.0)
    rates: tuple[tuple[Literal["io", "bytes"], Floats], ...] = (
        ("io", kept["reads"] + kept["writes"]),
        ("bytes", np.nan_to_num(kept["bytes"])),
    )
    usual_mix = _usual_mix(kept["reads"], kept["writes"])
    for (of, rate), (_, other) in zip(rates, reversed(rates), strict=True):
        least, smallest = MIN_SAMPLES.value, LEVEL_SHIFT.value
        shift = find_shift(rate, least=least, smallest=smallest)
        shift = shift or find_early_fall(rate, least=least, smallest=smallest)
        if shift is not None:
            at = shift.at
            return DiskShift(
                of=of,
                before=shift.before,
                after=shift.after,
                spread=spread(rate[at:]),
                outstanding_before=float(kept["outstanding"][:at].mean()),
                outstanding_after=float(kept["outstanding"][at:].mean()),
                busy_before=float(busy[:at].mean()),
                busy_after=float(busy[at:].mean()),
                usual_mix_before=_mean(rate[:at][usual_mix[:at]]),
                usual_mix_after=_mean(rate[at:][usual_mix[at:]]),
                other_before=float(other[:at].mean()),
                other_after=float(other[at:].mean()),
            )
    return None


def _usual_mix(reads: Floats, writes: Floats) -> npt.NDArray[np.bool_]:
    """The seconds with about the usual share of reads; a checkpoint changes the share in other seconds."""
    total = reads + writes
    share = np.divide(reads, total, out=np.zeros_like(total), where=total > 0)
    usual = float(np.median(share[total > 0])) if (total > 0).any() else 0.0
    return np.abs(share - usual) <= SAME_MIX.value


def _mean(rate: Floats) -> float | None:
    """The mean of a level; None if too few seconds remain."""
    return float(rate.mean()) if len(rate) >= BATCH else None


def _on_commit_path(role: DiskRole, disks: tuple[DiskRole, ...]) -> bool:
    if role.role in COMMIT_ROLES:
        return True
    logged = {disk.host for disk in disks if disk.role in COMMIT_ROLES}
    return role.role == "data" and role.host not in logged


def role_rank(role: str) -> int:
    """The position of a role in ``ROLE_ORDER``; unknown ones come last."""
    return ROLE_ORDER.index(role) if role in ROLE_ORDER else len(ROLE_ORDER)


def disk_reading_s(samples: Samples, hosts: list[str], device: str) -> float:
    """Seconds that one value of a device covers: the time between two readings."""
    return samples.reading_s(hosts, "disk.writes_per_s", device)


def disk_columns(samples: Samples, hosts: list[str], device: str) -> dict[str, Floats]:
    """The columns of a device. Writes are data I/O if the collector verified that (docs/metrics.md)."""

    def column(metric: str) -> Floats:
        return samples.first_of(hosts, f"disk.{metric}", device)

    def weight(metric: str) -> Floats:
        weights = [samples.weights(host, f"disk.{metric}", device) for host in hosts]
        return max(weights, key=lambda weight: float(weight.sum()))

    verified = bool(np.isfinite(column("data_writes_per_s")).any())
    prefix = "data_" if verified else ""
    writes, latency = f"{prefix}writes_per_s", f"{prefix}write_latency_s"
    return {
        "reads": column("reads_per_s"),
        "writes": column(writes),
        "bytes": column("read_bytes_per_s") + column("write_bytes_per_s"),
        "read_bytes": column("read_bytes_per_s"),
        "read_latency": column("read_latency_s"),
        "read_weight": weight("read_latency_s"),
        "write_latency": column(latency),
        "write_weight": weight(latency),
        "flush_latency": column("flush_latency_s"),
        "flush_weight": weight("flush_latency_s"),
        "outstanding": column("outstanding"),
        "busy": column("busy_ratio"),
        "pressure": samples.first_of(hosts, "pressure.io_ratio"),
    }
