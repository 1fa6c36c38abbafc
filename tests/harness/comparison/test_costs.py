"""What both sides cost by their user's prices, and what throughput that buys."""

from __future__ import annotations

from typing import Any

import pytest
from harness.comparison.example import TIMES, alike
from harness.comparison.test_judged import CRAWL, repeated

from pinchpoint.comparison import Comparison, Sides, compare
from pinchpoint.comparison.costs import costs_of
from pinchpoint.cost import Cost, cost_of
from pinchpoint.plan.prices import Prices
from pinchpoint.report.compared.report import gather
from pinchpoint.report.compared.terminal import comparison_text
from pinchpoint.report.compared.worth import NO_PRICES
from pinchpoint.what_if.cost import cost_with
from pinchpoint.what_if.settings import Setting

PRICES: dict[str, Any] = {
    "currency": "EUR",
    "disks": {"sql.log": 10.0, "sql.data": 20.0},
    "machines": {"sql1": 70.0, "app3": 60.0, "web1": 40.0},
}
DEARER = {**PRICES, "disks": {"sql.log": 120.0, "sql.data": 80.0}}
WORTH = "cost.crawl.worth_per_s"


def priced(sides: Sides, base: dict[str, Any] | None, other: dict[str, Any] | None) -> Sides:
    """The same sides; each farm.yaml has these prices."""
    for side, prices in zip(sides, (base, other), strict=True):
        for manifest in side.manifests:
            manifest["farm"].pop("prices", None)
            if prices:
                manifest["farm"]["prices"] = prices
    return sides


def row(done: Comparison, name: str = WORTH) -> dict[str, Any]:
    [found] = [one for one in done.to_json()["changes"] if one["name"] == name]
    return dict(found)


def words(done: Comparison) -> str:
    return " ".join(comparison_text(done.to_json()).split())


def test_a_farm_that_is_dearer_may_be_worth_it() -> None:
    """200 and 370 a month for 3.4/s and 15.2/s: 1.7/s and 4.11/s for a hundred, 2.42 times as much."""
    done = compare(priced(alike(), PRICES, DEARER), ["disks"])
    content = done.to_json()
    assert [content["cost"][side]["per_month"] for side in ("base", "other")] == [200.0, 370.0]
    assert content["cost"]["ratio"] == pytest.approx(1.85)
    worth = row(done)
    assert (worth["base"], worth["other"]) == (pytest.approx(1.7), pytest.approx(15.2 / 3.7))
    assert worth["ratio"] == pytest.approx(15.2 / 3.4 / 1.85)
    assert worth["per"] == "100 EUR a month"
    said = words(done)
    assert f"dev: 200.00 EUR a month; prod: 370.00 EUR a month (1.85 {TIMES})." in said
    assert f"crawl for 100 EUR a month: 1.7/s → 4.11/s, 2.42 {TIMES}" in said


def test_its_ratio_has_the_interval_of_the_throughput() -> None:
    """Ten times the price for three times the work: as sure as the work is, and worse."""
    ten = {
        "currency": "EUR",
        **{kind: {k: 10 * v for k, v in PRICES[kind].items()} for kind in ("disks", "machines")},
    }
    done = compare(priced(repeated(3.0), PRICES, ten), ["disks"], metrics=[WORTH, CRAWL])
    worth, crawl = row(done), row(done, CRAWL)
    assert worth["ci95"] == pytest.approx([end / 10 for end in crawl["ci95"]])
    assert (worth["call"], crawl["call"]) == ("worse", "better")


def test_a_side_without_prices_says_so() -> None:
    """Not 0, and no ratio; what the other side does for its cost is told all the same."""
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
    assert "dev: not declared; prod: 200.00 EUR a month." in words(done)


def test_without_any_prices_nothing_is_invented() -> None:
    """One sentence with the remedy, no figure."""
    done = compare(priced(alike(), None, None), ["disks"])
    assert not [one for one in done.changes if one.about == "cost"]
    assert " ".join(NO_PRICES.split()) in words(done)
    assert gather(done.to_json()).tables["cost"].rows == []


def test_what_has_no_price_is_named_and_then_nothing_is_divided() -> None:
    """A host that nobody priced: the sum is without it, and no throughput for it."""
    lacking = {**PRICES, "machines": {"sql1": 70.0}}
    done = compare(priced(alike(), lacking, PRICES), ["disks"])
    cost = done.to_json()["cost"]
    assert cost["base"]["per_month"] == 100.0
    assert cost["base"]["unpriced"] == ["app3", "web1"]
    assert cost["why"] == "of dev no price is given for app3 and web1"
    assert row(done)["base"] is None
    assert "100.00 EUR a month, without app3 and web1: no price" in words(done)


def test_two_currencies_have_no_ratio() -> None:
    """Nobody knows the rate."""
    done = compare(priced(alike(), PRICES, {**PRICES, "currency": "USD"}), ["disks"])
    assert "prices are in EUR and USD" in str(row(done)["why"])
    assert row(done)["ratio"] is None


def test_given_prices_go_before_those_of_the_farms() -> None:
    """With --prices, both sides by the same list."""
    done = compare(priced(alike(), PRICES, None), ["disks"], prices=Prices.from_json(DEARER))
    cost = done.to_json()["cost"]
    assert [cost[side]["per_month"] for side in ("base", "other")] == [370.0, 370.0]


def test_a_schedule_that_was_kept_has_no_ratio() -> None:
    """Both did the 3/s they were offered: twice the price is not half the worth; unless one fell behind."""
    kept, behind = (priced(alike(), PRICES, PRICES) for _ in range(2))
    for sides, rate in ((kept, 3.0), (behind, 15.0)):
        for manifest in (*sides.base.manifests, *sides.other.manifests):
            manifest["plan"]["scenarios"]["crawl"]["load"] = {"model": "open", "rate_per_s": rate}
    worth = row(compare(kept))
    assert (worth["base"], worth["ratio"]) == (pytest.approx(1.7), None)
    assert worth["why"] == "both sides did what crawl was offered: what they could do for it is not seen"
    assert f"Where there is no ratio: {worth['why']}." in gather(compare(kept).to_json()).tables["cost"].note
    assert row(compare(behind))["ratio"] == pytest.approx(15.2 / 3.4)


def test_runs_of_farms_that_cost_differently_are_no_side() -> None:
    """A side is one farm."""
    sides = priced(repeated(3.0), PRICES, PRICES)
    sides.other.manifests[0]["farm"]["prices"] = DEARER
    found = costs_of(sides)
    assert found.other.cost is None
    assert found.why == "the farms of prod's runs do not cost the same"


def test_a_host_that_only_a_collector_knows_is_paid_too() -> None:
    """An embedded farm declares no hosts; they are there all the same."""
    manifest = {"farm": {"tiers": {}}, "hosts": {"sql1": {"tier": "sql"}, "elsewhere": {}}}
    found = cost_of(manifest, Prices.from_json(PRICES))
    assert [one.name for one in found.items] == ["sql1"]
    assert found.per_month == 70.0


def test_another_disk_or_machine_has_not_the_price_of_the_one_that_was_there() -> None:
    """A price of this very disk holds for no other that is set in its place, nor for more stripes of it."""
    manifest = {
        "farm": {"tiers": {"sql": {"hosts": {"sql1": {"machine": "azure/ds12", "disks": {"log": {}}}}}}}
    }

    def costs(name: str, what: Any, value: float | str) -> Cost:
        target = name.removesuffix(".machine").removesuffix(".stripes")
        given = Setting(name, target, what, value, str(value))
        return cost_with(manifest, [given], Prices.from_json(PRICES))

    assert cost_of(manifest, Prices.from_json(PRICES)).per_month == 80.0
    assert costs("sql.log", "profile", "azure/p30").unpriced == ("sql.log (azure/p30)",)
    assert costs("sql.log.stripes", "stripes", 2.0).unpriced == ("sql.log",)
    assert costs("sql.machine", "machine", "azure/ds13").unpriced == ("sql1 (azure/ds13)",)
