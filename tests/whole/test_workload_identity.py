"""Workload identity at an authorization server of other people: authlib's own jwt-bearer grant."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from mcphost.auth.assertions import AssertionReader
from mcphost.auth.ports import AssertionSource, OAuthSettings
from mcphost.errors import SignInFailed
from tests.auth.people import Echo, Guarded, Person, house
from tests.conftest import SERVERS
from tests.pypi import environment
from tests.whole.peers import PYTHON_SERVERS

pytestmark = pytest.mark.timeout(400)  # a first run installs
PLATFORM, SUBJECT = "https://platform.example", "system:serviceaccount:tools:mcphost"
READER = AssertionReader(lambda name: None, lambda program: (program, {}), lambda secret: None)


@dataclass
class Platform:
    """The platform that the authorization server at ``issuer`` trusts."""

    issuer: str
    key: ECKey

    def issue(self, key: ECKey | None = None, **claims: Any) -> str:
        sound = {"iss": PLATFORM, "sub": SUBJECT, "aud": self.issuer, "exp": int(time.time()) + 600}
        return jwt.encode({"alg": "ES256"}, sound | claims, key or self.key, algorithms=["ES256"])


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    key = ECKey.generate_key("P-256")
    known = {"issuer": PLATFORM, "subject": SUBJECT, "jwks": KeySet([key]).as_dict(private=False)}
    python = environment("python-servers", PYTHON_SERVERS) / "python"
    command = [str(python), str(SERVERS / "authlib_workload.py"), json.dumps(known)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield Platform(server.stdout.readline().strip(), key)
        finally:
            server.kill()


@pytest.mark.requirement("WIF-01", "WIF-04")
async def test_authlib_gives_a_token_for_a_jwt_and_says_why_not(platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "token"
    source = AssertionSource(file=str(file))
    settings = OAuthSettings(grant="workload", issuer=platform.issuer, assertion=source, scopes=("write",))
    guard = Guarded(inner=Echo(stateless=True), more={"resource": {"authorization_servers": [platform.issuer]}})
    with house(guard, settings, assertions=READER) as home:
        home.clock[0] = time.time()
        for jwt_of, words in (
            (platform.issue(ECKey.generate_key("P-256")), "invalid_grant"),
            (platform.issue(sub="another"), r"invalid_grant\): Invalid 'sub' value"),
            (platform.issue(iss="https://other.example"), "must trust the JWT's issuer 'https://other.example'"),
            (platform.issue(aud=["sts"]), "is for sts, not for"),
        ):
            file.write_text(jwt_of)
            with pytest.raises(SignInFailed, match=words):
                await home.sign_in()
        file.write_text(platform.issue(aud=[f"{platform.issuer}/token", "sts"]))
        person = Person()
        status = await home.sign_in(person)
        assert (status.issuer, status.scopes, status.renewable) == (platform.issuer, ("write",), True)
        assert (person.plans, person.links) == ([], [])
        grant = (await home.store.read("web")).grants[0]
        guard.valid.add(grant.access_token)
        async with home.client() as client:
            assert await home.ask(client) == 200
