"""Predictions of one side from the other, for simulated farms with another disk or load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from harness.analysis.disks import Capped, Disk, Distant, Seconds, Spindle, commits, reads
from harness.forecast.farms import LENGTH_S, Limits, data, log, predict_other

from pinchpoint.forecast import predict


@dataclass(frozen=True)
class Pair:
    """Two simulated farms, and the settings that predict one from the other.

    Attributes:
        base, other: the disk of each side.
        users: number of users on both sides.
        settings: what-if settings as text.
        limits: declared limits of both disks.
        work_s: time between a user's I/Os in seconds.
    """

    base: Callable[[], Disk]
    other: Callable[[], Disk]
    users: int
    settings: tuple[str, ...]
    limits: tuple[Limits | None, Limits | None] = (None, None)
    work_s: float = 0.0004


LOGS = {
    "latency 12 to 3 ms": Pair(
        lambda: Distant(0.012, 0.0003), lambda: Distant(0.003, 0.0003), 8, ("sql.log.latency=3.3ms",)
    ),
    "latency 35 to 2.8 ms, few users": Pair(
        lambda: Distant(0.035, 0.001), lambda: Distant(0.0028, 0.0002), 4, ("sql.log.latency=3ms",)
    ),
    "latency 4 to 16 ms": Pair(
        lambda: Distant(0.004, 0.0003), lambda: Distant(0.016, 0.0003), 8, ("sql.log.latency=16.3ms",)
    ),
    "latency, users who work longer than a write": Pair(
        lambda: Distant(0.008, 0.0003),
        lambda: Distant(0.002, 0.0003),
        8,
        ("sql.log.latency=2.3ms",),
        work_s=0.012,
    ),
    "cap 240 to 480": Pair(
        lambda: Capped(240),
        lambda: Capped(480),
        8,
        ("sql.log.iops=480",),
        ({"iops": 240.0}, {"iops": 480.0}),
    ),
    "cap that nobody declared": Pair(lambda: Capped(200), lambda: Capped(500), 12, ("sql.log.iops=500",)),
    "cap 150 to 450, users who work 20 ms": Pair(
        lambda: Capped(150),
        lambda: Capped(450),
        10,
        ("sql.log.iops=450",),
        ({"iops": 150.0}, {"iops": 450.0}),
        work_s=0.02,
    ),
}
DATA = {
    "cap 300 to 600": Pair(
        lambda: Capped(300),
        lambda: Capped(600),
        12,
        ("sql.data.iops=600",),
        ({"iops": 300.0}, {"iops": 600.0}),
    ),
    "a profile in place of a cap that was withheld": Pair(
        lambda: Capped(300), lambda: Capped(500), 16, ("sql.data=azure/s30",), (None, {"iops": 500.0})
    ),
    "stripes": Pair(
        lambda: Capped(250),
        lambda: Capped(1000),
        32,
        ("sql.data.stripes=4",),
        ({"iops": 250.0}, {"iops": 1000.0}),
    ),
    "latency 8 to 2 ms": Pair(
        lambda: Distant(0.008, 0.0002), lambda: Distant(0.002, 0.0002), 5, ("sql.data.latency=2.2ms",)
    ),
    "a cap beyond what users ask for": Pair(
        lambda: Capped(250),
        lambda: Distant(0.003, 0.0001),
        4,
        ("sql.data.iops=5000", "sql.data.latency=3.2ms"),
        ({"iops": 250.0}, None),
        work_s=0.002,
    ),
    "a device in place of a cap": Pair(
        lambda: Spindle(0.008), lambda: Capped(1000), 16, ("sql.data.iops=1000",), (None, {"iops": 1000.0})
    ),
}


def log_side(disk: Disk, pair: Pair, limits: Limits | None, seed: int) -> tuple[Seconds, object]:
    found = commits(disk, LENGTH_S, users=pair.users, seed=seed, work_s=pair.work_s)
    return found, log(found, pair.users, limits=limits, seed=seed).run()


def data_side(disk: Disk, pair: Pair, limits: Limits | None, seed: int) -> tuple[Seconds, object]:
    # Some I/Os are writes, because an undeclared cap shows only with varying outstanding I/O.
    every_s = 0.0 if pair.limits[0] else 3.0
    found = reads(disk, LENGTH_S, pair.users, seed=seed, work_s=pair.work_s, every_s=every_s)
    return found, data(found, pair.users, limits=limits, seed=seed).run()


def held(pair: Pair, side: Callable[..., tuple[Seconds, object]]) -> None:
    """Check that both predictions from the base are within 10 % of the other side."""
    _, base = side(pair.base(), pair, pair.limits[0], 1)
    there, other = side(pair.other(), pair, pair.limits[1], 2)
    measured = float(there.operations[10:].mean())
    by_set = predict(base, pair.settings).scenarios[0]  # type: ignore[arg-type]  # a StoredRun
    by_other = predict_other(base, other).scenarios[0]  # type: ignore[arg-type]  # likewise
    assert by_set.then_per_s == pytest.approx(measured, rel=0.10), "by what is set"
    assert by_other.then_per_s == pytest.approx(measured, rel=0.10), "by the other side's figures"
    assert by_set.low_per_s <= measured <= by_set.high_per_s
    assert by_set.low_per_s <= by_set.then_per_s <= by_set.high_per_s


@pytest.mark.parametrize("name", LOGS)
def test_another_log(name: str) -> None:
    """Group commit is predicted on a log with another latency or limit."""
    held(LOGS[name], log_side)


@pytest.mark.parametrize(
    "name",
    # Four disks at once are simulated for twenty seconds.
    [pytest.param(name, marks=pytest.mark.slow) if name == "stripes" else name for name in DATA],
)
def test_another_data_disk(name: str) -> None:
    """Reads are predicted on another disk in place of a capped, a slow and an uneven one."""
    held(DATA[name], data_side)


@pytest.mark.parametrize(("users", "more"), [(4, 12), (16, 4)])
def test_other_users_on_the_same_log(users: int, more: int) -> None:
    """More users share a flush, so throughput follows their number without a limit."""
    base = log(commits(Distant(0.01, 0.0003), LENGTH_S, users=users), users).run()
    measured = commits(Distant(0.01, 0.0003), LENGTH_S, users=more, seed=2).operations[10:].mean()
    found = predict(base, [f"orders.users={more}"]).scenarios[0]
    assert found.then_per_s == pytest.approx(measured, rel=0.10)
