"""What a killed run left slower on a farm that is not ours: written down before, put back by the next run."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import platformdirs
import psutil

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.plan import Allowed
from pinchpoint.run.prove.commands import run

_STATE_VARIABLE = "PINCHPOINT_STATE"


def note(identity: Path, name: str, allowed: Allowed) -> None:
    """Write down that something is about to be made slower. Raises FarmUnavailable where that cannot be."""
    place = _place(identity)
    me = psutil.Process()
    content = {
        "farm": os.fsdecode(identity),
        "name": name,
        "restore": allowed.restore,
        "timeout_s": allowed.timeout_s,
        "by": [me.pid, me.create_time()],
    }
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = place.with_suffix(".partial")
        partial.touch(mode=0o600)  # a command may hold a secret
        partial.write_text(json.dumps(content), encoding="utf-8")
        partial.replace(place)
    except OSError as error:
        raise FarmUnavailable(
            f"{place}: cannot be written ({error.strerror}); nothing is made slower that a later run could "
            f"not put back. Name a writable folder in {_STATE_VARIABLE}"
        ) from error


def forget(identity: Path) -> None:
    """It has been put back."""
    place = _place(identity)
    place.unlink(missing_ok=True)
    for folder in (place.parent, place.parent.parent):
        try:
            folder.rmdir()
        except OSError:
            return  # something else lies there: it stays


def restore_leftover(identity: Path) -> str | None:
    """Put back what a run that was killed left slower; a sentence where there was something.

    Raises:
        FarmUnavailable: the command failed: the farm is not as it is meant to be.
    """
    place = _place(identity)
    try:
        content = json.loads(_trusted(place))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FarmUnavailable(
            f"{place}: says what a killed run left slower, and cannot be read ({error}); put it back by "
            "hand, then remove the file"
        ) from error
    if _alive(*content["by"]):
        return None
    name = content["name"]
    try:
        run(f"prove.{name}.restore", content["restore"], content["timeout_s"])
    except FarmUnavailable as error:
        raise FarmUnavailable(
            f"a run that was killed left {name} slower, and it could not be put back: {error}; put it back "
            f"by hand, then remove {place}"
        ) from error
    forget(identity)
    return f"a run that was killed had left {name} slower: put back"


def _trusted(place: Path) -> str:
    """The text of a file that only this user, or root, can have written: its commands are run.

    Raises FarmUnavailable where another user owns it or may write to it; OSError.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        for each, path in ((os.fstat(descriptor), place), (place.parent.stat(), place.parent)):
            if each.st_uid not in (os.geteuid(), 0):
                why = f"belongs to another user (number {each.st_uid})"
            elif each.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                why = f"can be written by others (mode {stat.S_IMODE(each.st_mode):04o})"
            else:
                continue
            raise FarmUnavailable(
                f"{path}: {why}, so the command that {place} names was not run. It says what a killed run "
                f"left slower: read it, put that back by hand, then remove {place}"
            )
        return file.read()


def _place(identity: Path) -> Path:
    given = os.environ.get(_STATE_VARIABLE)
    root = Path(given) if given else platformdirs.user_state_path("pinchpoint")
    # In full: a message that names it is read in another folder as well.
    return root.absolute() / "proofs" / f"{hashlib.sha256(os.fsencode(identity)).hexdigest()[:12]}.json"


def _alive(pid: int, create_time: float) -> bool:
    try:
        return psutil.Process(pid).create_time() == create_time
    except psutil.NoSuchProcess:
        return False
