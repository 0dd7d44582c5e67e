"""Explains network failures: a sentence with the cause, and what the user can do about it.

Sentences name hosts and ports, never a whole URL: a path or a query may hold a secret.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Final

import httpx

from mcphost.errors import ConnectionLost
from mcphost.net.origins import port_of
from mcphost.protocol.display import show_line


def place(url: httpx.URL) -> str:
    """``host:port`` of a URL, safe to show."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return show_line(f"{host}:{port_of(url)}")


def lost(error: BaseException, url: httpx.URL) -> ConnectionLost:
    """The exception for an engine's error in an exchange with ``url``."""
    causes = tuple(_causes(error))
    where = "the proxy" if any(isinstance(cause, httpx.ProxyError) for cause in causes) else place(url)
    for kind, sentence in _SENTENCES:
        for cause in reversed(causes):  # the deepest cause is the most specific
            if isinstance(cause, kind):
                return ConnectionLost(sentence(cause, where), lasting=_is_lasting(cause, causes))
    return ConnectionLost(f"the exchange with {where} failed: {_words(error)}")


def _is_lasting(cause: BaseException, causes: tuple[BaseException, ...]) -> bool:
    """True if retrying will fail again, because the other side is not what the URL says."""
    if isinstance(cause, ssl.SSLError):
        connecting = any(isinstance(each, httpx.ConnectError) for each in causes)
        return connecting and not isinstance(cause, ssl.SSLEOFError)
    return isinstance(cause, httpx.RemoteProtocolError)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _words(error: BaseException) -> str:
    return show_line(str(error).strip() or type(error).__name__)


def _certificate(error: BaseException, where: str) -> str:
    reason = show_line(getattr(error, "verify_message", "") or _words(error), 200).rstrip(".")
    advice = _CERTIFICATE_ADVICE.get(getattr(error, "verify_code", 0), _TRUST_IT)
    return f"the certificate of {where} is not trusted: {reason}; {advice}"


def _tls(error: BaseException, where: str) -> str:
    reason = getattr(error, "reason", None) or _words(error)
    return f"no TLS with {where}: {reason}; is the url's https right?"


def _unknown_name(error: BaseException, where: str) -> str:
    return f"no address is known for {where}; check the url and the network"


def _system(error: BaseException, where: str) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ECONNREFUSED:
        return f"nothing listens at {where}; is the server running, and the url right?"
    if number in (errno.ECONNRESET, errno.EPIPE):
        return f"{where} broke off the connection"
    return f"{where} cannot be reached: {os.strerror(number) if number else _words(error)}"


def _silent(error: BaseException, where: str) -> str:
    if isinstance(error, httpx.ReadTimeout):
        return f"{where} sent nothing in the time it had"
    return f"{where} could not be connected to in the time it had"


def _broken(error: BaseException, where: str) -> str:
    return f"{where} closed the connection before its answer was complete"


def _proxy(error: BaseException, where: str) -> str:
    status = getattr(error.__cause__, "status", None)
    reason = f"HTTP {status}" if status else _words(error)
    return f"{where} of the environment refused: {reason}; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"


def _no_http(error: BaseException, where: str) -> str:
    # Without the URL, which the engine's own text holds. Without a cause, the words are ours.
    message = str(error) if error.__cause__ is None else getattr(error.__cause__, "message", None)
    if message is None:
        return f"the exchange with {where} failed: {_words(error)}"
    words = show_line(" ".join(str(message).split()), 120)
    return f"{where} did not answer in HTTP{f': {words}' if words else ''}; is the url right?"


_TRUST_IT: Final = "if its authority is your own, name its file in SSL_CERT_FILE"
_CERTIFICATE_ADVICE: Final = {
    9: "is the clock of this computer right?",
    10: "it has to be renewed, unless the clock of this computer is wrong",
    62: "it is for another name: correct the url, or have one made for this name",
    64: "it is for another address: correct the url, or have one made for this address",
}
"""Advice by OpenSSL's verification error."""

_SENTENCES: Final[tuple[tuple[type[BaseException], Callable[[BaseException, str], str]], ...]] = (
    (ssl.SSLCertVerificationError, _certificate),
    (ssl.SSLError, _tls),
    (socket.gaierror, _unknown_name),
    (httpx.TimeoutException, _silent),
    (OSError, _system),
    (httpx.ProxyError, _proxy),
    (httpx.ReadError, _broken),
    (httpx.RemoteProtocolError, _no_http),
)
