"""``run --prove``: makes the suspected resource slower and restores it, repeatedly, after the measurement.

The controller's side alone: which knob, when. What the windows say is ``analysis.proof``'s affair.
"""

from pinchpoint.run.prove.knobs import restore_leftover
from pinchpoint.run.prove.prover import Prover

__all__ = ["Prover", "restore_leftover"]
