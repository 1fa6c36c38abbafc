"""The record of a prediction; ``to_json`` is its plain form."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pinchpoint.analysis.model.applied import Changed
from pinchpoint.analysis.model.probed import Exchanged

SCHEMA = "pinchpoint.what-if/1"


@dataclass(frozen=True, slots=True)
class Throughput:
    """One scenario, as it was measured and as it would be.

    Attributes:
        scenario: its name.
        now_per_s: operations that ended well, per second, over what is judged.
        then_per_s: likewise, predicted.
        low_per_s, high_per_s: the interval of that: what the run does not say more exactly, what had to be
            assumed, and how far the model was found to be off.
        ratio: then ÷ now.
        now_s: mean time of an operation.
        then_s: likewise, predicted; None where an open load could not be kept up: it grows without end.
        kept_up: of an open load, whether all of it would be done; None of a closed one.
    """

    scenario: str
    now_per_s: float
    then_per_s: float
    low_per_s: float
    high_per_s: float
    ratio: float
    now_s: float
    then_s: float | None
    kept_up: bool | None

    @property
    def low_ratio(self) -> float:
        """The interval's lower end ÷ now."""
        return self.low_per_s / self.now_per_s if self.now_per_s else self.ratio

    @property
    def high_ratio(self) -> float:
        """The upper end ÷ now."""
        return self.high_per_s / self.now_per_s if self.now_per_s else self.ratio


@dataclass(frozen=True, slots=True)
class Binding:
    """What limits the load.

    Attributes:
        how: ``used_up``; ``waited_for``: it has room, but its time is what operations wait for most;
            ``elsewhere``: most of the time goes where nothing was measured; ``nothing``: all of a load that
            is given would be done.
        key: of the part; None where it is none.
        name: in words.
        ratio: how much of it is used, or of the operations' time is spent there.
        scenario: whose operations.
    """

    how: Literal["used_up", "waited_for", "elsewhere", "nothing"]
    key: str | None
    name: str
    ratio: float | None
    scenario: str | None


@dataclass(frozen=True, slots=True)
class Use:
    """One part of the farm.

    Attributes:
        key: the resource's.
        name: in words.
        now_ratio: how much of it is used; None where no cap is known.
        then_ratio: likewise, predicted.
        now_s, then_s: how long an operation of the scenario that is there longest stays; 0: nothing waits.
    """

    key: str
    name: str
    now_ratio: float | None
    then_ratio: float | None
    now_s: float
    then_s: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What would be if something were different.

    Attributes:
        run: the run's directory.
        changed: what is to differ.
        scenarios: throughput of each.
        binds_now: what limits in the run, by the model.
        binds_then: what would limit.
        parts: of the farm, as far as they were measured.
        assumes: what must stay as it is, and what had to be assumed, in sentences.
        warnings: what a reader must know.
        exchanged: probed disks in place of the run's.
    """

    run: str
    changed: tuple[Changed, ...]
    scenarios: tuple[Throughput, ...]
    binds_now: Binding
    binds_then: Binding
    parts: tuple[Use, ...]
    assumes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    exchanged: tuple[Exchanged, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON types only, null for "not known"; ``exchanged`` is there where a probed disk was set.

        Raises:
            ValueError: a number is not finite; such a value has no place in a prediction.
        """
        content = {"schema": SCHEMA, **asdict(self)}
        if not self.exchanged:
            del content["exchanged"]
        result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return result
