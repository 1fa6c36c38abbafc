"""Compute golden answers in a process with a pinned environment.

``python -m golden.ask GROUP`` reads names, a line each, and prints their answers as one JSON object;
``answers_of`` starts that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from golden.commands import PINNED


def answers_of(group: str, names: Sequence[str]) -> dict[str, str]:
    """The answers of a group, computed anew: name -> text."""
    done = subprocess.run(
        [sys.executable, "-m", "golden.ask", group],
        input="\n".join(names).encode(),
        cwd=Path(__file__).parents[1],
        env={**os.environ, **PINNED},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    from golden.groups import GROUPS

    json.dump({name: GROUPS[sys.argv[1]].ask(name) for name in sys.stdin.read().split()}, sys.stdout)
