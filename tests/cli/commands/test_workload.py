"""Workload identity from the command line: no browser, and no JWT in anything that is written."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tests.auth.flow.flows import jwt
from tests.auth.people import Echo, Guarded, Web
from tests.cli.conftest import Mcphost


class Job:
    """A guarded server, configured as `web`, and the file whose JWT a command prints."""

    def __init__(self, web: Web, guard: Guarded) -> None:
        self.guard = guard
        self.web, self.issuer = web, web.url.removesuffix("/mcp")
        self.token = Path("token").absolute()
        self.command = [sys.executable, "-ISc", f"print(open({str(self.token)!r}).read())", "{audience}"]
        self.issue()
        Path("config.toml").write_text(
            f'[servers.web]\nurl = "{web.url}"\n[policy]\ndefault = "allow"\n[servers.web.oauth]\n'
            f'grant = "workload"\nissuer = "{self.issuer}"\nassertion.command = {json.dumps(self.command)}\n'
        )

    def issue(self, **claims: object) -> str:
        made = jwt(**{"aud": self.issuer, "exp": time.time() + 600, **claims})
        self.token.write_text(made)
        return made

    @property
    def presented(self) -> list[str]:
        bodies = [visit.body.decode() for visit in self.web.visits if visit.path == "/token"]
        return [parse_qs(body)["assertion"][0] for body in bodies]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCPHOST_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "state"))
    guard = Guarded(inner=Echo(stateless=True))
    guard.clients[""] = ""  # whoever comes without a client id
    with Web(guard) as web:
        yield Job(web, guard)


@pytest.mark.requirement("WIF-03")
def test_a_workload_is_signed_in_without_a_browser(mcphost: Mcphost, job: Job, tmp_path: Path) -> None:
    assertion = job.token.read_text()
    checked = mcphost("config", "check")
    command = shlex.join([sys.executable, "-ISc"])
    assert f"web is signed in to by the JWT that this command prints: {command} " in checked.err
    signed = mcphost("login", "web", "--verbose")
    assert (signed.code, signed.out.partition(" until ")[0]) == (0, f"web: signed in at {job.web.url.split('/')[2]}")
    assert "renewed by itself" in signed.out
    assert f"Get this workload's JWT: from the command {sys.executable}: done in " in signed.err
    called = mcphost("call", "web", "echo", "text=x", "--traffic", "traffic.jsonl")
    assert (called.code, called.out) == (0, "x\n")
    found, report = mcphost("doctor", "web"), mcphost("report", "-")
    for words in ("JWT for web", "iss https://platform.example, sub job-1, aud http://127.0.0.1", "valid for "):
        assert words in " ".join(found.out.split())
    audit = (tmp_path / "state/audit.jsonl").read_text()
    records = [record for line in audit.splitlines() if (record := json.loads(line))["event"] == "assertion"]
    assert {(record["server"], record["command"][-1]) for record in records} == {("web", job.issuer)}
    assert len(job.presented) == 4
    assert set(job.presented) == {assertion}
    for text in (*(f"{each.out}{each.err}" for each in (signed, called, found, report)), audit):
        assert assertion not in text
    assert assertion not in Path("traffic.jsonl").read_text()


@pytest.mark.requirement("WIF-02")
def test_a_refused_jwt_is_presented_once_by_a_login(mcphost: Mcphost, job: Job) -> None:
    job.guard.spoiled["token"] = "invalid-grant"
    refused = mcphost("login", "web")
    assert refused.code == 3
    assert "refused a token (invalid_grant): no ␛[2J; " in refused.err
    assert "must trust the JWT's issuer 'https://platform.example', and know its subject 'job-1'" in refused.err
    assert (len(job.presented), job.presented[0] in refused.err) == (1, False)


@pytest.mark.requirement("WIF-04")
def test_the_doctor_says_what_is_wrong_with_a_jwt(mcphost: Mcphost, job: Job) -> None:
    job.issue(aud="sts.example")
    said = " ".join(mcphost("doctor", "web").out.split())
    assert "aud sts.example, valid for" in said
    assert f"it is for sts.example, not for {job.issuer}: let its platform issue it for that" in said
    job.token.unlink()
    said = " ".join(mcphost("doctor", "web").out.split())
    assert f"✗ problem JWT for web the command {sys.executable} ended with code 1: FileNotFoundError" in said
    assert not job.presented


def test_commands_that_sign_in_are_listed_without_their_secrets(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPHOST_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text(
        '[identity.corp]\nissuer = "https://idp.example"\nclient_id = "c"\n'
        'id_token = { command = ["fetch", "--token", "canary-abcdefgh"] }\n'
    )
    said = mcphost("config", "check").err
    assert "identity corp has the ID token that this command prints: fetch --token •••" in said
