"""The class of each of a locustfile's users: as Locust distributes them, and the same in every worker."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from pinchpoint.loadgen.engine import UserClass
from pinchpoint.loadgen.locust_load import shared_out
classes = [UserClass(f"U{n}", None, True, *each) for n, each in enumerate(json.loads(sys.argv[1]))]
print(json.dumps([shared_out(classes, users) for users in json.loads(sys.argv[2])]))
"""


def shared(classes: list[tuple[float, int]], *users: int) -> list[list[int]]:
    """Return the classes, computed in another process, which Locust may patch."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(classes), json.dumps(users)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found


def test_users_are_shared_out_by_weight_and_fixed_count() -> None:
    """Fixed counts come first, for any number of users, and the rest is spread evenly by weight."""
    eight, hundred, two, one = shared([(1, 0), (3, 0), (1, 2)], 10, 102, 2, 1)
    assert eight[:2] == [2, 2]
    assert sorted(eight[2:]) == [0, 0, 1, 1, 1, 1, 1, 1]
    assert sorted(eight[2:6]) == [0, 1, 1, 1], "evenly, not one class after the other"
    assert (hundred.count(0), hundred.count(1), hundred.count(2)) == (25, 75, 2)
    assert (two, one) == ([2, 2], [2])
    assert hundred[:10] == eight, "more users change nothing for those before them"
