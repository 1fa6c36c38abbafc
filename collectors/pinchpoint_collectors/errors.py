"""The errors a collector shows a person: what was tried, what was found, the remedy."""


class CollectorError(Exception):
    """A collector cannot do its work at all (unknown device, no rights, unreachable)."""
