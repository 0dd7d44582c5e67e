"""An authorization server on authlib, a library of other people: it gives tokens for JWTs of a platform.

    PYTHON tests/servers/authlib_workload.py '{"issuer": …, "subject": …, "jwks": {"keys": […]}}'

It prints its address. PYTHON is one with authlib, and the arguments are the platform that it trusts.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
from typing import Any
from urllib.parse import parse_qsl

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # plain HTTP on the loopback

from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Request  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload  # type: ignore[import-untyped]
from authlib.oauth2.rfc6750 import BearerTokenGenerator  # type: ignore[import-untyped]
from authlib.oauth2.rfc7523 import JWTBearerGrant  # type: ignore[import-untyped]
from joserfc.jwk import KeySet
from web import Talk, Web

PLATFORM: dict[str, Any] = json.loads(sys.argv[1])
SCOPES = ("read", "write")


class Workloads:
    """The platform as a client of this server."""

    def check_grant_type(self, grant: str) -> bool:
        return True

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or "read"


class FormRequest(OAuth2Request):  # type: ignore[misc]
    @property
    def form(self) -> dict[str, str]:
        return dict(self.payload.data)


class PlatformGrant(JWTBearerGrant):  # type: ignore[misc]
    address = ""

    def resolve_issuer_client(self, issuer: str) -> Workloads | None:
        return Workloads() if issuer == PLATFORM["issuer"] else None

    def resolve_client_public_key(self, client: Workloads) -> KeySet:
        return KeySet.import_key_set(PLATFORM["jwks"])

    def authenticate_user(self, subject: str) -> str | None:
        return subject if subject == PLATFORM["subject"] else None

    def has_granted_permission(self, client: Workloads, user: str) -> bool:
        return True

    def get_audiences(self) -> list[str]:
        return [self.address, f"{self.address}/token"]


class TokenServer(AuthorizationServer):  # type: ignore[misc]
    def save_token(self, token: dict[str, Any], request: FormRequest) -> None: ...

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None: ...

    def create_oauth2_request(self, talk: Talk) -> FormRequest:
        request = FormRequest("POST", f"{PlatformGrant.address}{talk.path}", headers=talk.visit.headers)
        request.payload = BasicOAuth2Payload(dict(parse_qsl(talk.visit.body.decode())))
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any]:
        return status, body


SERVER = TokenServer(SCOPES)
SERVER.register_grant(PlatformGrant)
SERVER.register_token_generator("default", BearerTokenGenerator(lambda *_, **__: secrets.token_urlsafe(24)))


def answer(talk: Talk) -> None:
    if talk.path == "/.well-known/oauth-authorization-server":
        metadata = {"issuer": PlatformGrant.address, "token_endpoint": f"{PlatformGrant.address}/token"}
        talk.json({**metadata, "grant_types_supported": [PlatformGrant.GRANT_TYPE]})
    elif talk.path == "/token":
        status, body = SERVER.create_token_response(talk)
        talk.json(body if isinstance(body, dict) else dict(body), status)
    else:
        talk.whole(404)


def main() -> None:
    with Web(answer) as web:
        PlatformGrant.address = f"http://127.0.0.1:{web.port}"
        print(PlatformGrant.address, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
