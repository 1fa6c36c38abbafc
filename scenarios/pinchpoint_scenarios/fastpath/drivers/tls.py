"""Encrypts and decrypts one TLS connection in memory: bytes in, bytes out."""

from __future__ import annotations

import ssl

from . import MORE, More
from .http import HttpDriver, HttpError, Response

_RECORD_BYTES = 2**14  # largest plain text of one record (RFC 8446, 5.1)


class Records:
    """The TLS state of one connection.

    Args:
        context: TLS settings.
        host: host name of the expected certificate.

    Raises:
        HttpError: kind ``tls``; every method may raise it.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        except (ValueError, ssl.SSLError) as error:
            raise HttpError("tls", str(error)) from error
        self._open, self._seal = self._tls.read, self._tls.write

    def shake_hands(self, content: bytes) -> bool:
        """Process bytes of the server (empty at the start), and return whether the handshake is complete."""
        if content:
            self._incoming.write(content)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise HttpError("tls", str(error)) from error
        return True

    def to_send(self) -> bytes:
        """Return the bytes of the handshake to send."""
        return self._outgoing.read()

    def sealed(self, content: bytes) -> bytes:
        """Return the encrypted bytes to send."""
        try:
            self._seal(content)
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error
        return self._outgoing.read()

    def receive(self, content: bytes, driver: HttpDriver) -> Response | More:
        """Decrypt the received records. Return the data of one answer."""
        sealed = self._incoming
        sealed.write(content)
        answer: Response | More = MORE
        try:
            while sealed.pending and answer is MORE:
                answer = driver.receive(self._open(_RECORD_BYTES))
        except ssl.SSLWantReadError:
            return MORE  # the next record is not complete yet
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error
        return answer

    def unasked(self) -> bool:
        """Return whether more data than the answer has arrived."""
        if not self._incoming.pending:
            return False
        try:
            self._open(_RECORD_BYTES)
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error
        return True
