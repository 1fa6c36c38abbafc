"""Compute golden answers in a process with a pinned environment.

``python -m golden.ask`` reads ``{"group": ["name", ...]}`` and prints ``{"group": {"name": "answer"}}``;
``answers_of`` starts that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from golden.commands import PINNED

Answers = dict[str, dict[str, str]]
"""Group -> name -> answer."""


def answers_of(wanted: Mapping[str, Sequence[str]]) -> Answers:
    """Compute the answers of these names of each group."""
    done = subprocess.run(
        [sys.executable, "-m", "golden.ask"],
        input=json.dumps(wanted).encode(),
        cwd=Path(__file__).parents[1],
        env={**os.environ, **PINNED},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: Answers = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    from golden.groups import GROUPS

    asked = json.load(sys.stdin)
    json.dump(
        {group: {name: GROUPS[group].ask(name) for name in asked[group]} for group in asked}, sys.stdout
    )
