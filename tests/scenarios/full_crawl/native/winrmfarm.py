"""A stand-in farm behind WinRM: WS-Management over HTTP(S), PowerShell's remoting protocol by psrpcore.

It speaks as much of both as a runspace with pipelines needs: Create, Receive, Command, Signal, Delete. The
server's half of the remoting protocol is a library's, of which the client knows nothing.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
import uuid
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import spnego
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from psrpcore import PSRPPayload, ServerPipeline, ServerRunspacePool, StreamType
from psrpcore.types import NETException
from pypsrp.encryption import WinRMEncryption
from pypsrp.wsman import NAMESPACES
from scenarios.full_crawl.native.farm import Farm, Session
from spnego.exceptions import SpnegoError

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.native.link import script

USER, PASSWORD = "FARM\\loader", "p@ss word"
CONFIGURATION = "PinchpointCrawl"
_RESOURCE = "http://schemas.microsoft.com/powershell/"
_BOUNDARY = "Encrypted Boundary"
_NTLM_ONLY = spnego.NegotiateOptions.use_ntlm
_NO_SHELL = 2150858843  # ERROR_WSMAN_INVALID_SELECTORS: the shell is not there (any more)


class Shell:
    """One runspace pool, with what it has put out and nobody has fetched."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.pool = ServerRunspacePool()
        self.loaded = False
        self.out: defaultdict[uuid.UUID | None, bytes] = defaultdict(bytes)

    def receive(self, data: bytes, pipeline: uuid.UUID | None = None) -> None:
        """Take the client's messages, and do what they say."""
        if pipeline:
            ServerPipeline(self.pool, pipeline)
        self.pool.receive_data(PSRPPayload(data, StreamType.default, pipeline))
        while self.pool.next_event() is not None:
            pass
        if pipeline:
            self._run(self.pool.pipeline_table[pipeline])
        while (payload := self.pool.data_to_send()) is not None:
            self.out[payload.pipeline_id] += payload.data

    def _run(self, pipeline: Any) -> None:
        (command,) = pipeline.metadata.commands
        pipeline.start()
        if command.is_script:
            self.loaded = command.command_text == script()
        elif not self.loaded or command.command_text != "Invoke-PinchpointRequest":
            text = f"The term '{command.command_text}' is not recognized as the name of a cmdlet"
            pipeline.write_error(NETException(Message=text))
        else:
            ((_, text),) = command.parameters
            for line in self.session.answer(str(text)):
                pipeline.write_output(line)
        pipeline.complete()


class Door:
    """How one connection is logged in to, and what travels over it is sealed."""

    def __init__(self, login: str, handed_over: list[str]) -> None:
        self._login = login
        self._handed_over = handed_over
        self._context: spnego.ContextProxy | None = None
        self._seal: WinRMEncryption | None = None

    def challenge(self, given: str) -> str | None:
        """What is asked back; None where the client is who it says."""
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
        """What a sealed body holds."""
        assert self._seal is not None
        return self._seal.unwrap_message(body, _BOUNDARY)

    def sealed(self, body: bytes) -> tuple[str, bytes]:
        """(content type, body), sealed."""
        assert self._seal is not None
        kind, sealed = self._seal.wrap_message(body)
        return f'{kind};protocol="{self._seal.protocol}";boundary="{_BOUNDARY}"', sealed


class WinRmFarm:
    """The server.

    Args:
        farm: what answers.
        folder: for the certificate.
        tls: HTTPS, not HTTP.
        login: ``basic``, ``ntlm`` or ``credssp``; the latter two by a file that ``NTLM_USER_FILE`` names.

    Attributes:
        handed_over: the passwords that CredSSP handed over, with which the server could go on.
    """

    def __init__(self, farm: Farm, folder: Path, *, tls: bool = True, login: str = "basic") -> None:
        self.farm = farm
        self.handed_over: list[str] = []
        self._connections: list[socket.socket] = []
        self.shells: dict[str, Shell] = {}
        self.actions: list[str] = []
        self.ca = folder / "ca.pem"
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

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

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False  # the end waits for them, so that no connection is left open
        self.scheme = "winrm" if tls else "winrm+http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(_certificate(self.ca, folder / "key.pem"), folder / "key.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Nothing is left of it."""
        self._server.shutdown()
        for connection in self._connections:
            with contextlib.suppress(OSError):  # closed by the client before
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join(10)

    def forget(self) -> None:
        """Every shell is gone, as after a restart of the service."""
        self.shells.clear()

    def endpoint(self, **options: str) -> Endpoint:
        """Where it is."""
        login = {"auth": "basic", "user": USER, "password": PASSWORD, "configuration": CONFIGURATION}
        url = f"{self.scheme}://127.0.0.1:{self._server.server_address[1]}"
        return Endpoint("crawler", url, {**login, "ca": str(self.ca), **options})

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """(HTTP status, body) for a request."""
        request = ET.fromstring(body)  # noqa: S314 - our own client has written it
        action = _text(request, "s:Header/wsa:Action").rpartition("/")[2]
        self.actions.append(action)
        if _text(request, "s:Header/wsman:ResourceURI") != _RESOURCE + CONFIGURATION:
            return 500, _fault(request, 2150858778, "there is no such session configuration")
        selector = request.find("s:Header/wsman:SelectorSet/wsman:Selector", NAMESPACES)
        shell = self.shells.get(selector.text or "") if selector is not None else None
        if action != "Create" and shell is None:
            return 500, _fault(request, _NO_SHELL, "the shell was not found")
        steps: dict[str, Callable[[ET.Element, Any], ET.Element | None]] = {
            "Create": self._create,
            "Receive": _receive,
            "Command": _command,
            "Signal": _signal,
            "Delete": self._delete,
        }
        return 200, _envelope(request, steps[action](request, shell))

    def _create(self, request: ET.Element, _: None) -> ET.Element:
        made = request.find("s:Body/rsp:Shell", NAMESPACES)
        assert made is not None
        name = made.attrib["ShellId"]
        self.shells[name] = shell = Shell(self.farm.session())
        shell.receive(base64.b64decode(_text(made, "pwsh:creationXml")))
        created = ET.Element(_tag("wst", "ResourceCreated"))
        parameters = ET.SubElement(created, _tag("wsa", "ReferenceParameters"))
        selectors = ET.SubElement(parameters, _tag("wsman", "SelectorSet"))
        ET.SubElement(selectors, _tag("wsman", "Selector"), Name="ShellId").text = name
        return created

    def _delete(self, _: ET.Element, shell: Shell) -> None:
        self.shells = {name: one for name, one in self.shells.items() if one is not shell}


def _receive(request: ET.Element, shell: Shell) -> ET.Element:
    stream = request.find("s:Body/rsp:Receive/rsp:DesiredStream", NAMESPACES)
    assert stream is not None
    given = stream.attrib.get("CommandId")
    data = shell.out.pop(uuid.UUID(given) if given else None, b"")
    answer = ET.Element(_tag("rsp", "ReceiveResponse"))
    ET.SubElement(answer, _tag("rsp", "Stream"), Name="stdout").text = base64.b64encode(data).decode()
    return answer


def _command(request: ET.Element, shell: Shell) -> ET.Element:
    line = request.find("s:Body/rsp:CommandLine", NAMESPACES)
    assert line is not None
    shell.receive(base64.b64decode(_text(line, "rsp:Arguments")), uuid.UUID(line.attrib["CommandId"]))
    answer = ET.Element(_tag("rsp", "CommandResponse"))
    ET.SubElement(answer, _tag("rsp", "CommandId")).text = line.attrib["CommandId"]
    return answer


def _signal(request: ET.Element, shell: Shell) -> ET.Element:
    signal = request.find("s:Body/rsp:Signal", NAMESPACES)
    assert signal is not None
    shell.pool.pipeline_table[uuid.UUID(signal.attrib["CommandId"])].close()
    return ET.Element(_tag("rsp", "SignalResponse"))


def _envelope(request: ET.Element, content: ET.Element | None) -> bytes:
    envelope = ET.Element(_tag("s", "Envelope"))
    header = ET.SubElement(envelope, _tag("s", "Header"))
    ET.SubElement(header, _tag("wsa", "RelatesTo")).text = _text(request, "s:Header/wsa:MessageID")
    body = ET.SubElement(envelope, _tag("s", "Body"))
    if content is not None:
        body.append(content)
    return bytes(ET.tostring(envelope))


def _fault(request: ET.Element, code: int, message: str) -> bytes:
    fault = ET.Element(_tag("s", "Fault"))
    detail = ET.SubElement(fault, _tag("s", "Detail"))
    told = ET.SubElement(detail, _tag("wsmanfault", "WSManFault"), Code=str(code))
    ET.SubElement(told, _tag("wsmanfault", "Message")).text = message
    return _envelope(request, fault)


def _tag(prefix: str, name: str) -> str:
    return f"{{{NAMESPACES[prefix]}}}{name}"


def _text(element: ET.Element, path: str) -> str:
    return element.findtext(path, "", NAMESPACES)


def _certificate(path: Path, key_path: Path) -> Path:
    """A certificate of 127.0.0.1 that vouches for itself."""
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


@contextmanager
def winrm_farm(farm: Farm, folder: Path, *, tls: bool = True, login: str = "basic") -> Iterator[WinRmFarm]:
    """A farm behind WinRM."""
    server = WinRmFarm(farm, folder, tls=tls, login=login)
    try:
        yield server
    finally:
        server.end()
