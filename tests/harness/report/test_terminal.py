"""The verdict in a terminal: a first screen with the answers, details under --explain, escaped text."""

from __future__ import annotations

import shutil
import sys
from os import terminal_size

import pytest
from harness.report.example import MANIFEST, screen, suspect, verdict

from pinchpoint.base import text
from pinchpoint.base.text import PIPED, fitted, width
from pinchpoint.report.run_tables import offered_words
from pinchpoint.report.terminal import details_text, verdict_text

GOLDEN = """\
Bottleneck: CPU of the machine that runs all tiers.
nightly on staging · 2026-11-20 09:00:00 UTC · measured for 70 s · valid

LIMIT  It was 97 % busy; search used 68 % of it.
SURE   medium confidence: One load level, and at least 6 are needed to find the knee.

scenario   rate        offered     p50     p95     p99  errors  dropped
crawl     120/s        8 users   81 ms  142 ms  191 ms  0.81 %        -
orders    200/s          200/s  3.1 ms  6.3 ms  9.1 ms     0 %        0
burst     134/s  50/s to 500/s  1.9 ms  3.1 ms    4 ms     0 %       45

GOAL   orders p95 at most 5 ms: 6.3 ms, missed
GOAL   1 of 2 met
ROOM   none.
NEXT   log disk of sql (host sql1, device vda), now at 15 %.
WARN   Only one load level was run.
WHY    pinchpoint analyse 'runs/nightly run' --explain"""


def shown(columns: int, monkeypatch: pytest.MonkeyPatch, **changes: object) -> str:
    """Return the first screen in a terminal of that width."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: terminal_size((columns, 24)))
    return verdict_text(verdict(**changes), MANIFEST, "runs/nightly run")


def test_the_first_screen_answers() -> None:
    """The first screen names bottleneck, confidence, measurement and advice once each."""
    text = verdict_text(verdict(), MANIFEST, "runs/nightly run")
    assert text == GOLDEN
    assert text.count("medium confidence") == 1
    assert len(text.splitlines()) <= 40
    assert len(text.splitlines()[0].split()) <= 25


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_it_follows_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal; columns are dropped before a name is cut."""
    name = "a-scenario-" * 4
    text = shown(
        columns,
        monkeypatch,
        summary="word " * 80,
        warnings=["warning " * 40],
        scenarios={name: verdict()["scenarios"]["orders"]},
        bottleneck=suspect(why_not_more=["because " * 40]),
    )
    assert max(map(len, text.splitlines())) <= columns
    assert name in text.replace("\n", "")


def test_a_pipe_has_88_columns() -> None:
    """A pipe has 88 columns, whatever the terminal is."""
    assert width() == PIPED


def test_details_follow_under_explain() -> None:
    """--explain adds evidence, next bottleneck, objectives and crawl, without repeated warnings."""
    text = details_text(verdict())
    assert "Evidence: the CPU of search (host search1)\n  - the core was 97 % busy" in text
    assert "Now: 120/s of crawl, 200/s of orders and 134/s of burst." in text
    assert "removing the bottleneck gains at most 38 %" in " ".join(text.split())
    assert "orders    p95 at most 5 ms    6.3 ms    missed" in text
    assert "sharepoint      5,600        70        3      70 s  80/s             20.1 ms" in text
    assert "Only one load level was run." not in text


def test_an_inconclusive_verdict_names_suspects_and_the_experiment() -> None:
    """An inconclusive verdict shows its candidates and the experiment."""
    text = screen(
        verdict(
            outcome="inconclusive",
            bottleneck=None,
            next=None,
            headroom_ratio=None,
            candidates=[suspect(confidence=None)],
            experiment="Run with half of the users.",
            summary="Inconclusive: no single cause stands out.",
        )
    )
    assert text.startswith("Inconclusive: no single cause stands out.\n")
    assert "Suspected: the CPU of search (host search1)\n" in text
    assert text.count("Run with half of the users.") == 1
    assert "ROOM" not in text


def test_an_invalid_run_says_so_and_each_remedy() -> None:
    """An invalid run shows the reason and each remedy, without confidence or bottleneck."""
    remedies = [{"text": "Give it cores, and run again."}, {"text": "Lower the load, and run again."}]
    text = screen(
        verdict(
            outcome="invalid",
            bottleneck=suspect(kind="generator", confidence=None),
            next=None,
            headroom_ratio=None,
            advice=[{"gain_ratio": None, "assumes": "", **one} for one in remedies],
        )
    )
    assert "· not valid\n" in text
    assert "DO     Give it cores, and run again.\nDO     Lower the load, and run again.\n" in text


def test_warnings_are_said_once_and_counted() -> None:
    """A warning that the headline states is not repeated; three are shown and the rest counted."""
    text = verdict_text(
        verdict(warnings=["it was 97 % busy", *(f"warning {number}" for number in range(5))]), MANIFEST, "run"
    )
    assert [line for line in text.splitlines() if line.startswith("WARN")] == [
        f"WARN   {one}" for one in ("Warning 0", "Warning 1", "Warning 2")
    ]
    assert "and 2 more (--explain)" in text


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ({"model": "closed", "users": 8}, "8 users"),
        ({"model": "open", "rate_per_s": 100.0}, "100/s"),
        ({"model": "burst", "base_per_s": 50.0, "peak_per_s": 500.0}, "50/s to 500/s"),
        ({"model": "steps", "start": {"per_s": 10}, "at_most": None}, "10/s and more"),
        ({"model": "ramp", "start": {"users": 1}, "to": {"users": 9}}, "1 user to 9 users"),
        ({}, None),
    ],
)
def test_a_load_in_two_words(load: dict[str, object], words: str | None) -> None:
    """A scenario's load is worded shortly enough for a column."""
    assert offered_words(load) == words


def test_a_crawl_that_did_not_end_is_said_so() -> None:
    """A crawl that did not end is marked, as its counts are not totals."""
    text = details_text(verdict(crawl=[{**verdict()["crawl"][0], "complete": False}]))
    assert "Not crawled to the end: sharepoint." in text


def test_control_characters_do_not_reach_the_terminal() -> None:
    """Escape sequences and line ends in names do not reach the terminal."""
    source = {**verdict()["crawl"][0], "source": "\x1b[2Ja\n\N{RIGHT-TO-LEFT OVERRIDE}b"}
    text = screen(verdict(warnings=["host \x1b[2Jsql1"], crawl=[source]))
    assert "\x1b" not in text
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
    assert "Host ?[2Jsql1" in text
    [row] = [line for line in text.splitlines() if "?[2Ja" in line]
    assert row.startswith("  ?[2Ja ?b ")
    assert row.endswith("20.1 ms")


def test_a_name_that_several_rows_share_stands_once_above_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table that is too wide, a name shared by several rows is a line above them."""
    monkeypatch.setattr(text, "PIPED", 40)
    rows = [["workload", "side", "limited by"]]
    rows += [[load, side, "the cap of the disk"] for load in ("8K random write", "8K read") for side in "ab"]
    assert list(fitted(rows)) == [
        "workload",
        "  side  limited by",
        "8K random write",
        "  a     the cap of the disk",
        "  b     the cap of the disk",
        "8K read",
        "  a     the cap of the disk",
        "  b     the cap of the disk",
    ]
