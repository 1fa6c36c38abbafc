"""How an endpoint is logged in to; NTLM: three messages, then the connection is logged in."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

import spnego
from spnego.exceptions import SpnegoError

from pinchpoint_collectors.common.names import unknown

from ..contract import Endpoint
from ..errors import ScenarioError

AUTHS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "bearer": ("token",),
    "basic": ("user", "password"),
    "ntlm": ("user", "password"),
    "cookies": ("cookies",),
}
"""``auth`` of an endpoint -> the options it needs."""


def login(endpoint: Endpoint) -> str:
    """How an endpoint logs in; ``auth`` may be left out where the other options say it.

    Raises:
        ScenarioError: there is no such way, or an option it needs is not given.
    """
    options = endpoint.options
    auth = options.get("auth") or _guessed(options)
    if auth not in AUTHS:
        raise ScenarioError(f"endpoint {endpoint.name}: {unknown('auth', auth, AUTHS)}")
    for option in AUTHS[auth]:
        if not options.get(option):
            raise ScenarioError(f"endpoint {endpoint.name}: auth {auth} needs {option}; add it in farm.yaml")
    if auth == "cookies" and not cookies(options["cookies"]).keys() & {"FedAuth", "SPOIDCRL"}:
        raise ScenarioError(
            f"endpoint {endpoint.name}: cookies hold neither FedAuth nor SPOIDCRL, which log in; "
            "write them as a browser sends them: FedAuth=...; rtFa=..."
        )
    return auth


def header_login(endpoint: Endpoint) -> Mapping[str, str]:
    """The header fields that log in, for whoever logs in by nothing else.

    Raises:
        ScenarioError: see ``login``; also for NTLM, which is more than a header.
    """
    auth, options = login(endpoint), endpoint.options
    if auth == "ntlm":
        raise ScenarioError(
            f"endpoint {endpoint.name}: auth ntlm is not for web sites; allowed: basic, bearer, cookies, none"
        )
    if auth == "bearer":
        return {"Authorization": f"Bearer {options['token']}"}
    if auth == "basic":
        pair = base64.b64encode(f"{options['user']}:{options['password']}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {"Cookie": options["cookies"]} if auth == "cookies" else {}


def _guessed(options: Mapping[str, str]) -> str:
    if "token" in options:
        return "bearer"
    if "cookies" in options:
        return "cookies"
    return "basic" if "user" in options else "none"


def cookies(text: str) -> dict[str, str]:
    """Cookies as a browser sends them, by name."""
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {name: value for name, _, value in pairs if name}


_CHALLENGE = re.compile(r"\bNTLM\s+([A-Za-z0-9+/=]+)", re.IGNORECASE)


class Ntlm:
    r"""One login, on one connection: see ``http.Login``.

    Args:
        user: ``DOMAIN\user``.
        password: the user's.
    """

    def __init__(self, user: str, password: str) -> None:
        self._context = spnego.client(user, password, protocol="ntlm")

    def headers(self, challenge: str) -> Mapping[str, str] | None:
        token = None
        if challenge:
            found = _CHALLENGE.search(challenge)
            if found is None:  # it offers NTLM once more, or something else: it did not like what we said
                return None
            token = found[1]
        try:
            answer = self._context.step(base64.b64decode(token, validate=True) if token else None)
        except (SpnegoError, binascii.Error):
            return None
        return {"Authorization": f"NTLM {base64.b64encode(answer).decode()}"} if answer else None
