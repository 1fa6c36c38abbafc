"""NTLM over HTTP: three messages, then the connection is logged in."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

import spnego
from spnego.exceptions import SpnegoError

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
