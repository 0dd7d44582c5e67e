"""Turns a refusal of an endpoint into an exception that says what the user can do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcphost.errors import (
    ModelAnswerMalformed,
    ModelError,
    ModelKeyRefused,
    ModelOverloaded,
    ModelRefused,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text
from mcphost.providers.endpoint import ModelEndpoint

BUSY: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Transient statuses: a retry may succeed."""

_STATUS_OF: Final[Mapping[str, int]] = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "billing_error": 402,
    "insufficient_quota": 402,
    "not_found_error": 404,
    "invalid_request_error": 400,
}
"""The HTTP status of an error type: inside a stream there is only the type."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as the endpoint reported it, in a body or inside a stream."""

    status: int
    message: str = ""
    type: str = ""
    param: str = ""
    """The parameter that it is about."""

    @classmethod
    def read(cls, status: int, body: bytes) -> Refusal:
        """Parse the body of a response of this status. Accepts anything."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return cls(status, "" if body.lstrip().startswith(b"<") else body.decode("utf-8", "replace"))
        return cls.from_document(document, status)

    @classmethod
    def from_document(cls, document: Any, status: int = 500) -> Refusal:
        """Parse ``{"error": …}`` in each of the shapes that occur; ``status`` applies if the error names none."""
        error = document.get("error", document) if isinstance(document, dict) else document
        if not isinstance(error, dict):
            return cls(status, "" if error is None else str(error))
        types = [text for name in ("code", "type") if isinstance(text := error.get(name), str)]
        known = next((name for name in types if name in _STATUS_OF), "")
        message = error.get("message", error.get("detail", ""))
        return cls(
            _status(status, known, error.get("code")),
            message if isinstance(message, str) else json.dumps(message),
            known or next(iter(types), ""),
            str(error.get("param") or ""),
        )


def _status(status: int, known: str, code: object) -> int:
    # An exhausted quota comes as 429; inside a stream there is only a type or a number.
    if known in ("insufficient_quota", "billing_error"):
        return 402
    if status != 500:
        return status
    return _STATUS_OF.get(known) or (code if type(code) is int and 400 <= code < 600 else status)


_SENTENCES: Final[Mapping[int, tuple[type[ModelError], str]]] = {
    401: (ModelKeyRefused, "the key was not accepted; look at api_key"),
    402: (ModelRefused, "the account has no credit left; look at the vendor's billing page"),
    403: (ModelKeyRefused, "the key may not do this; look at api_key and at what its account allows"),
    404: (ModelRefused, "there is no such model or address; look at model and base_url"),
    413: (ModelRefused, "the request is too large; leave messages or pictures out"),
}


def error_of(endpoint: ModelEndpoint, refusal: Refusal, wait: float | None = None) -> ModelError:
    """The exception for a refusal; ``wait`` is the delay in seconds that the endpoint asks for."""
    quoted = endpoint.clean(refusal.message)
    quotation = f" (it says: {quoted})" if quoted else ""
    status = refusal.status
    if 300 <= status < 400:
        return ModelRefused(
            endpoint.entry, f"{endpoint.origin} sends elsewhere, where no key is sent (HTTP {status}); look at base_url"
        )
    if status in BUSY:
        why = "too many requests" if status == 429 else "no room" if status in (503, 529) else "in trouble"
        later = "later" if wait is None else f"in {duration_text(wait)}"
        message = (
            f"{endpoint.origin} says: {why} (HTTP {status}); try again {later}, or choose another model{quotation}"
        )
        return ModelOverloaded(endpoint.entry, message, seconds=wait)
    if status >= 500 or status < 300:
        return ModelAnswerMalformed(
            endpoint.entry, f"{endpoint.origin} answered HTTP {status}, which is not an answer{quotation}"
        )
    kind, sentence = _SENTENCES.get(
        status, (ModelRefused, "the request was refused; change it or choose another model")
    )
    return kind(endpoint.entry, f"{sentence} (HTTP {status} from {endpoint.origin}){quotation}")
