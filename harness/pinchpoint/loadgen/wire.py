"""Sockets between a controller and load workers on other machines, encrypted with the shared token.

ZeroMQ's CURVE: both ends derive both key pairs from the token, so each proves to the other that it knows it,
nothing that travels can be read, and nothing that was recorded can be played back. A peer without the token
never gets as far as a message.
"""

from __future__ import annotations

import hashlib
import socket
from contextlib import suppress

import gevent
import zmq.green as zmq
from gevent.event import Event
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from pinchpoint.loadgen.messages import LARGEST_BYTES

_CONTROLLER, _WORKER = b"pinchpoint controller", b"pinchpoint worker"
_DOMAIN = b"pinchpoint"
_HANDSHAKE_MS = 5000  # a peer without proof by then is disconnected
_RECONNECT_MS = (200, 2000)
_WAITING = 1000  # messages that wait for a peer; beyond, the sender waits, or they are lost with the peer
_UNPROVED = (
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
)
_GIVEN_UP = (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH)
"""After these ZeroMQ does not connect again by itself; a run may listen there later."""


class _Socket:
    """The socket code that both ends share.

    Args:
        kind: of ZeroMQ's.
        host: of the controller.
        port: of the controller.
    """

    def __init__(self, kind: int, host: str, port: int) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        options = {
            zmq.LINGER: 0,
            zmq.TCP_KEEPALIVE: 1,
            zmq.TCP_KEEPALIVE_IDLE: 30,
            zmq.HANDSHAKE_IVL: _HANDSHAKE_MS,
            zmq.RECONNECT_IVL: _RECONNECT_MS[0],
            zmq.RECONNECT_IVL_MAX: _RECONNECT_MS[1],
            zmq.SNDHWM: _WAITING,
            zmq.RCVHWM: 16,  # of up to LARGEST_BYTES each
            # A little more than is taken: what is too large by little is seen, and its sender named.
            zmq.MAXMSGSIZE: 2 * LARGEST_BYTES,
        }
        for option, value in options.items():
            self._socket.setsockopt(option, value)
        if _has_ipv6(host, port):
            self._socket.setsockopt(zmq.IPV6, 1)
        self._monitor = self._socket.get_monitor_socket()


class Door(_Socket):
    """The controller's end.

    Args:
        host: the address to listen on; ``*``: all of this machine's.
        port: the port.
        token: the shared secret.

    Raises:
        OSError: it cannot listen there.
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        super().__init__(zmq.ROUTER, host, port)
        self.unproved = 0
        """How many connections did not prove that they know the token."""
        public, secret = _keys(token, _CONTROLLER)
        self._expected = z85.decode(_keys(token, _WORKER)[0])
        self._socket.curve_server = True
        self._socket.curve_publickey, self._socket.curve_secretkey = public, secret
        self._socket.setsockopt(zmq.ZAP_DOMAIN, _DOMAIN)
        self._socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # without the answer of _admit no one comes in
        self._asked = self._context.socket(zmq.REP)
        self._asked.bind("inproc://zeromq.zap.01")
        for loop in (self._admit, self._count):
            gevent.spawn(loop)
        try:
            self._socket.bind(f"tcp://{host}:{port}")
        except zmq.ZMQError as error:
            raise OSError(str(error)) from error

    def receive(self) -> tuple[bytes, bytes]:
        """The next message and its sender."""
        peer, *parts = self._socket.recv_multipart()
        return peer, parts[0] if len(parts) == 1 else b""  # all of ours have one part; an empty one is unfit

    def send(self, peer: bytes, data: bytes) -> None:
        """Send to one peer; it is lost where the peer is gone or takes nothing."""
        try:
            self._socket.send_multipart([peer, data], zmq.NOBLOCK)
        except zmq.ZMQError:
            return  # it says nothing either, and is lost for that

    def _admit(self) -> None:
        """ZeroMQ asks whether a peer's public key may come in (ZAP, RFC 27)."""
        while True:
            version, request, domain, _address, _identity, mechanism, *keys = self._asked.recv_multipart()
            known = (domain, mechanism, keys) == (_DOMAIN, b"CURVE", [self._expected])
            self._asked.send_multipart([version, request, b"200" if known else b"400", b"", b"", b""])

    def _count(self) -> None:
        while True:
            if recv_monitor_message(self._monitor)["event"] in _UNPROVED:
                self.unproved += 1


class WireLine(_Socket):
    """A worker's end.

    Args:
        host: the controller's.
        port: the controller's.
        token: the shared secret.
        name: this worker's, unlike any other's.
    """

    def __init__(self, host: str, port: int, token: str, name: bytes) -> None:
        super().__init__(zmq.DEALER, host, port)
        self.proved = Event()
        """Whether a controller that knows the token is reached."""
        self.refused = Event()
        """Whether something that does not, or does not know this worker's, has ever answered there."""
        self._socket.setsockopt(zmq.IDENTITY, name)
        self._socket.curve_serverkey = _keys(token, _CONTROLLER)[0]
        self._socket.curve_publickey, self._socket.curve_secretkey = _keys(token, _WORKER)
        self._address = f"tcp://{host}:{port}"
        gevent.spawn(self._watch)
        self._socket.connect(self._address)

    def receive(self) -> bytes:
        """The next message."""
        parts: list[bytes] = self._socket.recv_multipart()
        return parts[0] if len(parts) == 1 else b""

    def send(self, data: bytes) -> None:
        """Send one message; it waits while the controller cannot be reached."""
        self._socket.send(data)

    def _watch(self) -> None:
        while True:
            event = recv_monitor_message(self._monitor)["event"]
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.proved.set()
            elif event == zmq.EVENT_DISCONNECTED:
                self.proved.clear()
            elif event in _UNPROVED:
                self.refused.set()
                if event in _GIVEN_UP:
                    gevent.sleep(_RECONNECT_MS[1] / 1000)
                    with suppress(zmq.ZMQError):
                        self._socket.disconnect(self._address)
                    self._socket.connect(self._address)


def _keys(token: str, end: bytes) -> tuple[bytes, bytes]:
    """(public, secret) key of one end. Slow on purpose: whoever tries tokens needs as long for each."""
    secret = z85.encode(hashlib.scrypt(token.encode(), salt=end, n=2**14, r=8, p=1, dklen=32))
    return zmq.curve_public(secret), secret


def _has_ipv6(host: str, port: int) -> bool:
    if host == "*":
        return socket.has_dualstack_ipv6()
    try:
        result = socket.getaddrinfo(host.strip("[]"), port, proto=socket.IPPROTO_TCP)
    except socket.gaierror:
        return False  # connecting, or listening, says so
    return socket.has_dualstack_ipv6() and any(family == socket.AF_INET6 for family, *_ in result)
