"""Tests of copies, when more documents are required than the corpus has: names, space and content."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from infra.content.corpora import in_folder, put
from infra.services.serving import serving
from infra.services.site import BEARER, MODULE, TOKEN

from pinchpoint_infra.content import ContentError, filling, survey
from pinchpoint_infra.content.corpus import Folder
from pinchpoint_infra.content.filling import ingest
from pinchpoint_infra.content.survey import Copies, CorpusDocument

BYTES = {
    b"a/%03d.txt" % number if number % 4 else b"b/c/%03d" % number: b"document %d" % number
    for number in range(40)
}


def corpus(folder: Path) -> Path:
    """Return a folder of forty documents and one other file."""
    for path, content in BYTES.items():
        put(folder, path, content)
    put(folder, b"b/picture", b"\x89PNG\r\n\x1a\n\x00")
    return folder


def found(*paths: bytes) -> list[CorpusDocument]:
    """Return documents with these paths."""
    return [CorpusDocument(path, "text/plain", 1, 0.0) for path in paths]


@pytest.mark.parametrize("cores", [{0}, {0, 1}])
def test_a_hundred_documents_of_forty(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, cores: set[int]
) -> None:
    """Forty documents become a hundred, with one process or several; a copy takes no space."""
    for module in (survey, filling):
        monkeypatch.setattr(module, "_WORTH_PROCESSES", 10)
        monkeypatch.setattr(module, "_FILES_IN_A_PART", 7)
    monkeypatch.setattr(filling, "_COPIES_IN_A_PART", 9)
    share = tmp_path / "share"
    share.mkdir()
    usable = sorted(os.sched_getaffinity(0))
    sentences: list[str] = []
    told = ingest(
        corpus(tmp_path / "corpus"),
        100,
        database,
        share,
        sentences.append,
        {usable[core % len(usable)] for core in cores},
    )
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT path, size_bytes, content, content_of FROM documents").fetchall()
        lists = connection.execute("SELECT title, documents FROM lists").fetchall()
    with serving(MODULE, tmp_path, token=TOKEN, database_url=database) as service:
        paths = [path for path, _, _, of in rows if of is not None]
        answers = {
            path: service.get(f"/_api/web/getfilebyserverrelativeurl('{path}')/$value", **BEARER).data
            for path in (paths[0], paths[-1])
        }
        page = service.get(paths[0], **BEARER).data
    assert told["documents"] == len(rows) + told["sources"]["files"] == 100
    assert (told["copies"], told["stored_bytes"]) == (60, sum(map(len, BYTES.values())))
    assert told["skipped"] == {"PNG image": 1}
    assert told["bytes"] > 2 * told["stored_bytes"]
    assert sum(len(content) for _, _, content, _ in rows if content is not None) < told["stored_bytes"]
    counted = Counter(path.split("/")[3] for path, *_ in rows)
    assert dict(lists) == counted
    for path, answer in answers.items():
        first = path.removeprefix("/sites/corpus/").replace("~2", "").replace("~3", "").encode()
        assert answer == BYTES[first]
    assert page == answers[paths[0]]
    files = in_folder(share)
    assert len(files) == told["sources"]["files"]
    assert Counter(files.values()).keys() <= set(BYTES.values())
    assert len({(share / os.fsdecode(path)).stat().st_ino for path in files}) == 13, "one file, several names"
    assert sentences[-1].startswith("content: 100 of 100 documents")
    assert "MB stored" in sentences[-1]


def test_copies_have_names_of_their_own() -> None:
    """Copies get names that are unique and short enough for a file system, for any document name."""
    names = [
        b"a",
        b"a.txt",
        b".hidden",
        b"x/a~2.txt",
        b"x/a.txt",
        b"x/" + b"n" * 254,
        b"x/" + b"n" * 255,
        b"y.tar.gz",
    ]
    copies = Copies(found(*names), len(names) * 5)
    paths = [path for _, path in copies]
    assert copies.number == len(paths) == len({*paths, *names}) - len(names) == 32
    assert max(len(path.rpartition(b"/")[2]) for path in paths) <= 255
    assert [path for position, path in copies if position == 4] == [
        b"x/a~~%d.txt" % number for number in range(2, 6)
    ]
    assert {position for position, _ in copies} == set(range(len(names)))
    assert list(Copies(found(b"a", b"b", b"c"), 4)) == [(0, b"a~2")]
    assert not list(Copies(found(b"a", b"b"), 2))


def test_what_went_away_since_it_was_looked_at_is_counted(tmp_path: Path) -> None:
    """A document that vanished after the survey is neither loaded nor copied; it is counted without error."""
    put(tmp_path / "corpus", b"there", b"words")
    (tmp_path / "share").mkdir()
    documents = found(b"gone", b"there")
    files = [(each, each.path) for each in documents]
    source = Folder(tmp_path / "corpus")
    loaded = filling.load_files((source, tmp_path / "share", files))
    assert (loaded.documents, dict(loaded.lost)) == (1, {"not readable: no such file or directory": 1})
    copied = filling.load_files(
        (source, tmp_path / "share", [(each, each.path + b"~2") for each in documents])
    )
    assert (copied.documents, copied.stored_bytes) == (1, 0)
    assert set(in_folder(tmp_path / "share")) == {b"there", b"there~2"}


def test_a_filling_that_fails_leaves_the_database_as_it_was(tmp_path: Path, database: str) -> None:
    """If writing to the folder fails, the database's tables are removed and the error states the reason."""
    share = tmp_path / "share"
    share.mkdir()
    (share / "b").write_text("in the way")
    with pytest.raises(ContentError, match="the files folder did not take b/"):
        ingest(corpus(tmp_path / "corpus"), 60, database, share, lambda _: None)
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT to_regclass('documents'), to_regclass('lists')").fetchone() == (
            None,
            None,
        )
