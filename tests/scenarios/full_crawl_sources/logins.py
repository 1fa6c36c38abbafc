"""Login servers for tests: a Kerberos domain, a directory like Entra ID, a front that checks logins."""

from __future__ import annotations

import base64
import datetime
import json
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import HTTPError
from urllib.parse import parse_qs

import jwt
import spnego
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from httpserver import http_served
from scenarios.full_crawl_sources.sites import running
from spnego.exceptions import SpnegoError
from support import missing, require

try:
    from gssapi import SecurityContext
    from gssapi.exceptions import GSSError
except ImportError:
    SecurityContext, GSSError = None, SpnegoError


class _Front(BaseHTTPRequestHandler):
    """Forwards requests of logged-in clients to a site."""

    url: ClassVar[str]
    token: ClassVar[str]
    scheme: ClassVar[str]
    each_request: ClassVar[bool]
    valid_tokens: ClassVar[Collection[str]]
    statuses: ClassVar[list[int]]
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    context: Any = None
    admitted = False

    def log_message(self, *_: object) -> None:
        """Discard the log message."""

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.admitted:
            challenge = self.challenge()
            if challenge is not None:
                return self.reply(401, {"WWW-Authenticate": challenge}, b"")
        if self.each_request:
            self.admitted, self.context = False, None
        headers = {name: self.headers[name] for name in ("Accept", "Content-Type") if name in self.headers}
        request = urllib.request.Request(  # noqa: S310 - our own server
            self.url + self.path,
            body or None,
            {**headers, "Authorization": f"Bearer {self.token}"},
            method=self.command,
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - our own server
                return self.reply(200, {"Content-Type": answer.headers["Content-Type"]}, answer.read())
        except HTTPError as error:
            with error:
                return self.reply(error.code, {}, error.read())

    def challenge(self) -> str | None:
        """Return the challenge for the client; None if the client is authenticated."""
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if scheme != self.scheme:
            return self.scheme
        if scheme == "Bearer":
            self.admitted = given in self.valid_tokens
            return None if self.admitted else 'Bearer error="invalid_token"'
        if self.context is None:
            ntlm = scheme == "NTLM"
            self.context = spnego.server(protocol="ntlm") if ntlm else SecurityContext(usage="accept")
        answer = None
        try:
            answer = self.context.step(base64.b64decode(given))
            self.admitted = self.context.complete
        except (SpnegoError, GSSError):
            self.context = None
        if self.admitted:
            return None
        return f"{scheme} {base64.b64encode(answer).decode()}" if answer else scheme

    def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.statuses.append(status)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = handle_any  # noqa: N815 - http.server's names


@dataclass
class Front:
    """A front that checks logins.

    Attributes:
        port: TCP port on 127.0.0.1.
        statuses: HTTP statuses of all its replies.
    """

    port: int = 0
    statuses: list[int] = field(default_factory=list)


@contextmanager
def front(
    url: str, token: str, scheme: str, *, each_request: bool = False, valid_tokens: Collection[str] = ()
) -> Iterator[Front]:
    """Run a front of a site that requires a bearer token.

    Args:
        url: the site's URL.
        token: token that the site requires.
        scheme: scheme of the login: ``NTLM`` (``NTLM_USER_FILE`` in the environment names a file of lines
            ``DOMAIN:USER:PASSWORD``), ``Negotiate`` (the service's key is in ``KRB5_KTNAME``) or ``Bearer``.
        each_request: True if each request must log in, as in IIS's default for Kerberos.
        valid_tokens: bearer tokens that the front accepts.
    """
    made = Front()
    handler = type("Handler", (_Front,), {
        "url": url, "token": token, "scheme": scheme, "each_request": each_request or scheme == "Bearer",
        "valid_tokens": valid_tokens, "statuses": made.statuses,
    })  # fmt: skip
    with http_served(handler) as made.port:
        yield made


# ---- Kerberos -----------------------------------------------------------------------------------------

REALM = "CORP.EXAMPLE"


@dataclass
class Domain:
    """A Kerberos realm with the user ``crawler`` and the service ``HTTP/localhost``.

    Attributes:
        folder: path of its files; ``cache`` there has the tickets.
        port: port of its domain controller.
        password: password of ``crawler``.
        environ: environment variables for its programs and the library.
    """

    folder: Path
    port: int
    password: str = "secret word"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "KRB5_CONFIG": f"{self.folder}/krb5.conf",
            "KRB5_KDC_PROFILE": f"{self.folder}/kdc.conf",
            "KRB5_KTNAME": f"{self.folder}/http.keytab",
            "KRB5CCNAME": f"FILE:{self.folder}/cache",
            "KRB5RCACHENAME": f"file2:{self.folder}/replays",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        }

    def make(self) -> None:
        """Write its files and its database."""
        if SecurityContext is None:
            missing("gssapi is not installed: make packages")
        (self.folder / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
            " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[domain_realm]\n localhost = {REALM}\n other.example = {REALM}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder}/database\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n }}\n"
        )
        self.run(require("kdb5_util", "krb5-kdc"), "create", "-s", "-r", REALM, "-P", "master")
        for query in (
            f'addprinc +requires_preauth -pw "{self.password}" crawler',
            "addprinc -randkey HTTP/localhost",
            f"ktadd -k {self.folder}/http.keytab HTTP/localhost",
        ):
            self.run(require("kadmin.local", "krb5-admin-server"), "-q", query)

    def run(self, *command: str, text: str = "") -> None:
        """Run one of its programs."""
        subprocess.run(
            command, env=self.environ, input=text, text=True, check=True, capture_output=True, timeout=30
        )

    def kinit(self, *options: str) -> None:
        """Obtain a ticket of ``crawler`` with these options."""
        self.run(require("kinit", "krb5-user"), *options, "crawler", text=f"{self.password}\n")

    @contextmanager
    def controller(self, *before: str) -> Iterator[None]:
        """Run its domain controller; ``before`` is a command that starts it, such as faketime."""
        command = [*before, require("krb5kdc", "krb5-kdc"), "-n"]
        with running(command, self.port, self.folder / "kdc.log", env=self.environ):
            yield


# ---- Entra ID -----------------------------------------------------------------------------------------

TENANT, CLIENT = "contoso.example", str(uuid.UUID(int=7))


def application_certificate(folder: Path, password: str) -> x509.Certificate:
    """Create a certificate with ``app.pem``, and with the password ``locked.pem`` and ``app.pfx``."""
    folder.mkdir(exist_ok=True)
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "crawler")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    plain, locked = serialization.NoEncryption(), serialization.BestAvailableEncryption(password.encode())
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "app.pem").write_bytes(key.private_bytes(*form, plain) + pem)
    (folder / "locked.pem").write_bytes(key.private_bytes(*form, locked) + pem)
    (folder / "app.pfx").write_bytes(pkcs12.serialize_key_and_certificates(b"app", key, made, None, locked))
    return made


@dataclass
class Directory:
    """A simulated Entra ID for applications' tokens (OAuth 2.0 client credentials flow).

    Attributes:
        url: URL of a tenant.
        certificate: certificate that is registered with the application.
        secret: secret that is registered with the application.
        site: URL of the site for which tokens are issued.
        given: number of issued tokens.
        valid: issued tokens that are not revoked.
        lives_s: lifetime of a token in seconds.
        clock_s: offset of its clock in seconds.
    """

    certificate: x509.Certificate
    secret: str
    site: str
    url: str = ""
    given: int = 0
    valid: set[str] = field(default_factory=set)
    lives_s: int = 3600
    clock_s: float = 0

    def answer(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the reply to a request for a token."""
        refused = self.refusal(form)
        if refused:
            said = f"{refused} Trace ID: {uuid.uuid4()} Correlation ID: {uuid.uuid4()}"
            return 401, {"error": "invalid_client", "error_description": said}
        self.given += 1
        token = f"token-{uuid.uuid4()}"
        self.valid.add(token)
        return 200, {"token_type": "Bearer", "expires_in": self.lives_s, "access_token": token}

    def refusal(self, form: dict[str, str]) -> str:
        if form.get("client_id") != CLIENT:
            return f"AADSTS700016: Application with identifier '{form.get('client_id')}' was not found."
        if form.get("scope") != f"{self.site}/.default" or form.get("grant_type") != "client_credentials":
            return "AADSTS500011: The resource principal was not found."
        if "client_assertion" not in form:
            valid = form.get("client_secret") == self.secret
            return "" if valid else "AADSTS7000215: Invalid client secret provided."
        assertion = form["client_assertion"]
        thumbprint = base64.urlsafe_b64encode(self.certificate.fingerprint(hashes.SHA256())).rstrip(b"=")
        if jwt.get_unverified_header(assertion).get("x5t#S256", "").rstrip("=") != thumbprint.decode():
            return "AADSTS700027: The certificate used to sign the client assertion is not registered."
        try:
            claims = jwt.decode(
                assertion, self.certificate.public_key(), ["PS256"],  # type: ignore[arg-type]  # RSA here
                audience=f"{self.url}/oauth2/v2.0/token", issuer=CLIENT, options={"verify_exp": False},
            )  # fmt: skip
        except jwt.InvalidTokenError as error:
            return f"AADSTS700027: {error}"
        if not claims["iat"] - 300 <= time.time() + self.clock_s <= claims["exp"]:
            return "AADSTS700024: Client assertion is not within its valid time range."
        return ""


class _DirectoryHandler(BaseHTTPRequestHandler):
    directory: ClassVar[Directory]
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Discard the log message."""

    def do_GET(self) -> None:
        if self.path != f"/{TENANT}/v2.0/.well-known/openid-configuration":
            return self.reply(
                400, {"error": "invalid_tenant", "error_description": "AADSTS90002: no tenant."}
            )
        url = self.directory.url
        return self.reply(
            200,
            {
                "issuer": f"{url}/v2.0",
                "authorization_endpoint": f"{url}/oauth2/v2.0/authorize",
                "token_endpoint": f"{url}/oauth2/v2.0/token",
            },
        )

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(text).items()}
        self.reply(*self.directory.answer(form))

    def reply(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def entra(directory: Directory, tls: Any) -> Iterator[None]:
    """Run the directory behind HTTPS with the context ``tls``."""
    handler = type("Handler", (_DirectoryHandler,), {"directory": directory})
    with http_served(handler, tls=tls) as port:
        directory.url = f"https://127.0.0.1:{port}/{TENANT}"
        yield
