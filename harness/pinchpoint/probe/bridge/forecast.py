"""A run and probes of other disks → what its load would get done on those, by the model of ``what-if``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.forecast.applied import Applied, Changed
from pinchpoint.forecast.measured import Measured
from pinchpoint.forecast.parts import Disk, Part
from pinchpoint.forecast.predict import Base, predict_change
from pinchpoint.forecast.prediction import Prediction
from pinchpoint.probe.bridge.disk import ProbedDisk
from pinchpoint.probe.bridge.mix import DiskMix, mix_of
from pinchpoint.probe.bridge.swap import Swap, swapped

SCHEMA = "pinchpoint.prediction/2"
FROM_PROBE = "a disk does for the load's I/O what it did for the probe's; the mix of I/Os stays the run's"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a load would get done on probed disks.

    Attributes:
        disks: by the run's disk role, the probed disk in its place.
        mix: by disk role, what one operation asks of it in the run.
        arithmetic: what was put in place of what, in sentences.
        found: throughput, what limits, what must hold.
    """

    disks: Mapping[str, ProbedDisk]
    mix: Mapping[str, DiskMix]
    arithmetic: tuple[str, ...]
    found: Prediction

    @property
    def per_s(self) -> float:
        """Operations per second of all scenarios."""
        return sum(one.then_per_s for one in self.found.scenarios)

    @property
    def low_per_s(self) -> float:
        """Of its range; that of several scenarios is the sum of theirs."""
        return sum(one.low_per_s for one in self.found.scenarios)

    @property
    def high_per_s(self) -> float:
        """Likewise."""
        return sum(one.high_per_s for one in self.found.scenarios)

    @property
    def measured_per_s(self) -> float:
        """In the run."""
        return sum(one.now_per_s for one in self.found.scenarios)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            "schema": SCHEMA,
            "disks": [
                {"disk": name, "probed": one.label, "suite": one.suite, "limits_are": one.limits_are}
                for name, one in self.disks.items()
            ],
            "throughput_per_s": self.per_s,
            "low_per_s": self.low_per_s,
            "high_per_s": self.high_per_s,
            "measured_per_s": self.measured_per_s,
            "ratio": self.per_s / self.measured_per_s,
            "arithmetic": list(self.arithmetic),
            "mix": [asdict(one) for one in self.mix.values()],
            "prediction": self.found.to_json(),
        }


def forecast(base: Base, probed: Sequence[tuple[str | None, ProbedDisk]]) -> Forecast:
    """Carry a run over to probed disks.

    Args:
        base: the run.
        probed: (which of the run's disks it stands for, the disk); None: that of which it was probed, or the
            only one there is.

    Raises:
        InputError: the run has no such disk, or run or probe do not tell what is needed.
    """
    mix = mix_of(base)
    disks: dict[str, ProbedDisk] = {}
    for name, disk in probed:
        chosen = _named(name or disk.disk, base, mix)
        if chosen in disks:
            raise InputError(f"--predict: two probes are given for {chosen}; one of them is needed")
        disks[chosen] = disk
    found = predict_change(base, lambda measured: _applied(measured, disks, mix), (FROM_PROBE,))
    told = tuple(swap.arithmetic for _, swap in _swaps(base.measured, disks, mix))
    return Forecast(disks, mix, told, found)


def _named(name: str | None, base: Base, mix: Mapping[str, DiskMix]) -> str:
    """The run's disk that is meant. Raises InputError."""
    if name is None and len(mix) == 1:
        return next(iter(mix))
    if name is None or name not in mix:
        said = f"no disk {name!r}" if name else "several disks, and none was named"
        known = ", ".join(sorted(mix)) or "none"
        raise InputError(f"--disk: {base.run.directory} has {said}; measured there: {known}")
    if name in base.measured.unmeasured:
        why = base.measured.unmeasured[name]
        raise InputError(f"--disk: {base.run.directory}: {name} cannot be exchanged: {why}")
    return name


def _applied(measured: Measured, disks: Mapping[str, ProbedDisk], mix: Mapping[str, DiskMix]) -> Applied:
    """The run's parts with each probed disk in its place."""
    swaps = dict(_swaps(measured, disks, mix))
    parts = tuple(swaps[place].part if place in swaps else part for place, part in enumerate(measured.parts))
    return Applied(
        parts=parts,
        loads=measured.loads,
        changed=tuple(_changed(measured.parts[place], swap) for place, swap in swaps.items()),
        assumes=tuple(text for swap in swaps.values() for text in swap.assumes),
        uncertain=tuple(
            (*parts[:place], other, *parts[place + 1 :])
            for place, swap in swaps.items()
            for other in swap.others
        ),
    )


def _swaps(
    measured: Measured, disks: Mapping[str, ProbedDisk], mix: Mapping[str, DiskMix]
) -> Iterator[tuple[int, Swap]]:
    """(which part, what comes in its place)."""
    for place, part in enumerate(measured.parts):
        if isinstance(part, Disk) and part.target in disks:
            yield place, swapped(part, disks[part.target], mix[part.target])


def _changed(part: Part, swap: Swap) -> Changed:
    before = units.seconds(part.seen_s) if isinstance(part, Disk) and part.seen_s is not None else None
    return Changed(swap.part.target, f"{before} an I/O" if before else None, swap.after)
