"""The client scenarios of the conformance suite, and the checks that each of them makes of a client that passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
OLDEST = "2025-03-26"

SKILLS = (
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
)
"""Scenarios that no requirement set names."""


class Checks(NamedTuple):
    """The number of checks that succeed, and of those that do not apply."""

    succeeded: int
    skipped: int = 0


CHECKS: Mapping[str, Mapping[str, Checks]] = {
    OLDEST: {
        "auth/2025-03-26-oauth-metadata-backcompat": Checks(13),
        "auth/2025-03-26-oauth-endpoint-fallback": Checks(8),
    },
    HANDSHAKE: {
        "initialize": Checks(1),
        "tools_call": Checks(2),
        "elicitation-sep1034-client-defaults": Checks(5),
        "sse-retry": Checks(3),
        "auth/metadata-default": Checks(19),
        "auth/metadata-var1": Checks(19),
        "auth/metadata-var2": Checks(19),
        "auth/metadata-var3": Checks(19),
        "auth/basic-cimd": Checks(14),
        "auth/scope-from-www-authenticate": Checks(15),
        "auth/scope-from-scopes-supported": Checks(15),
        "auth/scope-omitted-when-undefined": Checks(15),
        "auth/scope-step-up": Checks(23),
        "auth/scope-retry-limit": Checks(18),
        "auth/token-endpoint-auth-basic": Checks(20),
        "auth/token-endpoint-auth-post": Checks(20),
        "auth/token-endpoint-auth-none": Checks(20),
        "auth/pre-registration": Checks(14),
        "auth/client-credentials-jwt": Checks(9),
        "auth/client-credentials-basic": Checks(9),
        "auth/enterprise-managed-authorization": Checks(12),
        "auth/dpop": Checks(12),
        "auth/dpop-nonce": Checks(14),
        "auth/wif-jwt-bearer": Checks(9),
        "json-schema-2020-12-preservation": Checks(9),
        "sep-2640-client-no-prefetch": Checks(1),
        "sep-2640-client-verify-digest": Checks(1),
        "sep-2640-client-verify-size": Checks(1),
        "sep-2640-client-verify-frontmatter": Checks(1),
    },
    MODERN: {
        "tools_call": Checks(2),
        "request-metadata": Checks(8),
        "auth/metadata-default": Checks(18),
        "auth/metadata-var1": Checks(18),
        "auth/metadata-var2": Checks(18),
        "auth/metadata-var3": Checks(18),
        "auth/basic-cimd": Checks(12),
        "auth/scope-from-www-authenticate": Checks(14),
        "auth/scope-from-scopes-supported": Checks(14),
        "auth/scope-omitted-when-undefined": Checks(14),
        "auth/scope-step-up": Checks(27),
        "auth/scope-retry-limit": Checks(11),
        "auth/token-endpoint-auth-basic": Checks(19),
        "auth/token-endpoint-auth-post": Checks(19),
        "auth/token-endpoint-auth-none": Checks(19),
        "auth/pre-registration": Checks(12),
        "auth/resource-mismatch": Checks(2),
        "auth/offline-access-scope": Checks(12),
        "auth/offline-access-not-supported": Checks(14),
        "auth/authorization-server-migration": Checks(28),
        "auth/iss-supported": Checks(14),
        "auth/iss-not-advertised": Checks(14),
        "auth/iss-supported-missing": Checks(8),
        "auth/iss-wrong-issuer": Checks(8),
        "auth/iss-unexpected": Checks(8),
        "auth/iss-normalized": Checks(8),
        "auth/metadata-issuer-mismatch": Checks(3),
        "sep-2322-client-request-state": Checks(5),
        "http-standard-headers": Checks(10, 2),
        "http-custom-headers": Checks(18),
        "http-invalid-tool-headers": Checks(12),
        "json-schema-ref-no-deref": Checks(1),
        "auth/client-credentials-jwt": Checks(7),
        "auth/client-credentials-basic": Checks(7),
        "auth/enterprise-managed-authorization": Checks(10),
        "auth/dpop": Checks(13),
        "auth/dpop-nonce": Checks(15),
        "auth/wif-jwt-bearer": Checks(7),
        "json-schema-2020-12-preservation": Checks(9),
        "sep-2640-client-no-prefetch": Checks(1),
        "sep-2640-client-verify-digest": Checks(1),
        "sep-2640-client-verify-size": Checks(1),
        "sep-2640-client-verify-frontmatter": Checks(1),
    },
}
"""By revision and scenario; without them, a client that does nothing would pass some."""
