"""Packs a finished run into a ZIP archive with a checksum of each file, and a signature on request.

Only files that belong to a run are packed, and only files in the archive's index are unpacked. An archive has
no folders, so no name in an archive can lead out of the target folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.base.redact import redacted_value
from pinchpoint.store import document
from pinchpoint.store.document import Count, Form
from pinchpoint.store.read import open_run, read_manifest
from pinchpoint.store.schema import EVENTS, MANIFEST, OPERATIONS, SAMPLES, VERDICT

SCHEMA = "pinchpoint.archive/1"
ENDING = ".pinchpoint.zip"
INDEX, SIGNATURE = "index.json", "index.json.sig"
NAMESPACE = "pinchpoint-archive"
"""The namespace of signatures; a signature made for another purpose is not valid for an archive."""

_OF_RUN = (MANIFEST, OPERATIONS, SAMPLES, EVENTS)
_REPORT = re.compile(r"report\.[a-z]{2,5}")
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time stamp of each packed file, constant so that the same run always gives the same archive."""
_CHUNK = 1 << 20
_MOST_INDEX_BYTES = 1 << 20
_COPY = "copy the file again"
_TRUST = "ask for an archive signed with one of them, or add the sender's key to that file"
_NO_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
"""The errors that zipfile raises for a file that is not an archive or was changed."""


class Packed(Form):
    """Size and SHA-256 checksum of one file in an archive."""

    bytes: Count
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Index(Form):
    """The index of an archive.

    Attributes:
        name: name of the run's folder.
        files: file name -> size and checksum.
    """

    name: str
    files: Mapping[str, Packed]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The result of unpacking an archive.

    Attributes:
        directory: the run directory.
        signed: sentence that names the signer; None if the archive is not signed.
    """

    directory: Path
    signed: str | None


def pack(directory: Path, out: Path | None = None, key: Path | None = None) -> tuple[Path, list[str]]:
    """Pack a finished run; returns the archive's path and the names of files that were left out.

    Args:
        directory: the run directory.
        out: path of the archive, or the folder for the archive; by default the run directory's parent.
        key: ssh key for the signature: file of a private key, or of a public key that a running ssh agent
            has.

    Raises:
        InputError: the directory is not a run, the run is in progress or contains a secret, or the archive
            cannot be written.
        FarmUnavailable: this machine cannot sign the archive.
    """
    directory = directory.resolve()
    if open_run(directory).manifest["state"] == "running":
        raise InputError(f"{directory}: this run is still going on; pack it when it has ended")
    # Pinchpoint writes manifests without secrets, but a manifest edited later may contain one.
    manifest = read_manifest(directory)
    result = next(_differences(manifest, redacted_value(manifest), ""), None)
    if result is not None:
        raise InputError(
            f"{directory / MANIFEST}: {result}: holds what looks like a secret; replace it by ***"
        )
    path = out or directory.parent
    path = path / f"{directory.name}{ENDING}" if path.is_dir() else path
    if path.exists():
        raise InputError(f"{path}: exists already; move it away, or give another place with --out")
    there = sorted(entry.name for entry in directory.iterdir() if entry.is_file() and not entry.is_symlink())
    chosen = [name for name in there if _of_run(name)]
    partial = path.with_name(f"{path.name}.partial")
    try:
        with zipfile.ZipFile(partial, "x", zipfile.ZIP_DEFLATED) as archive:
            files = {name: _add(archive, directory / name) for name in chosen}
            index = json.dumps(
                {"schema": SCHEMA, "name": _run_name(directory), "files": files}, indent=1
            ).encode()
            archive.writestr(_entry(INDEX), index)
            if key is not None:
                archive.writestr(_entry(SIGNATURE), _signature(index, key))
        partial.replace(path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; give another place with --out"
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return path, [name for name in there if name not in chosen]


def unpack(file: Path, parent: Path, signers: Path | None = None) -> Unpacked:
    """Unpack an archive completely, or not at all, into a folder with the run's name below ``parent``.

    Args:
        file: the archive.
        parent: the folder in which the run's folder is created.
        signers: file of "allowed signers" for ssh-keygen; one of them must have signed the archive. None: any
            signer.

    Raises:
        InputError: the file is not an archive, is damaged or unsafe, its signature is wrong, or the run's
            folder exists.
        FarmUnavailable: this machine cannot check the signature.
    """
    with _opened(file) as archive:
        index, raw = _index(file, archive)
        signed = _check_signature(file, archive, raw, signers)
        _check_entries(file, archive, index)
        target = parent / index.name
        if target.exists():
            raise InputError(f"{target}: exists already; move it away, or give another folder with --out")
        new = not parent.exists()
        try:
            parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{index.name}.", dir=parent) as made:
                place = Path(made) / index.name
                place.mkdir()
                for name, packed in index.files.items():
                    _extract(file, archive, name, packed, place / name)
                _check_run(file, place)
                place.rename(target)
        except OSError as error:
            raise InputError(
                f"{error.filename or parent}: cannot be written: {error.strerror}; "
                "give another folder with --out"
            ) from error
        finally:
            if new and not target.exists():
                with suppress(OSError):  # the folder was not created, or has other files by now
                    parent.rmdir()
    return Unpacked(target, signed)


def _check_run(file: Path, place: Path) -> None:
    try:
        read_manifest(place)
    except InputError as error:
        raise InputError(*(one.replace(str(place), str(file)) for one in error.problems)) from error


def _of_run(name: str) -> bool:
    return name in (*_OF_RUN, VERDICT) or _REPORT.fullmatch(name) is not None


def _run_name(directory: Path) -> str:
    """The folder's name, with characters replaced that other systems may not accept in a name."""
    if re.fullmatch(_NAME, directory.name):
        return directory.name
    return re.sub(r"[^A-Za-z0-9_.-]", "-", directory.name).strip(".-")[:100] or "run"


def _differences(value: Any, clean: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _differences(inner, clean.get(key), f"{place}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for number, (inner, other) in enumerate(zip(value, clean, strict=True)):
            yield from _differences(inner, other, f"{place}[{number}]")
    elif value != clean:
        yield place


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.create_system = 3
    return entry


def _add(archive: zipfile.ZipFile, path: Path) -> dict[str, int | str]:
    digest, size = hashlib.sha256(), 0
    entry = _entry(path.name)
    entry.file_size = path.stat().st_size  # zipfile uses the size to decide whether to write 64-bit sizes
    with path.open("rb") as source, archive.open(entry, "w") as packed:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            packed.write(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    """The opened archive; errors of the ZIP file are raised as one ``InputError``."""
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise InputError(f"{file}: is no plain file; give an archive (NAME{ENDING})")
        with zipfile.ZipFile(file) as archive:
            yield archive
    except FileNotFoundError as error:
        raise InputError(f"{file}: there is no such file; `pinchpoint pack RUN` writes one") from error
    except IsADirectoryError as error:
        raise InputError(f"{file}: is a folder; give an archive (NAME{ENDING})") from error
    except PermissionError as error:
        raise InputError(f"{file}: no right to read this file; check its owner and mode") from error
    except _NO_ZIP as error:
        raise InputError(
            f"{file}: is no archive of `pinchpoint pack`, or it was cut off or changed ({error}); {_COPY}"
        ) from error


def _index(file: Path, archive: zipfile.ZipFile) -> tuple[Index, bytes]:
    names = archive.namelist()
    if INDEX not in names:
        raise InputError(f"{file}: holds no {INDEX}, so it is no archive of `pinchpoint pack`")
    raw = _read(file, archive, INDEX, _MOST_INDEX_BYTES)
    _, index = document.parsed(raw, Index, f"{file}: {INDEX}", _COPY, SCHEMA)
    return index, raw


def _read(file: Path, archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(name) as packed:
        result = packed.read(most + 1)
    if len(result) > most:
        raise InputError(
            f"{file}: {name}: is larger than {most} bytes; this is no archive of `pinchpoint pack`"
        )
    return result


def _check_entries(file: Path, archive: zipfile.ZipFile, index: Index) -> None:
    """Raise ``InputError`` unless the entries match the index, are plain files and have a plausible size."""
    if not re.fullmatch(_NAME, index.name):
        raise InputError(f"{file}: {index.name[:60]!r} is no name for a run's folder")
    if strange := [name for name in index.files if not _of_run(name)]:
        raise InputError(f"{file}: {strange[0][:60]!r} is no file of a run")
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    odd = sorted((set(names) - {INDEX, SIGNATURE}) ^ set(index.files))
    if odd or len(names) != len(set(names)):
        what = repr(odd[0][:60]) if odd else "a name twice"
        raise InputError(f"{file}: index and content differ: {what}; {_COPY}")
    links = [
        entry.filename for entry in entries if (entry.external_attr >> 28) not in (0, 8) or entry.is_dir()
    ]
    if links:
        raise InputError(f"{file}: {links[0]}: is a link, a folder or a device; allowed: plain files")
    size = sum(packed.bytes for packed in index.files.values())
    if size > document.most_unpacked(file):
        raise InputError(
            f"{file}: unpacks to {size} bytes; allowed: {document.most_unpacked(file)}, by its own size"
        )


def _extract(file: Path, archive: zipfile.ZipFile, name: str, packed: Packed, target: Path) -> None:
    digest, left = hashlib.sha256(), packed.bytes
    with archive.open(name) as source, target.open("xb") as written:
        while chunk := source.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                break
            digest.update(chunk)
            written.write(chunk)
    if left or digest.hexdigest() != packed.sha256:
        raise InputError(f"{file}: {name}: is not what was packed (its checksum differs); {_COPY}")


def _signature(index: bytes, key: Path) -> bytes:
    if not key.is_file():
        raise InputError(
            f"--sign: {key}: there is no such file; give your ssh key, such as ~/.ssh/id_ed25519"
        )
    return _ssh_keygen("sign", "-f", str(key), data=index, remedy="give another key with --sign")


def _check_signature(file: Path, archive: zipfile.ZipFile, index: bytes, signers: Path | None) -> str | None:
    """A sentence that names the signer; None if the archive is not signed and no signers are given."""
    if SIGNATURE not in archive.namelist():
        if signers is not None:
            raise InputError(
                f"{file}: is not signed, and --signers wants a signature; ask for a signed archive"
            )
        return None
    if signers is not None and not signers.is_file():
        raise InputError(f"--signers: {signers}: there is no such file")
    wrong = f"{file}: its signature is not valid"
    with tempfile.NamedTemporaryFile(prefix="pinchpoint-", suffix=".sig") as signature:
        signature.write(_read(file, archive, SIGNATURE, _MOST_INDEX_BYTES))
        signature.flush()
        given = ("-s", signature.name)
        if signers is None:
            answer = _ssh_keygen("check-novalidate", *given, data=index, remedy=_COPY, wrong=wrong).decode()
            key = re.search(r"(\S+ key \S+)\s*$", answer)
            who = key.group(1) if key else answer.strip()
            return f"signed with the {who}; whose key that is was not checked (--signers FILE)"
        known = ("-f", str(signers))
        unknown = f"{file}: is signed by no key of {signers}"
        who = (
            _ssh_keygen("find-principals", *given, *known, remedy=_TRUST, wrong=unknown)
            .decode()
            .split("\n")[0]
        )
        _ssh_keygen("verify", *given, *known, "-I", who, data=index, remedy=_COPY, wrong=wrong)
        return f"signed by {who}"


def _ssh_keygen(
    action: str, *arguments: str, data: bytes = b"", remedy: str, wrong: str = "it cannot be signed"
) -> bytes:
    """The output of ``ssh-keygen -Y ACTION``."""
    space = () if action == "find-principals" else ("-n", NAMESPACE)
    try:
        done = subprocess.run(
            ["ssh-keygen", "-Y", action, *space, *arguments], input=data, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise FarmUnavailable(
            "ssh-keygen is not installed, and signatures need it; install OpenSSH's client (8.2 or newer)"
        ) from error
    if done.returncode:
        answer = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(f"{wrong} ({answer[-1] if answer else 'ssh-keygen failed'}); {remedy}")
    return done.stdout
