"""Comparison of two probes: figures are called from repetitions, and never without them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from harness.probe.build import Disk, cells_of, probe_of

from pinchpoint.base.errors import InputError
from pinchpoint.cli.compare import compare as command
from pinchpoint.probe.compare import SCHEMA, are_probes, compare, compared
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe, Trial, save
from pinchpoint.probe.verdict import probe_content
from pinchpoint.report.probe import changes, comparison_text
from pinchpoint_scenarios.storage_probe import Cell


def test_twice_the_cap_is_better_where_it_matters() -> None:
    """500 against 1,000 IOPS is twice as good for random I/O at 32; byte-limited I/O is the same."""
    found = compare(probe_of(Disk(0.0005, 500, 60e6)), probe_of(Disk(0.0005, 1000, 60e6)))
    by_cell = {one.cell: one for one in found.changes}
    random_write = by_cell["RND4K write, 32 outstanding"]
    assert random_write.call == "better"
    assert random_write.ratio == pytest.approx(2)
    assert random_write.latency_ratio == pytest.approx(0.5)
    assert by_cell["SEQ1M write, 8 outstanding"].call == "equivalent"
    assert not found.moved
    back = compare(probe_of(Disk(0.0005, 1000, 60e6)), probe_of(Disk(0.0005, 500, 60e6)))
    assert {one.call for one in back.changes} == {"worse", "equivalent"}


def test_another_thing_limits() -> None:
    """Between a capped and an uncapped disk, the limit of random reads moved."""
    found = compare(probe_of(Disk(0.001, 500, 60e6)), probe_of(Disk(0.001)))
    assert found.moved["RND4K read"] == ("disk_cap", "disk_concurrency")
    assert "kind of limit differs" in str(found.answer)
    text = " ".join(comparison_text(found).split())
    one, two = found.labels
    assert (
        f"RND4K read: at a limit of the disk: a higher queue depth brings no more throughput ({one}); "
        f"limited by the queue depth: more outstanding I/Os would bring more throughput ({two})" in text
    )


class Noisy:
    """A disk whose repetitions differ at random by 10 %."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def __call__(self, cell: Cell, trial: int) -> float:
        return (cell.outstanding or 1) * 1000 * self.chance.lognormvariate(0, 0.1)


def test_the_same_disk_twice_is_hardly_ever_called() -> None:
    """In forty A/A pairs of a noisy disk with twelve cells, calls are rare after Holm's correction."""
    wrong = 0
    for pair in range(40):
        sides = [probe_of(Noisy(random.Random(f"{pair} {side}")), course=False) for side in range(2)]
        wrong += any(one.call in ("better", "worse") for one in compare(*sides).changes)
    assert wrong <= 4


def test_few_repetitions_are_not_called() -> None:
    found = compare(probe_of(Disk(0.0005, 500), repeat=3), probe_of(Disk(0.0005, 1000), repeat=3))
    assert {(one.call, one.ci95) for one in found.changes} == {("inconclusive", None)}
    assert any("--repeat 5" in warning for warning in found.warnings)


@pytest.mark.parametrize("failed", [0, 1])
def test_a_cell_that_failed_on_one_side_keeps_its_unit(failed: int) -> None:
    """A cell that failed on one side keeps its unit: 500 IOPS, not 500 B/s."""
    sides = probe_of(Disk(0.0005, 500)), probe_of(Disk(0.0005, 500))
    cell = next(iter(sides[0].cells))
    sides[failed].cells[cell] = [Trial(1, "2026-01-01T00:00:00.000Z", failed="no space left")]
    found = compare(*sides)
    [change] = [one for one in found.changes if one.cell == cell.name]
    figures = [change.base, change.other]
    assert figures[failed] is None
    assert figures[1 - failed] is not None
    assert (change.metric, change.ratio, change.call) == ("iops", None, "inconclusive")
    [row] = [row for row in changes(found).rows if row["cell"] == cell.name]
    assert str(row[("other", "base")[failed]]).endswith(" IOPS")


def test_what_else_differs_weakens_the_claim() -> None:
    base, other = probe_of(Disk(0.0005, 500)), probe_of(Disk(0.0005, 1000))
    other.versions = {"fio": "fio-3.36"}
    other.where = replace(other.where, host="host2")
    found = compare(base, other)
    assert "machine: host1 and host2" in found.confounders
    assert "fio: not reported and fio-3.36" in found.confounders
    assert "may not come from them" in str(found.answer)


def saved_probe(folder: Path, probe: Probe) -> Path:
    folder.mkdir()
    save(folder, probe_content(probe, judge(probe)))
    return folder


def test_probes_compare_with_probes_of_one_suite(tmp_path: Path) -> None:
    one = saved_probe(tmp_path / "one", probe_of(Disk(0.001, 500)))
    two = saved_probe(tmp_path / "two", probe_of(Disk(0.001, 500), cells_of("database"), "database"))
    assert are_probes([one, two])
    assert not are_probes([tmp_path])
    with pytest.raises(InputError, match="probes compare with probes"):
        are_probes([one, tmp_path])
    with pytest.raises(InputError, match="of the same suite"):
        compared([one], [two])
    with pytest.raises(InputError, match="one on each side"):
        compared([one, one], [two])
    assert str(compared([one], [one]).answer)


def test_the_command_compares_probes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command compares probes from files alone; worse gives exit status 1 only with the option."""
    fast = saved_probe(tmp_path / "fast", probe_of(Disk(0.0005, 1000, 60e6)))
    slow = saved_probe(tmp_path / "slow", probe_of(Disk(0.0005, 500, 60e6)))
    given = [str(fast), "--with", str(slow)]
    assert command.main(given, standalone_mode=False) == 0
    said = capsys.readouterr().out.splitlines()
    assert json.loads((Path(said[-1]) / "comparison.json").read_text())["schema"] == SCHEMA
    assert command.main([*given, "--fail-on", "worse"], standalone_mode=False) == 1
    assert command.main([str(slow), "--with", str(fast), "--fail-on", "worse"], standalone_mode=False) == 0
    with pytest.raises(InputError, match="--factor"):
        command.main([*given, "--factor", "disks"], standalone_mode=False)
