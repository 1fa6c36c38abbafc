"""Step 7: what to do, from the model and the catalogue: what lifts the limit, how far, and what limits then.

Nothing here is a fixed phrase: each piece names what was measured, and types of disks and machines come from
the catalogue with their source. The gain is the model's (``model``) or, where no setting fits, that of the
ceilings (``capacity``). Where the gain is not known, it says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from pinchpoint.analysis.advice_inputs import AdviceInputs
from pinchpoint.analysis.capacity import Demand
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.model.ask import Asked
from pinchpoint.analysis.resources.gain import Gain, advise
from pinchpoint.analysis.resources.kinds import KINDS, kind_of
from pinchpoint.analysis.verdict import Advice, Kind, Suspect
from pinchpoint.base.wording import capitalised


def find_advice(case: Case, demands: tuple[Demand, ...]) -> tuple[Advice, ...]:
    """What to do about the bottleneck of a case, the most useful first."""
    basis = AdviceInputs(case, case.found[0], demands, Asked(case, ""))
    return tuple(kind_of(basis.first).advise(basis, basis.first.found))


def advice_on_candidates(candidates: Sequence[Suspect], case: Case) -> tuple[Advice, ...]:
    """Where no one could be named: what would have to be known of those who may be it."""
    return tuple(advice for one in candidates for advice in KINDS[one.resource].advise_on(one, case.inputs))


def advice_on_generator(gates: Sequence[Gate]) -> tuple[Advice, ...]:
    """What makes an invalid run a valid one."""
    gain = Gain(None, None, "this run is invalid")
    remedies = dict.fromkeys(gate.remedy for gate in gates)
    kind: Kind = "generator" if gates[0].contention is None else "contention"
    return tuple(
        advise(kind, "generator", what, gain, text=f"{what}, and run again.")
        for what in map(capitalised, remedies)
    )
