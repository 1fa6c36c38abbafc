"""Published figures: judged without samples, and compared with each other and with the conclusion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import run_cli

from pinchpoint.base.errors import InputError
from pinchpoint.published import judge_report, read_report
from pinchpoint.published.judge import PublishedFindings
from pinchpoint.published.text import published_text
from pinchpoint.report import published_page

EXAMPLE = Path(__file__).parents[3] / "infra" / "examples" / "crawl-dev-vs-prod.yaml"


def test_the_crawl_s_published_figures_are_inconclusive() -> None:
    """Prod's figures leave search CPU and index disks open; Dev's log is slow without a cap."""
    found = judge_report(read_report(EXAMPLE))
    prod, dev = found.farms["prod"], found.farms["dev"]
    assert prod.outcome == "inconclusive"
    assert {(one.tier, one.of) for one in prod.candidates} == {("search", "cpu"), ("search", "disk")}
    assert [one.source for one in prod.sources] == ["file share over a VPN"]
    kinds = {disk.role: kind for disk, kind in dev.slow}
    assert kinds["log"] == "disk_latency"


def test_the_author_s_conclusion_needs_what_was_not_measured() -> None:
    """The author's conclusion needs the search servers' CPU, which was not measured."""
    by_farm = {one.farm: one for one in judge_report(read_report(EXAMPLE)).conclusions}
    assert not by_farm["prod"].supported
    assert "app3, app4" in by_farm["prod"].because
    assert by_farm["prod"].needs is not None
    assert "the CPU of app3, app4" in by_farm["prod"].needs
    assert "index disks" in by_farm["prod"].needs
    assert not by_farm["dev"].supported


def test_what_a_careful_reader_notes() -> None:
    """Inconsistencies are listed: rates other than count ÷ duration, coupled durations, other counts."""
    doubts = "\n".join(judge_report(read_report(EXAMPLE)).doubts)
    assert "3.7/s is published, but 14,040 documents in 69 min 13 s are 3.38/s" in doubts
    assert "16.2/s is published" in doubts
    assert "12.8/s is published" in doubts
    assert "all of file share over a VPN failed" in doubts
    assert "prod: site collection of a local web app, local SharePoint sites, user profiles" in doubts
    assert "coupled" in doubts
    assert "user profiles: slower in prod (12.3/s, then 9.9/s) though its latency fell" in doubts
    assert "local SharePoint sites: 8,559 documents in dev, 13,534 in prod: not the same work" in doubts
    assert '"3x longer": the duration of site collection of a local web app in dev is 3.56' in doubts
    assert '50 % lower": the latency of local SharePoint sites in prod is 0.654' in doubts
    assert '"almost 4x": the rate of site collection of a local web app in prod is 4.38' in doubts


def test_maxima_and_contradictions_have_tables_of_their_own() -> None:
    """The page has the published maxima (8.7 ms, 348 IOPS) and each contradiction."""
    made = published_page.document(read_report(EXAMPLE))
    tables = {table.name: table for part in made.parts for table in part.tables}
    [log] = [row for row in tables["disks"].rows if (row["farm"], row["role"]) == ("prod", "log")]
    assert (log["latency_max_s"], log["iops_max"]) == (pytest.approx(0.0087), 348)
    assert len(tables["doubts"].rows) == len(judge_report(read_report(EXAMPLE)).doubts)


def test_a_claim_about_what_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.yaml"
    claim = "{says: x, source: b, figure: rate, base: dev, other: dev, ratio: 2}"
    path.write_text(
        f"published: 1\ntitle: T\nfarms: {{dev: {{sources: [{{name: a, count: 1}}]}}}}\nclaims: [{claim}]\n"
    )
    with pytest.raises(InputError, match="a claim about the source 'b' of dev; allowed: a"):
        read_report(path)


def test_figures_that_suffice_bear_a_conclusion_out(tmp_path: Path) -> None:
    """With the CPU measured and nothing else near its limit, the conclusion is confirmed."""
    path = tmp_path / "report.yaml"
    path.write_text(
        "published: 1\ntitle: Measured\nfarms:\n  prod:\n    cpus: [{tier: search, host: app3, busy: 97%}, "
        "{tier: sql, host: sql1, busy: 30%}]\nconclusions: [{farm: prod, of: cpu, tier: search}]\n"
    )
    [answer] = judge_report(read_report(path)).conclusions
    assert answer.supported
    assert answer.needs is None


def judged(path: Path, farm: str, conclusion: str = "") -> PublishedFindings:
    """Return the result of a report on one farm."""
    path.write_text(f"published: 1\ntitle: x\nfarms: {{prod: {{{farm}}}}}\n{conclusion}")
    return judge_report(read_report(path))


COOL = "cpus: [{tier: sql, host: sql1, busy: 20%}]"
LOG = "{tier: sql, host: sql1, role: log, latency: 35ms}"


def test_a_disk_at_its_cap_is_near_its_limit_however_little_is_published(tmp_path: Path) -> None:
    """A P10 at 500 IOPS is at its limit without a published latency; latency alone shows none."""
    for latency in ("", ", latency: 3ms"):
        disk = f"{{tier: sql, host: sql1, role: data, iops: 500, profile: azure/p10{latency}}}"
        found = judged(tmp_path / "report.yaml", f"disks: [{disk}], {COOL}")
        [suspect] = found.farms["prod"].candidates
        assert (found.farms["prod"].outcome, suspect.kind) == ("bottleneck", "disk_cap")
        assert suspect.why == "sql.data does 500 IOPS of 500 IOPS"
        assert "not measured" not in published_text(found)


def test_a_disk_beyond_its_cap_is_no_disk_with_room(tmp_path: Path) -> None:
    """A P10 at 2,000 IOPS is on credits or another disk, so its utilisation is unknown."""
    disk = "{tier: sql, host: sql1, role: data, iops: 2000, profile: azure/p10}"
    found = judged(tmp_path / "report.yaml", f"disks: [{disk}], {COOL}")
    assert found.farms["prod"].outcome == "inconclusive"
    assert "does 2,000 IOPS, more than it is said to (500 IOPS)" in " ".join(published_text(found).split())


def test_a_disk_of_which_nothing_is_published_may_limit_as_well(tmp_path: Path) -> None:
    """A data disk without figures beside a slow log leaves two candidates."""
    disks = f"disks: [{LOG}, {{tier: sql, host: sql1, role: data}}], {COOL}"
    concluded = "conclusions: [{farm: prod, of: disk, tier: sql, role: log}]\n"
    found = judged(tmp_path / "report.yaml", disks, concluded)
    assert found.farms["prod"].outcome == "inconclusive"
    assert [one.role for one in found.farms["prod"].candidates] == ["log", "data"]
    assert not found.conclusions[0].supported
    assert "how long an I/O of sql.data takes is not published" in found.conclusions[0].because


def test_a_farm_without_a_figure_is_not_far_from_its_limit(tmp_path: Path) -> None:
    """A farm without a published figure is inconclusive."""
    sites = "{name: sites, tier: web, count: 100, duration: 10s}"
    found = judged(tmp_path / "report.yaml", f"sources: [{sites}]").farms["prod"]
    assert found.outcome == "inconclusive"
    assert found.experiment is not None
    assert found.experiment.startswith("Measure the CPU and the disks")


def test_a_third_slow_disk_is_pointed_to_as_well(tmp_path: Path) -> None:
    """A third slow disk is not excluded by the two candidates; the log disk is as likely as it."""
    data = "{tier: sql, host: sql1, role: data, latency: 25ms}"
    index = "{tier: search, host: app3, role: index, latency: 90ms}"
    concluded = "conclusions: [{farm: prod, of: disk, tier: search, role: index}]\n"
    found = judged(tmp_path / "report.yaml", f"disks: [{LOG}, {data}, {index}], {COOL}", concluded)
    assert len(found.farms["prod"].candidates) == 2
    [answer] = found.conclusions
    assert not answer.supported
    assert "do not point there" not in answer.because
    assert "the log disks of sql (sql1) is as likely" in answer.because


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
            'unknown disk "p31"; allowed: azure/p3, ',
        ),
        (
            "published: 1\ntitle: x\nfarms: {a: {}}\nconclusions: [{farm: b, of: cpu, tier: sql}]\n",
            "allowed: a",
        ),
    ],
)
def test_a_bad_file_is_a_sentence(text: str, words: str, tmp_path: Path) -> None:
    """A bad file gives a sentence with file, line, field, and what is allowed."""
    path = tmp_path / "report.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_report(path)
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"{path}:")


ONE = """published: 1
title: t
farms:
  prod:
    disks: [{tier: sql, host: sql1, role: log, latency: 2.8ms, iops: 187}]
    sources: [{name: sites, count: 13534, duration: 19m28s, rate: 12.8/s, latency: 381ms}]
"""


@pytest.mark.parametrize(
    ("sane", "odd"),
    [
        ("2.8ms", "11h"),
        ("iops: 187", "iops: 1e308"),
        ("iops: 187", "iops: 1_000"),
        ("iops: 187", "iops: 0x10"),
        ("iops: 187", "iops: -1.87"),
        ("iops: 187", "iops: .inf"),
        ("iops: 187", "iops: .nan"),
        ("iops: 187", f"iops: {'9' * 400}"),
        ("iops: 187", f"iops: {'9' * 5000}"),
        ("13534", "1_000"),
        ("13534", "١٢"),
        ("13534", "9" * 400),
        ("12.8/s", "-1.87/s"),
        ("12.8/s", "1_000/s"),
        ("381ms", "400d"),
        ("name: sites", 'name: "\\ud800"'),
    ],
)
def test_a_figure_that_cannot_be_is_refused(tmp_path: Path, sane: str, odd: str) -> None:
    """An impossible figure is refused with file, line, and what is allowed."""
    path = tmp_path / "report.yaml"
    path.write_text(ONE, encoding="utf-8")
    read_report(path)
    path.write_text(ONE.replace(sane, odd), encoding="utf-8")
    with pytest.raises(InputError, match=r"report.yaml:[56]: farms.prod.*"):
        read_report(path)


def test_the_command_prints_and_writes_json() -> None:
    """``analyse`` and ``import`` accept the file; text and JSON give the same answer."""
    done = run_cli("analyse", EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "do not support that" in " ".join(done.stdout.split())
    content = json.loads(run_cli("analyse", EXAMPLE, "--json").stdout)
    assert content["schema"] == "pinchpoint.published/1"
    assert content["farms"]["prod"]["outcome"] == "inconclusive"
    imported = run_cli("import", EXAMPLE, "--kind", "published")
    assert imported.stdout == done.stdout


def test_every_part_is_said_in_words() -> None:
    """The text has each farm, the table, the doubts, and the other differences."""
    text = published_text(judge_report(read_report(EXAMPLE)))
    for words in ("prod: inconclusive", "count ÷ duration", "What else differs:", "0 (all failed)"):
        assert words in text


def test_names_in_the_table_do_not_steer_the_terminal(tmp_path: Path) -> None:
    """Escape sequences in a file's names do not reach the terminal."""
    path = tmp_path / "report.yaml"
    path.write_text(
        'published: 1\ntitle: x\nfarms: {a: {sources: [{name: "\\e[2Jsites", rate: 3/s, latency: 1s}]}}\n'
    )
    text = published_text(judge_report(read_report(path)))
    assert "\x1b" not in text
    assert "?[2Jsites" in text
