"""TLS of one connection in memory: bytes in, bytes out."""

from __future__ import annotations

import ssl

from . import MORE, More
from .http import HttpDriver, HttpError, Response

_RECORD_BYTES = 2**14  # the most plain text of one record (RFC 8446, 5.1)


class Records:
    """One connection's TLS.

    Args:
        context: the TLS settings.
        host: the host of the expected certificate.

    Raises:
        HttpError: ``tls``, here and in every method.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        except (ValueError, ssl.SSLError) as error:
            raise HttpError("tls", str(error)) from error
        self._open, self._seal = self._tls.read, self._tls.write

    def shake_hands(self, content: bytes) -> bool:
        """Whether the handshake is complete after these bytes of the server (empty at the begin)."""
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
        """Bytes of the handshake to send."""
        return self._outgoing.read()

    def sealed(self, content: bytes) -> bytes:
        """The encrypted bytes to send."""
        try:
            self._seal(content)
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error
        return self._outgoing.read()

    def receive(self, content: bytes, driver: HttpDriver) -> Response | More:
        """Decrypt the received whole records; return the data of one answer."""
        sealed = self._incoming
        sealed.write(content)
        answer: Response | More = MORE
        try:
            while sealed.pending and answer is MORE:
                answer = driver.receive(self._open(_RECORD_BYTES))
        except ssl.SSLWantReadError:
            return MORE  # the next record is not whole yet
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error
        return answer

    def unasked(self) -> bool:
        """Whether more data than the answer has arrived."""
        if not self._incoming.pending:
            return False
        try:
            self._open(_RECORD_BYTES)
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise HttpError("tls", str(error)) from error
        return True
