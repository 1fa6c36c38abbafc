"""Handles the content of a farm: recognises documents, extracts their text, and fills the farm with them.

Import ``filling.ingest`` from its module: the search tier and its readers must load no database driver.
"""

from pinchpoint_infra.content.errors import ContentError, CorpusError

__all__ = ["ContentError", "CorpusError"]
