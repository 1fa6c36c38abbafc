"""Prices are the user's own: what a farm costs, what has no price, what throughput that buys."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from harness.analysis.disks import Capped, commits
from harness.what_if.farms import LENGTH_S, log, priced

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load_farm
from pinchpoint.plan.load import load_as
from pinchpoint.plan.prices import Prices
from pinchpoint.what_if import cost_of, predict
from pinchpoint.what_if.cost import Cost, cost_with, per_cost, prices_of
from pinchpoint.what_if.settings import Known, read_settings
from pinchpoint.what_if.text import prediction_text

PRICES = {
    "currency": "EUR",
    "disks": {"azure/p30": 120.0, "azure/p10": 20.0, "sql.data": 55.0},
    "machines": {"azure/ds12": 300.0, "sql1": 250.0},
}
FARM = {
    "sql": {
        "hosts": {
            "sql1": {
                "machine": "azure/ds12",
                "disks": {"log": {"profile": "azure/p30", "stripes": 2}, "data": {"limits": {"iops": 500}}},
            }
        }
    },
    "search": {"hosts": {"app3": {"disks": {}}}},
}


def test_every_disk_and_host_is_paid_once() -> None:
    """Two striped disks cost twice; a disk without a type has a price of its own; what has none is said."""
    cost = cost_of({"farm": {"tiers": FARM}}, Prices.from_json(PRICES))
    assert cost.per_month == 300 + 2 * 120 + 55
    assert cost.unpriced == ("app3",)
    assert not cost.whole
    assert per_cost(100, cost) is None


def test_a_host_of_several_tiers_is_paid_once() -> None:
    """One machine is one machine."""
    both: dict[str, dict[str, dict[str, dict[str, str]]]] = {
        "sql": {"hosts": {"sql1": {}}},
        "web": {"hosts": {"sql1": {}}},
    }
    cost = cost_of({"farm": {"tiers": both}}, Prices.from_json(PRICES))
    assert cost.per_month == 250
    assert per_cost(500, cost) == 2


def test_what_is_set_has_its_own_price() -> None:
    """Another type costs what that costs; figures that no price is of are said to have none."""
    build = log(commits(Capped(500), LENGTH_S, users=8), 8, limits={"iops": 500.0})
    disks = build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]
    disks["log"] = {"profile": "azure/p10", "resolved_limits": {"iops": 500.0, "bytes_per_s": 100e6}}
    run = priced(build, PRICES).run()
    found = predict(run, ["sql.log=azure/p30", "sql.log.stripes=3"])
    assert found.cost_now is not None
    assert found.cost_then is not None
    assert found.cost_now.per_month == 250 + 20 + 55
    assert found.cost_then.per_month == 250 + 3 * 120 + 55
    text = " ".join(prediction_text(found).split())
    assert "Now the farm costs 325.00 EUR a month; orders: " in text
    assert "for 100 EUR a month" in text
    other = predict(run, ["sql.log.iops=800", "sql.cpu=4"])
    assert other.cost_then is not None
    assert other.cost_then.unpriced == ("sql1 (4 cores)", "sql.log (iops 800)")
    assert "no price is given" in " ".join(prediction_text(other).split())


def test_what_is_set_costs_what_it_costs_where_nothing_was_declared() -> None:
    """An embedded farm declares neither hosts nor disks: a P30 and more cores are not had for nothing."""
    manifest = {"farm": {}, "hosts": {"sql1": {"tier": "sql", "roles": {"log": {}, "data": {}}}}}
    prices = Prices.from_json(PRICES)
    now = cost_of(manifest, prices)
    assert [one.name for one in now.items] == ["sql1", "sql.data"], "the log has no price of its own"
    assert now.per_month == 250 + 55
    known = Known(("sql.log", "sql.data"), ("sql",), (), {"orders": False})

    def then(*given: str) -> Cost:
        return cost_with(manifest, read_settings(given, known), prices)

    assert then("sql.log=azure/p30", "sql.log.stripes=2").per_month == 250 + 2 * 120 + 55
    assert then("sql.cpu=8").unpriced == ("sql1 (8 cores)",)
    assert then("sql.data=azure/p10").per_month == 250 + 20
    assert then("orders.users=64") == now
    assert manifest["farm"] == {}


@pytest.mark.parametrize(
    ("given", "per_month", "unpriced"),
    [
        (("sql.log=azure/p30", "sql.log.latency=2ms"), 250 + 120 + 55, ()),
        (("sql.log.stripes=2", "sql.log=azure/p30", "sql.log.latency=2ms"), 250 + 2 * 120 + 55, ()),
        (("sql.log.iops=800", "sql.log.latency=2ms"), 250 + 55, ("sql.log (iops 800, latency 2ms)",)),
    ],
)
def test_what_is_set_costs_the_same_in_any_order(
    given: tuple[str, ...], per_month: float, unpriced: tuple[str, ...]
) -> None:
    """A P30 whose latency is told is a P30; figures of no type have no price, and all are named."""
    manifest = {"farm": {}, "hosts": {"sql1": {"tier": "sql", "roles": {"log": {}, "data": {}}}}}
    known = Known(("sql.log", "sql.data"), ("sql",), (), {"orders": False})
    for order in permutations(given):
        cost = cost_with(manifest, read_settings(order, known), Prices.from_json(PRICES))
        assert (cost.per_month, cost.unpriced) == (per_month, unpriced), order


def test_without_prices_nothing_is_said_of_cost() -> None:
    """No invented price."""
    found = predict(log(commits(Capped(240), LENGTH_S, users=8), 8).run(), ["sql.log.iops=500"])
    assert found.cost_now is None
    assert "cost" not in prediction_text(found)


def test_prices_in_farm_yaml_are_kept_with_the_farm(tmp_path: Path) -> None:
    """They are part of the farm as used, so that a stored run knows them."""
    text = (
        "name: prod\nenvironment: test\nembedded: {tiers: [sql]}\n"
        "prices: {currency: EUR, disks: {azure/p30: 122.5}, machines: {azure/ds12: 300}}\n"
    )
    path = tmp_path / "farm.yaml"
    path.write_text(text)
    farm = load_farm(path)
    assert farm.prices is not None
    assert prices_of({"farm": farm.to_json()}) == farm.prices
    assert prices_of({"farm": {}}) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("currency: EUR\ndisks: {azure/p31: 5}\n", ('unknown disk "azure/p31"', "nearest: azure/p3")),
        ("currency: EUR\ndisks: {p30: 5}\n", ('unknown disk "p30"',)),
        ("currency: EUR\nmachines: {azure/ds99: 5}\n", ('unknown machine "azure/ds99"',)),
        ("disks: {azure/p30: 5}\n", ("currency: missing", "such as EUR")),
        ("currency: 5\n", ("currency: found the number 5",)),
        ("currency: EUR\ndisks: {azure/p30: cheap}\n", ('the text "cheap"',)),
        ("currency: EUR\ndisks: {azure/p30: -1}\n", ("the number -1", "or more")),
        ("currency: EUR\ndiscs: {}\n", ("discs: unknown field", "nearest: disks")),
    ],
)
def test_a_bad_price_is_a_sentence(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """File, line, field, what was found, what is allowed."""
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        load_as(Prices, path)
    assert str(refused.value).startswith(f"{path}:")
    for word in words:
        assert word in str(refused.value)
