"""What the base's own model says of the other side: beside what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pinchpoint.comparison.sides import Sides
from pinchpoint.store.read import open_run
from pinchpoint.what_if import predict_beside


def predicted(sides: Sides) -> dict[str, Any]:
    """A comparison's ``what_if``, from the first run of each side (``what_if.predict_beside``)."""
    base, other = (open_run(Path(side.runs[0].directory)) for side in sides)
    return predict_beside(base, other)
