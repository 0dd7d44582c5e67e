"""Checks DPoP proofs as a server does, by RFC 9449 and not by mcphost's own code."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from joserfc import jws
from joserfc.jwk import import_key

MEMBERS = {"EC": {"kty", "crv", "x", "y"}}


@dataclass
class ProofCheck:
    """Verifies proofs, and knows those that it has seen. Raises AssertionError."""

    seen: set[str] = field(default_factory=set)

    def verify(self, proof: str, method: str, url: str, now: float, *, token: str = "", nonce: str = "") -> str:
        """Return the thumbprint of the key that signed ``proof``."""
        head = head_of(proof)
        assert head.keys() == {"typ", "alg", "jwk"}
        assert (head["typ"], head["alg"]) == ("dpop+jwt", "ES256")
        assert head["jwk"].keys() == MEMBERS[head["jwk"]["kty"]]
        key = import_key(dict(head["jwk"]))
        claims = json.loads(jws.deserialize_compact(proof, key, algorithms=["ES256"]).payload)
        assert claims["jti"] not in self.seen
        assert len(claims["jti"]) * 6 >= 96
        self.seen.add(claims.pop("jti"))
        assert abs(claims.pop("iat") - now) <= 5
        expected = {"htm": method, "htu": url.partition("#")[0].partition("?")[0]}
        if token:
            digest = hashlib.sha256(token.encode("ascii")).digest()
            expected["ath"] = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if nonce:
            expected["nonce"] = nonce
        assert claims == expected
        return self.key_of(proof)

    def key_of(self, proof: str) -> str:
        """Return the thumbprint of the key in ``proof``."""
        found: str = import_key(dict(head_of(proof)["jwk"])).thumbprint()
        return found


def head_of(proof: str) -> Mapping[str, Any]:
    part = proof.split(".")[0]
    found: Mapping[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found
