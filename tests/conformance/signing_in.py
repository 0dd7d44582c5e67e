"""The settings with which a client signs in, as a scenario of the conformance suite gives them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

NAME = "conformance"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client metadata document that the suite knows."""


def oauth_settings(context: Mapping[str, Any]) -> dict[str, Any]:
    if "private_key_pem" in context:
        return {
            "grant": "client_credentials",
            "client_id": context["client_id"],
            "private_key": context["private_key_pem"],
        }
    known = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    machine = "client-credentials" in os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    return {"client_metadata_url": DOCUMENT, **known, **({"grant": "client_credentials"} if machine else {})}


def say(text: str) -> None:
    print(text, file=sys.stderr)
