"""The cost of both sides by the user's prices, and the throughput per cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.comparison.example import TIMES, alike
from harness.comparison.test_judged_figures import CRAWL, repeated

from pinchpoint.base.errors import InputError
from pinchpoint.comparison import Comparison, Sides, compare
from pinchpoint.comparison.costs import cost_of, costs_of, per_cost, prices_of
from pinchpoint.plan import load_farm
from pinchpoint.plan.files import load_as
from pinchpoint.plan.prices import Prices
from pinchpoint.report.comparison import gather
from pinchpoint.report.comparison_tables import NO_PRICES

PRICES: dict[str, Any] = {
    "currency": "EUR",
    "disks": {"sql.log": 10.0, "sql.data": 20.0},
    "machines": {"sql1": 70.0, "app3": 60.0, "web1": 40.0},
}
DEARER = {**PRICES, "disks": {"sql.log": 120.0, "sql.data": 80.0}}
WORTH = "cost.crawl.worth_per_s"


def priced(sides: Sides, base: dict[str, Any] | None, other: dict[str, Any] | None) -> Sides:
    """Return the sides with these prices in their farm.yaml."""
    for side, prices in zip(sides, (base, other), strict=True):
        for manifest in side.manifests:
            manifest["farm"].pop("prices", None)
            if prices:
                manifest["farm"]["prices"] = prices
    return sides


def row(done: Comparison, name: str = WORTH) -> dict[str, Any]:
    [found] = [one for one in done.to_json()["changes"] if one["name"] == name]
    return dict(found)


def test_a_farm_that_is_dearer_may_be_worth_it() -> None:
    """200 and 370 EUR a month for 3.4/s and 15.2/s give 1.7/s and 4.11/s per 100 EUR."""
    done = compare(priced(alike(), PRICES, DEARER), ["disks"])
    content = done.to_json()
    assert [content["cost"][side]["per_month"] for side in ("base", "other")] == [200.0, 370.0]
    assert content["cost"]["ratio"] == pytest.approx(1.85)
    worth = row(done)
    assert (worth["base"], worth["other"]) == (pytest.approx(1.7), pytest.approx(15.2 / 3.7))
    assert worth["ratio"] == pytest.approx(15.2 / 3.4 / 1.85)
    assert worth["per"] == "100 EUR a month"
    cells = gather(content).tables["cost"].cells()
    assert cells[0][:3] == ["dev", "200.00 EUR", "1.7/s"]
    assert cells[1][:3] == ["prod", "370.00 EUR", "4.11/s"]
    assert cells[2][:3] == ["ratio", f"1.85 {TIMES}", f"2.42 {TIMES}"]


def test_its_ratio_has_the_interval_of_the_throughput() -> None:
    """Throughput per cost has the interval of the throughput: three times at ten times the price is worse."""
    ten = {
        "currency": "EUR",
        **{kind: {k: 10 * v for k, v in PRICES[kind].items()} for kind in ("disks", "machines")},
    }
    done = compare(priced(repeated(3.0), PRICES, ten), ["disks"], metrics=[WORTH, CRAWL])
    worth, crawl = row(done), row(done, CRAWL)
    assert worth["ci95"] == pytest.approx([end / 10 for end in crawl["ci95"]])
    assert (worth["call"], crawl["call"]) == ("worse", "better")


def test_a_side_without_prices_says_so() -> None:
    """A side without prices has no cost and no ratio, while the other side's figures are shown."""
    done = compare(priced(alike(), None, PRICES), ["disks"])
    cost = done.to_json()["cost"]
    assert (cost["base"], cost["ratio"]) == (None, None)
    assert cost["why"] == "no prices are declared for dev"
    worth = row(done)
    assert (worth["base"], worth["other"], worth["ratio"]) == (None, pytest.approx(7.6), None)
    cells = gather(done.to_json()).tables["cost"].cells()
    assert cells[0][:3] == ["dev", "not declared", "not known"]
    assert cells[1][:3] == ["prod", "200.00 EUR", "7.6/s"]
    assert cells[2][:3] == ["ratio", "no ratio", "no ratio"]


def test_without_any_prices_nothing_is_invented() -> None:
    """Without prices there is one sentence with the remedy, and no figure."""
    done = compare(priced(alike(), None, None), ["disks"])
    assert not [one for one in done.changes if one.about == "cost"]
    table = gather(done.to_json()).tables["cost"]
    assert (table.rows, table.empty) == ([], NO_PRICES)


def test_what_has_no_price_is_named_and_then_nothing_is_divided() -> None:
    """Unpriced hosts are named, and no throughput per cost is computed."""
    lacking = {**PRICES, "machines": {"sql1": 70.0}}
    done = compare(priced(alike(), lacking, PRICES), ["disks"])
    cost = done.to_json()["cost"]
    assert cost["base"]["per_month"] == 100.0
    assert cost["base"]["unpriced"] == ["app3", "web1"]
    assert cost["why"] == "of dev no price is given for app3 and web1"
    assert row(done)["base"] is None
    assert "app3: no price, web1: no price" in str(gather(done.to_json()).tables["cost"].cells()[0])


def test_two_currencies_have_no_ratio() -> None:
    """Prices in two currencies have no ratio."""
    done = compare(priced(alike(), PRICES, {**PRICES, "currency": "USD"}), ["disks"])
    assert "prices are in EUR and USD" in str(row(done)["why"])
    assert row(done)["ratio"] is None


def test_given_prices_go_before_those_of_the_farms() -> None:
    """--prices replaces the farms' own prices on both sides."""
    done = compare(priced(alike(), PRICES, None), ["disks"], prices=Prices.from_json(DEARER))
    cost = done.to_json()["cost"]
    assert [cost[side]["per_month"] for side in ("base", "other")] == [370.0, 370.0]


def test_a_schedule_that_was_kept_has_no_ratio() -> None:
    """An offered load that both sides served has no ratio of throughput per cost."""
    kept, behind = (priced(alike(), PRICES, PRICES) for _ in range(2))
    for sides, rate in ((kept, 3.0), (behind, 15.0)):
        for manifest in (*sides.base.manifests, *sides.other.manifests):
            manifest["plan"]["scenarios"]["crawl"]["load"] = {"model": "open", "rate_per_s": rate}
    worth = row(compare(kept))
    assert (worth["base"], worth["ratio"]) == (pytest.approx(1.7), None)
    assert worth["why"] == (
        "both sides served the whole offered load of crawl, so their maximum is not known"
    )
    assert f"Where there is no ratio: {worth['why']}." in gather(compare(kept).to_json()).tables["cost"].note
    assert row(compare(behind))["ratio"] == pytest.approx(15.2 / 3.4)


def test_runs_of_farms_that_cost_differently_are_no_side() -> None:
    """Runs of farms with different costs give the side no cost."""
    sides = priced(repeated(3.0), PRICES, PRICES)
    sides.other.manifests[0]["farm"]["prices"] = DEARER
    found = costs_of(sides)
    assert found.other.cost is None
    assert found.why == "the farms of prod's runs do not cost the same"


def test_a_host_that_only_a_collector_knows_is_paid_too() -> None:
    """A host that only a collector reports is priced, too, as on an embedded farm."""
    manifest = {"farm": {"tiers": {}}, "hosts": {"sql1": {"tier": "sql"}, "elsewhere": {}}}
    found = cost_of(manifest, Prices.from_json(PRICES))
    assert [one.name for one in found.items] == ["sql1"]
    assert found.per_month == 70.0


LIST = {
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
    """Each disk and host is priced once: stripes multiply, and unpriced ones are listed."""
    cost = cost_of({"farm": {"tiers": FARM}}, Prices.from_json(LIST))
    assert cost.per_month == 300 + 2 * 120 + 55
    assert cost.unpriced == ("app3",)
    assert not cost.whole
    assert per_cost(100, cost) is None


def test_a_host_of_several_tiers_is_paid_once() -> None:
    """A host of several tiers is priced once."""
    both: dict[str, dict[str, dict[str, dict[str, str]]]] = {
        "sql": {"hosts": {"sql1": {}}},
        "web": {"hosts": {"sql1": {}}},
    }
    cost = cost_of({"farm": {"tiers": both}}, Prices.from_json(LIST))
    assert cost.per_month == 250
    assert per_cost(500, cost) == 2


def test_prices_in_farm_yaml_are_kept_with_the_farm(tmp_path: Path) -> None:
    """Prices in farm.yaml are stored with the run's farm."""
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
    """A bad price gives a sentence with file, line, field, value, and what is allowed."""
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        load_as(Prices, path)
    assert str(refused.value).startswith(f"{path}:")
    for word in words:
        assert word in str(refused.value)
