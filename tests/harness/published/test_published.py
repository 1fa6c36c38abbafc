"""A report's figures: judged without a sample, held against themselves, and against their own conclusion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import run_cli

from pinchpoint.errors import InputError
from pinchpoint.published import judge_report, read_report
from pinchpoint.published.text import published_text

EXAMPLE = Path(__file__).parents[3] / "infra" / "examples" / "crawl-dev-vs-prod.yaml"


def test_the_crawl_s_published_figures_are_inconclusive() -> None:
    """Prod: search CPU that nobody measured, or index disks; Dev's log is slow, and no cap explains it."""
    found = judge_report(read_report(EXAMPLE))
    prod, dev = found.farms["prod"], found.farms["dev"]
    assert prod.outcome == "inconclusive"
    assert {(one.tier, one.of) for one in prod.candidates} == {("search", "cpu"), ("search", "disk")}
    assert [one.source for one in prod.sources] == ["file share over a VPN"]
    kinds = {disk.role: kind for disk, kind in dev.slow}
    assert kinds["log"] == "disk_latency"


def test_the_author_s_conclusion_needs_what_was_not_measured() -> None:
    """The CPU of the search servers, beside their index disks."""
    by_farm = {one.farm: one for one in judge_report(read_report(EXAMPLE)).conclusions}
    assert not by_farm["prod"].supported
    assert "app3, app4" in by_farm["prod"].because
    assert by_farm["prod"].needs is not None
    assert "the CPU of app3, app4" in by_farm["prod"].needs
    assert "index disks" in by_farm["prod"].needs
    assert not by_farm["dev"].supported


def test_what_a_careful_reader_notes() -> None:
    """Rates that are not count ÷ duration, coupled durations, unlike counts, slower though latency fell."""
    doubts = "\n".join(judge_report(read_report(EXAMPLE)).doubts)
    assert "3.7/s is published, 14,040 documents in 69 min 13 s are 3.38/s" in doubts
    assert "16.2/s is published" in doubts
    assert "12.8/s is published" in doubts
    assert "all of file share over a VPN failed" in doubts
    assert "prod: site collection of a local web app, local SharePoint sites, user profiles" in doubts
    assert "coupled" in doubts
    assert "user profiles: slower in prod (12.3/s, then 9.9/s) though its latency fell" in doubts
    assert "local SharePoint sites: 8,559 documents in dev, 13,534 in prod: not the same work" in doubts


def test_figures_that_suffice_bear_a_conclusion_out(tmp_path: Path) -> None:
    """With the CPU measured, and nothing else near its limit."""
    path = tmp_path / "report.yaml"
    path.write_text(
        "published: 1\ntitle: Measured\nfarms:\n  prod:\n    cpus: [{tier: search, host: app3, busy: 97%}, "
        "{tier: sql, host: sql1, busy: 30%}]\nconclusions: [{farm: prod, of: cpu, tier: search}]\n"
    )
    [answer] = judge_report(read_report(path)).conclusions
    assert answer.supported
    assert answer.needs is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("published: 2\ntitle: x\nfarms: {a: {}}\n", "published: found the number 2"),
        ("published: 1\nfarms: {a: {}}\n", "title: missing"),
        ("published: 1\ntitle: x\nfarms: {a: {discs: []}}\n", "discs: unknown field"),
        (
            "published: 1\ntitle: x\nfarms: {a: {disks: [{tier: sql, host: s, role: log, latency: 3}]}}\n",
            "has no unit",
        ),
        (
            "published: 1\ntitle: x\nfarms: {a: {disks: [{tier: s, host: h, role: r, profile: p31}]}}\n",
            "allowed: aws/",
        ),
        (
            "published: 1\ntitle: x\nfarms: {a: {}}\nconclusions: [{farm: b, of: cpu, tier: sql}]\n",
            "allowed: a",
        ),
    ],
)
def test_a_bad_file_is_a_sentence(text: str, words: str, tmp_path: Path) -> None:
    """File, line, field, what is allowed."""
    path = tmp_path / "report.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_report(path)
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"{path}:")


def test_the_command_prints_and_writes_json() -> None:
    """``analyse`` on a file: the same answer as text and as one JSON document; ``import`` takes it too."""
    done = run_cli("analyse", EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "do not bear that out" in " ".join(done.stdout.split())
    content = json.loads(run_cli("analyse", EXAMPLE, "--json").stdout)
    assert content["schema"] == "pinchpoint.published/1"
    assert content["farms"]["prod"]["outcome"] == "inconclusive"
    imported = run_cli("import", EXAMPLE, "--kind", "published")
    assert imported.stdout == done.stdout


def test_every_part_is_said_in_words() -> None:
    """Each farm, the table, the doubts, what else differs."""
    text = published_text(judge_report(read_report(EXAMPLE)))
    for words in ("prod: inconclusive", "count ÷ duration", "What else differs:", "0 (all failed)"):
        assert words in text


def test_names_in_the_table_do_not_steer_the_terminal(tmp_path: Path) -> None:
    """A file of figures may be anybody's: no escape sequence of its names is printed."""
    path = tmp_path / "report.yaml"
    path.write_text(
        'published: 1\ntitle: x\nfarms: {a: {sources: [{name: "\\e[2Jsites", rate: 3/s, latency: 1s}]}}\n'
    )
    text = published_text(judge_report(read_report(path)))
    assert "\x1b" not in text
    assert "?[2Jsites" in text
