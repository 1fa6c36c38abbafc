"""A simulated Windows machine with WinRM: WS-Management over HTTP(S), PowerShell remoting by psrpcore.

It supports what runspaces with pipelines need: Create, Receive, Command, Signal, Delete. The server side of
the remoting protocol is a library that the client does not use. A subclass defines what runs in a runspace
(``Shell.run``).
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import ipaddress
import re
import socket
import ssl
import threading
import uuid
import xml.etree.ElementTree as ET
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import spnego
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from psrpcore import PSRPPayload, ServerPipeline, ServerRunspacePool, StreamType
from psrpcore.types import PSInvocationState
from pypsrp.encryption import WinRMEncryption
from pypsrp.wsman import NAMESPACES
from spnego.exceptions import SpnegoError

USER, PASSWORD = "FARM\\loader", "p@ss word"
_RESOURCE = "http://schemas.microsoft.com/powershell/"
_BOUNDARY = "Encrypted Boundary"
_NTLM_ONLY = spnego.NegotiateOptions.use_ntlm
_NO_RESOURCE = 2150858778
_NO_SHELL = 2150858843  # ERROR_WSMAN_INVALID_SELECTORS: the shell does not exist or has ended
_TIMED_OUT = 2150858793


class Shell(ABC):
    """One runspace pool: its running pipelines, and its output that the client has not fetched.

    Attributes:
        pool: the server side of the remoting protocol.
        changed: condition that guards all other attributes.
        ended: True if the shell has ended.
        running: ids of the pipelines that are still running.
    """

    def __init__(self) -> None:
        self.pool = ServerRunspacePool()
        self.changed = threading.Condition()
        self.ended = False
        self.running: set[uuid.UUID] = set()
        self._out: defaultdict[uuid.UUID | None, bytes] = defaultdict(bytes)

    @abstractmethod
    def run(self, pipeline: Any) -> None:
        """Run a pipeline's commands; complete it here or leave it in ``running``."""

    def receive(self, data: bytes, pipeline: uuid.UUID | None = None) -> None:
        """Process the client's messages."""
        with self.changed:
            if pipeline:
                ServerPipeline(self.pool, pipeline)
            self.pool.receive_data(PSRPPayload(data, StreamType.default, pipeline))
            while self.pool.next_event() is not None:
                pass
            if pipeline:
                self.run(self.pool.pipeline_table[pipeline])
            self.drain()

    def fetch(self, pipeline: uuid.UUID | None, within_s: float) -> bytes | None:
        """Return the pipeline's output; None if there is none within the time."""
        with self.changed:
            self.changed.wait_for(lambda: self._out.get(pipeline) or self.ended, within_s)
            return self._out.pop(pipeline, None)

    def stop(self, pipeline: uuid.UUID) -> None:
        """Stop the pipeline."""
        with self.changed:
            self.running.discard(pipeline)
            found = self.pool.pipeline_table.get(pipeline)
            if found is not None and found.state != PSInvocationState.Running:
                found.close()
            self.changed.notify_all()

    def end(self) -> None:
        """End the shell with all its pipelines."""
        with self.changed:
            self.ended = True
            self.running.clear()
            self.changed.notify_all()

    def drain(self) -> None:
        """Make the written data available to the client; the caller must hold ``changed``."""
        while (payload := self.pool.data_to_send()) is not None:
            self._out[payload.pipeline_id] += payload.data
        self.changed.notify_all()


class Door:
    """The authentication of one connection, and the encryption of its messages."""

    def __init__(self, login: str, handed_over: list[str]) -> None:
        self._login = login
        self._handed_over = handed_over
        self._context: spnego.ContextProxy | None = None
        self._seal: WinRMEncryption | None = None

    def challenge(self, given: str) -> str | None:
        """Return the challenge for the client; None if the client is authenticated."""
        if self._login == "basic":
            pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            return None if given == f"Basic {pair}" else 'Basic realm="WSMAN"'
        scheme = {"ntlm": "Negotiate", "credssp": "CredSSP"}[self._login]
        if self._context is not None and self._context.complete and not given:
            return None
        if not given.startswith(f"{scheme} "):
            return scheme
        if self._context is None or self._context.complete:
            options = _NTLM_ONLY if self._login == "ntlm" else spnego.NegotiateOptions.none
            self._context = spnego.server(protocol=self._login, options=options)
        try:
            answer = self._context.step(base64.b64decode(given.partition(" ")[2]))
        except SpnegoError:
            self._context = None
            return scheme
        if not self._context.complete:
            return f"{scheme} {base64.b64encode(answer or b'').decode()}"
        spoken = WinRMEncryption.CREDSSP if self._login == "credssp" else WinRMEncryption.SPNEGO
        self._seal = WinRMEncryption(self._context, spoken)
        if self._login == "credssp":
            given_away = self._context.get_extra_info("client_credential")
            self._handed_over.append(given_away.password)
        return None

    def opened(self, body: bytes) -> bytes:
        """Return the content of an encrypted body."""
        assert self._seal is not None
        return self._seal.unwrap_message(body, _BOUNDARY)

    def sealed(self, body: bytes) -> tuple[str, bytes]:
        """Encrypt a body; return (content type, encrypted body)."""
        assert self._seal is not None
        kind, sealed = self._seal.wrap_message(body)
        return f'{kind};protocol="{self._seal.protocol}";boundary="{_BOUNDARY}"', sealed


class WinRmServer:
    """A simulated WinRM server.

    Args:
        open_shell: function that creates the shell of a new session.
        folder: path for the certificate.
        configuration: name of the server's session configuration.
        tls: True: HTTPS; False: HTTP.
        login: ``basic``, ``ntlm`` or ``credssp``; the last two read the accounts from the file
            ``NTLM_USER_FILE``.

    Attributes:
        ca: path of the certificate.
        port: TCP port of the server.
        handed_over: passwords that clients delegated by CredSSP.
        shells: open shells by name.
        actions: actions of the requests so far.
        idle: idle timeouts that clients requested for their sessions.
        cut: while set, the server drops requests and their connections.
    """

    def __init__(
        self,
        open_shell: Callable[[], Shell],
        folder: Path,
        configuration: str,
        *,
        tls: bool = True,
        login: str = "basic",
    ) -> None:
        self.handed_over: list[str] = []
        self.shells: dict[str, Shell] = {}
        self.actions: list[str] = []
        self.idle: list[str] = []
        self.cut = threading.Event()
        self.ca = folder / "ca.pem"
        self.tls = tls
        self._open_shell = open_shell
        self._resource = _RESOURCE + configuration
        self._connections: list[socket.socket] = []
        self._server = self._listening(login)
        self.port = int(self._server.server_address[1])
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate(self.ca, folder / "key.pem"), folder / "key.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the server and close all connections."""
        self.forget()
        self._server.shutdown()
        for connection in self._connections:
            with contextlib.suppress(OSError):  # the client has already closed the connection
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join(10)

    def forget(self) -> None:
        """End every shell, as a restart of the service does."""
        for shell in self.shells.values():
            shell.end()
        self.shells.clear()

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """Return (HTTP status, body) for a request."""
        if self.cut.is_set():
            raise ConnectionResetError
        request = ET.fromstring(body)  # noqa: S314 - our own client has written it
        action = text_of(request, "s:Header/wsa:Action").rpartition("/")[2]
        self.actions.append(action)
        if text_of(request, "s:Header/wsman:ResourceURI") != self._resource:
            return 500, fault(request, _NO_RESOURCE, "there is no such session configuration")
        selector = request.find("s:Header/wsman:SelectorSet/wsman:Selector", NAMESPACES)
        shell = self.shells.get(selector.text or "") if selector is not None else None
        if action != "Create" and shell is None:
            return 500, fault(request, _NO_SHELL, "the shell was not found")
        steps: dict[str, Callable[[ET.Element, Any], ET.Element | None]] = {
            "Create": self._create,
            "Receive": _receive,
            "Command": _command,
            "Signal": _signal,
            "Delete": self._delete,
        }
        try:
            return 200, envelope(request, steps[action](request, shell))
        except TimeoutError:
            return 500, fault(request, _TIMED_OUT, "the operation timed out")

    def _create(self, request: ET.Element, _: None) -> ET.Element:
        made = request.find("s:Body/rsp:Shell", NAMESPACES)
        assert made is not None
        self.idle.append(made.findtext("rsp:IdleTimeOut", "", NAMESPACES))
        name = made.attrib["ShellId"]
        self.shells[name] = shell = self._open_shell()
        shell.receive(base64.b64decode(text_of(made, "pwsh:creationXml")))
        created = ET.Element(tag("wst", "ResourceCreated"))
        parameters = ET.SubElement(created, tag("wsa", "ReferenceParameters"))
        selectors = ET.SubElement(parameters, tag("wsman", "SelectorSet"))
        ET.SubElement(selectors, tag("wsman", "Selector"), Name="ShellId").text = name
        return created

    def _delete(self, _: ET.Element, shell: Shell) -> None:
        shell.end()
        self.shells = {name: one for name, one in self.shells.items() if one is not shell}

    def _listening(self, login: str) -> ThreadingHTTPServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def log_message(self, *_: Any) -> None:
                """Discard the log message."""

            def setup(self) -> None:
                self.door = Door(login, server.handed_over)
                server._connections.append(self.request)
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer, kind = 200, b"", "application/soap+xml;charset=UTF-8"
                challenge = self.door.challenge(self.headers.get("Authorization", ""))
                if challenge is not None:
                    status = 401
                elif body:
                    sealed = self.headers["Content-Type"].startswith("multipart/")
                    status, answer = server.answer(self.door.opened(body) if sealed else body)
                    kind, answer = self.door.sealed(answer) if sealed else (kind, answer)
                self.send_response(status)
                if challenge is not None:
                    self.send_header("WWW-Authenticate", challenge)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        class Server(ThreadingHTTPServer):
            daemon_threads = False  # the server's end waits for its threads, so that no connection stays open

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Ignore errors that ``cut`` causes; report any other as an error of the simulated server."""
                if not server.cut.is_set():
                    super().handle_error(request, client_address)

        return Server(("127.0.0.1", 0), Handler)


def _receive(request: ET.Element, shell: Shell) -> ET.Element:
    stream = request.find("s:Body/rsp:Receive/rsp:DesiredStream", NAMESPACES)
    assert stream is not None
    given = stream.attrib.get("CommandId")
    within = re.fullmatch(r"PT([\d.]+)S", text_of(request, "s:Header/wsman:OperationTimeout"))
    data = shell.fetch(uuid.UUID(given) if given else None, float(within[1]) if within else 20)
    if data is None:
        raise TimeoutError
    answer = ET.Element(tag("rsp", "ReceiveResponse"))
    ET.SubElement(answer, tag("rsp", "Stream"), Name="stdout").text = base64.b64encode(data).decode()
    return answer


def _command(request: ET.Element, shell: Shell) -> ET.Element:
    line = request.find("s:Body/rsp:CommandLine", NAMESPACES)
    assert line is not None
    shell.receive(base64.b64decode(text_of(line, "rsp:Arguments")), uuid.UUID(line.attrib["CommandId"]))
    answer = ET.Element(tag("rsp", "CommandResponse"))
    ET.SubElement(answer, tag("rsp", "CommandId")).text = line.attrib["CommandId"]
    return answer


def _signal(request: ET.Element, shell: Shell) -> ET.Element:
    signal = request.find("s:Body/rsp:Signal", NAMESPACES)
    assert signal is not None
    shell.stop(uuid.UUID(signal.attrib["CommandId"]))
    return ET.Element(tag("rsp", "SignalResponse"))


def envelope(request: ET.Element, content: ET.Element | None) -> bytes:
    envelope = ET.Element(tag("s", "Envelope"))
    header = ET.SubElement(envelope, tag("s", "Header"))
    ET.SubElement(header, tag("wsa", "RelatesTo")).text = text_of(request, "s:Header/wsa:MessageID")
    body = ET.SubElement(envelope, tag("s", "Body"))
    if content is not None:
        body.append(content)
    return bytes(ET.tostring(envelope))


def fault(request: ET.Element, code: int, message: str) -> bytes:
    fault = ET.Element(tag("s", "Fault"))
    detail = ET.SubElement(fault, tag("s", "Detail"))
    told = ET.SubElement(detail, tag("wsmanfault", "WSManFault"), Code=str(code))
    ET.SubElement(told, tag("wsmanfault", "Message")).text = message
    return envelope(request, fault)


def tag(prefix: str, name: str) -> str:
    return f"{{{NAMESPACES[prefix]}}}{name}"


def text_of(element: ET.Element, path: str) -> str:
    return element.findtext(path, "", NAMESPACES)


def certificate(path: Path, key_path: Path) -> Path:
    """Write a self-signed certificate of 127.0.0.1 and return its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).add_extension(address, critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = made.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    path.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path
