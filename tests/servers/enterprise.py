# mypy: ignore-errors
# Flask and authlib are installed beside the tests, not among them (tests/pypi.py), so their types are not known here.
"""An authorization server on authlib that takes assertions of an identity provider, and MCP servers behind it.

PORT IDP_ISSUER JOURNAL; runs in an environment of its own, with authlib and Flask. The servers at ``/a/mcp`` and
``/b/mcp`` are doubles that know the handshake and one tool. Each token is for one of them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback

import httpx
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.drafts import IDJAGGrant
from authlib.oauth2.rfc6749 import ClientMixin
from flask import Flask, Response, jsonify, request

PORT, IDP, JOURNAL = int(sys.argv[1]), sys.argv[2], sys.argv[3]
ISSUER = f"http://127.0.0.1:{PORT}"
CLIENT, SECRET = "mcphost-as", "canary-server-01234567"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIFE = int(os.environ.get("TOKEN_LIFE", "3600"))

app = Flask(__name__)
tokens: dict[str, str] = {}
"""The resource of each token."""
used: set[str] = set()


class KnownClient(ClientMixin):
    def get_client_id(self) -> str:
        return CLIENT

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == BEARER


class Grant(IDJAGGrant):
    def get_audiences(self) -> list[str]:
        return [ISSUER]

    def resolve_issuer_key(self, issuer: str, headers: dict[str, Any]) -> Any:
        assert issuer == IDP
        return httpx.get(f"{IDP}/jwks", trust_env=False).json()

    def authenticate_user(self, subject: str) -> str:
        return subject

    def check_jti(self, claims: dict[str, Any], jti: str) -> bool:
        new = jti not in used
        used.add(jti)
        return new

    def check_id_jag_permission(self, client: Any, user: Any, scopes: list[str]) -> bool:
        return True


def save_token(token: dict[str, Any], asked: Any) -> None:
    tokens[token["access_token"]] = asked.id_jag_claims["resource"]


server = AuthorizationServer(
    app, query_client=lambda name: KnownClient() if name == CLIENT else None, save_token=save_token
)
app.config["OAUTH2_TOKEN_EXPIRES_IN"] = {BEARER: LIFE}
server.register_grant(Grant)


@app.after_request
def keep(response: Response) -> Response:
    answer = response.get_json(silent=True)
    line = {"path": request.path, "sent": dict(request.form), "basic": request.headers.get("Authorization", "")}
    with open(JOURNAL, "a") as journal:
        journal.write(json.dumps({**line, "status": response.status_code, "answer": answer}) + "\n")
    return response


@app.get("/.well-known/oauth-authorization-server")
def metadata() -> Any:
    return jsonify(
        issuer=ISSUER,
        authorization_endpoint=f"{ISSUER}/authorize",
        token_endpoint=f"{ISSUER}/token",
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=["client_secret_basic"],
        grant_types_supported=["authorization_code", BEARER],
        authorization_grant_profiles_supported=["urn:ietf:params:oauth:grant-profile:id-jag"],
    )


@app.get("/.well-known/oauth-protected-resource/<name>/mcp")
def resource(name: str) -> Any:
    return jsonify(resource=f"{ISSUER}/{name}/mcp", authorization_servers=[ISSUER], scopes_supported=["read"])


@app.post("/token")
def issue() -> Any:
    return server.create_token_response()


@app.route("/<name>/mcp", methods=["POST", "GET", "DELETE"])
def talk(name: str) -> Any:
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if tokens.get(token) != f"{ISSUER}/{name}/mcp":
        place = f"{ISSUER}/.well-known/oauth-protected-resource/{name}/mcp"
        return Response(status=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{place}"'})
    if request.method != "POST":
        return Response(status=405)
    message = request.get_json()
    if "id" not in message:
        return Response(status=202)
    results = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": name, "version": "1"},
        },
        "tools/list": {"tools": [{"name": "time", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": str(int(time.time()))}]},
        "ping": {},
    }
    if message["method"] not in results:
        return jsonify(jsonrpc="2.0", id=message["id"], error={"code": -32601, "message": "not here"})
    return jsonify(jsonrpc="2.0", id=message["id"], result=results[message["method"]])


app.run("127.0.0.1", PORT)
