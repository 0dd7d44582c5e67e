"""Masks the secrets in a recorded step of a sign-in, so that it can be shown.

What is shown stays foreign text: make it safe for a terminal before showing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from mcphost.auth.flow.steps import FORM, JSON, HttpAnswer, HttpExchange
from mcphost.redaction import OAUTH_SECRETS, SECRET_HEADERS

SECRET_MEMBERS: Final = OAUTH_SECRETS | {"code", "token"}

SHORTEST: Final = 8
"""Characters of the shortest secret that is masked anywhere in a text; shorter ones occur in words by chance."""

SHOWN: Final = 16_384
"""Characters of a body that are kept."""


def request_headers(fetch: HttpExchange) -> dict[str, str]:
    """The request headers of a step, its credentials masked."""
    kind = {} if fetch.body is None else {"Content-Type": content_type(fetch)}
    return {**kind, **_headers(fetch.headers, ())}


def request_body(fetch: HttpExchange) -> str:
    """The body of a step as it is sent, its secrets masked."""
    if fetch.body is None:
        return ""
    body = _without_secrets(fetch.body)
    if fetch.kind == "registration":
        return json.dumps(body, indent=2)
    return urlencode(body, safe="(): /", quote_via=quote).replace(quote("…"), "…")


def response_headers(fetch: HttpExchange, answer: HttpAnswer) -> dict[str, str]:
    """The headers of a response; cookies, and secrets of the request that they repeat, are masked."""
    return _headers(answer.headers, tuple(_secrets(fetch.body)))


def response_body(fetch: HttpExchange, answer: HttpAnswer) -> str:
    """The body of a response, its secrets masked. Text that is no JSON is shown only if it cannot hold a token."""
    try:
        document = json.loads(answer.content)
        shown = json.dumps(_without_secrets(document), indent=2, ensure_ascii=False)
        return _without(shown, (*_secrets(fetch.body), *_secrets(document)))[:SHOWN]
    except (ValueError, RecursionError):
        if fetch.kind == "metadata":
            return answer.content.decode("utf-8", "replace")[:SHOWN]
        return f"({len(answer.content)} bytes that are no JSON; not shown, for they may hold a token)"


def content_type(fetch: HttpExchange) -> str:
    return JSON if fetch.kind == "registration" else FORM


def _headers(headers: Mapping[str, str], secrets: tuple[str, ...]) -> dict[str, str]:
    return {
        name: _hidden(value) if name.lower() in SECRET_HEADERS else _without(value, secrets)
        for name, value in headers.items()
    }


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _hidden(each) if name.lower() in SECRET_MEMBERS else _without_secrets(each)
            for name, each in value.items()
        }
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


def _secrets(value: Any) -> Iterator[str]:
    """The values of secret members: as they are, and escaped as in JSON and in a form."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name.lower() in SECRET_MEMBERS and isinstance(each, str) and len(each) >= SHORTEST:
                yield from {each, json.dumps(each, ensure_ascii=False)[1:-1], urlencode({"": each})[1:]}
            else:
                yield from _secrets(each)
    elif isinstance(value, list):
        for each in value:
            yield from _secrets(each)


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in sorted(set(secrets), key=len, reverse=True):  # longest first: one secret may begin with another
        text = text.replace(secret, "…")
    return text


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return f"…({len(value)} characters)" if value else ""
    return value if value is None or isinstance(value, bool) else "…"
