"""``run --prove``: after the measuring, what is suspected is made slower and put back, again and again.

The controller's side alone: which knob, when. What the windows say is ``analysis.proof``'s affair.
"""

from pinchpoint.run.prove.knobs import restore_leftover
from pinchpoint.run.prove.prover import Prover

__all__ = ["Prover", "restore_leftover"]
