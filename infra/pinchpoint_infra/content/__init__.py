"""A farm's content: which files are documents, what they say, and how they get into the farm.

``filling.ingest`` takes a corpus in. It is imported from there: the search tier and its readers load no
database driver.
"""

from pinchpoint_infra.content.errors import ContentError, CorpusError

__all__ = ["ContentError", "CorpusError"]
