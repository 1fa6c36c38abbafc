"""Builds the shell script for the host, and the line that receives it there."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from importlib import resources

from pinchpoint_collectors.remote.ssh import shell

END = "#end"

RECEIVE = shell(
    'eval "$(while IFS= read -r l; do case $l in ("' + END + '") break;; esac; printf "%s\\n" "$l"; done)"'
)
"""Shell command that reads the script line by line up to ``END``. The script itself reads what follows.

The script is therefore never on a command line, whose length and quoting differ between login shells.
"""

_LOOP = (
    resources.files("pinchpoint_collectors.linux_over_ssh").joinpath("loop.sh").read_text(encoding="utf-8")
)


def script(
    interval_s: float,
    silence_s: float,
    files: Collection[str],
    places: Collection[str],
    *,
    processes: bool,
) -> str:
    """Return the text to send to ``RECEIVE``.

    Args:
        interval_s: seconds between two readings; whole seconds if the sleep command accepts no fractions.
        silence_s: seconds without a request after which the host ends the session.
        files: files to read repeatedly.
        places: paths whose disk is needed.
        processes: whether to read all processes, too.
    """
    given = {
        "interval": str(round(interval_s * 1e9)),
        "silence": f"{silence_s:.0f}",
        "files": " ".join(files),
        "processes": "yes" if processes else "no",
        "places": "".join(f"{place}\n" for place in places),
    }
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in given.items()]
    return f"{''.join(lines)}{_LOOP}{END}\n"
