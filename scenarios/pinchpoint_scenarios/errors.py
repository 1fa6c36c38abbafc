"""The errors a scenario shows a person."""


class ScenarioError(Exception):
    """A scenario cannot be prepared or run; the message names the endpoint, the cause and the remedy."""


class EndpointUnreachable(ScenarioError):
    """An endpoint did not answer, or refused the credentials: the environment failed (exit status 5)."""
