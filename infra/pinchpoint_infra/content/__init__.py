"""A farm's content: which files are documents, what they say, and how they get into the farm."""

from pinchpoint_infra.content.errors import ContentError, CorpusError
from pinchpoint_infra.content.filling import ingest

__all__ = ["ContentError", "CorpusError", "ingest"]
