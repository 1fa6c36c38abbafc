"""Judges a run in progress, and prints verdict.json's content on stdout.

``python -m pinchpoint.run.prove.judge_in_progress RUN`` is a separate process, because the load continues and
the controller must not block.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pinchpoint.analysis import analyse
from pinchpoint.store.read import open_run

_NICE = 10  # load generators and the farm have priority


def main() -> None:
    """Run the process. An error ends it with a traceback, which the controller reports."""
    os.nice(_NICE)
    json.dump(analyse(open_run(Path(sys.argv[1]))).to_json(), sys.stdout)


if __name__ == "__main__":
    main()
