"""Errors of scenarios, for people."""


class ScenarioError(Exception):
    """A scenario cannot be prepared or run. The message names the endpoint, the cause and the remedy."""


class EndpointUnreachable(ScenarioError):  # noqa: N818 - the contract's name, in its readers' words
    """An endpoint did not answer, or refused the credentials. The environment failed (exit status 5)."""
