"""A protected server on the official Python SDK: its tokens are those of an authorization server, which signs them.

python tests/servers/notes.py PORT ISSUER ENDED

ENDED is a file with tokens that are refused, one a line.
Reading takes the scope mcp:read; writing takes mcp:write, and a token without it is refused with a 403.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READ, WRITE = "mcp:read", "mcp:write"


class Signed:
    """Takes tokens that ``issuer`` signed for ``resource``, except those in the file ``ended``."""

    def __init__(self, issuer: str, resource: str, ended: Path) -> None:
        self._issuer, self._resource, self._ended = issuer, resource, ended
        self._keys = jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = await asyncio.to_thread(self._claims, token)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            subject=claims.get("sub"),
            resource=claims["aud"],
        )

    def _claims(self, token: str) -> dict[str, Any]:
        if token in self._ended.read_text().splitlines():
            raise jwt.ExpiredSignatureError
        key = self._keys.get_signing_key_from_jwt(token)
        return jwt.decode(token, key, algorithms=["RS256"], audience=self._resource, issuer=self._issuer)


class Writers:
    """Lets only those write who may, of all whose token is good."""

    def __init__(self, app: ASGIApp, metadata: str) -> None:
        self._app, self._metadata = app, metadata

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        if _writes(body) and isinstance(scope["user"], AuthenticatedUser) and WRITE not in scope["user"].scopes:
            wants = f'Bearer error="insufficient_scope", scope="{WRITE}", resource_metadata="{self._metadata}"'
            refusal = JSONResponse({"error": "insufficient_scope"}, 403, {"WWW-Authenticate": wants})
            await refusal(scope, receive, send)
            return
        await self._app(scope, _again(body, receive), send)


def _writes(body: bytes) -> bool:
    message = json.loads(body or b"{}")
    return bool((message.get("params") or {}).get("name") == "write_note")


def _again(body: bytes, receive: Receive) -> Receive:
    """Return ``body`` first, and then what else arrives."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def made(port: int, issuer: str, ended: Path) -> ASGIApp:
    origin = f"http://127.0.0.1:{port}"
    resource = f"{origin}/mcp"
    settings = AuthSettings.model_validate(
        {
            "issuer_url": issuer,
            "resource_server_url": resource,
            "required_scopes": [READ],
            "validate_token_resource": True,
        }
    )
    server = MCPServer("notes", token_verifier=Signed(issuer, resource, ended), auth=settings, log_level="WARNING")
    notes = ["buy milk"]

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_note() -> str:
        """The last note, and whose it is."""
        token = get_access_token()
        return f"{token.subject if token else None}: {notes[-1]}"

    @server.tool()
    def write_note(text: str) -> str:
        """Writes a note."""
        notes.append(text)
        return f"wrote {text}"

    app = server.streamable_http_app()
    metadata = f"{origin}/.well-known/oauth-protected-resource/mcp"
    app.user_middleware.append(Middleware(Writers, metadata=metadata))
    return app


if __name__ == "__main__":
    port, issuer, ended = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    uvicorn.run(made(port, issuer, ended), host="127.0.0.1", port=port, log_level="warning")
