"""What can go wrong with a farm's content."""


class ContentError(Exception):
    """A corpus cannot be ingested; one clear sentence that names the folder and the remedy."""


class CorpusError(ContentError):
    """The corpus itself is at fault: not there, no folder, not readable, or without a document."""


class CostlyError(Exception):
    """A document ended the process that read it, or took more than is allowed.

    Args:
        words: what it does, to stand behind the kind of document: "that takes more than ...".
        memory: it may have been the process's memory, of which a fresh one has more left.
    """

    def __init__(self, words: str, memory: bool = False) -> None:
        super().__init__(words, memory)  # all of it, so that it can travel between processes
        self.words = words
        self.memory = memory

    def __str__(self) -> str:
        """The words alone."""
        return self.words
