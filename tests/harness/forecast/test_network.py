"""The queueing network compared with exact results: mean value analysis, bounds, open loads."""

from __future__ import annotations

import pytest

from pinchpoint.analysis.model.network import OPEN_USERS, Model, Queue, Users, fitted, solve
from pinchpoint.data.curve import Curve


def exact_per_s(demands: list[float], users: int, think_s: float) -> float:
    """Return the throughput by exact mean value analysis of one class (Reiser and Lavenberg, 1980)."""
    waiting = [0.0] * len(demands)
    per_s = 0.0
    for number in range(1, users + 1):
        stays = [demand * (1 + queue) for demand, queue in zip(demands, waiting, strict=True)]
        per_s = number / (think_s + sum(stays))
        waiting = [per_s * stay for stay in stays]
    return per_s


@pytest.mark.parametrize("users", [1, 3, 8, 30])
@pytest.mark.parametrize("think_s", [0.0, 0.05, 0.5])
def test_closed_queues_as_exact_mean_value_analysis_has_them(users: int, think_s: float) -> None:
    """Two CPUs in series agree within the known error of Schweitzer's approximation."""
    demands = {"web": 0.010, "sql": 0.004}
    stations = tuple(Queue(name, {"crawl": each}, {"crawl": each}) for name, each in demands.items())
    found = solve(Model((Users("crawl", users, think_s),), stations)).per_s["crawl"]
    assert found == pytest.approx(exact_per_s(list(demands.values()), users, think_s), rel=0.07)


def test_a_regulator_ends_throughput_and_is_named() -> None:
    """A regulator of 500 IOPS limits sixteen users to 500 operations/s and is named."""
    disk = Queue("disk", {"orders": 1 / 500}, {"orders": 1 / 500}, {"orders": 0.0002}, regulated=True)
    found = solve(Model((Users("orders", 16, 0.0, 0.001),), (disk,)))
    assert found.per_s["orders"] == pytest.approx(500, rel=0.02)
    assert found.use["disk"] == pytest.approx(1, rel=0.02)


def test_a_regulator_that_has_room_is_not_felt() -> None:
    """A regulator far from its limit adds no time: two users with reads of 5 ms do 400/s."""
    disk = Queue("disk", {"orders": 1 / 50_000}, {"orders": 1 / 50_000}, {"orders": 0.005}, regulated=True)
    found = solve(Model((Users("orders", 2, 0.0),), (disk,)))
    assert found.per_s["orders"] == pytest.approx(400, rel=0.01)
    assert not found.at_bound


def test_more_cores_serve_more_at_once() -> None:
    """Eight users of CPU do 1,000/s on one core of 1 ms and 4,000/s on four."""
    for cores, expected in ((1, 1000), (4, 4000), (0.25, 250)):
        queue = Queue("cpu", {"crawl": 0.001}, {"crawl": 0.001}, servers=cores)
        found = solve(Model((Users("crawl", 40, 0.0),), (queue,))).per_s["crawl"]
        assert found == pytest.approx(expected, rel=0.05), cores


def test_an_open_load_keeps_its_rate_until_it_cannot() -> None:
    """An open load of 200/s on one core is served, and one of 2,000/s is limited by the core."""
    for rate, expected in ((200, 200), (2000, 1000)):
        queue = Queue("cpu", {"orders": 0.001}, {"orders": 0.001})
        users = Users("orders", OPEN_USERS, OPEN_USERS / rate)
        assert solve(Model((users,), (queue,))).per_s["orders"] == pytest.approx(expected, rel=0.01)


def test_two_loads_share_what_both_need() -> None:
    """Two equal loads share a resource in halves."""
    queue = Queue("cpu", {"a": 0.002, "b": 0.002}, {"a": 0.002, "b": 0.002})
    found = solve(Model((Users("a", 10, 0.0), Users("b", 10, 0.0)), (queue,))).per_s
    assert found["a"] == pytest.approx(found["b"], rel=1e-3)
    assert sum(found.values()) == pytest.approx(500, rel=0.03)


def test_what_others_use_is_not_to_be_had() -> None:
    """CPU that other processes use is not available to the load."""
    queue = Queue("cpu", {"crawl": 0.001}, {"crawl": 0.001}, base_ratio=0.5)
    found = solve(Model((Users("crawl", 30, 0.0),), (queue,)))
    assert found.per_s["crawl"] == pytest.approx(500, rel=0.04)
    assert found.use["cpu"] == pytest.approx(1, rel=0.04)


def test_a_bound_that_nobody_waits_for_ends_throughput_all_the_same() -> None:
    """A machine's limit of 300 operations per second ends the throughput without queueing."""
    bound = Queue("machine", {"crawl": 1 / 300}, regulated=True)
    found = solve(Model((Users("crawl", 8, 0.0, 0.01),), (bound,)))
    assert found.per_s["crawl"] == pytest.approx(300, rel=1e-6)
    assert found.at_bound == {"machine"}


def test_the_rest_makes_the_model_as_fast_as_the_run_was() -> None:
    """The unexplained time makes the model as fast as the run, and is never negative."""
    queue = Queue("cpu", {"crawl": 0.001}, {"crawl": 0.001})
    model = fitted(Model((Users("crawl", 8, 0.0),), (queue,)), {"crawl": 150.0}, {"crawl": 8 / 150})
    assert solve(model).per_s["crawl"] == pytest.approx(150, rel=2e-3)
    assert model.loads[0].rest_s > 0.04
    slower = fitted(Model((Users("crawl", 8, 0.0),), (queue,)), {"crawl": 5000.0}, {"crawl": 8 / 5000})
    assert slower.loads[0].rest_s == 0


def test_what_an_i_o_takes_follows_from_how_many_are_outstanding() -> None:
    """Eight users who only read keep eight I/Os outstanding, and the curve gives their latency."""
    curve = Curve(((1.0, 0.002), (4.0, 0.003), (16.0, 0.008)))
    each = {"orders": 1.0}
    disk = Queue("disk", {}, curve=curve, io=each, waits=each, regulated=True)
    found = solve(Model((Users("orders", 8, 0.0),), (disk,)))
    assert found.per_s["orders"] == pytest.approx(8 / curve.latency_s(8), rel=0.01)
    alone = solve(Model((Users("orders", 1, 0.02),), (disk,)))
    assert alone.per_s["orders"] == pytest.approx(1 / 0.022, rel=0.01)


def test_a_curve_and_a_cap() -> None:
    """3 ms and a cap of 900/s: four users stay below the cap and eight reach it."""
    curve = Curve(((1.0, 0.003),), ends=False)
    each, share = {"orders": 1.0}, {"orders": 1 / 900}
    disk = Queue("disk", share, share, curve=curve, io=each, waits=each, regulated=True)
    few, many = (solve(Model((Users("orders", users, 0.0),), (disk,))).per_s["orders"] for users in (1, 8))
    assert few == pytest.approx(1 / 0.003, rel=0.05)
    assert many == pytest.approx(900, rel=0.02)
