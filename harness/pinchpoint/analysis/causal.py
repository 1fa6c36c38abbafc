"""The causal test: the effect of a deliberate change, measured and predicted, and whether both agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # which loads its parts when they are used: most verdicts need none

from pinchpoint.analysis.resources.base import Suspicion, waits_for
from pinchpoint.analysis.resources.kinds import WAYS, kind_of
from pinchpoint.analysis.thresholds import PROOF_ANSWERS, PROOF_EXCEEDS, PROOF_VISIBLE
from pinchpoint.analysis.verdict import Kind
from pinchpoint.base import units
from pinchpoint.data.series import Floats

AS_IS, SLOWER, CONTROL = "as_is", "slower", "control"
SURE = 0.95
DRIFT_FROM = 6
"""With fewer windows a difference cannot be separated from a drift."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change did.

    Attributes:
        ratio: throughput then ÷ throughput as it is.
        low, high: the 95 % interval of it; None where there are too few windows.
    """

    ratio: float
    low: float | None = None
    high: float | None = None

    def shares(self, expected: float) -> tuple[float | None, float | None]:
        """(least, most) of an expected ratio's effect that this is: 1 is all of it, 0 none."""
        if self.low is None or self.high is None:
            return None, None
        return math.log(self.high) / math.log(expected), math.log(self.low) / math.log(expected)

    @property
    def words(self) -> str:
        """``74 % (71 % to 78 %)``."""
        if self.low is None or self.high is None:
            return units.percent(self.ratio)
        return f"{units.percent(self.ratio)} ({units.percent(self.low)} to {units.percent(self.high)})"


@dataclass(frozen=True, slots=True)
class Model:
    """What the model says a change does.

    Attributes:
        ratio: throughput then ÷ throughput as it is.
        words: from what it says so.
    """

    ratio: float
    words: str


def find_effects(windows: Iterable[tuple[str, float, float]]) -> dict[str, Effect]:
    """What each change did to a figure: least squares of its logarithm on the change, with a common drift.

    The window is the unit: seconds within it resemble each other. All kinds of windows share one spread.

    Args:
        windows: (what was changed, when (any origin), the figure, above 0).
    """
    rows = list(windows)
    kinds = [kind for kind in (SLOWER, CONTROL) if any(row[0] == kind for row in rows)]
    if not kinds or not any(row[0] == AS_IS for row in rows):
        return {}
    at = np.array([row[1] for row in rows])
    columns: list[Floats] = [np.ones(len(rows))]
    columns += [np.array([float(row[0] == kind) for row in rows]) for kind in kinds]
    if len(rows) >= DRIFT_FROM:
        columns.append((at - at.mean()) / float(np.ptp(at)))
    design, figures = np.column_stack(columns), np.log([row[2] for row in rows])
    found, _, rank, _ = np.linalg.lstsq(design, figures, rcond=None)
    free = len(rows) - rank
    if free < 2 or rank < len(columns):
        return {kind: Effect(math.exp(found[place])) for place, kind in enumerate(kinds, 1)}
    spread = float(((figures - design @ found) ** 2).sum()) / free
    errors = np.sqrt(spread * np.diag(np.linalg.inv(design.T @ design)))
    reach = scipy.stats.t.ppf((1 + SURE) / 2, free) * errors
    return {
        kind: Effect(*(math.exp(found[place] + side * reach[place]) for side in (0, -1, 1)))
        for place, kind in enumerate(kinds, 1)
    }


def predicted(one: Suspicion | None, kind: Kind, change: Mapping[str, Any], working: float = 1.0) -> Model:
    """What a resource that limits as the verdict says does to throughput when it is slower.

    What operations wait for takes 1 ÷ ratio as long: X' ÷ X = 1 ÷ (1 + w (1 ÷ ratio - 1)), where w is the
    share of their users' time, thinking included (Little's law at a fixed number of users). A saturated
    resource does less in proportion: X' ÷ X = ratio ÷ U, and nothing changes while U is below the ratio
    (utilisation law).

    Args:
        one: what is known of the resource; None where nothing but its name is.
        kind: how it limits, or would.
        change: ``ratio``, and what it is ``of``: the resource's ``capacity``, or its ``use`` until then.
        working: the share of users' time in which an operation is going on; in the rest they think.
    """
    ratio = float(change["ratio"])
    if WAYS[kind] == "time":
        share, words = kind_of(one).waited_share(one, one.found, working) if one else waits_for(None, working)
        return Model(1 / (1 + share * (1 / ratio - 1)), words)
    used = 1.0 if change.get("of") == "use" else _used(one)
    words = "all of it is used" if used >= 1 else f"{units.percent(used)} of it is used"
    return Model(min(1.0, ratio / used), words)


def _used(one: Suspicion | None) -> float:
    """How much of it is used; all of it where that is not known, or where a limit shows by itself."""
    if one is None or WAYS[one.kind] != "use":
        return 1.0
    used = kind_of(one).used_share(one, one.found)
    return min(1.0, used) if used else 1.0


def answer(
    effect: Effect | None, model: Model, also: str | None = None, what: str = "throughput"
) -> tuple[Literal["agrees", "contradicts", "undecided"], str]:
    """Whether what was measured is what the model says, with a sentence that says why.

    Judged by the measured share of the model's effect, on a logarithmic scale, with its interval.

    Args:
        effect: of the change.
        model: what the model says of it.
        also: what else had such an effect though it should have none.
        what: what was looked at, in words.
    """
    if effect is None:
        return "undecided", "nothing got through in some of the windows"
    if model.ratio > PROOF_VISIBLE.value:
        return "undecided", f"at this load the model says that hardly anything changes: {model.words}"
    said = f"{what} came to {effect.words} of what it was; the model says {units.percent(model.ratio)}"
    least, most = effect.shares(model.ratio)
    if least is None or most is None:
        return "undecided", f"{said}; too few windows to decide"
    if most < PROOF_ANSWERS.value:
        return "contradicts", said
    doubts = (
        (least < PROOF_ANSWERS.value, "the windows differ too much from each other to decide"),
        (least > PROOF_EXCEEDS.value, "it fell by more than that: more than this was made slower"),
        (also is not None, f"but so it did when {also} was slower"),
    )
    doubt = next((words for holds, words in doubts if holds), None)
    return ("undecided", f"{said}; {doubt}") if doubt else ("agrees", said)
