"""Tests of the probes of disks with known limits: reading, selection, and detection of each miss."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from ground_truth import run
from ground_truth.probed import (
    PROBES,
    ExpectedProbes,
    ProbeCase,
    ProbeRow,
    judged,
    line,
    names,
    read_probe_case,
)
from harness.probe.build import Disk, declared, probe_of

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load_farm
from pinchpoint_scenarios.storage_probe import SUITES, Cell


@pytest.mark.parametrize("name", names())
def test_every_case_can_be_measured(name: str) -> None:
    """Each case's farms can be read, have the disk, and its measurements are those of its suite."""
    case = read_probe_case(PROBES / name)
    suite = SUITES[case.expected.suite]
    cells = [cell for job in suite.jobs(1.0) for cell in job.cells]
    known, workloads = {cell.name for cell in cells}, {cell.workload for cell in cells}
    for farm, side in zip(case.farms, case.expected.sides.values(), strict=True):
        found = load_farm(farm).embedded
        assert found is not None
        assert case.expected.disk in found.disks
        assert {*side.times, *side.figures} <= known
        assert set(side.holds_to) <= workloads
        assert set(side.kinds) <= known | workloads
    assert case.expected.needs == ("root", "disks")


def test_every_published_test_is_there_and_at_other_sizes() -> None:
    """The published tests B to E are present (A is among the cases), each with a copy on other disks."""
    cases = [read_probe_case(PROBES / name) for name in names()]
    assert {case.expected.example for case in cases} == {
        *("storage-qos", "stripes", "premium-disk", "three-storages"),
        None,
    }
    for letter in "bcde":
        of_letter = [case for case in cases if case.name.startswith(f"probe-{letter}-")]
        assert sorted(case.expected.example is None for case in of_letter) == [False, True]
    chosen, paired, disks = run._chosen(["seed-*", "probe-d-*"])
    assert [case.name for case in chosen] == ["seed-crawl-dev", "seed-crawl-prod"]
    assert ([case.name for case in disks], paired) == (["probe-d-other-sizes", "probe-d-premium-disk"], [])
    assert len(run._chosen([])[2]) == len(cases)


MATRIX = [Cell("8K random write", 8192, 0.0, 1.0, depth) for depth in (1, 4, 16, 64, 256)]
TRUE = {
    "kinds": {"8K random write": "disk_cap", "8K random write, 64 outstanding": "disk_cap"},
    "holds_to": {"8K random write": [4, 4]},
}


def case_of(**sides: object) -> ProbeCase:
    expected = ExpectedProbes.model_validate({"suite": "iometer", "why": "by formula", "sides": sides})
    return ProbeCase("probe-x", tuple(Path(f"{side}.yaml") for side in sides), expected)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, None),
        ({"kinds": {"8K random write": "disk_device"}}, "8K random write is disk_cap, not disk_device"),
        ({"kinds": {"no such": "disk_cap"}}, "no such is None"),
        ({"holds_to": {"8K random write": [8, 32]}}, "below the line up to 4 outstanding"),
        ({"times": {"8K random write, 64 outstanding": [2.2, 3]}}, "is 2 times the first side"),
        ({"figures": {"8K random write, 64 outstanding": [90, 500]}}, "is 600 per second"),
        ({"figures": {"no such": [90, 500]}}, "is 0 per second"),
        ({"host_cache": True}, "a cache on the host is not suspected"),
        ({"host_cache": None}, None),
        ({"contradicted": True}, "the declared limits are not contradicted"),
    ],
)
def test_a_verdict_that_says_otherwise_is_a_miss(said: dict[str, object], words: str | None) -> None:
    """Disks with limits of 300 and 600 I/Os per second match their label, and each wrong label is a miss."""
    probes = [probe_of(Disk(iops=rate), MATRIX, "iometer") for rate in (300, 600)]
    found = list(judged(case_of(one={}, two=TRUE | {"holds_to": {"8K random write": [4, 4]}} | said), probes))
    assert [words is not None and words in miss for miss in found] == [True] * (words is not None)


def test_a_cache_or_a_wrong_declaration_that_nothing_expects_is_a_miss() -> None:
    reads = [replace(cell, workload="8K random read", read_ratio=1.0) for cell in MATRIX]
    cached = Disk(floor_s=0.00001, write_iops=3500)
    [miss] = judged(
        case_of(p10={}), [probe_of(cached, [*MATRIX, *reads], "iometer", said=declared("azure/p10"))]
    )
    assert miss == "p10: a cache on the host is suspected"
    fast = Disk(floor_s=0.00001, iops=9000)
    [miss] = judged(case_of(p10={}), [probe_of(fast, MATRIX, "iometer", said=declared("azure/p10"))])
    assert miss.startswith("p10: The declared limit is")


def test_a_row_has_the_keys_of_a_case() -> None:
    case = case_of(one={})
    wrong = ProbeRow(case, 1, 12.3, ("one: x is a, not b",))
    assert {"case", "expected", "found", "confidence", "right", "seconds"} <= set(
        json.loads(json.dumps(wrong.to_json()))
    )
    assert "NO" in line(wrong)
    assert not wrong.right
    assert not ProbeRow(case, 1, 1.0, failure="error: it burnt").right
    assert "right" in line(ProbeRow(case, 1, 1.0))


def test_a_bad_case_is_bad_input(tmp_path: Path) -> None:
    """A bad case is an input error that names the file and the field, or the side without a farm."""
    (tmp_path / "expected.yaml").write_text("suite: iometer\nsides: {a: {kind: x}}\n")
    with pytest.raises(InputError) as refused:
        read_probe_case(tmp_path)
    assert "expected.yaml: why:" in str(refused.value)
    assert "expected.yaml: sides.a.kind:" in str(refused.value)
    (tmp_path / "expected.yaml").write_text("suite: iometer\nwhy: w\nsides: {a: {}}\n")
    with pytest.raises(InputError, match=r"sides: no such file: .*a\.yaml"):
        read_probe_case(tmp_path)
