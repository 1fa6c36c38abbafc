"""Tests of the scores: what is right, how it is counted, and how it is printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ground_truth.cases import Answer, Case, Turn, read_case
from ground_truth.judge import Found, Judged, is_right, what_counts, wrong
from ground_truth.made import LOG_CAP, NOBODY, OTHER_DISK, make_case
from ground_truth.rows import Row, confusion, summary
from ground_truth.variants import VARIANTS


def make_row(case: Case, *answers: Answer) -> Row:
    """Return a row whose variants have these answers, or no judgement without answers."""
    found = {name: Found(answer, "medium") for name, answer in zip(VARIANTS, answers, strict=False)}
    return Row(case, 1, 1.0, Judged(found, {}) if found else None)


def test_right_means_every_variant() -> None:
    """A case with one wrong or empty variant is a miss, and that variant's answer counts."""
    good = {"declared": Found(LOG_CAP, "high"), "withheld": Found(LOG_CAP, "low")}
    assert wrong(LOG_CAP, Judged(good, {})) == {}
    assert what_counts(LOG_CAP, Judged(good, {})) == good["declared"]
    # the kind of disk limit must be right only with declared limits
    unsure = Found(replace(LOG_CAP, kind="disk"), "low")
    assert wrong(LOG_CAP, Judged({**good, "withheld": unsure}, {})) == {}
    assert [*wrong(LOG_CAP, Judged({**good, "declared": unsure}, {}))] == ["declared"]
    for answer in (OTHER_DISK, NOBODY, Answer("bottleneck", "disk_latency", "sql", "log")):
        found = Judged({**good, "declared x2": Found(answer, None)}, {})
        assert [*wrong(LOG_CAP, found)] == ["declared x2"]
        assert what_counts(LOG_CAP, found).answer == answer


def test_noise_may_make_unsure_and_nothing_else() -> None:
    """Under noise "inconclusive" is right; any other answer, also "not reached", is a miss."""
    assert is_right(LOG_CAP, NOBODY, noisy=True)
    assert not is_right(LOG_CAP, NOBODY, noisy=False)
    assert is_right(LOG_CAP, replace(LOG_CAP, kind="disk"), noisy=True), "which disk, without how it limits"
    assert not is_right(LOG_CAP, replace(LOG_CAP, kind="disk"), noisy=False)
    assert not is_right(LOG_CAP, replace(LOG_CAP, kind="disk", role="data"), noisy=True)
    for answer in (OTHER_DISK, Answer("not_reached"), Answer("invalid", "generator")):
        assert not is_right(LOG_CAP, answer, noisy=True)
    assert not is_right(Answer("not_reached"), LOG_CAP, noisy=True)
    good = {"declared": Found(LOG_CAP, "high")}
    assert wrong(LOG_CAP, Judged(good, {"every 5 s": Found(NOBODY, None)})) == {}
    assert [*wrong(LOG_CAP, Judged(good, {"20% lost": Found(OTHER_DISK, "low")}))] == ["20% lost"]
    assert wrong(LOG_CAP, Judged({"declared": Found(NOBODY, None)}, {}), noisy=True) == {}


def test_causes_that_take_turns_are_all_named_with_their_shares() -> None:
    """Alternating causes need the right shares and no missing cause; under noise some may be missing."""
    cpu, disk = Turn("cpu", "search", None, 0.6), Turn("disk", "search", "index", 0.35)
    expected = Answer("inconclusive", turns=(cpu, disk))
    assert str(expected) == "inconclusive: search cpu and search.index disk in turn"
    assert is_right(expected, replace(expected, turns=(disk, replace(cpu, share=0.5))), noisy=False)
    for turns in ((), (cpu,), (cpu, replace(disk, role="content")), (replace(cpu, share=0.9), disk)):
        assert not is_right(expected, replace(expected, turns=turns), noisy=False)
        assert is_right(expected, replace(expected, turns=turns), noisy=True)
    assert not is_right(expected, Answer("bottleneck", "cpu", "search"), noisy=True)
    assert is_right(NOBODY, expected, noisy=False), "where none is labelled none is asked for"


def test_the_confusion_table_tells_kinds_places_and_errors_apart(tmp_path: Path) -> None:
    """In the confusion table a right kind on the wrong disk is no hit, and errors have a column."""
    label = "outcome: bottleneck\nkind: disk_cap\ntier: sql\nrole: log\nwhy: x\n"
    log = read_case(make_case(tmp_path, "log", expected=label))
    fine = read_case(make_case(tmp_path, "fine"))
    rows = [
        make_row(log, LOG_CAP),
        make_row(log, OTHER_DISK),
        make_row(log),
        make_row(fine, Answer("not_reached")),
        make_row(fine, NOBODY),
    ]
    heading, capped, healthy = [line.split("  ") for line in confusion(rows).splitlines()]
    table = {
        line[0].strip(): dict(
            zip(heading[1:], (cell.strip() for cell in line[1:] if cell.strip()), strict=True)
        )
        for line in (capped, healthy)
    }
    assert (
        table["disk_cap"] | {"disk_cap": "1", "disk_cap, elsewhere": "1", "error": "1"} == table["disk_cap"]
    )
    assert table["not_reached"] | {"not_reached": "1", "inconclusive": "1"} == table["not_reached"]


def test_the_summary_counts_kinds_confidence_health_noises_and_repetitions(tmp_path: Path) -> None:
    """The summary counts each quantity, and repetitions with different answers count as different."""
    label = "outcome: bottleneck\nkind: disk_cap\ntier: sql\nrole: log\nwhy: x\n"
    place = make_case(tmp_path, "log", "sql", expected=label)
    farm = place / "farm.yaml"
    farm.write_text(farm.read_text() + "tiers: {sql: {hosts: {sql1: {disks: {log: {limits: {iops: 9}}}}}}}\n")
    log, fine = read_case(place), read_case(make_case(tmp_path, "fine"))
    assert log.limit_declared
    assert not fine.limit_declared
    sure = Judged({"declared": Found(LOG_CAP, "high")}, {"every 5 s": Found(NOBODY, None)})
    rows = [
        Row(log, 1, 1.0, sure),
        Row(log, 2, 1.0, Judged(sure.variants, {"every 5 s": Found(OTHER_DISK, "low")})),
        make_row(fine, Answer("not_reached")),
        Row(fine, 2, 1.0, make_row(fine, Answer("not_reached")).judged),
    ]
    assert list(summary(rows)) == [
        "right by kind: disk_cap 1 of 2, not_reached 2 of 2",
        "right with high confidence where the limit is declared: 1 of 2",
        "healthy farms right: 2 of 2",
        "noises that made no wrong answer: 1 of 2",
        "cases with the same answer in all repetitions: 1 of 2",
    ]
