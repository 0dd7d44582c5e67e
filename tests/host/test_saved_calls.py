"""Saved calls: only the server gets the values of references, and no secret gets into the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config, Values
from mcphost.config.calls import CallsFile, SavedCall
from mcphost.errors import ConfigError
from mcphost.host.consent.questions import Answer
from mcphost.host.saved_calls import SavedCallService
from mcphost.host.tool_calls.call import CallState
from tests.host.conftest import NO, HostOf, echo

SAY = SavedCall(name="say", server="a", tool="echo", arguments={"text": "my ${WORD}"})


def calls_file(folder: Path, *, own: bool = True) -> CallsFile:
    env = {"WORD": "swordfish", "API_TOKEN": "s3cret-token"}
    return CallsFile(folder / "calls.toml", Values(env, None, folder), own=own)


def service(folder: Path, *, own: bool = True) -> SavedCallService:
    file = calls_file(folder, own=own)
    file._values.remember("s3cret-token")
    return SavedCallService(lambda config: file, Config, file._values.mask)


async def test_only_the_server_gets_the_value_of_a_reference(host: HostOf, tmp_path: Path) -> None:
    wire, audit = tmp_path / "wire", tmp_path / "audit.jsonl"
    parts = {"open_calls": lambda config: calls_file(tmp_path), "audit_path": audit}
    async with host(a=echo("--record", wire), dependencies=parts) as running:
        references = running.saved_calls.references(SAY)
        call = await running.run("a", "echo", SAY.shown, references=references)
        assert call.state is CallState.DONE
        assert call.arguments == {"text": "my ${WORD}"}
    (question,) = running.approver.questions
    assert question.arguments == {"text": "my ${WORD}"}
    assert question.note == "${WORD} is replaced by its value when the call is sent"
    assert '"my swordfish"' in wire.read_text()
    assert "my ${WORD}" in audit.read_text()
    assert "swordfish" not in audit.read_text()


async def test_an_edited_argument_is_sent_as_the_user_wrote_it(host: HostOf, tmp_path: Path) -> None:
    answers = (Answer(allow=True, arguments={"text": "your ${WORD}"}),)
    async with host(
        a=echo(), answers=answers, dependencies={"open_calls": lambda config: calls_file(tmp_path)}
    ) as running:
        call = await running.run("a", "echo", SAY.shown, references=running.saved_calls.references(SAY))
        assert call.outcome is not None
        assert "your ${WORD}" in json.dumps(call.outcome.raw)


@pytest.mark.parametrize(("pattern", "asks"), [("swordfish$", False), (r"WORD\}$", True)])
async def test_a_rule_decides_by_the_value_of_a_reference(
    host: HostOf, tmp_path: Path, pattern: str, asks: bool
) -> None:
    server = echo(tools={"echo": {"allow_when": {"text": pattern}}})
    async with host(
        a=server, answers=(NO,), dependencies={"open_calls": lambda config: calls_file(tmp_path)}
    ) as running:
        await running.run("a", "echo", SAY.shown, references=running.saved_calls.references(SAY))
    assert bool(running.approver.questions) == asks


async def test_a_foreign_reference_in_a_project_s_file_is_not_sent(host: HostOf, tmp_path: Path) -> None:
    parts = {"open_calls": lambda config: calls_file(tmp_path, own=False)}
    async with host(a=echo(), dependencies=parts) as running:
        call = await running.run("a", "echo", SAY.shown, references=running.saved_calls.references(SAY))
    assert isinstance(call.error, ConfigError)
    assert "text holds ${WORD}, which is not used" in str(call.error)
    assert running.approver.questions == []


async def test_a_text_without_a_saved_reference_is_plain(host: HostOf, tmp_path: Path) -> None:
    async with host(a=echo(), dependencies={"open_calls": lambda config: calls_file(tmp_path)}) as running:
        call = await running.run("a", "echo", {"text": "my ${WORD}"})
        assert call.outcome is not None
        assert "my ${WORD}" in json.dumps(call.outcome.raw)


SCHEMA = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "the one-time code from your phone"},
        "word": {"type": "string", "format": "password"},
        "text": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("given", "kept", "left_out"),
    [
        ({"text": "plain", "n": 1, "none": ""}, {"text": "plain", "n": 1, "none": ""}, ()),
        ({"code": "123", "word": "x", "text": "y"}, {"text": "y"}, ("code", "word")),
        ({"text": "with s3cret-token in it"}, {}, ("text",)),
        ({"a": {"password": "x", "user": "ada"}}, {"a": {"user": "ada"}}, ("a.password",)),
        ({"a": ["x", "s3cret-token"], "b": 1}, {"b": 1}, ("a",)),
        ({"text": "Bearer •••"}, {}, ("text",)),
        ({"text": "ghp_" + "a1B2" * 9}, {}, ("text",)),
        ({"s3cret-token": "x"}, {}, ("s3cret-token",)),
        ({"word": "${API_TOKEN}"}, {"word": "${API_TOKEN}"}, ()),
        ({"text": "echo ${HOME}"}, {"text": "echo $${HOME}"}, ()),
    ],
)
def test_no_secret_is_written(
    tmp_path: Path, given: dict[str, Any], kept: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    assert service(tmp_path).storable(given, SCHEMA) == (kept, left_out)


def test_a_reference_that_came_with_the_arguments_stays(tmp_path: Path) -> None:
    calls = service(tmp_path)
    given = {"text": "my ${WORD}", "more": "my ${WORD}"}
    stored = calls.storable(given, SCHEMA, calls.references(SAY))
    assert stored.arguments == {"text": "my ${WORD}", "more": "my $${WORD}"}


async def test_the_calls_are_read_again_where_the_file_changed(tmp_path: Path) -> None:
    calls = service(tmp_path)
    assert (await calls.load()).calls == ()
    await calls.save(SAY)
    assert (await calls.load()).find("say") == SAY
    await calls.remove("say")
    assert (await calls.load()).calls == ()
