"""Defines why a container or a document could not be crawled."""

from __future__ import annotations


class Failure(Exception):  # noqa: N818 - an outcome of the farm, not an error of ours
    """A request to a repository or to the search tier failed.

    Attributes:
        kind: name of the failure: ``http_503``, ``timeout``, ``unreachable``, ``not_found``, ...
        permanent: whether another attempt would get the same answer.
        retry_after_s: pause in seconds that the server requested; 0 if none.
        place: host and port of the server, if its endpoint has several servers; otherwise "".
    """

    place = ""

    def __init__(
        self, kind: str, detail: str = "", *, permanent: bool = False, retry_after_s: float = 0
    ) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.permanent = permanent
        self.retry_after_s = retry_after_s


class LoginFailed(Failure):
    """A login is impossible or was refused.

    Attributes:
        cause, remedy: the reason and the remedy, each in a few words.
    """

    def __init__(self, cause: str, remedy: str, *, permanent: bool = True) -> None:
        super().__init__("authentication", f"{cause}; {remedy}", permanent=permanent)
        self.cause = cause
        self.remedy = remedy


class Skipped(Exception):  # noqa: N818 - not even a failure
    """The item is not a document for the index; the message is the reason."""
