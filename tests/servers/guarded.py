"""An MCP server that wants a token, and the authorization server that gives it, at one address.

    python tests/servers/guarded.py [PLACE=MISBEHAVIOUR…]

It keeps the rules, and notices who does not: a refresh token that comes twice ends all tokens and is counted. A place
(resource, metadata, register, authorize, token, revoke, mcp) that is spoiled does what its misbehaviour says instead.
Standard library only.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from http_echo import Echo
from web import Message, Talk, Web

WELL_KNOWN = "/.well-known/"
PLACES = {
    f"{WELL_KNOWN}oauth-protected-resource/mcp": "resource",
    f"{WELL_KNOWN}oauth-authorization-server": "metadata",
    "/register": "register",
    "/authorize": "authorize",
    "/token": "token",
    "/revoke": "revoke",
    "/mcp": "mcp",
}

Spoil = Callable[[Talk], None]
SPOILS: dict[str, Spoil] = {}


def spoil(function: Spoil) -> Spoil:
    SPOILS[function.__name__.replace("_", "-")] = function
    return function


def plain(name: str, status: int, content: bytes = b"", kind: str = "application/json", **headers: Any) -> None:
    SPOILS[name] = lambda talk: talk.whole(status, content, kind, **headers)


plain("down", 503, b"<h1>no</h1>", "text/html")
plain("html", 200, b"<!doctype html><p>hello", "text/html")
plain("not-json", 200, b"{\x1b[2J")
plain("list", 200, b"[]")
plain("huge", 200, b'{"a": "' + b"x" * 300_000 + b'"}')
plain("deep", 200, b"[" * 30_000)
plain("deep-enough", 200, b'{"error": ' + b"[" * 900 + b"]" * 900 + b"}")
plain("gzip", 200, gzip.compress(b"{}"), content_encoding="gzip")
plain("bomb", 200, gzip.compress(b" " * 10_000_000), content_encoding="gzip")
plain("cookie", 200, b"{}", set_cookie="a=b")
plain("always-401", 401, b"", www_authenticate="Bearer")
plain("token-form", 200, b"access_token=tok-CANARY-1&token_type=bearer", "application/x-www-form-urlencoded")
plain("token-cut", 200, b'{"client_secret": "tok-CANARY-1", "refresh_token": "tok-CANARY-1", "client_id": "c')
plain("token-text", 200, b"tok-CANARY-1", "text/plain")
plain("token-error", 400, b'{"error": "tok-CANARY-1", "message": "access_token=tok-CANARY-1 is spent"}')
plain("token-nested", 401, b'{"error": {"message": "quota used up", "token": "tok-CANARY-1"}}')
plain("token-no-http", 200)
SPOILS["token-no-http"] = lambda talk: talk.raw(b"access_token=tok-CANARY-1\r\n\r\n")
plain("unauthorized-client", 400, b'{"error": "unauthorized_client", "error_description": "Invalid client_id"}')
plain("invalid-grant", 400, b'{"error": "invalid_grant", "error_description": "no \\u001b[2J"}')
plain("invalid-client", 401, b'{"error": "invalid_client"}')


@spoil
def redirects(talk: Talk) -> None:
    """To a place of this server where everything is right, and a visit tells."""
    talk.whole(302, location="/elsewhere")


@spoil
def redirects_with_body(talk: Talk) -> None:
    talk.whole(307, location="/elsewhere")


@spoil
def endless(talk: Talk) -> None:
    talk.head(200, content_type="application/json", transfer_encoding="chunked")
    while not talk.web.stopped.is_set():
        talk.events(b" " * 10_000)


@spoil
def endless_401(talk: Talk) -> None:
    talk.head(401, www_authenticate="Bearer", transfer_encoding="chunked")
    while not talk.web.stopped.is_set():
        talk.events(b" " * 10_000)


@spoil
def drips(talk: Talk) -> None:
    talk.head(200, content_type="application/json", content_length=100_000)
    while not talk.web.stopped.is_set():
        talk.raw(b" ")
        time.sleep(0.01)


@spoil
def silent(talk: Talk) -> None:
    talk.linger()


@spoil
def hangs_up(talk: Talk) -> None:
    talk.close_connection = True


@spoil
def huge_head(talk: Talk) -> None:
    talk.head(200, x="y" * 200_000)


@dataclass
class Guarded:
    """``spoiled`` says which places misbehave; ``more`` is added to the documents of ``resource`` and ``metadata``."""

    inner: Callable[[Talk], None] = field(default_factory=Echo)
    spoiled: dict[str, str] = field(default_factory=dict)
    more: dict[str, Message] = field(default_factory=dict)
    old: bool = False
    """Of 2025-03-26: without protected-resource metadata."""
    subject: str = ""
    """The account, named by an ``id_token`` in the answer; empty: it is not named."""
    needs: str = ""
    """The scope that a tool call needs, or other methods of `closed`."""
    closed: tuple[str, ...] = ("tools/call",)
    refusal: int = 401
    """The status for a call without that scope."""
    lazy: bool = False
    """True if it asks for a sign-in only once a tool is called."""
    never: bool = False
    """True if every call is refused."""
    says: str = ""
    """More parameters of its challenges."""
    scopes: dict[str, str] = field(default_factory=dict)
    """The scope of each access token."""
    token_type: str = "Bearer"
    lifetime: float = 3600
    refreshes: bool = True
    rotates: bool = True
    clients: dict[str, str] = field(default_factory=dict)
    """Secrets by client id; empty for a public one."""
    unknown_client: str = "invalid_client"
    """The error for an unknown client."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    """Access tokens."""
    current: set[str] = field(default_factory=set)
    """Refresh tokens that are good."""
    spent: set[str] = field(default_factory=set)
    reused: list[str] = field(default_factory=list)
    renewed: int = 0
    assertions: list[str] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, talk: Talk) -> None:
        path = urlsplit(talk.path).path
        place = PLACES.get(path, "")
        if self.old and place == "resource":
            place = ""
        if place in self.spoiled:
            SPOILS[self.spoiled[place]](talk)
        elif place:
            with self.turn if place != "mcp" else threading.Lock():
                getattr(self, place)(talk)
        else:
            talk.whole(404)

    # Documents.

    def resource(self, talk: Talk) -> None:
        base = base_of(talk)
        talk.json({"resource": f"{base}/mcp", "authorization_servers": [base], **self.more.get("resource", {})})

    def metadata(self, talk: Talk) -> None:
        base = base_of(talk)
        document: Message = {"issuer": base, "code_challenge_methods_supported": ["S256"]}
        document["authorization_response_iss_parameter_supported"] = True
        for name, path in (
            ("authorization", "authorize"),
            ("token", "token"),
            ("registration", "register"),
            ("revocation", "revoke"),
        ):
            document[f"{name}_endpoint"] = f"{base}/{path}"
        talk.json({**document, **self.more.get("metadata", {})})

    def register(self, talk: Talk) -> None:
        client_id = f"client-{len(self.clients) + 1}"
        self.clients[client_id] = ""
        document = {"client_id": client_id, **talk.visit.message}
        if more := self.more.get("register"):
            uris = [re.sub(r"http://[^:/]+:", more["redirect_uris"], uri) for uri in document["redirect_uris"]]
            document["redirect_uris"] = uris
        talk.json(document, 201)

    # The flow.

    def authorize(self, talk: Talk) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(talk.path).query).items()}
        code = f"code-{secrets.token_hex(12)}"
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": base_of(talk)}
        talk.whole(302, location=f"{asked['redirect_uri']}?{urlencode(back)}")

    def token(self, talk: Talk) -> None:
        form = form_of(talk)
        if not self.proven(talk, form):
            talk.json({"error": self.unknown_client}, 401)
        elif form["grant_type"] == "authorization_code":
            self.exchange(talk, form)
        elif form["grant_type"] == "refresh_token":
            self.renew(talk, form["refresh_token"])
        else:
            self.grant(talk, refresh=False)

    def proven(self, talk: Talk, form: dict[str, str]) -> bool:
        if "client_assertion" in form:
            self.assertions.append(form["client_assertion"])
            return True
        name, secret = form.get("client_id", ""), form.get("client_secret", "")
        if basic := talk.headers.get("authorization", "").partition("Basic ")[2]:
            name, _, secret = base64.b64decode(basic).decode().partition(":")
        return self.clients.get(unquote_plus(name)) == unquote_plus(secret)

    def exchange(self, talk: Talk, form: dict[str, str]) -> None:
        asked = self.codes.pop(form["code"], {})
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode()
        same = all(form[name] == asked.get(name) for name in ("redirect_uri", "resource", "client_id"))
        if not same or digest.rstrip("=") != asked["code_challenge"]:
            talk.json({"error": "invalid_grant"}, 400)
        else:
            self.grant(talk, refresh=self.refreshes, scope=asked.get("scope", ""))

    def renew(self, talk: Talk, token: str) -> None:
        if token in self.spent:
            self.reused.append(token)
            self.current.clear()
            self.valid.clear()
        if token not in self.current:
            talk.json({"error": "invalid_grant"}, 400)
            return
        self.renewed += 1
        if self.rotates:
            self.current.discard(token)
            self.spent.add(token)
        self.valid.clear()
        self.grant(talk, refresh=self.rotates)

    def grant(self, talk: Talk, *, refresh: bool, scope: str = "") -> None:
        answer = {
            "token_type": self.token_type,
            "access_token": f"access-{secrets.token_hex(12)}",
            "expires_in": self.lifetime,
        }
        self.valid.add(str(answer["access_token"]))
        self.scopes[str(answer["access_token"])] = scope
        if self.subject:
            claims = base64.urlsafe_b64encode(json.dumps({"sub": self.subject}).encode()).decode().rstrip("=")
            answer["id_token"] = f"e30.{claims}.c2ln"
        if refresh:
            answer["refresh_token"] = f"refresh-{secrets.token_hex(12)}"
            self.current.add(str(answer["refresh_token"]))
        self.issued(talk, answer)
        talk.json(answer)

    def issued(self, talk: Talk, answer: dict[str, Any]) -> None:
        """Called with the answer to a token request before it is sent."""

    def revoke(self, talk: Talk) -> None:
        self.current.discard(form_of(talk)["token"])
        self.valid.clear()
        talk.whole(200)

    # The server.

    def mcp(self, talk: Talk) -> None:
        token, message = talk.headers.get("authorization", "").removeprefix("Bearer "), talk.visit.message
        calls = isinstance(message, dict) and message.get("method") in self.closed
        lacks = self.never or (bool(self.needs) and self.needs not in self.scopes.get(token, "").split())
        place = f"{base_of(talk)}{WELL_KNOWN}oauth-protected-resource/mcp"
        challenge = "Bearer" if self.old else f'Bearer resource_metadata="{place}"'
        if calls and lacks:
            scope = f', scope="{self.needs}"' if self.needs else ""
            error = ', error="insufficient_scope"' if self.refusal == 403 else ""
            talk.whole(self.refusal, www_authenticate=f"{challenge}{error}{scope}{self.says}")
        elif token in self.valid or (self.lazy and not calls):
            self.inner(talk)
        else:
            talk.whole(401, www_authenticate=f"{challenge}{self.says}")


def base_of(talk: Talk) -> str:
    return f"{'https' if talk.web.tls else 'http'}://{talk.headers['host']}"


def form_of(talk: Talk) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(talk.visit.body.decode()).items()}


def main() -> None:
    spoiled = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if unknown := {*spoiled.values()} - SPOILS.keys() | {*spoiled} - {*PLACES.values()}:
        raise SystemExit(f"{__doc__}\nUnknown: {' '.join(unknown)}\nMisbehaviours: {' '.join(SPOILS)}")
    with Web(Guarded(spoiled=spoiled)) as web:
        print(web.url, json.dumps(spoiled), flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
