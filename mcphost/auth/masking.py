"""Makes a step of a sign-in fit to be looked at: everything stays but what is secret.

Knows which names of OAuth carry secrets. Refuses to make foreign text safe for a terminal: whoever shows it does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from mcphost.auth.wire import FORM, JSON, Fetch, Fetched

SECRET_NAMES: Final = frozenset({
    "access_token", "client_assertion", "client_secret", "code", "code_verifier", "id_token", "refresh_token",
    "registration_access_token", "token",
})  # fmt: skip
SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "set-cookie"})

SHOWN: Final = 16_384
"""Characters of a body that are kept to be shown."""


def request_headers(fetch: Fetch) -> dict[str, str]:
    """The headers of a step, its proof masked."""
    kind = {} if fetch.body is None else {"Content-Type": content_type(fetch)}
    return {**kind, **_headers(fetch.headers)}


def request_body(fetch: Fetch) -> str:
    """The body of a step as it is sent, but for its secrets."""
    if fetch.body is None:
        return ""
    body = _without_secrets(fetch.body)
    return json.dumps(body, indent=2) if fetch.kind == "registration" else urlencode(body, safe="…(): /")


def response_headers(answer: Fetched) -> dict[str, str]:
    """The headers of an answer, its cookies masked."""
    return _headers(answer.headers)


def response_body(fetch: Fetch, answer: Fetched) -> str:
    """The body of an answer, but for its secrets; of one that should be JSON and is not, only where no token can be."""
    try:
        document = json.loads(answer.content)
    except (ValueError, RecursionError):
        if fetch.kind == "metadata":
            return answer.content.decode("utf-8", "replace")[:SHOWN]
        return f"({len(answer.content)} bytes that are no JSON; not shown, for they may hold a token)"
    return json.dumps(_without_secrets(document), indent=2, ensure_ascii=False)[:SHOWN]


def content_type(fetch: Fetch) -> str:
    """How the body of a step is written."""
    return JSON if fetch.kind == "registration" else FORM


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: _hidden(value) if name.lower() in SECRET_HEADERS else value for name, value in headers.items()}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _hidden(each) if name in SECRET_NAMES and isinstance(each, str) else _without_secrets(each)
            for name, each in value.items()
        }
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


def _hidden(value: str) -> str:
    return f"…({len(value)} characters)" if value else ""
