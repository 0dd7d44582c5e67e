"""The settings with which a client signs in, as a scenario of the conformance suite gives them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from mcphost.auth.jwt_claims import claims_of

NAME = "conformance"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client metadata document that the suite knows."""


JWT = "CONFORMANCE_JWT"
"""The variable with the JWT of a workload, or the ID token of an identity."""

IDENTITY = "conformance"


def variables(context: Mapping[str, Any]) -> dict[str, str]:
    """The environment of the client."""
    token = context.get("valid_jwt") or context.get("idp_id_token")
    return {JWT: token} if token else {}


def identities(context: Mapping[str, Any]) -> dict[str, Any]:
    """The table of identities."""
    if "idp_id_token" not in context:
        return {}
    client = {"issuer": context["idp_issuer"], "client_id": context["idp_client_id"]}
    return {IDENTITY: {**client, "id_token": {"env": JWT}}}


def oauth_settings(context: Mapping[str, Any]) -> dict[str, Any]:
    if "valid_jwt" in context:
        issuer = claims_of(context["valid_jwt"])["aud"]
        source = {"assertion": {"env": JWT}, "client_id": context["client_id"]}
        return {"grant": "workload", "issuer": issuer, "issuer_slash": "ignore", **source}
    if "private_key_pem" in context:
        return {
            "grant": "client_credentials",
            "client_id": context["client_id"],
            "private_key": context["private_key_pem"],
        }
    if "idp_id_token" in context:
        client = {"client_id": context["client_id"], "client_secret": context["client_secret"]}
        return {"grant": "enterprise", "identity": IDENTITY, **client}
    known = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    machine = "client-credentials" in os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    return {"client_metadata_url": DOCUMENT, **known, **({"grant": "client_credentials"} if machine else {})}


def say(text: str) -> None:
    print(text, file=sys.stderr)
