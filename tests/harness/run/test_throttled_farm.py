"""A run against a web tier that refuses requests above a rate, filled from a smaller corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import run_cli

from pinchpoint.store.read import open_run

DOCUMENTS = 120


@pytest.mark.farm
@pytest.mark.alone
@pytest.mark.slow  # a whole run; tests/infra/embedded/test_throttle.py has the farm and the crawl without one
def test_what_a_farm_refuses_is_in_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    """The crawl of all documents ends, and each refusal is an operation of its own."""
    corpus = tmp_path / "corpus" / "list"
    corpus.mkdir(parents=True)
    for number in range(50):
        (corpus / f"{number}.txt").write_text(f"document {number}")
    embedded = {
        "tiers": ["web", "sql"],
        "throttle": {"web": {"rate": "40/s", "retry_after": "1s"}},
        "content": {"corpus": "corpus", "documents": DOCUMENTS},
    }
    crawl = {"use": "full-crawl", "load": {"model": "closed", "users": 4}}
    measure = {"until": "done", "at_least": "1s", "at_most": "1m"}
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    nowhere = {"search": {"kind": "none"}}
    farm.write_text(
        json.dumps({"name": "throttled", "environment": "test", "embedded": embedded, "endpoints": nowhere})
    )
    plan.write_text(
        json.dumps(
            {"name": "p", "scenarios": {"crawl": crawl}, "phases": {"warm_up": "1s", "measure": measure}}
        )
    )
    done = run_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs", timeout_s=120)
    assert done.returncode in (0, 3), done.stderr
    assert (
        f"content: {DOCUMENTS} documents of {tmp_path / 'corpus'}, 70 of them further copies" in done.stderr
    )
    stored = open_run(Path(done.stdout.splitlines()[-1]))
    assert stored.manifest["content"]["sources"] == {"sharepoint": DOCUMENTS}
    assert stored.manifest["content"]["copies"] == DOCUMENTS - 50
    (row,) = json.loads((stored.directory / "verdict.json").read_text())["crawl"]
    assert (row["count"], row["failures"], row["complete"]) == (DOCUMENTS, 0, True)
    refused = [each for each in stored.operations.to_pylist() if each["outcome"] == "http_429"]
    assert sum(each["count"] for each in refused) > 0
    assert {each["operation"] for each in refused} <= {
        "document:sharepoint/fetch",
        "document:sharepoint/enumerate",
    }
