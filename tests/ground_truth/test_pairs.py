"""Tests of the pairs of farms: reading, selection, printing and writing."""

from __future__ import annotations

from pathlib import Path

import pytest
from ground_truth import pairs, rows
from ground_truth.pairs import PAIRS, Pair, PairRow, names, read_pair, shared_out

from pinchpoint.analysis.model.prediction import Binding, Throughput
from pinchpoint.analysis.model.settings import Known, read_settings
from pinchpoint.base.errors import InputError
from pinchpoint.forecast import Prediction
from pinchpoint.plan import load


@pytest.mark.parametrize("name", names())
def test_every_pair_can_be_run_and_asked(name: str) -> None:
    """Both farms fit the plan, differ only in disks and cores, and have the target of each setting."""
    pair = read_pair(PAIRS / name)
    base, other = (load(pair.folder / f"{side}.yaml", pair.folder / "plan.yaml")[0] for side in pairs.SIDES)
    assert base.embedded is not None
    assert other.embedded is not None
    assert base.embedded != other.embedded
    assert base.embedded.tiers == other.embedded.tiers
    disks = tuple({*base.embedded.disks, *other.embedded.disks})
    tiers = tuple(base.embedded.cpus)
    open_loads = {name: one.load.model != "closed" for name, one in pair.plan.scenarios.items()}
    assert read_settings(pair.file.set, Known(disks, tiers, (), open_loads))
    assert {"root"} < set(pair.file.needs)
    measure = pair.plan.phases.measure.at_most_s + pair.plan.phases.warm_up.at_most_s
    assert measure <= 60


def test_there_are_ten_pairs_of_every_kind() -> None:
    """There are at least ten pairs, with every kind: higher limits, lower latencies, stripes, more CPU."""
    kinds = [name.split("-", 4)[:4] for name in names()]
    assert len(kinds) >= 10
    for part in ("cap", "floor", "stripes", "cpu"):
        assert any(part in words for words in kinds), part


def test_patterns_are_shared_out_between_pairs_and_cases() -> None:
    """Without a pattern all pairs are selected; a pattern of cases selects no pair."""
    assert shared_out([], names()) == (names(), [])
    chosen, rest = shared_out(["what-if-log-*", "log-cap-240", "nonsense"], names())
    assert chosen == [name for name in names() if name.startswith("what-if-log-")]
    assert rest == ["log-cap-240", "nonsense"]
    assert shared_out(["@ci"], names()) == ([], ["@ci"])


def _pair(tmp_path: Path) -> Pair:
    return read_pair(PAIRS / names()[0])


def _row(pair: Pair, measured: float | None, predicted: float | None, failure: str = "") -> PairRow:
    nothing = Binding("nothing", None, "nothing", None, None)
    one = predicted and Throughput(
        "orders", 100, predicted, predicted * 0.9, predicted * 1.1, 1, 0.1, 0.1, None
    )
    found = Prediction("run", (), (one,), nothing, nothing, (), ()) if one else None
    return PairRow(pair, 1, 90.0, measured, found, predicted, failure)


def test_a_pair_is_right_within_a_tenth(tmp_path: Path) -> None:
    """A prediction with an error of 9 % is right; with 11 %, or without a result, it is not."""
    pair = _pair(tmp_path)
    near, far = _row(pair, 200.0, 218.0), _row(pair, 200.0, 222.5)
    nothing = _row(pair, None, None, "error: it burnt")
    assert [row.right for row in (near, far, nothing)] == [True, False, False]
    text = pairs.table([near, far, nothing])
    assert "+9.0%" in text
    assert "error: it burnt" in text
    assert pairs.enough([near] * 8 + [far] * 2)
    assert not pairs.enough([near] * 7 + [far] * 3)
    assert pairs.enough([])


def test_rows_stand_beside_those_of_cases(tmp_path: Path) -> None:
    """An entry of a pair in ground-truth.json has the keys of a case's entry, and further ones."""
    path = tmp_path / "ground-truth.json"
    row = _row(_pair(tmp_path), 200.0, 218.0)
    rows.write([row], path)
    content = row.to_json()
    assert {"case", "expected", "found", "confidence", "right", "seconds"} <= set(content)
    assert content["error_ratio"] == pytest.approx(0.09)
    assert path.read_text().startswith("[")


def test_a_bad_pair_is_bad_input(tmp_path: Path) -> None:
    """A bad pair file is an input error that names the file and the field."""
    folder = tmp_path / "pair"
    folder.mkdir()
    for name in ("base", "other"):
        (folder / f"{name}.yaml").write_text(f"name: {name}\nenvironment: test\nembedded: {{tiers: [sql]}}\n")
    (folder / "plan.yaml").write_text(
        "name: p\nscenarios: {orders: {use: sql-mix, load: {model: closed, users: 1}}}\n"
        "phases: {measure: 10s}\n"
    )
    (folder / "pair.yaml").write_text("set: []\n")
    with pytest.raises(InputError) as refused:
        read_pair(folder)
    assert "pair.yaml: set:" in str(refused.value)
    assert "pair.yaml: why:" in str(refused.value)
