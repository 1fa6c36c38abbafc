"""Safety: foreign files are not written, and the probe's own files are removed afterwards."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.base.interrupts import Interrupted
from pinchpoint.probe.target import check, described, explained
from pinchpoint_scenarios.storage_probe import TOOLS
from pinchpoint_scenarios.storage_probe.folder import FOLDER, check_room
from pinchpoint_scenarios.storage_probe.place import LocalFacts, LocalMachine, here


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    with explained(), here(parent, 0) as machine:
        yield machine.folder


def test_the_folder_is_gone_afterwards(tmp_path: Path) -> None:
    """The probe's folder is removed, also after a failure; neighbouring files stay."""
    (tmp_path / "precious").write_text("x")
    with pytest.raises(FileNotFoundError), own_folder(tmp_path) as folder:
        (folder / "nowhere" / "probe.data").write_bytes(b"0" * 4096)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_folder_that_somebody_took_away_is_gone(tmp_path: Path) -> None:
    """A folder that vanished, as after an unmount, is no error at the removal."""
    with own_folder(tmp_path) as folder:
        shutil.rmtree(folder)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_in_the_midst_of_clearing_away_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ctrl-C during the removal raises once, and the removal is completed."""
    remove, raised = shutil.rmtree, list[str]()

    def cut_short(path: Path) -> None:
        if not raised:
            raised.append(str(path))
            raise Interrupted
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", cut_short)
    with pytest.raises(Interrupted), own_folder(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_tool_is_started_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    """A tool started in a removed folder gives a sentence without a traceback."""
    gone = LocalMachine(tmp_path / "gone", LocalFacts(tmp_path))
    with pytest.raises(FarmUnavailable, match=r"dd cannot be started.*still mounted"), explained():
        gone.run(TOOLS["dd"], TOOLS["dd"].version(), lambda: False)


def test_a_folder_of_that_name_that_is_not_ours_stays(tmp_path: Path) -> None:
    theirs = tmp_path / FOLDER
    theirs.mkdir()
    (theirs / "precious").write_text("x")
    with pytest.raises(GuardError, match="not by Pinchpoint"), own_folder(tmp_path):
        pass
    assert (theirs / "precious").read_text() == "x"


def test_a_link_of_that_name_is_not_followed(tmp_path: Path) -> None:
    """A symbolic link of that name is not followed, even to a folder with the probe's mark."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "owner.json").write_text("{}")
    (tmp_path / FOLDER).symlink_to(elsewhere)
    with pytest.raises(GuardError), own_folder(tmp_path):
        pass
    assert elsewhere.exists()


def test_what_a_killed_probe_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / FOLDER
    left.mkdir()
    owner = {"pid": 2**22 - 1, "began": 1.0, "host": socket.gethostname()}
    (left / "owner.json").write_text(json.dumps(owner))
    (left / "probe.data").write_bytes(b"0")
    with own_folder(tmp_path) as folder:
        assert not (folder / "probe.data").exists()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_two_probes_do_not_meet(tmp_path: Path, elsewhere: bool) -> None:
    """The folder of another live probe, also on another machine, stays."""
    with own_folder(tmp_path) as folder:
        if elsewhere:
            owner = {"pid": 1, "began": 1.0, "host": "another"}
            (folder / "owner.json").write_text(json.dumps(owner))
        with pytest.raises(GuardError, match="another probe uses it"), own_folder(tmp_path):
            pass
        assert folder.exists()


def test_raw_devices_and_files_are_refused(tmp_path: Path) -> None:
    """A raw device and an existing file are refused, as their content would be lost."""
    with pytest.raises(GuardError, match="raw device"):
        check(Path("/dev/null"))
    file = tmp_path / "data.mdf"
    file.write_text("x")
    with pytest.raises(GuardError, match="did not create"):
        check(file)
    with pytest.raises(InputError, match="is not a folder"):
        check(tmp_path / "nowhere")
    assert file.read_text() == "x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_one_may_not_write_to() -> None:
    with pytest.raises(InputError, match="may not write"):
        check(Path("/"))


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """A file that does not fit, or leaves less than 5 % of the file system, is refused."""
    with pytest.raises(FarmUnavailable, match="does not fit"), explained():
        check_room(str(tmp_path), 96, 100, 1000)
    check_room(str(tmp_path), 49, 100, 1000)


def test_the_disk_is_described(tmp_path: Path) -> None:
    found = described(tmp_path, "dev", "sql.log")
    assert found.folder == str(tmp_path)
    assert found.file_system
    assert found.label == "sql.log of dev"
