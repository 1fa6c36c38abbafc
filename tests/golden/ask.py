"""Compute the answers of one group in a process with a pinned environment.

``python -m golden.ask GROUP`` prints them as one JSON object; ``answers_of(GROUP)`` starts that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from golden.commands import PINNED


def answers_of(group: str) -> dict[str, str]:
    """All answers of a group, computed anew."""
    done = subprocess.run(
        [sys.executable, "-m", "golden.ask", group],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **PINNED},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    from golden.groups import GROUPS

    json.dump(dict(GROUPS[sys.argv[1]].ask()), sys.stdout)
