"""Connects a controller and load workers on other machines by sockets, encrypted with the shared token.

ZeroMQ's CURVE: both ends derive both key pairs from the token. So each end proves to the other that it knows
the token, no message can be read on the way, and no recorded message can be replayed. A peer without the
token cannot send a message.
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
_HANDSHAKE_MS = 5000  # a peer that has proved nothing by then is disconnected
_RECONNECT_MS = (200, 2000)
_WAITING = 1000  # most messages that wait for a peer; then the sender waits, or they are lost with the peer
_UNPROVED = (
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
)
_GIVEN_UP = (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH)
"""After these events ZeroMQ does not connect again by itself, but a run may listen there later."""


class _Socket:
    """The socket code that both ends share.

    Args:
        kind: ZeroMQ's type of socket.
        host: address of the controller.
        port: port of the controller.
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
            zmq.RCVHWM: 16,  # messages of up to LARGEST_BYTES each
            # Larger than the limit of a message, so that a message slightly above the limit is received and
            # its sender is named.
            zmq.MAXMSGSIZE: 2 * LARGEST_BYTES,
        }
        for option, value in options.items():
            self._socket.setsockopt(option, value)
        if _has_ipv6(host, port):
            self._socket.setsockopt(zmq.IPV6, 1)
        self._monitor = self._socket.get_monitor_socket()


class Door(_Socket):
    """The controller's end of the connections.

    Args:
        host: address to listen on; ``*``: all addresses of this machine.
        port: port to listen on.
        token: the shared secret.

    Raises:
        OSError: listening at this address is not possible.
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        super().__init__(zmq.ROUTER, host, port)
        self.unproved = 0
        """Number of connections that did not prove that they know the token."""
        public, secret = _keys(token, _CONTROLLER)
        self._expected = z85.decode(_keys(token, _WORKER)[0])
        self._socket.curve_server = True
        self._socket.curve_publickey, self._socket.curve_secretkey = public, secret
        self._socket.setsockopt(zmq.ZAP_DOMAIN, _DOMAIN)
        self._socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # no peer is accepted without _admit
        self._asked = self._context.socket(zmq.REP)
        self._asked.bind("inproc://zeromq.zap.01")
        for loop in (self._admit, self._count):
            gevent.spawn(loop)
        try:
            self._socket.bind(f"tcp://{host}:{port}")
        except zmq.ZMQError as error:
            raise OSError(str(error)) from error

    def receive(self) -> tuple[bytes, bytes]:
        """The sender of the next message, and the message."""
        peer, *parts = self._socket.recv_multipart()
        # our messages have one part; an empty one is invalid
        return peer, parts[0] if len(parts) == 1 else b""

    def send(self, peer: bytes, data: bytes) -> None:
        """Send to one peer; the message is lost if the peer has ended or accepts nothing."""
        try:
            self._socket.send_multipart([peer, data], zmq.NOBLOCK)
        except zmq.ZMQError:
            return  # such a peer is also silent, and so counts as lost

    def _admit(self) -> None:
        """Answer ZeroMQ's questions whether a peer's public key is accepted (ZAP, RFC 27)."""
        while True:
            version, request, domain, _address, _identity, mechanism, *keys = self._asked.recv_multipart()
            known = (domain, mechanism, keys) == (_DOMAIN, b"CURVE", [self._expected])
            self._asked.send_multipart([version, request, b"200" if known else b"400", b"", b"", b""])

    def _count(self) -> None:
        while True:
            if recv_monitor_message(self._monitor)["event"] in _UNPROVED:
                self.unproved += 1


class WireLine(_Socket):
    """A worker's end of the connection.

    Args:
        host: address of the controller.
        port: port of the controller.
        token: the shared secret.
        name: name of this worker, unique among all workers.
    """

    def __init__(self, host: str, port: int, token: str, name: bytes) -> None:
        super().__init__(zmq.DEALER, host, port)
        self.proved = Event()
        """Set while a controller that knows the token is connected."""
        self.refused = Event()
        """Set once a peer has answered at this address that does not share this worker's token."""
        self._socket.setsockopt(zmq.IDENTITY, name)
        self._socket.curve_serverkey = _keys(token, _CONTROLLER)[0]
        self._socket.curve_publickey, self._socket.curve_secretkey = _keys(token, _WORKER)
        self._address = f"tcp://{host}:{port}"
        gevent.spawn(self._watch)
        self._socket.connect(self._address)

    def receive(self) -> bytes:
        """The next message; empty if it is invalid."""
        parts: list[bytes] = self._socket.recv_multipart()
        return parts[0] if len(parts) == 1 else b""

    def send(self, data: bytes) -> None:
        """Send one message; blocks while the controller cannot be reached."""
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
    """The (public, secret) key of one end.

    The computation is slow on purpose, because an attacker needs the same time for each token.
    """
    secret = z85.encode(hashlib.scrypt(token.encode(), salt=end, n=2**14, r=8, p=1, dklen=32))
    return zmq.curve_public(secret), secret


def _has_ipv6(host: str, port: int) -> bool:
    if host == "*":
        return socket.has_dualstack_ipv6()
    try:
        result = socket.getaddrinfo(host.strip("[]"), port, proto=socket.IPPROTO_TCP)
    except socket.gaierror:
        return False  # connecting or listening reports the error
    return socket.has_dualstack_ipv6() and any(family == socket.AF_INET6 for family, *_ in result)
