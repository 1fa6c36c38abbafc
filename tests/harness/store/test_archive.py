"""`pack` and `unpack`: the content is restored exactly, or refused with a sentence."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support import require, run_cli

from pinchpoint.base.errors import InputError
from pinchpoint.store import archive

RUN = Path(__file__).parents[2] / "golden_runs" / "real" / "log-cap-240"
KEPT = Path(__file__).with_name("archives")
"""A signed archive of November 2026, which every later version must read."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run in a folder with other files beside it."""
    directory = tmp_path / "runs" / "a-run"
    shutil.copytree(RUN, directory)
    (directory / "id_rsa").write_text("a secret")
    (directory / "link.html").symlink_to("/etc/passwd")
    return directory


@pytest.fixture
def packed(run: Path) -> Path:
    """Return the run's archive."""
    done = run_cli("pack", run)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def _key(folder: Path, name: str) -> Path:
    require("ssh-keygen", "openssh-client")
    path = folder / name
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@x", "-f", str(path)]
    subprocess.run(made, check=True)
    return path


def _contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_what_comes_out_is_what_went_in(run: Path, packed: Path, tmp_path: Path) -> None:
    """The run is restored byte for byte without other files, and packs to the same archive."""
    assert packed == run.parent / "a-run.pinchpoint.zip"
    done = run_cli("unpack", packed, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"{tmp_path / 'out' / 'a-run'}\n",
        "not signed\n",
    )
    assert _contents(tmp_path / "out" / "a-run") == _contents(RUN)
    again = run_cli("pack", run, "--out", tmp_path / "again.zip")
    assert again.stderr == "not packed, as no part of a run: id_rsa\n"
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_an_archive_of_2026_is_read_for_ever(tmp_path: Path) -> None:
    """The archive of 2026 is read with its signature, checksums and verdict."""
    [file] = KEPT.glob("*.zip")
    require("ssh-keygen", "openssh-client")
    done = run_cli("unpack", file, "--out", tmp_path, "--signers", KEPT / "signers")
    assert (done.returncode, done.stderr) == (0, "signed by archive@pinchpoint.test\n")
    said = run_cli("analyse", done.stdout.strip())
    assert said.stdout.startswith("Bottleneck: log disk of the sql tier")


def test_a_signature_is_checked(run: Path, packed: Path, tmp_path: Path) -> None:
    """Signatures are checked: known key, unknown key, none, and another index."""
    mine, other = _key(tmp_path, "mine"), _key(tmp_path, "other")
    signers = tmp_path / "signers"
    signers.write_text(f"mine@x {mine.with_suffix('.pub').read_text()}")
    by = {"mine": tmp_path / "by-mine.zip", "other": tmp_path / "by-other.zip", "nobody": packed}
    for name, key in (("mine", mine), ("other", other)):
        assert run_cli("pack", run, "--out", by[name], "--sign", key).returncode == 0
    said = {}
    for name, file in by.items():
        done = run_cli("unpack", file, "--out", tmp_path / f"out-{name}", "--signers", signers)
        said[name] = (done.returncode, done.stderr.strip())
    assert said["mine"] == (0, "signed by mine@x")
    assert said["other"][0] == said["nobody"][0] == 2
    assert "is signed by no key of" in said["other"][1]
    assert "add the sender's key to that file" in said["other"][1]
    assert "is not signed" in said["nobody"][1]
    unknown = run_cli("unpack", by["other"], "--out", tmp_path / "plain")
    assert unknown.returncode == 0
    assert "signed with the ED25519 key SHA256:" in unknown.stderr
    changed = _changed(by["mine"], tmp_path / "changed.zip", {archive.INDEX: lambda raw: raw + b" "})
    refused = run_cli("unpack", changed, "--out", tmp_path / "changed")
    assert refused.returncode == 2
    assert "its signature is not valid" in refused.stderr
    no_key = run_cli("pack", run, "--out", tmp_path / "no.zip", "--sign", tmp_path / "none")
    assert (no_key.returncode, (tmp_path / "no.zip").exists()) == (2, False)


def _changed(file: Path, target: Path, change: dict[str, Callable[[bytes], bytes]]) -> Path:
    """Return a copy of an archive with some files replaced."""
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in source.infolist():
            content = source.read(entry)
            made.writestr(entry, change.get(entry.filename, bytes)(content))
    return target


def _hostile(target: Path, files: dict[str, bytes], *, mode: int = stat.S_IFREG, run: str = "a-run") -> Path:
    """Return an archive with a matching index and forbidden files."""
    index = {
        "schema": archive.SCHEMA,
        "name": run,
        "files": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        },
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (mode | 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, content)
        made.writestr(archive.INDEX, json.dumps(index))
    return target


@pytest.mark.parametrize(
    ("hostile", "said"),
    [
        (lambda at: _hostile(at, {"../../evil": b"x"}), "'../../evil' is no file of a run"),
        (lambda at: _hostile(at, {"/etc/evil": b"x"}), "'/etc/evil' is no file"),
        (lambda at: _hostile(at, {"a\\..\\evil": b"x"}), "evil' is no file"),
        (lambda at: _hostile(at, {"sub/manifest.json": b"x"}), "'sub/manifest.json' is no file"),
        (lambda at: _hostile(at, {"manifest.json": b"x"}, run="../up"), "'../up' is no name for"),
        (lambda at: _hostile(at, {"report.html": b"/etc/passwd"}, mode=stat.S_IFLNK), "is a link"),
        (lambda at: _hostile(at, {"manifest.json": b""}, mode=stat.S_IFIFO), "is a link"),
        (lambda at: _hostile(at, {".bashrc": b"x"}), "'.bashrc' is no file"),
        (lambda at: _hostile(at, {"run.sh": b"x"}), "'run.sh' is no file of a run"),
        (lambda at: _hostile(at, {"report.html": bytes(80 << 20)}), "unpacks to 83886080 bytes"),
        (lambda at: _hostile(at, {"manifest.json": b"{]"}), "/manifest.json: cannot be read as JSON"),
        (lambda at: at.write_bytes(b""), "is no archive"),
        (lambda at: at.write_text("a text"), "is no archive"),
        (lambda at: at.mkdir(), "is a folder"),
        (os.mkfifo, "is no plain file"),
        (lambda at: None, "there is no such file"),
    ],
)  # fmt: skip
def test_a_hostile_archive_is_refused(hostile: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    """A hostile archive gives exit status 2 and one sentence, and nothing is written."""
    file = tmp_path / "hostile.zip"
    hostile(file)
    before = sorted(tmp_path.iterdir())
    done = run_cli("unpack", file, "--out", tmp_path / "deep" / "out")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list((tmp_path / "deep" / "out").glob("*"))
    assert sorted(path for path in tmp_path.iterdir() if path.name != "deep") == before


def test_what_the_index_does_not_name_is_refused(packed: Path, tmp_path: Path) -> None:
    """Extra, missing and repeated files are refused."""
    more, less, twice = (
        Path(shutil.copy(packed, tmp_path / name)) for name in ("more.zip", "less.zip", "twice.zip")
    )
    with zipfile.ZipFile(more, "a") as made:
        made.writestr("report.pdf", b"x")
    _changed(packed, less, {archive.INDEX: lambda raw: raw.replace(b"events.jsonl", b"report.jsonl")})
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(twice, "a") as made:
        made.writestr("events.jsonl", b"")
    for file in (more, less, twice):
        done = run_cli("unpack", file, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert "index and content differ" in done.stderr


def test_a_file_that_was_cut_off_or_changed_is_refused(packed: Path, tmp_path: Path) -> None:
    """An archive cut or changed at any place is refused, unless the byte is no content."""
    raw = packed.read_bytes()
    draw = random.Random(1)
    cut = [raw[:length] for length in draw.sample(range(len(raw)), 40)]
    changed = [
        raw[:place] + bytes([raw[place] ^ 1 << draw.randrange(8)]) + raw[place + 1 :]
        for place in (*draw.sample(range(len(raw)), 80), *range(len(raw) - 500, len(raw), 7))
    ]
    refused = unpacked = 0
    for number, content in enumerate((*cut, *changed)):
        file, out = tmp_path / "damaged.zip", tmp_path / f"out{number}"
        file.write_bytes(content)
        try:
            found = archive.unpack(file, out)
        except InputError as error:
            refused += str(file) in str(error) and not out.exists()
        else:
            assert number >= len(cut), "a file that was cut off was unpacked"
            assert _contents(found.directory) == _contents(RUN)
            unpacked += 1
    assert refused == len(cut) + len(changed) - unpacked
    assert unpacked < len(changed) // 2


@pytest.mark.parametrize("part", ["manifest.json", "samples.parquet", "events.jsonl"])
def test_a_changed_file_is_named(packed: Path, tmp_path: Path, part: str) -> None:
    """A changed file is named, although its ZIP checksum is right."""
    file = _changed(packed, tmp_path / "changed.zip", {part: lambda raw: raw[:-2] + b"#" + raw[-1:]})
    done = run_cli("unpack", file, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert f"{part}: is not what was packed (its checksum differs)" in done.stderr


def test_what_cannot_be_packed(run: Path, packed: Path, tmp_path: Path) -> None:
    """No run, an existing archive, a secret in the manifest and an existing run are refused."""
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    for arguments, said in (
        (("pack", tmp_path), "holds no manifest.json"),
        (("pack", run), "exists already"),
        (("unpack", packed, "--out", run.parent), "exists already"),
    ):
        done = run_cli(*arguments)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    manifest["farm"]["endpoints"] = {"sql": {"url": "postgresql://loader:hunter2@sql1/db"}}
    path.write_text(json.dumps(manifest))
    done = run_cli("pack", run, "--out", tmp_path / "other.zip")
    assert done.returncode == 2
    assert "farm.endpoints.sql.url" in done.stderr
    assert "hunter2" not in done.stderr
    assert not (tmp_path / "other.zip").exists()
