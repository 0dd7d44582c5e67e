"""Messages of a server over HTTP, as JSON-RPC objects."""

from __future__ import annotations

from typing import Any

from tests.transports.http.http_connection import Visit, Web


def seen(web: Web, method: str) -> list[Visit]:
    """The messages with this method that the server got."""
    return [visit for visit in web.seen("POST") if visit.message.get("method") == method]


def replies(web: Web) -> dict[Any, Any]:
    """The responses to the server's requests, by their ids."""
    messages = [visit.message for visit in web.seen("POST")]
    return {
        message["id"]: message.get("result", message.get("error")) for message in messages if "method" not in message
    }


def said(request_id: Any, words: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": words}]}}
