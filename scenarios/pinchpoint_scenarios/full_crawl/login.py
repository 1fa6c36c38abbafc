"""Creates the logins of an endpoint: header fields, NTLM, Kerberos, or a token of Entra ID."""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import spnego
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate
from spnego.exceptions import SpnegoError

from pinchpoint_collectors.common.names import unknown

from ..contract import Endpoint
from ..errors import ScenarioError
from ..logins import LOGINS, missing
from .call_thread import CallThread
from .failures import LoginFailed
from .http import HttpLogin


def login(endpoint: Endpoint) -> str:
    """Return the login of an endpoint. ``auth`` may be omitted if the other options determine it.

    Raises:
        ScenarioError: the login is unknown, or an option is missing.
    """
    options = endpoint.options
    auth = options.get("auth") or _guessed(options)
    if auth not in LOGINS:
        raise ScenarioError(f"endpoint {endpoint.name}: {unknown('auth', auth, LOGINS)}")
    for option in missing(auth, [name for name, value in options.items() if value]):
        raise ScenarioError(f"endpoint {endpoint.name}: auth {auth} needs {option}; add it in farm.yaml")
    if auth == "cookies" and not cookies(options["cookies"]).keys() & {"FedAuth", "SPOIDCRL"}:
        raise ScenarioError(
            f"endpoint {endpoint.name}: cookies hold neither FedAuth nor SPOIDCRL, which log in; "
            "write them as a browser sends them: FedAuth=...; rtFa=..."
        )
    return auth


def header_login(endpoint: Endpoint) -> Mapping[str, str]:
    """Return the header fields of a login that consists of header fields only.

    Raises:
        ScenarioError: as for ``login``, and for a login that is more than a header.
    """
    auth, options = login(endpoint), endpoint.options
    if auth in _MORE_THAN_A_HEADER:
        raise ScenarioError(
            f"endpoint {endpoint.name}: auth {auth} is not for web sites; "
            "allowed: basic, bearer, cookies, none"
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
    """Return cookies by name, as a browser sends them."""
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {name: value for name, _, value in pairs if name}


_CHALLENGE = re.compile(r"\b(?:NTLM|Negotiate)\s+([A-Za-z0-9+/=]+)", re.IGNORECASE)


def http_login(endpoint: Endpoint) -> Callable[[], HttpLogin] | None:
    """Return what begins a login that is more than a header field; None if header fields suffice.

    There is one per process, whose sessions share tickets and tokens.

    Raises:
        ScenarioError: as for ``login``.
    """
    make = _MORE_THAN_A_HEADER.get(login(endpoint))
    return make(endpoint) if make is not None else None


def _token(challenge: str) -> bytes | None:
    """Return the token in a ``WWW-Authenticate``; None if it has none."""
    match = _CHALLENGE.search(challenge)
    try:
        return base64.b64decode(match[1], validate=True) if match else None
    except binascii.Error:
        return None


def _check_offer(scheme: str, challenge: str) -> None:
    """Raises LoginFailed if a server offers only other logins."""
    if not re.search(rf"\b{scheme}\b", challenge, re.IGNORECASE):
        offered = ", ".join(dict.fromkeys(re.findall(r"(?:^|,\s*)([A-Za-z]\w*)(?=\s|,|$)", challenge)))
        raise LoginFailed(
            f"the server does not offer {scheme}, but {offered or 'no login'}", "correct auth in farm.yaml"
        )


class Ntlm:
    r"""NTLM on one connection: after three messages the connection is logged in (see ``http.HttpLogin``).

    Args:
        user: ``DOMAIN\user``.
        password: password of the user.
    """

    each_request = False

    def __init__(self, user: str, password: str) -> None:
        self._context = spnego.client(user, password, protocol="ntlm")

    def headers(self, challenge: str) -> Mapping[str, str] | None:
        token = _token(challenge)
        if challenge and token is None:
            _check_offer("NTLM", challenge)
            return None
        try:
            answer = self._context.step(token)
        except SpnegoError:
            return None
        return {"Authorization": f"NTLM {base64.b64encode(answer).decode()}"} if answer else None


# ---- Kerberos -----------------------------------------------------------------------------------------

_KERBEROS_SAYS: tuple[tuple[str, str, str], ...] = (
    (
        "No Kerberos credentials available",
        "there is no Kerberos ticket",
        "run kinit, or give user and password",
    ),
    ("in cache collection", "there is no Kerberos ticket of this user", "run kinit, or give a password"),
    ("Ticket expired", "the Kerberos ticket has expired", "run kinit, or give user and password"),
    ("Preauthentication failed", "the domain refused the password", "correct password in farm.yaml"),
    ("Password incorrect", "the domain refused the password", "correct password in farm.yaml"),
    ("Client .*not found", "the domain has no such user", "write user as USER@REALM in farm.yaml"),
    (
        "Server .*not found",
        "the domain has no service HTTP of this host",
        "register it (setspn), or correct the url",
    ),
    (
        "Clock skew too great|not yet valid",
        "the clocks differ by more than Kerberos allows",
        "set the clocks (5 minutes at most)",
    ),
    ("Cannot find KDC", "no domain controller is known", "name the realm's in krb5.conf, or correct user"),
    ("Cannot contact any KDC", "no domain controller answers", "check krb5.conf and the network"),
)
"""Pattern of an MIT Kerberos message -> cause and remedy in a few words."""


class Kerberos:
    """Logs connections in with Kerberos tickets.

    The first login obtains the tickets, and all others use them. With a user and a password, the tickets are
    requested from the domain; otherwise those of kinit are used. The library waits for the domain controller
    in C code, so it runs in a thread.

    Args:
        host: host of the site, registered as the service ``HTTP/host``.
        user: ``USER@REALM``; None for the owner of the tickets of kinit.
        password: password of the user; None for the tickets of kinit.
    """

    def __init__(self, host: str, user: str | None, password: str | None) -> None:
        self._client = partial(
            spnego.client, user, password, hostname=host, service="HTTP", protocol="kerberos"
        )
        self._tickets: spnego.ContextProxy | None = None
        self._call_thread = CallThread()

    def begin(self) -> HttpLogin:
        """Return a login of one connection."""
        return _KerberosLogin(self)

    def step(self, context: spnego.ContextProxy | None, token: bytes | None) -> tuple[Any, bytes | None]:
        """Return the context, which is created if there is none, and its next message.

        Raises:
            LoginFailed: a ticket cannot be obtained.
        """
        return self._call_thread.call(partial(self._step, context, token))

    def _step(self, context: spnego.ContextProxy | None, token: bytes | None) -> tuple[Any, bytes | None]:
        try:
            if context is not None:
                return context, context.step(token)
            if self._tickets is not None:
                context = self._tickets.new_context()
                try:
                    return context, context.step()
                except SpnegoError:  # the tickets have expired meanwhile
                    self._tickets = None
            context = self._client()
            answer = context.step()
            self._tickets = context
        except ImportError as error:
            raise LoginFailed(
                "auth kerberos needs the libraries gssapi and krb5",
                "install them: pip install 'pinchpoint[kerberos]'",
            ) from error
        except Exception as error:  # Krb5Error of a library that may not be installed, beside SpnegoError
            raise _kerberos_failure(error) from error
        return context, answer


def _kerberos_failure(error: Exception) -> LoginFailed:
    text = str(error)
    for part, cause, remedy in _KERBEROS_SAYS:
        if re.search(part, text):
            return LoginFailed(cause, remedy)
    return LoginFailed(f"Kerberos: {text}", "see krb5.conf, or correct user and password in farm.yaml")


class _KerberosLogin:
    """Login by Kerberos (see ``http.HttpLogin``).

    One message suffices; a server may request it for every request.
    """

    each_request = None

    def __init__(self, kerberos: Kerberos) -> None:
        self._kerberos = kerberos
        self._context: Any = None

    def headers(self, challenge: str) -> Mapping[str, str] | None:
        token = _token(challenge)
        if challenge and token is None:
            _check_offer("Negotiate", challenge)
            raise LoginFailed(
                "the server refused the Kerberos ticket",
                "check the server's clock, and for which account HTTP/HOST is registered (setspn)",
            )
        self._context, answer = self._kerberos.step(self._context, token)
        return {"Authorization": f"Negotiate {base64.b64encode(answer).decode()}"} if answer else None


# ---- Entra ID -----------------------------------------------------------------------------------------

_PUBLIC_CLOUD = "https://login.microsoftonline.com"
_ENTRA_TIMEOUT_S = 5


class Entra:
    """Logs requests in with an application's tokens from Entra ID.

    A token is used until shortly before its end. A token that the site refuses earlier is replaced once.

    Args:
        endpoint: endpoint of the site for which tokens are requested, with the options of ``entra``.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._options = endpoint.options
        parts = urlsplit(endpoint.url)
        self._scopes = [f"{parts.scheme}://{parts.netloc}/.default"]
        tenant = self._options["tenant"]
        self._authority = tenant if "://" in tenant else f"{_PUBLIC_CLOUD}/{tenant}"
        self._lock = threading.Lock()
        self._application: Any = None

    def begin(self) -> HttpLogin:
        """Return a login of one request."""
        return _EntraLogin(self)

    def token(self, refused: str = "") -> str:
        """Return a token other than the one that the site refused.

        Raises:
            LoginFailed: Entra ID does not issue a token.
        """
        with self._lock:
            try:
                if self._application is None:
                    self._application = self._made()
                answer = self._application.acquire_token_for_client(self._scopes)
                if refused and answer.get("access_token") == refused:
                    self._application.remove_tokens_for_client()
                    answer = self._application.acquire_token_for_client(self._scopes)
            except requests.RequestException as error:
                raise LoginFailed(
                    f"no answer of {urlsplit(self._authority).netloc}, where Entra ID gives tokens",
                    "check tenant, the network and the proxy",
                    permanent=False,
                ) from error
            except ValueError as error:
                result = str(error).partition("\n")[0]
                raise LoginFailed(f"Entra ID: {result}", "correct tenant in farm.yaml") from error
        if "access_token" not in answer:
            raise _entra_failure(answer)
        return str(answer["access_token"])

    def _made(self) -> Any:
        # Imported late: it takes a third of a second to load.
        from msal import ConfidentialClientApplication  # noqa: PLC0415 - see above

        public = self._authority.startswith(_PUBLIC_CLOUD)
        return ConfidentialClientApplication(
            self._options["client"],
            client_credential=self._credential(),
            authority=self._authority,
            # the directory of the public cloud knows its own clouds
            instance_discovery=None if public else False,
            timeout=_ENTRA_TIMEOUT_S,
        )

    def _credential(self) -> str | dict[str, str | None]:
        """Return the secret of the application, or its certificate in MSAL's form."""
        if "secret" in self._options:
            return self._options["secret"]
        path, password = self._options["certificate"], self._options.get("password")
        secret = password.encode() if password else None
        try:
            content = Path(path).read_bytes()
            if path.lower().endswith((".pfx", ".p12")):
                pkcs12.load_key_and_certificates(content, secret)
                return {"private_key_pfx_path": path, "passphrase": password}
            load_pem_private_key(content, secret)
            load_pem_x509_certificate(content)
        # TypeError: a password without need, or a missing password
        except (OSError, ValueError, TypeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error).partition(". ")[0]
            raise LoginFailed(
                f"the certificate {path} cannot be read: {why}",
                "allowed: a PEM or PFX file with its private key",
            ) from error
        text = content.decode()
        return {"private_key": text, "public_certificate": text, "passphrase": password}


def _entra_failure(answer: Mapping[str, Any]) -> LoginFailed:
    text = str(answer.get("error_description") or answer.get("error") or "no token, and no reason")
    text = re.split(r"\s*(?:Trace ID:|[\r\n])", text)[0].rstrip(".")
    remedy = "correct tenant, client, secret or certificate in farm.yaml"
    if "AADSTS700024" in text:  # the signed assertion is not valid yet, or not any more
        remedy = "set the clock of this machine"
    return LoginFailed(f"Entra ID refused the application: {text}", remedy)


class _EntraLogin:
    """Login by a token of Entra ID (see ``http.HttpLogin``)."""

    each_request = True

    def __init__(self, entra: Entra) -> None:
        self._entra = entra
        self._sent = ""
        self._again = False

    def headers(self, challenge: str) -> Mapping[str, str] | None:
        if challenge or self._sent:
            if self._again:
                raise LoginFailed(
                    "the site refused the token of Entra ID",
                    "give the application a permission; SharePoint Online takes a certificate, no secret",
                )
            self._again = True
        self._sent = self._entra.token(refused=self._sent)
        return {"Authorization": f"Bearer {self._sent}"}


def _ntlm(endpoint: Endpoint) -> Callable[[], HttpLogin]:
    return partial(Ntlm, endpoint.options["user"], endpoint.options["password"])


def _kerberos(endpoint: Endpoint) -> Callable[[], HttpLogin]:
    host = urlsplit(endpoint.url).hostname or ""
    return Kerberos(host, endpoint.options.get("user"), endpoint.options.get("password")).begin


def _entra(endpoint: Endpoint) -> Callable[[], HttpLogin]:
    return Entra(endpoint).begin


_MORE_THAN_A_HEADER: Mapping[str, Callable[[Endpoint], Callable[[], HttpLogin]]] = {
    "ntlm": _ntlm,
    "kerberos": _kerberos,
    "entra": _entra,
}
"""``auth`` -> function that begins the logins of an endpoint."""
