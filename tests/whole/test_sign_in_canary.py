"""Proofs, bound tokens, keys, assertions and identities are in nothing that mcphost prints, records or leaves behind.

The server is its own authorization server and identity provider, a double: no package repeats in each answer what it
was sent.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from mcphost.cli import main
from tests.auth.keychains import Shelf
from tests.providers.endpoints import Steps, openai_stream, streams
from tests.providers.endpoints import Web as ModelWeb  # type: ignore[attr-defined]
from tests.transports.http.http_connection import Echo, Talk, Web

TOKEN = "canary-bound-token-0123456789"
GRANT = "eyJ0eXAiOiJvYXV0aC1pZC1qYWcrand0In0.e30.canary-signature-of-the-grant"
SECRETS = {"a client's secret": "canary-client-secret-01", "a client's secret elsewhere": "canary-client-secret-02"}
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class SigningServer:
    """Tells in each answer what it was sent; ``secrets`` are what came, besides those that it gave."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {"the token": TOKEN}
        self.refuses, self.defines = False, True

    def __call__(self, talk: Talk) -> None:
        base = talk.web.url.removesuffix("/mcp")
        self._keep(talk)
        if "/oauth-protected-resource" in talk.path:
            talk.json(
                {
                    "resource": talk.web.url,
                    "authorization_servers": [base],
                    "dpop_signing_alg_values_supported": ["ES256"],
                }
            )
        elif "/.well-known/" in talk.path:
            issuer = f"{base}/idp" if "/idp/" in talk.path else base
            talk.json(
                {
                    "issuer": issuer,
                    "authorization_endpoint": f"{issuer}/authorize",
                    "token_endpoint": f"{issuer}/token",
                    "jwks_uri": f"{issuer}/keys",
                    "response_types_supported": ["code"],
                    "grant_types_supported": [JWT_BEARER],
                    "code_challenge_methods_supported": ["S256"],
                    "dpop_signing_alg_values_supported": ["ES256"],
                }
            )
        elif talk.path == "/idp/token":
            talk.json(
                {"access_token": GRANT, "issued_token_type": ID_JAG, "token_type": "N_A", "expires_in": 300},
                X_Told=self._told(talk),
            )
        elif talk.path == "/token" and self.refuses:
            talk.json({"error": "invalid_grant", "error_description": self._told(talk)}, 400)
        elif talk.path == "/token":
            talk.json({"access_token": TOKEN, "token_type": "DPoP", "expires_in": 3600})
        elif "authorization" not in talk.headers:
            talk.whole(401, www_authenticate='DPoP algs="ES256"')
        else:
            self._serve(talk)

    def _serve(self, talk: Talk) -> None:
        message, told = talk.visit.message or {}, self._told(talk)
        if message.get("method") != "tools/call":
            tools = [{"name": "error", "inputSchema": {"type": "object"}, "description": told if self.defines else ""}]
            Echo(stateless=True, listens=False, tools=tools)(talk)
        else:
            talk.json({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": told}}, X_Told=told)

    def _told(self, talk: Talk) -> str:
        heads = talk.headers
        return f"{heads.get('authorization')} and {heads.get('dpop')} and {talk.visit.body.decode()}"

    def _keep(self, talk: Talk) -> None:
        if proof := talk.headers.get("dpop"):
            self.secrets[f"proof {len(self.secrets)}"] = proof
        if talk.path.endswith("/token"):
            form = parse_qs(talk.visit.body.decode())
            self.secrets |= {name: form[name][0] for name in ("assertion", "subject_token") if name in form}


WORKLOAD = """
[servers.web.oauth]
grant = "workload"
issuer = "{base}"
assertion = {{ file = "{jwt}" }}
dpop = "require"
"""
ENTERPRISE = """
[identity.corp]
issuer = "{base}/idp"
client_id = "mcphost"
client_secret = "${{ELSEWHERE}}"
id_token = {{ file = "{jwt}" }}

[servers.web.oauth]
grant = "enterprise"
identity = "corp"
issuer = "{base}"
client_id = "mcphost-web"
client_secret = "${{HERE}}"
dpop = "require"
"""


CHAT = """
[models.big]
provider = "openai"
model = "big"
base_url = "http://127.0.0.1:{port}/v1"

[policy]
default = "allow"
"""
ANSWERS: tuple[Steps, ...] = ((("use", "u1", "web__error", "{}"), ("stop", "tools")), (("text", "so"), ("stop", "end")))


@contextmanager
def signing(folder: Path, oauth: str) -> Iterator[tuple[SigningServer, Path]]:
    """The server, and a configuration by which a sign-in needs no person."""
    server = SigningServer()
    with Web(server) as web:
        base = web.url.removesuffix("/mcp")
        claims = {"iss": "https://platform.example", "sub": "job", "aud": [base, "mcphost"], "exp": time.time() + 600}
        (folder / "jwt").write_text(".".join((part({"alg": "ES256"}), part(claims), "canary-signature-of-the-jwt")))
        config = folder / "own.toml"
        entry = f'[servers.web]\nurl = "{web.url}"\n'
        config.write_text(entry + oauth.format(base=base, jwt=folder / "jwt"))
        yield server, config


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    made = Shelf()
    monkeypatch.setattr("mcphost.auth.storage.keychain.best_backend", lambda: made)
    monkeypatch.delenv("MCPHOST_KEYCHAIN", raising=False)
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "state"))
    return made


def keys_in(value: Any) -> Iterator[str]:
    """The private parts of keys in a JSON value, also within texts."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        value = json.loads(value)
    if isinstance(value, dict):
        if isinstance(value.get("d"), str):
            yield value["d"]
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from keys_in(each)


def caught(folder: Path, secrets: dict[str, str], *said: bytes) -> list[str]:
    """The secrets, and signatures of those that are JWTs, that are in what was said or written."""
    ours = {folder / "own.toml", folder / "jwt"}
    files = [path for path in folder.rglob("*") if path.is_file() and path not in ours]
    places = [("what was said", each) for each in said] + [(str(path), path.read_bytes()) for path in files]
    found = {name: secret.rpartition(".")[2].encode() for name, secret in secrets.items()}
    return [f"{name} in {place}" for place, data in places for name, secret in found.items() if secret in data]


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04", "DPOP-06")
def test_a_conversation_with_a_bound_server_leaves_no_secret(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], shelf: Shelf
) -> None:
    told = [streams(*openai_stream(steps)) for steps in ANSWERS]
    with signing(tmp_path, WORKLOAD) as (server, config), ModelWeb(lambda talk: told.pop(0)(talk)) as model:
        server.defines = False  # an approval keeps a definition as it is, to compare with
        with config.open("a") as file:
            file.write(CHAT.format(port=model.port))
        assert main(["chat", "go", "--config", str(config), "--traffic", str(tmp_path / "traffic.jsonl")]) == 0
        main(["chat", "--export", "last", "--config", str(config)])
    said = b"".join(capfdbinary.readouterr())
    assert "•••".encode() in said
    assert not told
    assert list((tmp_path / "state" / "chats").iterdir())
    assert caught(tmp_path, server.secrets, said) == []


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04", "DPOP-06", "EMA-03", "WIF-03")
@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("oauth", [WORKLOAD, ENTERPRISE], ids=["workload", "enterprise"])
def test_a_sign_in_without_a_person_leaves_no_secret(
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    shelf: Shelf,
    oauth: str,
    refuses: bool,
) -> None:
    for name, value in zip(("HERE", "ELSEWHERE"), SECRETS.values(), strict=True):
        monkeypatch.setenv(name, value)
    with signing(tmp_path, oauth) as (server, config):
        server.refuses, chosen = refuses, ("--config", str(config))
        traffic = tmp_path / "traffic.jsonl"
        code = main(["call", "web", "error", "--yes", *chosen, "--traffic", str(traffic)])
        assert main(["report", str(tmp_path / "report.txt"), "--yes", *chosen]) == 0
        main(["doctor", *chosen])
        main(["traffic", "export", str(traffic), "--otlp", str(tmp_path / "spans.json")])
    said = b"".join(capfdbinary.readouterr())
    secrets = {
        **SECRETS,
        **server.secrets,
        **{f"key {n}": key for n, key in enumerate(keys_in([*shelf.items.values()]))},
    }
    assert {"assertion", "the token"} <= secrets.keys()
    assert ("subject_token" in secrets) is (oauth == ENTERPRISE)
    assert any(name.startswith("proof") for name in secrets)
    assert refuses or any(name.startswith("key") for name in secrets)
    assert code == (3 if refuses else 1)
    assert "•••".encode() in said
    assert caught(tmp_path, secrets, said) == []
