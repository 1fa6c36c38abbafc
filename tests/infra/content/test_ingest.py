"""Ingest of real folders into a real PostgreSQL: documents taken, distributed, skipped and refused."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from infra.content.corpora import in_folder, put

from pinchpoint_infra.content import ContentError, filling
from pinchpoint_infra.content.database import readable
from pinchpoint_infra.content.filling import ingest

ODD_NAMES = (
    b"a space.txt",
    b"it's quoted''.txt",
    b"100%.txt",
    b"%41.txt",
    b"a#b?c&d=e+f;g.txt",
    b'back\\slash "double".txt',
    b"line\nfeed\ttab.txt",
    "größe ☃ 泵.txt".encode(),
    b"latin\xe9.txt",
    b"latin\xe8.txt",
    "latin\uf0e9.txt".encode(),  # the name that the previous one becomes
    b"-rf",
    b".hidden",
)


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


def said(sentences: list[str]) -> None:
    assert sentences
    assert all(sentences)


def in_database(url: str) -> dict[str, bytes]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT path, content FROM documents ORDER BY id").fetchall()
        assert connection.execute("SELECT coalesce(sum(documents), 0) FROM lists").fetchone() == (len(rows),)
    return {path.removeprefix("/sites/corpus/"): content for path, content in rows}


def test_every_third_document_goes_to_the_folder(tmp_path: Path, database: str, share: Path) -> None:
    """Every third document, by path, goes to the folder; no byte is lost, and the rest is counted."""
    corpus = tmp_path / "corpus"
    documents = {b"%02d/doc" % number: b"words %d" % number for number in range(8)} | {b"zz": b""}
    for path, content in documents.items():
        put(corpus, path, content)
    put(corpus, b"00/a.txt", b"\x89PNG\r\n\x1a\n\x00")
    put(corpus, b"00/b.txt.gz", gzip.compress(b"\x00"))
    (corpus / "link").symlink_to("zz")
    os.mkfifo(corpus / "pipe")
    sentences: list[str] = []
    found = ingest(corpus, None, database, share, sentences.append)
    said(sentences)
    assert found == {
        "corpus": str(corpus),
        "documents": 9,
        "bytes": sum(map(len, documents.values())),
        "copies": 0,
        "stored_bytes": sum(map(len, documents.values())),
        "sources": {"sharepoint": 6, "files": 3},
        "skipped": {
            "PNG image": 1, "gzip of binary data": 1, "not a regular file": 1, "symbolic link": 1,
        },
        "generated": False,
    }  # fmt: skip
    ordered = sorted(documents)
    assert in_folder(share) == {path: documents[path] for path in ordered[2::3]}
    expected = [path for number, path in enumerate(ordered) if number % 3 != 2]
    assert list(in_database(database).values()) == [documents[path] for path in expected]


@pytest.mark.parametrize("place", ["database", "folder"])
def test_all_goes_to_the_place_there_is(tmp_path: Path, database: str, share: Path, place: str) -> None:
    """With only one place, all documents go there."""
    corpus = tmp_path / "corpus"
    for number in range(5):
        put(corpus, b"%d.txt" % number, b"words")
    if place == "database":
        found = ingest(corpus, None, database, None, lambda _: None)
        assert found["sources"] == {"sharepoint": 5}
        assert len(in_database(database)) == 5
    else:
        found = ingest(corpus, None, None, share, lambda _: None)
        assert found["sources"] == {"files": 5}
        assert len(in_folder(share)) == 5


def test_odd_names_survive(tmp_path: Path, database: str, share: Path) -> None:
    """Unusual names stay byte for byte in the folder, and get different texts in the database."""
    corpus = tmp_path / "corpus"
    deep = b"/".join([b"d" * 200] * 15)
    for name in (*ODD_NAMES, deep):
        put(corpus, b"odd #'%\xff/" + name, b"words in " + name)
    count = len(ODD_NAMES) + 1
    assert ingest(corpus, None, None, share, lambda _: None)["documents"] == count
    assert in_folder(share) == in_folder(corpus)
    assert ingest(corpus, None, database, None, lambda _: None)["documents"] == count
    assert set(in_database(database)) == {readable(path) for path in in_folder(corpus)}


def test_names_become_text_one_to_one() -> None:
    """Different names become different texts, and UTF-8 stays the same."""
    assert readable("größe 泵".encode()) == "größe 泵"
    assert readable(b"caf\xe9") == "caf\uf0e9"
    names = [
        b"\xe9",
        "\uf0e9".encode(),
        b"\xef\x83\xa9\xe9",
        "\uf0ef\uf083\uf0a9".encode(),
        b"\xef",
        b"\xef\x83",
    ]
    assert len({readable(name) for name in names}) == len(names)


def test_root_files_get_a_list_no_folder_has(tmp_path: Path, database: str) -> None:
    """Files outside any folder get a list of their own, also if a folder has the list's name."""
    corpus = tmp_path / "corpus"
    for path in (b"top.txt", b"Documents/below.txt", b"documents (root)/below.txt"):
        put(corpus, path, b"words")
    ingest(corpus, None, database, None, lambda _: None)
    assert set(in_database(database)) == {
        "Documents (root) (root)/top.txt", "Documents/below.txt", "documents (root)/below.txt",
    }  # fmt: skip


def test_a_limit_chooses_the_same_documents_again(tmp_path: Path, share: Path) -> None:
    """A limit selects that many documents, spread over the folder, the same ones each time."""
    corpus = tmp_path / "corpus"
    for number in range(100):
        put(corpus, b"%d/%02d" % (number // 10, number), b"words")
    chosen = []
    for name in ("once", "again"):
        (share / name).mkdir()
        found = ingest(corpus, 40, None, share / name, lambda _: None)
        assert found["documents"] == 40
        assert found["skipped"] == {"beyond the limit of 40 documents": 60}
        chosen.append(set(in_folder(share / name)))
    assert chosen[0] == chosen[1]
    assert len({path.partition(b"/")[0] for path in chosen[0]}) >= 8


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda _: None, "there is no such folder"),
        (lambda path: path.write_text("words"), "this is a file, not a folder"),
        (lambda path: path.mkdir(), r"there is no document in it \(it is empty\)"),
        (lambda path: put(path, b"a", b"\0"), r"no document in it \(skipped: 1 of them: binary data\)"),
    ],
)
def test_a_corpus_that_is_none_is_refused_in_a_sentence(
    tmp_path: Path, database: str, share: Path, make: Callable[[Path], None], sentence: str
) -> None:
    """A bad corpus is refused with the folder and the remedy, and the database stays the same."""
    corpus = tmp_path / "corpus"
    make(corpus)
    with pytest.raises(ContentError, match=sentence) as refused:
        ingest(corpus, None, database, share, lambda _: None)
    assert str(corpus) in str(refused.value)
    assert "name a folder" in str(refused.value)
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT to_regclass('documents')").fetchone() == (None,)


@contextmanager
def without_roots_rights() -> Iterator[None]:
    """Run the block as the user nobody if the user is root."""
    user = os.geteuid()
    os.seteuid(user or 65_534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_what_must_not_be_read_is_counted(tmp_path: Path, share: Path) -> None:
    """Files and folders without read permission are skipped and counted; an unreadable corpus is refused."""
    corpus = tmp_path / "corpus"
    for path in (b"open.txt", b"closed.txt", b"inner/closed.txt"):
        put(corpus, path, b"words")
    share.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    (corpus / "closed.txt").chmod(0)
    (corpus / "inner").chmod(0)
    try:
        with without_roots_rights():
            found = ingest(corpus, None, None, share, lambda _: None)
            with pytest.raises(ContentError, match="cannot be read: permission denied"):
                ingest(corpus / "inner", None, None, share, lambda _: None)
    finally:
        (corpus / "inner").chmod(0o755)
    assert found["documents"] == 1
    assert found["skipped"] == {
        "folder not readable: permission denied": 1, "not readable: permission denied": 1,
    }  # fmt: skip


def test_a_folder_that_refuses_is_said(tmp_path: Path) -> None:
    """A file that cannot be written is named with the reason."""
    put(tmp_path, b"a/b", b"words")
    (tmp_path / "share").mkdir()
    (tmp_path / "share" / "a").write_text("in the way")
    with pytest.raises(ContentError, match=r"the files folder did not take a/b: File exists"):
        ingest(tmp_path, None, None, tmp_path / "share", lambda _: None)


def test_the_default_corpus_is_bounded_and_generated_only_where_there_is_none(
    tmp_path: Path, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default corpus is the machine's documentation without large files, or else a generated one."""
    documentation = tmp_path / "doc"
    monkeypatch.setattr(filling, "DOCUMENTATION", documentation)
    for name in ("missing", "empty"):
        (share / name).mkdir()
        found = ingest(None, None, None, share / name, lambda _: None)
        assert found["generated"]
        assert found["corpus"] == "generated"
        assert found["documents"] == len(in_folder(share / name)) >= 200
        documentation.mkdir(exist_ok=True)
    assert in_folder(share / "missing") == in_folder(share / "empty")
    put(documentation, b"small", b"words")
    put(documentation, b"large", b"words " * 2**18)
    (share / "real").mkdir()
    found = ingest(None, None, None, share / "real", lambda _: None)
    assert (found["documents"], found["skipped"]) == (1, {"larger than 1 MiB": 1})
    assert in_folder(share / "real") == {b"small": b"words"}


def test_a_database_that_refuses_is_said(tmp_path: Path) -> None:
    """A missing database server gives one sentence without a password."""
    put(tmp_path, b"a", b"words")
    with pytest.raises(ContentError, match="content database") as refused:
        ingest(tmp_path, None, "postgresql://u:secret@127.0.0.1:1/x", None, lambda _: None)
    assert "secret" not in str(refused.value)
