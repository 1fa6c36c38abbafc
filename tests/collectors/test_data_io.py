"""What the kernel counts as a write: judged on recorded counts, and tried out on real devices."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pinchpoint_collectors.linux import data_io
from pinchpoint_collectors.linux.data_io import Counts, judge, verify_data_io


@pytest.mark.parametrize(
    ("overwritten", "appended", "counted", "why"),
    [
        # Recorded: loop devices, direct I/O; ext4 without and with a journal, write cache on and off; virtio.
        (Counts(409, 200, 209), Counts(600, 200, 400), "writes-flushes", "409 writes, 200 flushes"),
        (Counts(400, 200, 200), Counts(601, 401, 1201), "unknown", "a journal"),
        (Counts(200, 0, 200), Counts(600, 0, 1200), "kernel", "200 writes, 0 flushes"),
        (Counts(405, 200, 205), Counts(600, 200, 400), "writes-flushes", "600 writes"),
        # A kernel before 5.5 has no flush count to take off.
        (Counts(400, 0, 200), Counts(600, 0, 400), "unknown", "fit no rule"),
        # Somebody streams large writes to the same device meanwhile.
        (Counts(460, 200, 9000), Counts(660, 200, 9000), "unknown", "disturbed"),
        # A disk so slow that the time was up.
        (Counts(6, 3, 3), Counts(6, 3, 3), "unknown", "too few"),
    ],
)
def test_the_judgement(overwritten: Counts, appended: Counts, counted: str, why: str) -> None:
    """Every answer carries its figures; what fits no rule is unknown."""
    answer = judge(overwritten, appended)
    assert answer.counted == counted
    assert why in answer.why


def test_on_this_disk_nothing_is_left_behind(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """The test ends within its bound, says its figures and leaves no file."""
    answer = verify_data_io(tmp_path, real_disk(tmp_path))
    assert answer.counted in ("kernel", "writes-flushes", "unknown")
    assert "blocks appended" in answer.why
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_unknown_with_the_reason(real_disk: Callable[[Path], str]) -> None:
    """/proc takes no files, not even from root."""
    answer = verify_data_io(Path("/proc"), "none")
    assert answer.counted == "unknown"
    assert "could not write in /proc" in answer.why


@pytest.fixture(params=["^has_journal", "has_journal"])
def emulated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Path, str]]:
    """A file system with or without a journal on its own loop device: (folder, its device, the feature)."""
    missing = [tool for tool in ("mkfs.ext4", "losetup", "mount") if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing or not Path("/dev/loop-control").exists():
        pytest.skip(f"needs root and loop devices; missing programs: {', '.join(missing) or 'none'}")
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    image.touch()
    with image.open("r+b") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", request.param, image], check=True)
    loop = subprocess.run(
        ["losetup", "--direct-io=on", "--find", "--show", image], check=False, capture_output=True, text=True
    )
    if loop.returncode != 0:
        pytest.skip(f"needs a free loop device with direct I/O: {loop.stderr.strip()}")
    device = Path(loop.stdout.strip())
    try:
        subprocess.run(["mount", device, folder], check=True)
        try:
            yield folder, device, request.param
        finally:
            subprocess.run(["umount", folder], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.root
def test_three_truths_on_emulated_disks(emulated: tuple[Path, Path, str]) -> None:
    """A write cache has flushes counted as writes, a journal puts data in them; without cache, neither."""
    folder, device, feature = emulated
    with_cache = "unknown" if feature == "has_journal" else "writes-flushes"
    switch = Path(f"/sys/block/{device.name}/queue/write_cache")
    as_found = switch.read_text()  # the kernel keeps it when the loop device is given to somebody else
    try:
        for setting, counted in (("write back", with_cache), ("write through", "kernel")):
            switch.write_text(setting)
            answer = verify_data_io(folder, device.name)
            assert (setting, answer.counted) == (setting, counted), answer.why
    finally:
        switch.write_text(as_found)


def test_the_bound_in_time_holds(
    tmp_path: Path, real_disk: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all one write is made per pattern, and the answer says that this is too few."""
    monkeypatch.setattr(data_io, "_LIMIT_S", 0.0)
    answer = verify_data_io(tmp_path, real_disk(tmp_path))
    assert answer.counted == "unknown"
    assert "too few" in answer.why or "disturbed" in answer.why
