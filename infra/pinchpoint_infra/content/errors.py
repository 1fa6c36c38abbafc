"""What can go wrong with a farm's content."""


class ContentError(Exception):
    """A corpus cannot be ingested; one clear sentence that names the folder and the remedy."""


class CorpusError(ContentError):
    """The corpus itself is at fault: not there, no folder, not readable, or without a document."""
