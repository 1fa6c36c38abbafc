"""Finds the other processes that took CPU of the load generator's machine (contention on the host)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pinchpoint.analysis.resources.base import compared
from pinchpoint.analysis.thresholds import CONTENDED, CPU_WAIT, OTHER_PROCESSES
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats
from pinchpoint_collectors.linux.others import HYPERVISOR, METRIC, PROCESS

_THE_HYPERVISOR = "the hypervisor"
NAMED = 3
"""Most processes that are named; those that took most come first."""
NOTED = 0.005
"""A process that took less than half a per cent of the CPU is not named."""


@dataclass(frozen=True, slots=True)
class Contention:
    """CPU of the load generator's machine that neither the run nor the farm's servers used.

    Attributes:
        host: name of the load worker on the machine.
        ratio: share of the machine's CPU that other processes and the hypervisor took together.
        by_name: program (or the hypervisor) -> its share, the largest first; empty if unknown.
        waited_ratio: longest wait of a load worker for a core ÷ measured time; None if not measured.
    """

    host: str
    ratio: float
    by_name: tuple[tuple[str, float], ...]
    waited_ratio: float | None

    @property
    def delays(self) -> bool:
        """Whether other processes can delay a load worker whose own core is not saturated."""
        if self.waited_ratio is None:
            return self.ratio >= OTHER_PROCESSES.value
        return self.ratio >= CONTENDED.value and self.waited_ratio >= CPU_WAIT.value

    @property
    def stolen(self) -> bool:
        """Whether the hypervisor took most of the CPU time."""
        return dict(self.by_name).get(_THE_HYPERVISOR, 0.0) > self.ratio / 2

    def words(self) -> str:
        """The programs and their shares of the CPU, as a sentence without a full stop."""
        named = [one for one in self.by_name[:NAMED] if one[1] >= NOTED]
        who = [f"{name} {units.percent(share)}" for name, share in named]
        rest = self.ratio - sum(share for _, share in self.by_name)
        if rest >= CONTENDED.value:
            who.append(f"{units.percent(rest)} by processes whose names were not measured")
        others = "the hypervisor and other processes" if self.stolen else "other processes"
        return (
            f"{others} took {units.percent(self.ratio)} of the CPU of the "
            f"load generator's machine{f' ({listed(who)})' if who else ''}"
        )

    def remedy(self) -> str:
        """How to give the load generator the CPU that other processes take."""
        if self.stolen:
            return "give the load generator a machine that does not share its CPU with other virtual machines"
        return (
            "end the other processes on the load generator's machine, or give the load generator a machine "
            "of its own"
        )

    def fact(self) -> Fact:
        """The contention as a measured fact."""
        return compared(self.words(), METRIC, self.ratio, (self.host, ""), "context", CONTENDED)


def find_contention(inputs: Inputs) -> Contention | None:
    """The contention on the machine whose other processes took the most CPU; None if not measured."""
    hosts = dict.fromkeys(key.host for key in inputs.samples.keys(METRIC))
    result = [one for one in (_on(inputs, host) for host in hosts) if one is not None]
    return max(result, key=lambda one: one.ratio, default=None)


def _on(inputs: Inputs, host: str) -> Contention | None:
    everyone = inputs.samples.steps(host, METRIC)
    stolen = inputs.samples.steps(host, METRIC, HYPERVISOR)
    measured = np.isfinite(everyone)
    if not measured.any():
        return None
    shares: dict[str, float] = {}
    for key in inputs.samples.keys(METRIC):
        if key.host == host and key.instance:
            # A process missing in a reading used a negligible share in it.
            share = _sum(inputs.samples.steps(*key)[measured]) / int(measured.sum())
            name = _THE_HYPERVISOR if key.instance == HYPERVISOR else key.instance.removeprefix(PROCESS)
            shares[name] = share
    waited = [
        mean
        for key in inputs.samples.keys("generator.cpu_wait_ratio")
        if (mean := inputs.samples.mean(*key)) is not None
    ]
    ratio = min(1.0, (_sum(everyone[measured]) + _sum(stolen[measured])) / int(measured.sum()))
    by_name = sorted((item for item in shares.items() if item[1] > 0), key=lambda item: -item[1])
    return Contention(host, ratio, tuple(by_name), max(waited, default=None))


def _sum(values: Floats) -> float:
    return float(np.nan_to_num(values).sum())
