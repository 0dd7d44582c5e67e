"""The demo as it is put together: its server, and the script in place of a language model."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition import demo_config, dependencies, values_for
from mcphost.host.chat.turns import TurnState
from mcphost.host.consent.questions import Answer, Question, SamplingQuestion, ToolCallQuestion
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.providers.demo_script import NAME
from tests.cli.conftest import start
from tests.terminal import mcphost

pytestmark = pytest.mark.slow


class Agreeing:
    """Says yes to everything but the tools in ``refused``, and keeps what it was asked."""

    def __init__(self, *refused: str) -> None:
        self.refused, self.questions = refused, list[Question]()

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(allow=not (isinstance(question, ToolCallQuestion) and question.tool.name in self.refused))


def demo_host(approver: Agreeing, **more: Any) -> Host:
    config = demo_config()
    return Host(config, replace(dependencies(approver, values_for(config, os.environ), answers=SCREEN_KINDS), **more))


async def test_the_script_uses_tools_only_as_far_as_the_user_agrees() -> None:
    approver = Agreeing("sound_foghorn")
    async with demo_host(approver) as host, asyncio.timeout(60):
        await host.servers.ready()
        chat = host.chats.begin()
        turn = chat.send("Who is out there?")
        await chat.ended()
        spent = chat.usage
    asked = [each for each in approver.questions if isinstance(each, ToolCallQuestion)]
    assert [(each.tool.name, each.origin) for each in asked] == [("ships_in_sight", NAME), ("sound_foghorn", NAME)]
    assert [(use.tool, use.outcome) for use in turn.uses] == [("ships_in_sight", "done"), ("sound_foghorn", "declined")]
    assert (turn.state, turn.rounds[-1].model) == (TurnState.DONE, NAME)
    assert turn.text.startswith("No foghorn, then.")
    assert (spent.guessed, spent.tokens > 100) == (False, True)


async def test_words_copied_from_a_file_are_marked_in_the_question(tmp_path: Path) -> None:
    words = "The relief boat from Puffin Bay leaves at a quarter past nine"
    (tmp_path / "notes.txt").write_text(words)
    approver = Agreeing()
    async with demo_host(approver) as host, asyncio.timeout(60):
        await host.servers.ready()
        chat = host.chats.begin()
        made = await host.chats.attachments.compose("Copy @notes.txt into the logbook")
        chat.send(made.text, made.attachments)
        await chat.ended()
    (asked,) = (each for each in approver.questions if isinstance(each, ToolCallQuestion))
    assert asked.arguments["entry"] == words
    assert list(asked.provenance.words("entry")) == ["from notes.txt: 61 characters"]


async def test_the_script_answers_a_server_after_two_approvals() -> None:
    approver = Agreeing()
    async with demo_host(approver) as host, asyncio.timeout(60):
        await host.servers.ready()
        result = await host.tool_calls.call("demo", "write_verse", {"about": "the gulls"}).result()
    (block,) = result.content
    assert "of the gulls the keeper hums a song;\nthe Ebba Lund holds on her way," in getattr(block, "text", "")
    assert f"(by {NAME}; it stopped: endTurn)" in getattr(block, "text", "")
    assert len([each for each in approver.questions if isinstance(each, SamplingQuestion)]) == 4  # two requests


def test_the_chat_of_the_demo_suggests_a_phrase_and_answers_it() -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for("Ships in sight", "1 ready")
        terminal.press_until(["f5"], "begin with: Who is out there?")
        terminal.press("Who is out there?")
        terminal.press_until(["enter"], "Run Ships in sight on demo?", "asked by demo script (no model)")


def test_a_configuration_may_name_the_script_as_a_model(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[models.script]\nprovider = "demo"\n')
    process = start(["--config", "own.toml", "chat", "hello"], cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert out.startswith(b"I am a script, not a language model")
