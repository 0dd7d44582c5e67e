"""An identity provider for flows that are worked through by hand: its documents, its keys and what it signs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey

from mcphost.auth.ports import IdentitySettings, OAuthSettings
from tests.auth.flow.flows import ISSUER, NOW

IDP = "https://idp.example.com/tenant"
IDENTITY = IdentitySettings("corp", IDP, "mcphost-idp", client_secret="idp-secret-1")
SETTINGS = OAuthSettings(
    grant="enterprise", identity=IDENTITY, client_id="mcphost-as", client_secret="as-secret-1", scopes=("read",)
)
PLACE = f"{IDP}/.well-known/openid-configuration"
TOKEN = f"{IDP}/token"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


@cache
def key() -> ECKey:
    return ECKey.generate_key("P-256", {"kid": "idp-1", "use": "sig"})


def keys() -> dict[str, Any]:
    return {"keys": [key().as_dict(private=False)]}


def provider_document(**more: Any) -> dict[str, Any]:
    found = {
        "issuer": IDP,
        "authorization_endpoint": f"{IDP}/authorize",
        "token_endpoint": TOKEN,
        "jwks_uri": f"{IDP}/keys",
    } | more
    return {name: value for name, value in found.items() if value is not None}


def id_token(*, header: Mapping[str, Any] | None = None, signer: ECKey | None = None, **more: Any) -> str:
    claims = {"iss": IDP, "sub": "u-1", "aud": "mcphost-idp", "iat": int(NOW), "exp": int(NOW) + 600} | more
    known = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(dict(header or {"alg": "ES256", "kid": "idp-1"}), known, signer or key(), algorithms=["ES256"])


def assertion_answer(assertion: str = "id-jag-1", **more: Any) -> dict[str, Any]:
    """The answer to a token exchange."""
    return {"issued_token_type": ID_JAG, "access_token": assertion, "token_type": "N_A", "expires_in": 300} | more


def places() -> dict[str, Any]:
    """The provider's documents, to join those of a server."""
    return {PLACE: provider_document(), f"{IDP}/keys": keys(), TOKEN: assertion_answer()}


AS_TOKEN = f"{ISSUER}/token"
