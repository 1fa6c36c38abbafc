"""A farm's content: which files are documents, their text, and how the farm is filled with them.

Import ``filling.ingest`` from its module: the search tier and its readers must load no database driver.
"""

from pinchpoint_infra.content.errors import ContentError, CorpusError

__all__ = ["ContentError", "CorpusError"]
