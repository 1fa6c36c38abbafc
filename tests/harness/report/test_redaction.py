"""``--redact``: no host, user or database name is left in any format; one name has one replacement."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pypdfium2 as pdfium
import pytest
from harness.comparison.example import two_sides
from harness.report.documents import unpacked, words
from harness.report.example import saved_run, verdict

from pinchpoint.comparison import compare
from pinchpoint.report import registry
from pinchpoint.report.brief import Gathered
from pinchpoint.report.comparison import gather as gather_comparison
from pinchpoint.report.redaction import redacted
from pinchpoint.report.report import gather

HIDDEN = (
    "sql1", "search1", "nosql1", "loader_bob", "payroll", "alice", "db7", "corp.example", "10.1.2.3", "wages",
    "10.1.2.4", "dbhost8", "peter", "ledger", "monday-dsn", "crawler",
)  # fmt: skip


def _report() -> Gathered:
    run = saved_run()
    url = "postgresql://loader_bob:***@db7.corp.example:5432/Payroll?sslmode=require"
    run.manifest["farm"]["endpoints"] = {
        "sql": {"url": url},
        "nosql": {"url": "cassandra://10.1.2.3,10.1.2.4:9042/x"},
    }
    libpq = "postgresql:///?host=dbhost8,/run/postgresql&user=peter&dbname=ledger"
    run.manifest["farm"]["endpoints"] |= {"own": {"url": libpq}, "odbc": {"url": "odbc:///?dsn=monday-dsn"}}
    run.manifest["farm"]["endpoints"]["web"] = {"url": "https://db7.corp.example", "user": r"CORP\crawler"}
    run.manifest["farm"]["identity"] = "/home/alice/farm.yaml"
    said = "login of LOADER_BOB to payroll on DB7 (10.1.2.3) failed: loader_bob@db7.corp.example"
    next(iter(run.manifest["hosts"].values()))["database"] = {"databases": {"WSS_Wages": {"rcsi": True}}}
    run.manifest["warnings"] += [said, "the log of WSS_Wages is full", "crawler was refused"]
    return redacted(gather(run, verdict()))


def _text(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix in (".pptx", ".xlsx"):
        return words(content)
    if path.suffix == ".pdf":
        with pdfium.PdfDocument(content) as document:
            return "\n".join(page.get_textpage().get_text_bounded() for page in document)
    page = content.decode()
    # The page's script has letters of its own, and the chart data is compressed.
    shown = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    return "\n".join([shown, *unpacked(page)])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the text of each format in lower case."""
    paths = registry.write_reports(_report(), registry.FORMATS, tmp_path_factory.mktemp("redacted"))
    return {name: _text(path).lower() for name, path in zip(registry.FORMATS, paths, strict=True)}


@pytest.mark.parametrize("form", list(registry.FORMATS))
def test_no_name_is_left(form: str, written: dict[str, str]) -> None:
    """No name is left in tables, sentences, queries, plan or farm."""
    assert [name for name in HIDDEN if name in written[form]] == []
    assert "host-1" in written[form]


def test_one_name_has_one_word(written: dict[str, str]) -> None:
    """A name has one replacement in any case, with and without its domain; the report's words stay."""
    [said] = [one for one in json.loads(written["json"])["warnings"] if one.startswith("login")]
    found = re.fullmatch(r"login of (\S+) to (\S+) on (\S+) \((\S+)\) failed: (\S+)@(\S+)", said)
    assert found is not None, said
    user, database, host, other, again, domain = found.groups()
    assert (user, host) == (again, domain)
    assert host != other
    assert database == "database-1"
    assert "where metric = 'cpu.busy_ratio' and host = 'host-" in written["html"].replace("&#39;", "'")


def test_a_comparison_is_redacted_too() -> None:
    """A comparison is redacted as well, with names from its own content."""
    report = gather_comparison(compare(two_sides(), ["disks"]).to_json())
    for write in (registry.FORMATS["md"], registry.FORMATS["json"]):
        assert "sql1" in str(write(report))
        assert "sql1" not in str(write(redacted(report)))
