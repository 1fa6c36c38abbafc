"""``python -m golden.record [GROUP...]``, from ``tests/``: record the golden answers again."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from golden.ask import answers_of
from golden.groups import GROUPS


def main(names: Sequence[str]) -> None:
    """Record the named groups, or all groups; print how many answers changed."""
    for name in names or GROUPS:
        group = GROUPS[name]
        answers = answers_of({name: group.names()})[name]
        before = group.recorded() if group.is_recorded() else {}
        changed = sorted(one for one in answers if before.get(one) != answers[one])
        gone = sorted(set(before) - set(answers))
        group.record(answers)
        print(f"{name}: {len(answers)} answers, {len(changed)} changed, {len(gone)} gone")


if __name__ == "__main__":
    main(sys.argv[1:])
