"""The verdict in a terminal: sentences a person reads, at most 88 columns, nothing that steers it."""

from __future__ import annotations

from harness.report.example import suspect, verdict

from pinchpoint.base.text import WIDTH
from pinchpoint.report.terminal import verdict_text

GOLDEN = """\
A bottleneck was found.

The CPU of the machine that all tiers share gives way first, and search uses most of it
(68 %). It was 97 % busy on average; confidence is medium, because only one load level
was run.

Evidence, the CPU of search (host search1) (confidence: medium):
  - the core was 97 % busy
  - something waited for the CPU 90 % of the time
  - search used 68 % of it
    One load level: at most medium confidence.

Now: 120/s of crawl, 200/s of orders and 134/s of burst.
Headroom: 0 %.
Next: the log disk of sql (host sql1, device vda); removing the bottleneck gains at most
38 % until then (assuming the same mix of work).

Objectives:
  scenario  objective           measured  result
  orders    p95 at most 5 ms    6.3 ms    missed
  crawl     errors at most 1 %  0.81 %    met

Crawl:
  source      documents  failures  skipped  duration  rate  repository latency
  sharepoint      5,600        70        3      70 s  80/s             20.1 ms

Warnings:
  ! Only one load level was run."""


def test_a_verdict_reads_as_sentences() -> None:
    """The whole text, word for word."""
    assert verdict_text(verdict()) == GOLDEN


def test_no_line_is_wider_than_the_terminal() -> None:
    """Long names, long facts and long warnings are wrapped or cut."""
    source = {**verdict()["crawl"][0], "source": "a-content-source-" * 9}
    text = verdict_text(
        verdict(
            summary="word " * 80,
            warnings=["warning " * 40],
            crawl=[source],
            bottleneck=suspect(evidence=[{"fact": "fact " * 60}]),
        )
    )
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    assert "a-content-source-" in text
    assert "…" in text


def test_an_inconclusive_verdict_names_suspects_and_the_experiment() -> None:
    """Good news is not made up: what is suspected, and what would decide it."""
    text = verdict_text(
        verdict(
            outcome="inconclusive",
            bottleneck=None,
            next=None,
            headroom_ratio=None,
            candidates=[suspect(confidence=None)],
            experiment="Run with half of the users.",
            summary="No single cause stands out.",
        )
    )
    assert text.startswith("Inconclusive: the measurements do not single out one cause.\n\nNo single cause")
    assert "Suspected, the CPU of search (host search1):" in text
    assert "What would decide it: Run with half of the users." in text
    assert "Headroom" not in text


def test_a_healthy_farm_says_what_it_served_at_least() -> None:
    """Nothing gave way: a lower bound, not a limit."""
    text = verdict_text(
        verdict(outcome="not_reached", bottleneck=None, capacity_at_least_per_s={"orders": 200.0})
    )
    assert "orders: at least 200/s can be served." in text


def test_a_crawl_that_did_not_end_is_said_so() -> None:
    """Its counts are no totals."""
    text = verdict_text(verdict(crawl=[{**verdict()["crawl"][0], "complete": False}]))
    assert "Not crawled to the end: sharepoint." in text


def test_control_characters_do_not_reach_the_terminal() -> None:
    """A name with an escape sequence must not recolour or clear the screen."""
    text = verdict_text(verdict(warnings=["host \x1b[2Jsql1"]))
    assert "\x1b" not in text
    assert "host ?[2Jsql1" in text


def test_control_characters_in_a_table_do_not_reach_it_either() -> None:
    """A source's name comes from a farm or from another tool's file; one with a line end keeps its row."""
    source = {**verdict()["crawl"][0], "source": "\x1b[2Ja\n\N{RIGHT-TO-LEFT OVERRIDE}b"}
    text = verdict_text(verdict(crawl=[source]))
    assert "\x1b" not in text
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
    [row] = [line for line in text.splitlines() if "?[2Ja" in line]
    assert row.startswith("  ?[2Ja ?b ")
    assert row.endswith("20.1 ms")
