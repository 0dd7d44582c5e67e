"""The sources of a workload's JWT: each gives the present one, within limits, and nothing of it is shown."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.auth import assertions
from mcphost.auth.assertions import TOKEN_VARIABLE, URL_VARIABLE, AssertionReader, Assertions
from mcphost.auth.ports import AssertionSource
from mcphost.errors import Declined, SignInFailed, SpawnFailed
from mcphost.net.guarded import GuardedRequest, GuardedResponse, NotReached
from tests.auth.flow.flows import jwt

JWT, OTHER = jwt(), jwt(sub="job-2")


class Platform:
    """A reader, the secrets that it learned, and its audit records."""

    def __init__(self, **variables: str) -> None:
        self.learned: set[str] = set()
        self.records: list[Mapping[str, Any]] = []
        self.reader = AssertionReader(variables.get, self.locate, self.learned.add)
        self.reader.audit = self.audit

    @staticmethod
    def locate(program: str) -> tuple[str, Mapping[str, str]]:
        if program == "nothing":
            raise SpawnFailed("nothing was not found in PATH")
        return program, {"SEEN": "yes"}

    async def audit(self, record: Mapping[str, Any]) -> None:
        self.records.append(record)

    async def read(self, **source: Any) -> str:
        return await self.reader.read(AssertionSource(**source), "https://as.example", "ci")

    async def why_not(self, **source: Any) -> str:
        with pytest.raises(SignInFailed) as caught:
            await self.read(**source)
        assert JWT not in str(caught.value)
        assert str(caught.value).isprintable()
        return str(caught.value)


def python(program: str, *args: str) -> tuple[str, ...]:
    return sys.executable, "-ISc", program, *args


# Files and variables.


@pytest.mark.requirement("WIF-03")
async def test_a_file_is_read_again_each_time_through_its_links(tmp_path: Path) -> None:
    platform, link = Platform(), tmp_path / "token"
    for name, content in (("1", f" {JWT}\n"), ("2", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(content)
    (tmp_path / "..data").symlink_to("1")  # as Kubernetes projects it
    link.symlink_to("..data/token")
    assert await platform.read(file=str(link)) == JWT
    (tmp_path / "..data").unlink()
    (tmp_path / "..data").symlink_to("2")
    assert await platform.read(file=str(link)) == OTHER
    assert platform.learned == {JWT, OTHER}


async def test_a_file_without_a_jwt_is_explained(tmp_path: Path) -> None:
    platform, file = Platform(), tmp_path / "token"
    assert (await platform.why_not(file=str(file))) == f"the file {file} is not there"
    assert "is not a regular file" in await platform.why_not(file=str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in await platform.why_not(file=str(tmp_path / "pipe"))
    for content, words in (
        (" \n", "gives nothing"),
        (f'{{"token": "{JWT}"}}', f"gives {len(JWT) + 13} characters that are not a signed JWT and nothing else"),
        (f"{JWT}\n{JWT}", "not a signed JWT and nothing else"),
        ("a.b.c.d.e", "gives 9 characters that are not a signed JWT"),
        ("x" * 65_537, "is larger than 66 kB"),
    ):
        file.write_text(content)
        assert words in await platform.why_not(file=str(file))
    assert platform.learned == set()


async def test_a_variable_is_read_from_mcphosts_environment() -> None:
    platform = Platform(CI_JWT=JWT)
    assert await platform.read(env="CI_JWT") == JWT
    assert (await platform.why_not(env="OTHER")) == "the variable OTHER is not set"


# Commands.


async def test_a_command_gets_the_audience_and_a_small_environment() -> None:
    """Its words pass through no shell, it starts in the root folder, and the record comes before it runs."""
    platform = Platform(SECRET="s3cret")
    program = "import os, sys; assert (sys.argv[1:], os.getcwd()) == (['$HOME;', 'for=https://as.example'], os.sep); "
    program += f"assert os.environ['SEEN'] and 'PATH' not in os.environ; print({JWT!r})"
    command = python(program, "$HOME;", "for={audience}")
    assert await platform.read(command=command) == JWT
    sent = [*command[:-1], "for=https://as.example"]
    assert platform.records == [{"event": "assertion", "server": "ci", "command": sent}]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (
            f"import sys; print({JWT!r}); sys.stderr.write('first\\nno login for {JWT} \\x1b[2J\\n'); sys.exit(3)",
            "code 3",
        ),
        ("print('x' * 70_000); import time; time.sleep(60)", "prints more than 66 kB"),
        ("import sys; sys.stderr.write('x' * 200_000)", "gives nothing"),
    ],
)
async def test_a_command_that_fails_is_explained(program: str, words: str) -> None:
    platform = Platform()
    said = await platform.why_not(command=python(program))
    assert words in said
    if "code" in words:
        assert "ended with code 3: no login for ••• ␛[2J" in said


async def test_a_program_that_is_not_there_is_explained(tmp_path: Path) -> None:
    platform, script = Platform(), tmp_path / "script"
    assert await platform.why_not(command=("nothing",)) == "nothing was not found in PATH"
    script.write_text("echo x")
    assert "could not be started: Permission denied" in await platform.why_not(command=(str(script),))
    assert platform.records[0]["command"] == [str(script)]


async def test_a_command_whose_record_is_required_does_not_run_without_it(tmp_path: Path) -> None:
    async def refuse(record: Mapping[str, Any]) -> None:
        raise Declined("the audit log cannot be written", by="policy", rule="audit")

    platform = Platform()
    platform.reader.audit = refuse
    command = python("open(__import__('sys').argv[1], 'w')", str(tmp_path / "ran"))
    assert await platform.why_not(command=command) == "the audit log cannot be written"
    assert not (tmp_path / "ran").exists()


async def test_a_cancelled_command_ends_with_its_group(tmp_path: Path) -> None:
    """Two processes hold the writing end of a pipe; reading ends once both are gone."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    program = "import os, sys, time; os.fork(); open(sys.argv[1], 'w').write('x'); time.sleep(600)"
    work = asyncio.ensure_future(Platform().read(command=python(program, path)))
    with await asyncio.to_thread(open, path) as pipe:
        assert await asyncio.to_thread(pipe.read, 1) == "x"
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.to_thread(pipe.read)


async def test_a_command_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assertions, "SECONDS", 0.1)
    assert "gave no JWT within 0.1 s" in await Platform().why_not(command=python("import time; time.sleep(600)"))


async def test_a_program_left_behind_ends_and_holds_up_no_jwt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reading the named pipe ends once that program is gone."""
    monkeypatch.setattr(assertions, "END_SECONDS", 0.1)
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    program = f"import os, sys, time; end = open(sys.argv[1], 'w')\nif os.fork(): print('{JWT}')\nelse: time.sleep(600)"
    work = asyncio.ensure_future(Platform().read(command=python(program, path)))
    with await asyncio.to_thread(open, path) as pipe:
        assert await work == JWT
        await asyncio.to_thread(pipe.read)


# GitHub Actions.


class Actions:
    """Takes the place of `GuardedClient`."""

    content, status, asked = b"", 200, list[GuardedRequest]()

    def __init__(self, home: str, resolve: object) -> None:
        assert home == "https://vault.actions.example/token?api-version=2.0"

    async def send(self, request: GuardedRequest) -> GuardedResponse:
        self.asked.append(request)
        if not self.content:
            raise NotReached("no network")
        return GuardedResponse(request.url, self.status, {}, self.content)


async def test_a_job_of_github_actions_asks_its_own_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assertions, "GuardedClient", Actions)
    url = "https://vault.actions.example/token?api-version=2.0"
    platform = Platform(**{URL_VARIABLE: url, TOKEN_VARIABLE: "request-token"})
    for content, status, words in (
        (b"", 200, "GitHub Actions cannot be asked: no network"),
        (b"{}", 401, "GitHub Actions gives no JWT (HTTP 401)"),
        (b"{}", 307, "GitHub Actions gives no JWT (HTTP 307)"),
        (b"[" * 99_999, 200, "GitHub Actions answered without a JWT"),
        (b'{"value": 5}', 200, "GitHub Actions answered without a JWT"),
    ):
        Actions.content, Actions.status = content, status
        assert await platform.why_not(github=True) == words
    Actions.content, Actions.status = b'{"value": "%s"}' % JWT.encode(), 200
    assert await platform.read(github=True) == JWT
    request = Actions.asked[-1]
    assert request.url == f"{url}&audience=https%3A%2F%2Fas.example"
    assert (request.headers["Authorization"], request.content) == ("Bearer request-token", None)
    assert platform.learned == {"request-token", JWT}


async def test_github_actions_is_asked_over_https_and_within_a_job_only() -> None:
    words = "GitHub Actions gives this run no identity: ACTIONS_ID_TOKEN_REQUEST_URL is not set; run it in a job with"
    assert words in await Platform().why_not(github=True)
    plain = Platform(**{URL_VARIABLE: "http://127.0.0.1/", TOKEN_VARIABLE: "request-token"})
    assert "is not an https address; nothing was asked there" in await plain.why_not(github=True)


# Refused ones.


@pytest.mark.requirement("WIF-02")
async def test_a_refused_jwt_is_not_given_again_until_a_person_asks(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(JWT)
    held = Assertions(AssertionSource(file=str(file)), Platform().reader, "ci")
    held.refuse(await held.get("https://as.example"))
    with pytest.raises(SignInFailed, match="was refused before, and is not sent again until it changes or you sign in"):
        await held.get("https://as.example")
    file.write_text(OTHER)
    assert await held.get("https://as.example") == OTHER
    file.write_text(JWT)
    held.forget_refusals()
    assert await held.get("https://as.example") == JWT
