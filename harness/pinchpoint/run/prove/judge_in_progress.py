"""Judges a run in progress; prints verdict.json's content on stdout.

``python -m pinchpoint.run.prove.judge_in_progress RUN`` is a separate process: the controller must not block,
because the load continues.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pinchpoint.analysis import analyse
from pinchpoint.store.read import open_run

_NICE = 10  # generators and farm come first


def main() -> None:
    """Entry of the process; errors end it with a traceback that the controller reports."""
    os.nice(_NICE)
    json.dump(analyse(open_run(Path(sys.argv[1]))).to_json(), sys.stdout)


if __name__ == "__main__":
    main()
