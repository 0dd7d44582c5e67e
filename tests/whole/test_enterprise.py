"""Signing in by a company's identity provider for real: one sign-in in the browser for two servers.

After each test everything that mcphost printed and every file on the machine is searched for every secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.whole.enterprise import AS_CLIENT, IDP_CLIENT, Company, company
from tests.whole.signing import UserMachine, user_machine

pytestmark = pytest.mark.timeout(400)  # a first run installs


@pytest.fixture(scope="module")
def corp() -> Iterator[Company]:
    with company() as found:
        yield found


@pytest.fixture
def here(corp: Company, tmp_path: Path) -> Iterator[UserMachine]:
    """A machine without a sign-in; in the end neither its files nor its output contain a secret."""
    folder = tmp_path / "machine"
    folder.mkdir()
    with TemporaryDirectory() as vault, user_machine(folder, f"{corp.issuer}/a/mcp", Path(vault)) as found:
        found.env |= {"IDP_SECRET": IDP_CLIENT["secret"], "AS_SECRET": AS_CLIENT["secret"]}
        (folder / "config.toml").write_text(corp.configuration())
        yield found
    assert found.leaks(corp.secrets()) == []


@pytest.mark.requirement("EMA-01", "EMA-02", "EMA-03", "EMA-05", "EMA-06")
def test_one_sign_in_serves_two_servers_until_its_sign_out(corp: Company, here: UserMachine) -> None:
    waiting = here.run("check", "a").out
    assert ("needs sign-in" in waiting, "could not be renewed" in waiting) == (True, False)
    first = here.run("login", "a", "--yes", "-v", "--traffic", "login.jsonl")
    assert first.code == 0, first.err
    assert f"identity      corp at {corp.idp.removeprefix('http://')}" in first.err
    second = here.run("login", "b", "--yes")
    assert second.code == 0, second.err
    assert "alice; no browser is needed" in second.err

    (visit,) = corp.seen("idp", "/auth")[:1]
    codes = [each for each in corp.seen("idp", "/token") if each["sent"]["grant_type"] == "authorization_code"]
    assert (len(codes), visit["query"]["code_challenge_method"]) == (1, "S256")
    assert "resource" not in visit["query"]
    assert len(visit["query"]["nonce"]) == 32
    exchanges = [each["sent"] for each in corp.seen("idp", "/token") if "audience" in each["sent"]]
    assert [each["resource"] for each in exchanges] == [f"{corp.issuer}/{name}/mcp" for name in "ab"]

    assert here.run("call", "b", "time", "--yes", "--traffic", "call.jsonl").code == 0
    out = here.run("logout", "--identity", "corp")
    assert "the tokens are revoked and forgotten; the tokens of a, b are forgotten" in out.out
    assert corp.seen("idp", "/token/revocation")[0]["status"] == 200
    refused = here.run("call", "b", "time", "--yes")
    assert (refused.code, "mcphost login b" in refused.err) == (3, True)
