"""Defines the errors of a farm's content."""


class ContentError(Exception):
    """A corpus cannot be loaded; the message names the folder and the remedy."""


class CorpusError(ContentError):
    """The corpus is invalid: missing, not a folder, not readable, or without a document."""


class CostlyError(Exception):
    """A document crashed its reader, or exceeded a limit.

    Args:
        words: the reason, as a clause after the kind of document: "that takes more than ...".
        memory: whether a lack of memory may be the reason. A new process has more memory.
    """

    def __init__(self, words: str, memory: bool = False) -> None:
        super().__init__(words, memory)  # all arguments, so that the exception can be pickled
        self.words = words
        self.memory = memory

    def __str__(self) -> str:
        """Return the reason alone."""
        return self.words
