"""A comparison's reports: Markdown word for word, and all formats from comparison.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness.comparison.example import TIMES, two_sides
from harness.report.example import HOSTILE

from pinchpoint.base import wording
from pinchpoint.base.errors import InputError
from pinchpoint.comparison import compare
from pinchpoint.comparison.saved import load, save
from pinchpoint.report import html, jsonfile, markdown, registry
from pinchpoint.report.comparison import gather
from pinchpoint.report.comparison_tables import fact_value, fact_words
from pinchpoint.report.terminal import comparison_text

GOLDEN = Path(__file__).with_name("golden.md")


def content() -> dict[str, Any]:
    return compare(two_sides(), ["disks"]).to_json()


def test_the_report_reads_as_it_should() -> None:
    """The whole document equals golden.md.

    After an intended change, write the new document to golden.md and read the difference.
    """
    assert markdown.write(gather(content())) == GOLDEN.read_text(encoding="utf-8")


def test_the_tables_of_json_are_those_of_the_page_in_base_units() -> None:
    """JSON has the page's tables in base units, with null for what was not measured."""
    document = json.loads(jsonfile.write(gather(content())))
    assert document["comparison"] == content()
    log = [row for row in document["tables"]["disks"] if row["role"] == "log"]
    assert [row["side"] for row in log] == ["dev", "prod", "ratio"]
    assert [row["write_latency_mean_s"] for row in log] == [0.0364, 0.0028, pytest.approx(0.0769, rel=1e-2)]
    assert [row["read_latency_mean_s"] for row in log] == [None, None, None]


def test_what_would_decide_it_is_in_every_format() -> None:
    """An inconclusive side's experiment is on the page and in Markdown."""
    sides = two_sides(outcome="inconclusive", bottleneck=None, experiment="Watch the CPU of search.")
    made = compare(sides, ["disks"]).to_json()
    for write in (html.write, markdown.write):
        assert "What would decide it: Watch the CPU of search." in write(gather(made))


def test_people_read_units_and_ratios() -> None:
    """Ratios are shown as "times", missing ones with the reason, and figures with units."""
    tables = gather(content()).tables
    assert tables["sources"].cells()[:3] == [
        ["share", "dev", "0", "40", "47 s", "0/s", "not measured"],
        ["share", "prod", "73,769", "0", "6 h 49 min", "3.01/s", "6.93 s"],
        ["share", "ratio", "no ratio", f"0 {TIMES}", f"522 {TIMES}", "no ratio", "no ratio"],
    ]
    assert tables["studied"].cells()[0] == [
        "disks",
        "IOPS, as declared",
        "data disk of sql (sql1)",
        "2,000",
        "5,000",
    ]


@pytest.mark.parametrize(
    ("name", "value", "words", "shown"),
    [
        ("built.latency_s", 0.035, "latency, as built", "35 ms"),
        ("declared.bytes_per_s", 200e6, "bytes, as declared", "200 MB/s"),
        ("memory_bytes", 8e9, "memory", "8 GB"),
        ("cpu_model", "A CPU", "CPU model", "A CPU"),
        ("settings.shared_buffers", "64MB", "setting shared_buffers", "64MB"),
        ("built.settings.shared_buffers", "64MB", "setting shared_buffers, as built", "64MB"),
        ("built.interface_bytes_per_s", 2e6, "interface, as built", "2 MB/s"),
        ("declared.latency", "2 ms at 1 outstanding", "latency, as declared", "2 ms at 1 outstanding"),
        ("rotational", False, "rotational", "no"),
        ("scenarios.crawl.load.users", [8, 16], "users of crawl", "8 or 16"),
    ],
)
def test_facts_in_words(name: str, value: Any, words: str, shown: str) -> None:
    """A fact has a name in words, and its value has the unit that the name ends with."""
    assert (fact_words(name), fact_value(name, value)) == (words, shown)


def test_the_terminal_says_what_else_differs_and_what_work_was_not_the_same() -> None:
    """The terminal has at most 88 columns and shows the bottleneck, other differences and other work."""
    text = comparison_text(content())
    assert text.startswith("The bottleneck moved: from the log disk of sql")
    assert "These runs did different work:\n  - share: 100 % failed in dev" in text
    assert max(len(line) for line in text.splitlines()) <= 88


def test_reports_are_written_from_the_saved_file_alone(tmp_path: Path) -> None:
    """The same report is written again from comparison.json alone."""
    done = compare(two_sides(), ["disks"])
    directory = save(done, tmp_path)
    assert directory.name.startswith("comparison-dev-prod-")
    again = load(directory)
    assert again == done.to_json()
    paths = registry.write_reports(gather(again), ["html", "md", "json"], tmp_path / "out")
    assert [path.name for path in paths] == ["report.html", "report.md", "report.json"]
    assert save(done, tmp_path) != directory, "a second comparison never overwrites the first"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as JSON"),
        ('{"schema": "pinchpoint.comparison/9"}', "this version of Pinchpoint reads"),
    ],
)
def test_a_damaged_or_newer_file_is_said_so(tmp_path: Path, text: str, message: str) -> None:
    """A damaged or newer file gives one sentence with the remedy."""
    (tmp_path / "comparison.json").write_text(text)
    with pytest.raises(InputError, match=message):
        load(tmp_path)


def test_nothing_from_a_farm_acts_as_markdown() -> None:
    """Names and warnings are shown as text and never act as Markdown."""
    hostile = content()
    hostile["base"]["label"] = HOSTILE
    hostile["warnings"] = [f"| {HOSTILE}"]
    assert HOSTILE not in registry.FORMATS["md"](gather(hostile))


def test_evidence_means_what_it_means_in_the_run_s_own_report() -> None:
    """A finding has the wording of the run's own report, and its queries cover the judged window."""
    [slow] = gather(content()).sides[0].findings
    assert slow.meaning == wording.MEANING["disk_latency"]
    assert slow.window is not None
    assert all("time_ns" in fact.query.partition("WHERE")[2].partition("ORDER")[0] for fact in slow.evidence)


def test_of_samples_alone_a_comparison_says_no_more_than_their_report() -> None:
    """A finding about a recording has no window, because its figures cover the whole recording."""
    [blamed] = gather(compare(two_sides(scenarios={}), ["disks"]).to_json()).sides[1].findings
    assert blamed.window is None
