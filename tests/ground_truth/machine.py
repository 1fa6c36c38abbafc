"""Check what this machine offers; a case with unmet needs does not run, and its row states the reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from ground_truth.cases import Need

from pinchpoint_infra.disks import support as disk_support
from pinchpoint_infra.embedded.tiers.files import missing_for_a_share
from pinchpoint_infra.faults import interface
from pinchpoint_infra.faults.caps import support as cap_support


def lacking(needs: Iterable[Need], checks: Mapping[Need, Callable[[], str | None]] | None = None) -> str:
    """Return the unmet needs as one sentence; "" if all are met.

    Args:
        needs: the needs of a case.
        checks: need -> function that returns None if the need is met, else what is missing.
    """
    asked = CHECKS if checks is None else checks
    missing = {need: asked[need]() for need in needs}
    return "; ".join(dict.fromkeys(why for why in missing.values() if why))


def is_root() -> bool:
    """Return True for root, who must be able to run every case."""
    return os.geteuid() == 0


def _root() -> str | None:
    return None if is_root() else "no root rights"


def _disks() -> str | None:
    found = disk_support()
    return "; ".join(dict.fromkeys(found.missing.values())) or None


def _cap(controller: str) -> str | None:
    return cap_support().missing.get(controller)


def _cores() -> str | None:
    found = len(os.sched_getaffinity(0))
    return None if found > 1 else "only one core: no thread can be full and a core idle"


CHECKS: Mapping[Need, Callable[[], str | None]] = {
    "root": _root,
    "disks": _disks,
    "cpus": lambda: _cap("cpu"),
    "memory": lambda: _cap("memory"),
    "network": interface.missing,
    "share": missing_for_a_share,
    "cores": _cores,
}
