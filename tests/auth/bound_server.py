"""A guarded server whose tokens are bound to keys, and which wants its nonces in the proofs.

A double: no MCP server that can be installed knows DPoP. `ProofCheck` verifies the proofs.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.auth.people import Guarded, Talk
from tests.auth.proofs import ProofCheck

from guarded import base_of, form_of  # isort: skip - found by what people.py does

ALGORITHMS = "dpop_signing_alg_values_supported"
PLACE = "/.well-known/oauth-protected-resource/mcp"


@dataclass
class BoundServer(Guarded):
    """``faults`` has why proofs were not taken; ``challenged`` the roles that asked for a nonce."""

    now: Callable[[], float] = lambda: 1_000_000.0
    check: ProofCheck = field(default_factory=ProofCheck)
    challenge: str = 'DPoP algs="ES256"'
    nonces: dict[str, set[str]] = field(default_factory=lambda: {"issuer": set(), "server": set()})
    content: bool = True
    """False: no nonce is ever good enough for the server."""
    keys: dict[str, str] = field(default_factory=dict)
    """The thumbprints by token."""
    proofs: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    challenged: list[str] = field(default_factory=list)
    moved_to: str = ""
    """Where a POST is sent on to."""

    def __post_init__(self) -> None:
        self.token_type = "DPoP"
        self.more["metadata"] = {ALGORITHMS: ["ES256"], **self.more.get("metadata", {})}

    def __call__(self, talk: Talk) -> None:
        if urlsplit(talk.path).path in ("/there", "/messages"):
            self.mcp(talk)
        else:
            super().__call__(talk)

    def token(self, talk: Talk) -> None:
        key = self.proven_key(talk, "issuer", "")
        if not key:
            error = "use_dpop_nonce" if self.challenged[-1:] == ["issuer"] and not self.faults else "invalid_dpop_proof"
            talk.json({"error": error}, 400, dpop_nonce=self.new_nonce("issuer"))
            return
        form = form_of(talk)
        assert form["grant_type"] != "refresh_token" or self.keys[form["refresh_token"]] == key
        super().token(talk)

    def issued(self, talk: Talk, answer: dict[str, Any]) -> None:
        key = self.check.key_of(talk.headers["dpop"])
        self.keys |= {str(answer[name]): key for name in ("access_token", "refresh_token") if name in answer}

    def mcp(self, talk: Talk) -> None:
        if not self.accepts(talk):
            return
        if self.moved_to and talk.path == "/mcp" and talk.command == "POST":
            talk.whole(307, location=self.moved_to)
        else:
            self.inner(talk)

    def accepts(self, talk: Talk) -> bool:
        """True if the token and the proof are good; else the refusal is sent."""
        scheme, _, token = talk.headers.get("authorization", "").partition(" ")
        if scheme != "DPoP" or token not in self.valid:
            known = ', error="invalid_token"' if scheme else ""
            talk.whole(401, www_authenticate=f'{self.challenge}{known}, resource_metadata="{base_of(talk)}{PLACE}"')
            return False
        if self.proven_key(talk, "server", token) != self.keys[token]:
            code = "invalid_dpop_proof" if self.faults else "use_dpop_nonce"
            talk.whole(401, www_authenticate=f'DPoP error="{code}"', dpop_nonce=self.new_nonce("server"))
            return False
        return True

    def proven_key(self, talk: Talk, role: str, token: str) -> str:
        """The thumbprint of the key that is proven; empty if the proof is wrong, or lacks a good nonce."""
        proofs = talk.headers.get_all("dpop") or []
        self.proofs += proofs
        try:
            [proof] = proofs
            claims = proof.split(".")[1]
            nonce = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))).get("nonce", "")
            url = f"{base_of(talk)}{talk.path}"
            key = self.check.verify(proof, talk.command, url, self.now(), token=token, nonce=nonce)
        except (AssertionError, ValueError) as error:
            self.faults.append(f"{talk.command} {talk.path}: {error!r}")
            return ""
        if nonce in self.nonces[role] and (self.content or role == "issuer"):
            return key
        self.challenged.append(role)
        return ""

    def new_nonce(self, role: str) -> str:
        nonce = f"{role}-{len(self.challenged)}-{len(self.check.seen)}"
        self.nonces[role].add(nonce)
        return nonce
