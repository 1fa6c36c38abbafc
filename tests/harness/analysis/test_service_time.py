"""Service-time model: a disk's time depends on bytes or on I/Os, for disks simulated under rising load."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from harness.analysis.disks import Capped, Disk, Distant, Seconds, Spindle, commits

from pinchpoint.analysis.resources.base import DiskMeasures, Resource
from pinchpoint.analysis.resources.disk.classify import state_of
from pinchpoint.analysis.resources.disk.rate_response import RateResponse
from pinchpoint.analysis.resources.disk.service_time import fit_service_time

LEVEL_S = 20
USERS = (1, 2, 4, 8, 16, 32)
ROW = 16_000


def climb(disk: Callable[[], Disk], *, segments: bool = False) -> dict[str, npt.NDArray[np.float64]]:
    """Return the columns of a log over six load levels; each write carries the waiting commits."""
    levels = [
        commits(disk(), LEVEL_S, users=users, seed=users, row_bytes=ROW, segments=4 if segments else 10**6)
        for users in USERS
    ]
    return {
        "reads": joined(levels, lambda one: one.reads),
        "writes": joined(levels, lambda one: one.writes),
        "bytes": joined(levels, lambda one: one.bytes),
        "busy": joined(levels, lambda one: one.busy),
        "outstanding": joined(levels, lambda one: one.time_s),
    }


def joined(
    levels: list[Seconds], of: Callable[[Seconds], npt.NDArray[np.float64]]
) -> npt.NDArray[np.float64]:
    return np.concatenate([of(level) for level in levels])


@pytest.mark.parametrize("bytes_per_s", [0.8e6, 2e6, 5e6])
@pytest.mark.parametrize("segments", [False, True])
def test_under_a_limit_of_bytes_time_goes_with_bytes(bytes_per_s: float, segments: bool) -> None:
    """Under a byte limit the service time is proportional to bytes, with writes of growing size."""
    pace = fit_service_time(climb(lambda: Capped(bytes_per_s=bytes_per_s), segments=segments), 1.0)
    assert pace is not None
    assert pace.by_bytes, pace


@pytest.mark.parametrize(
    "disk",
    [
        lambda: Distant(0.03, 0.003),
        lambda: Distant(0.012, 0.0001),
        lambda: Spindle(0.02),
        lambda: Capped(iops=40),
        lambda: Capped(iops=150),
    ],
    ids=["30 ms", "12 ms", "device", "40 I/Os per second", "150 I/Os per second"],
)
def test_of_anything_else_it_does_not(disk: Callable[[], Disk]) -> None:
    """On disks without a byte limit the service time is not proportional to bytes."""
    pace = fit_service_time(climb(disk), 1.0)
    assert pace is None or not pace.by_bytes, pace


def test_io_of_one_size_does_not_tell() -> None:
    """I/Os of one size cannot show a byte limit, because bytes are constant when their number is."""
    steady = np.full(60, 40.0)
    columns = {
        "reads": np.zeros(60),
        "writes": steady,
        "bytes": steady * 8192,
        "busy": np.full(60, 0.99),
        "outstanding": np.full(60, 1.0),
    }
    pace = fit_service_time(columns, 1.0)
    assert pace is None or not pace.by_bytes, pace


def test_a_disk_that_idles_tells_nothing() -> None:
    """A disk that idles half of the time gives no service-time model."""
    columns = climb(lambda: Capped(bytes_per_s=5e6))
    assert fit_service_time({**columns, "busy": columns["busy"] / 2}, 1.0) is None


@pytest.mark.parametrize(
    ("any_size", "busy", "at_cap"), [(True, 0.98, True), (True, 0.6, False), (False, 0.98, False)]
)
def test_that_smaller_ios_are_more_of_them_contradicts_no_limit_of_bytes(
    any_size: bool, busy: float, at_cap: bool
) -> None:
    """6 MB/s in I/Os of 29 to 174 kB are at a byte limit although smaller I/Os come faster.

    The limit is not reached where the bytes depend on the I/O size, nor where the disk would do 167 % of the
    limit without its pauses.
    """
    log = Resource("sdb", "disk", "m1", ("nosql1",), ("nosql",), "sdb", commit_path=True)
    responses = {
        "io": RateResponse(spread=0.4, slope=0.95),
        "bytes": RateResponse(spread=0.044, slope=0.1, any_size=any_size),
    }
    found = DiskMeasures(
        io=100.0,
        bytes=5.99e6,
        utilisation=0.999,
        binding="bytes",
        responses=responses,
        outstanding=0.98,
        busy=busy,
        reads_ratio=0.0,
        read_s=None,
        write_s=0.01,
        flush_s=None,
        pressure=0.8,
        sessions=None,
    )
    state = state_of(log, found, 0.99, "burst", reading=False)
    assert (state.near_cap, state.at_cap) == (at_cap, at_cap)
    assert state.beyond_cap is (busy < 0.9)
    assert state.used == pytest.approx(0.999 / busy)
