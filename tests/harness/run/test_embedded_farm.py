"""Runs on the embedded farm with real documents: counted and searchable documents."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import end, run_cli, start_cli, wait_for_line

from pinchpoint.store.read import open_run
from pinchpoint_infra.embedded import status
from pinchpoint_infra.embedded.place import farm_directory

pytestmark = pytest.mark.farm

DOCUMENTS = Path("/usr/share/doc")
PLAN = {
    "name": "crawl",
    "scenarios": {
        "crawl": {"use": "full-crawl", "load": {"model": "closed", "users": 4}},
        "orders": {"use": "sql-mix", "load": {"model": "open", "rate": "20/s"}},
        "burst": {
            "use": "nosql-burst",
            "load": {"model": "burst", "base": "10/s", "peak": "50/s", "every": "5s", "for": "1s"},
        },
    },
    "phases": {"warm_up": "1s", "measure": {"until": "done", "at_least": "12s", "at_most": "2m"}},
}


def real_documents(folder: Path, wanted: int) -> None:
    """Copy text files of this machine's documentation, some gzipped, some with odd names."""
    for copied, source in enumerate(sorted(DOCUMENTS.glob("*/copyright"))[:wanted]):
        target = folder / f"{source.parent.name} & söhne #{copied}" / "copyright 100%.txt"
        target.parent.mkdir(parents=True)
        if copied % 3:
            shutil.copy(source.resolve(), target)
        else:
            with gzip.open(target.with_suffix(".txt.gz"), "wb") as packed:
                packed.write(source.resolve().read_bytes())


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("corpus")
    real_documents(folder, 60)
    (folder / "empty.txt").touch()
    (folder / "page").write_bytes(b"<html><body><p>zugzwang <b>x</b></p></body></html>")
    (folder / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "link.txt").symlink_to(folder / "page")
    return folder


@pytest.fixture(scope="module")
def farm(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder: Path = tmp_path_factory.mktemp("farm")
    path = folder / "farm.yaml"
    content = {
        "name": "real",
        "environment": "test",
        "embedded": {
            "tiers": ["web", "sql", "search", "nosql", "files"],
            "content": {"corpus": str(corpus)},
        },
    }
    path.write_text(json.dumps(content))
    (folder / "plan.yaml").write_text(json.dumps(PLAN))
    done = run_cli("farm", "up", path)
    assert done.returncode == 0, done.stderr
    yield path
    assert run_cli("farm", "down", path).returncode == 0
    assert not farm_directory(path).exists()


def hits(search: dict[str, str], word: str) -> set[str]:
    query = urllib.parse.urlencode({"q": word, "limit": 1000})
    login = {"Authorization": f"Bearer {search['token']}"}
    request = urllib.request.Request(f"{search['url']}/query?{query}", headers=login)  # noqa: S310 -- http
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 -- http
        return {urllib.parse.unquote(hit["url"]) for hit in json.load(answer)["hits"]}


@pytest.mark.slow  # half a minute; tests of the crawl and of the search service cover its parts in CI
def test_the_crawl_counts_and_finds_every_document(farm: Path, corpus: Path, tmp_path: Path) -> None:
    """Counts per source equal the files, and every document is found by one of its rare words."""
    done = run_cli("run", farm.with_name("plan.yaml"), "--farm", farm, "--out", tmp_path, timeout_s=200)
    assert done.returncode in (0, 3), done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    content = open_run(directory).manifest["content"]
    documents = sorted(path for path in corpus.rglob("*") if path.is_file() and not path.is_symlink())
    documents.remove(corpus / "picture.txt")
    assert content["documents"] == len(documents) == 62
    assert sum(content["skipped"].values()) == 2
    crawl = json.loads((directory / "verdict.json").read_text())["crawl"]
    assert {row["source"]: row["count"] for row in crawl} == content["sources"]
    assert all(row["failures"] == 0 and row["complete"] for row in crawl)
    found = status(farm)
    assert found.state == "up", "it was up before the run, so it is up after it"
    texts = {path: text_of(path) for path in documents}
    seen = Counter(word for text in texts.values() for word in set(re.findall(r"\w+", text)))
    for path, text in texts.items():
        if words := re.findall(r"\w+", text):
            rare = min(words, key=lambda word: (seen[word], -len(word)))
            names = hits(found.endpoints["search"], rare)
            relative = str(path.relative_to(corpus))
            assert any(name.endswith(relative) for name in names), f"{relative}: {rare!r} found {names}"


def test_a_crashed_tier_ends_the_run_and_is_reported(farm: Path, tmp_path: Path) -> None:
    """A search service killed during the run gives exit status 5 with its name; data is kept."""
    process = start_cli("run", farm.with_name("plan.yaml"), "--farm", farm, "--out", tmp_path)
    wait_for_line(process, "measuring")
    [search] = [tier for tier in status(farm).tiers if tier.name == "search"]
    os.kill(search.pid or 0, signal.SIGKILL)
    code, out, err = end(process)
    assert code == 5, err
    assert "tier search crashed (ended by SIGKILL)" in err
    assert "Traceback" not in err
    assert (Path(out.splitlines()[-1]) / "report.html").exists()
    assert run_cli("farm", "status", farm).returncode == 5
