"""Proofs that a request comes from the holder of a key, to which its token is bound.

Specification: ext-auth, DPoP; RFC 9449.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcphost.lazy_dataclass import dataclass
from mcphost.net.origins import origin_of

if TYPE_CHECKING:
    from joserfc.jwk import ECKey

HEADER: Final = "DPoP"
NONCE_HEADER: Final = "DPoP-Nonce"
NEEDS_NONCE: Final = "use_dpop_nonce"
"""The error code of a server that wants its nonce in the proof."""

WRONG_PROOF: Final = "invalid_dpop_proof"
"""The error code of a server that does not take the proof."""

ALGORITHM: Final = "ES256"

_NONCE: Final = r"[\x21\x23-\x5b\x5d-\x7e]{1,1024}"
"""The syntax of RFC 9449, and more characters than any known server uses: a proof must fit into a header."""

MOST_NONCES: Final = 64
"""Origins whose nonce is remembered; a run talks to few."""

Role = Literal["issuer", "server"]
"""The party that checks the proof: an authorization server and an MCP server of one origin have their own nonces."""


Coordinate = Annotated[str, Field(pattern=r"^[\w-]{43}$")]


class ProofKey(BaseModel):
    """A private key on the curve P-256, in the members of a JWK."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    x: Coordinate
    y: Coordinate
    d: Coordinate = Field(repr=False)

    @classmethod
    def generate(cls) -> ProofKey:
        from joserfc.jwk import ECKey  # late: few servers use this, and the library imports cryptography

        return cls.model_validate(ECKey.generate_key("P-256").as_dict(private=True))

    @property
    def public(self) -> dict[str, str]:
        """The JWK of the public key."""
        return {"kty": "EC", "crv": "P-256", "x": self.x, "y": self.y}

    @property
    def thumbprint(self) -> str:
        """The base64url of the JWK's SHA-256. RFC 7638."""
        return _digest(json.dumps(self.public, sort_keys=True, separators=(",", ":")))

    def proof(self, method: str, url: str, now: float, *, token: str = "", nonce: str = "") -> str:
        """A new proof for one request; ``token`` is the access token that it carries."""
        from joserfc import jwt

        claims: dict[str, str | int] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": re.split("[?#]", url, maxsplit=1)[0],
            "iat": int(now),
        }
        claims |= {"ath": _digest(token)} if token else {}
        claims |= {"nonce": nonce} if nonce else {}
        header = {"alg": ALGORITHM, "typ": "dpop+jwt", "jwk": self.public}
        return jwt.encode(header, claims, _imported(self), algorithms=[ALGORITHM])


def ready_key(held: ProofKey | None = None) -> ProofKey:
    """The key ``held``, or a new one, ready to sign. The first call imports cryptography, which takes 0.2 s."""
    key = held or ProofKey.generate()
    key.proof("GET", "https://localhost/", time.time())
    return key


CLOCK_SECONDS: Final = 60.0
"""Seconds between two clocks that no server minds."""


def clock_advice(date: str | None, now: float) -> str:
    """A clause on how far the clock of this machine is off a server's, by its ``Date`` header; empty if it is not."""
    from email.utils import parsedate_to_datetime  # late: needed after a refusal alone

    try:
        theirs = parsedate_to_datetime(date or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return ""
    off = now - theirs
    if abs(off) <= CLOCK_SECONDS:
        return ""
    return f"the clock of this machine is {abs(off) / 60:.0f} min {'ahead of' if off > 0 else 'behind'} the server's"


class Nonces:
    """The newest nonce of each origin in each role. In memory alone."""

    def __init__(self) -> None:
        self._newest: dict[tuple[Role, str], str] = {}

    def of(self, role: Role, url: str) -> str:
        """The nonce for a request to ``url``; empty if none was given."""
        return self._newest.get((role, origin_of(url)), "")

    def learn(self, role: Role, url: str, nonce: str | None) -> bool:
        """Remember the nonce that a response from ``url`` gives; return whether it can be used."""
        if nonce is None or not re.fullmatch(_NONCE, nonce):
            return False
        self._newest.pop((role, origin_of(url)), None)
        self._newest[role, origin_of(url)] = nonce
        if len(self._newest) > MOST_NONCES:
            del self._newest[next(iter(self._newest))]
        return True


@dataclass(frozen=True, slots=True)
class Prover:
    """Makes the proofs of one sign-in for parties of one role."""

    key: ProofKey
    nonces: Nonces
    role: Role
    required: bool = False
    """True if a token that is not bound to the key is of no use."""

    def proof(self, method: str, url: str, now: float, token: str = "") -> str:
        return self.key.proof(method, url, now, token=token, nonce=self.nonces.of(self.role, url))

    def learn(self, url: str, nonce: str | None) -> bool:
        """See `Nonces.learn`."""
        return self.nonces.learn(self.role, url, nonce)


@lru_cache(maxsize=16)
def _imported(key: ProofKey) -> ECKey:
    from joserfc.jwk import ECKey

    return ECKey.import_key({**key.public, "d": key.d})


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
