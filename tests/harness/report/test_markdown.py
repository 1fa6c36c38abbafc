"""The Markdown report word for word; nothing from a farm acts as Markdown."""

from __future__ import annotations

from pathlib import Path

from harness.report.example import HOSTILE, steady_run, verdict

from pinchpoint.report import markdown
from pinchpoint.report.report import gather

GOLDEN = Path(__file__).with_name("golden.md")


def test_the_report_reads_as_it_should() -> None:
    """The whole document equals golden.md.

    After an intended change, write the new document to golden.md and read the difference.
    """
    assert markdown.write(gather(steady_run(), verdict())) == GOLDEN.read_text(encoding="utf-8")


def test_nothing_from_a_farm_acts_as_markdown() -> None:
    """HTML, tables, emphasis and line ends in names are shown as text."""
    crawl = [{**verdict()["crawl"][0], "source": f"a|b\n# {HOSTILE} *x*"}]
    text = markdown.write(gather(steady_run(), verdict(crawl=crawl, summary=f"{HOSTILE} first.")))
    assert HOSTILE not in text
    assert r"| a\|b \# \<script\>window.hacked = true\</script\> \*x\* |" in text


def test_a_code_block_cannot_be_closed_from_inside() -> None:
    """A code fence is longer than any run of backticks in its text."""
    run = steady_run()
    run.manifest["plan"] = {"name": "```\n# out"}
    text = markdown.write(gather(run, verdict()))
    assert '````json\n{\n  "name": "```\\n# out"\n}\n````' in text


def test_escaping_keeps_plain_text_plain() -> None:
    """Ordinary words, figures and punctuation are not escaped."""
    assert markdown.escaped("sql1: 2.8 ms, 93 % (mean)") == "sql1: 2.8 ms, 93 % (mean)"
