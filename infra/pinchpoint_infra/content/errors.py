"""What can go wrong with a farm's content."""


class ContentError(Exception):
    """A corpus cannot be ingested; one clear sentence that names the folder and the remedy."""
