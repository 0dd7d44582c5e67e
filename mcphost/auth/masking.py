"""Masks the secrets in a recorded step of a sign-in, so that it can be shown.

What is shown stays foreign text: make it safe for a terminal before showing it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, unquote_plus, urlencode

from mcphost.auth.flow.steps import FORM, JSON, HttpAnswer, HttpExchange
from mcphost.protocol.display import show_line
from mcphost.redaction import OAUTH_SECRETS, Mask, is_secret_header, looks_secret, mask_doubtful

SECRET_MEMBERS: Final = OAUTH_SECRETS | {"code", "d", "state", "token"}

_OPEN_MEMBERS: Final = frozenset({
    "issued_token_type", "token_endpoint", "token_endpoint_auth_method", "token_endpoint_auth_signing_alg",
    "token_type", "token_type_hint",
})  # fmt: skip
"""Members whose names look secret although their values are not."""

SHORTEST: Final = 8
"""Characters of the shortest secret that is masked anywhere in a text; shorter ones occur in words by chance."""

SHOWN: Final = 16_384
"""Characters of a body that are kept."""


def request_headers(fetch: HttpExchange) -> dict[str, str]:
    """The request headers of a step, its credentials masked."""
    kind = {} if fetch.body is None else {"Content-Type": content_type(fetch)}
    return {**kind, **_headers(fetch.headers, lambda value: value)}


def request_body(fetch: HttpExchange) -> str:
    """The body of a step as it is sent, its secrets masked."""
    if fetch.body is None:
        return ""
    body = _without_secrets(fetch.body)
    if fetch.kind == "registration":
        return json.dumps(body, indent=2)
    return urlencode(body, safe="(): /", quote_via=quote).replace(quote("…"), "…")


def response_headers(fetch: HttpExchange, answer: HttpAnswer) -> dict[str, str]:
    """The headers of a response; secrets, also those of the request and of the body that they repeat, are masked."""
    secrets = secrets_of(fetch, _parsed(answer.content))
    plain = fetch.kind == "metadata"
    return _headers(answer.headers, lambda value: _without(value, secrets) if plain else _masked(value, secrets))


def response_body(fetch: HttpExchange, answer: HttpAnswer) -> str:
    """The body of a response, its secrets masked. What is not a JSON object is shown only if it cannot hold a token."""
    document = _parsed(answer.content)
    if fetch.kind == "metadata":
        return (_shown(document, None) or answer.content.decode("utf-8", "replace"))[:SHOWN]
    secrets = secrets_of(fetch, document)
    if shown := _shown(document if isinstance(document, dict) else None, lambda text: _masked(text, secrets)):
        return shown[:SHOWN]
    return f"({len(answer.content)} bytes that are not a JSON object; not shown, since they may hold a token)"


def quoted(words: str, limit: int, secrets: Iterable[str]) -> str:
    """Words of a document or redirect that may hold secrets, safe to show: without ``secrets`` and their like."""
    return show_line(_masked(" ".join(words[:SHOWN].split()), tuple(secrets)), limit)


def secrets_of(fetch: HttpExchange, document: object) -> tuple[str, ...]:
    """Every secret that was sent, or received in ``document``."""
    sent = [value for name, value in fetch.headers.items() if is_secret_header(name)]
    for scheme, _, credentials in [value.partition(" ") for value in sent]:
        sent += [credentials, *(_basic_parts(credentials) if scheme == "Basic" else ())]
    try:
        received = tuple(_secrets(document))
    except RecursionError:  # deeper than any response to be shown
        received = ()
    return tuple(each for each in (*sent, *_secrets(fetch.body), *received) if len(each) >= SHORTEST)


def content_type(fetch: HttpExchange) -> str:
    return JSON if fetch.kind == "registration" else FORM


def _headers(headers: Mapping[str, str], mask: Mask) -> dict[str, str]:
    return {name: _hidden(value) if is_secret_header(name) else mask(value) for name, value in headers.items()}


def _is_secret(member: str) -> bool:
    name = member.lower()
    return name in SECRET_MEMBERS or (looks_secret(name) and name not in _OPEN_MEMBERS)


def _without_secrets(value: Any, mask: Mask | None = None) -> Any:
    """The value without its secret members; with ``mask``, for documents with secrets, all others masked."""
    if isinstance(value, Mapping):
        hides = SECRET_MEMBERS.__contains__ if mask is None else _is_secret
        return {
            (name if mask is None else mask(name)): (
                _hidden(each) if hides(name.lower()) else _without_secrets(each, mask)
            )
            for name, each in value.items()
        }
    if isinstance(value, str):
        return value if mask is None else mask(value)
    return [_without_secrets(each, mask) for each in value] if isinstance(value, list) else value


def _masked(text: str, secrets: tuple[str, ...]) -> str:
    return mask_doubtful(_without(text, secrets))


def _shown(document: Any, mask: Mask | None) -> str:
    """Return the document as JSON without its secrets; empty if absent or nested too deeply."""
    try:
        return "" if document is None else json.dumps(_without_secrets(document, mask), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


def _parsed(content: bytes) -> Any:
    """Return the JSON value, or None if it cannot be parsed."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _basic_parts(credentials: str) -> Iterator[str]:
    with suppress(ValueError):
        secret = base64.b64decode(credentials).decode().partition(":")[2]
        yield from {secret, unquote_plus(secret)}


def _secrets(value: Any, *, secret: bool = False) -> Iterator[str]:
    """The texts in secret members: as they are, and escaped as in JSON and in a form."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _secrets(each, secret=secret or _is_secret(name))
    elif isinstance(value, list):
        for each in value:
            yield from _secrets(each, secret=secret)
    elif secret and isinstance(value, str):
        escaped = json.dumps(value, ensure_ascii=False)[1:-1]
        yield from {value, escaped, urlencode({"": value})[1:], urlencode({"": value}, quote_via=quote)[1:]}


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in sorted(set(secrets), key=len, reverse=True):  # longest first: one secret may begin with another
        text = text.replace(secret, "…")
    return text


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return f"…({len(value)} characters)" if value else ""
    return value if value is None or isinstance(value, bool) else "…"
