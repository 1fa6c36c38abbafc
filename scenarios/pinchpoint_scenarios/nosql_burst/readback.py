"""Reading back what was acknowledged, after the load: also from a server that has to come back first."""

from __future__ import annotations

import time
from itertools import islice

from ..contract import OK
from .ledger import Found, Ledger
from .stores import Store

_STEP = 50  # records of one read
READER = 0
"""The session that reads back: any will do, the others are closed."""


def read_back(store: Store, ledger: Ledger, within_s: float) -> tuple[Found, str]:
    """Read every sampled record and hold it against what was acknowledged.

    Args:
        store: where they are.
        ledger: what was acknowledged.
        within_s: how long it may take; a store that does not answer is asked again until then.

    Returns:
        What was found, and why the rest could not be read ("": all was).
    """
    found = Found()
    until = time.monotonic() + within_s
    remaining = iter(ledger.sample())
    connection = store.connect(READER)
    try:
        while items := list(islice(remaining, _STEP)):
            while True:
                connection.wait_until_due()
                outcome, fields = connection.read(items)
                if outcome == OK:
                    ledger.compare(items, fields, found)
                    break
                if time.monotonic() > until:
                    return found, f"the store did not answer a read ({outcome})"
                time.sleep(0.1)
            if time.monotonic() > until:
                left = len(list(remaining))
                return found, f"the time for it was over with {left:,} records left" if left else ""
    finally:
        connection.close()
    return found, ""
