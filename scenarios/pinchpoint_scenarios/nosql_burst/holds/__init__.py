"""What keeps two runs out of each other's records: one hold, and a file per kind of store that enters it."""

from __future__ import annotations

from .hold import Hold, Lease, Other

__all__ = ["Hold", "Lease", "Other"]
