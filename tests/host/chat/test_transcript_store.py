"""Conversations that are kept, taken up again, branched and exported."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import NotDone, UnknownName
from mcphost.host.chat.transcript_store import TranscriptStore, replay
from mcphost.host.chat.turns import TurnState
from mcphost.providers.base import AnswerFinished, TextDelta, TokenUsage
from tests.host.chat.scripted_model import Wait, chat_host, given, text, tool_result, use, uses
from tests.host.conftest import YES, echo

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}
TOLD = [TextDelta("All done."), TokenUsage(100, 10), AnswerFinished("endTurn", "m")]


def records(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def modes(folder: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.jsonl")]


async def test_a_conversation_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    script = uses(use("a__echo", text="x"), use("a__fail", "u2", text="no"), say="Wait."), TOLD
    async with chat_host(*script, servers={"a": echo()}, policy=ALLOW, chats_path=tmp_path) as host:
        await host.servers.ready()
        await host.say("hi", attachments=[host.chats.attachments.text("stdin", "a pipe")])
        before, messages = host.chat, host.chat.request().messages
    assert modes(tmp_path) == [0o600]
    async with chat_host(TOLD, servers={"a": echo()}, policy=ALLOW, chats_path=tmp_path) as host:
        await host.servers.ready()
        (saved,) = await host.chats.saved()
        assert (saved.id, saved.title) == (before.id, "hi")
        chat = await host.chats.resume("last")
        assert await host.chats.resume(before.id[:17]) is chat
        assert chat.request().messages == messages
        assert (chat.outside, chat.markdown) == (before.outside, before.markdown)
        assert (chat.usage.output_tokens, chat.turns[0].uses[1].state) == (before.usage.output_tokens, "failed")
        await host.say("and again")
    assert [each["event"] for each in records(tmp_path)].count("turn") == 2
    assert len(replay(records(tmp_path))) == 2


async def test_a_conversation_that_is_opened_twice_at_once_is_one(tmp_path: Path) -> None:
    async with chat_host(TOLD, servers={}, chats_path=tmp_path) as host:
        await host.say("hi")
    async with chat_host(servers={}, chats_path=tmp_path) as host:
        one, other = await asyncio.gather(host.chats.resume("last"), host.chats.resume("last"))
    assert one is other


async def test_a_record_torn_by_a_full_disk_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, torn = os.write, list[bytes]()

    def tearing(descriptor: int, data: bytes) -> int:
        if torn or b'"answer"' not in data:
            return whole(descriptor, data)
        torn.append(data)
        return whole(descriptor, data[:4])

    monkeypatch.setattr(os, "write", tearing)
    async with chat_host(TOLD, TOLD, servers={}, chats_path=tmp_path) as host:
        await host.say("hi")
        await host.say("again")
    async with chat_host(servers={}, chats_path=tmp_path) as host:
        turns = (await host.chats.resume("last")).turns
    assert [(turn.state, len(turn.rounds)) for turn in turns] == [(TurnState.DONE, 0), (TurnState.DONE, 1)]


async def test_a_long_first_message_is_still_the_title(tmp_path: Path) -> None:
    async with chat_host(TOLD, servers={}, chats_path=tmp_path, chat={"attachment_bytes": 1 << 20}) as host:
        await host.say('say "what" it is: ☃', attachments=[host.chats.attachments.text("stdin", "x" * 500_000)])
    async with chat_host(servers={}, chats_path=tmp_path) as host:
        assert [each.title for each in await host.chats.saved()] == ['say "what" it is: ☃']


async def test_secrets_are_masked_in_what_is_kept_and_exported(tmp_path: Path) -> None:
    def mask(told: str) -> str:
        return told.replace("hunter2", "•••")

    script = uses(use("a__echo", text="hunter2")), text("it is hunter2")
    async with chat_host(*script, servers={"a": echo()}, policy=ALLOW, chats_path=tmp_path, mask=mask) as host:
        await host.servers.ready()
        await host.say("the password is hunter2")
        exported = host.chat.markdown
    assert "hunter2" not in exported + json.dumps(records(tmp_path))


async def test_an_interrupted_turn_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    script = uses(use("a__echo", text="x"))
    async with chat_host(script, TOLD, servers={"a": echo()}, policy=ALLOW, chats_path=tmp_path) as host:
        await host.servers.ready()
        await host.say("hi")
    kept = records(tmp_path)
    for number in range(len(kept) + 1):  # wherever the file ends
        turns = replay(kept[:number])
        assert all(turn.state.ended for turn in turns)
    (turn,) = replay(kept[:4])
    assert (turn.state, turn.uses[0].state) == (TurnState.STOPPED, "mcphost ended meanwhile")
    endless = {**kept[4], "uses": [{**kept[4]["uses"][0], "seconds": 10**400}]}
    damaged = [
        *kept[:4], {"event": "answer", "turn": 9}, {"event": "end", "turn": 1, "state": "?", "reason": ""}, endless, 5,
    ]  # fmt: skip
    assert len(replay(each for each in damaged if isinstance(each, dict))) == 1


async def test_a_message_can_be_sent_anew_in_a_branch_while_the_first_stays(tmp_path: Path) -> None:
    async with chat_host(text("one"), text("two"), text("three"), servers={}, chats_path=tmp_path) as host:
        await host.say("first")
        await host.say("second")
        branch = host.chats.branch(host.chat, 1)
        branch.send("instead")
        await branch.ended()
        assert [turn.text for turn in host.chat.turns] == ["one", "two"]
        assert [(turn.message.text, turn.text) for turn in branch.turns] == [("first", "one"), ("instead", "three")]
        assert branch.branch_of == (host.chat.id, 1)
        assert branch.id != host.chat.id
    async with chat_host(servers={}, chats_path=tmp_path) as host:
        again = await host.chats.resume(branch.id)
        assert (len(again.turns), again.branch_of) == (2, branch.branch_of)


async def test_a_turn_under_way_cannot_be_branched() -> None:
    wait = Wait()
    async with chat_host([wait], servers={}) as host:
        host.chat.send("hi")
        await wait.reached.wait()
        with pytest.raises(NotDone, match="still at work there"):
            host.chats.branch(host.chat, 1)


@pytest.mark.parametrize("wanted", ["2099", "", "last", "../../etc/passwd"])
async def test_only_what_there_is_can_be_taken_up(tmp_path: Path, wanted: str) -> None:
    (tmp_path / "stranger.jsonl").write_text("{}")
    async with chat_host(servers={}, chats_path=tmp_path) as host:
        with pytest.raises(UnknownName, match="no conversation begins"):
            await host.chats.resume(wanted)


@pytest.mark.parametrize("later", ["20261123-120000-000000", "20261123-120000-ffffff"])
def test_last_of_two_conversations_of_one_second_was_changed_later(tmp_path: Path, later: str) -> None:
    for name in ("20261123-120000-000000", "20261123-120000-ffffff", "20261122-120000-aaaaaa"):
        path = tmp_path / f"{name}.jsonl"
        path.touch()
        os.utime(path, ns=(2, 2) if name == later else (1, 1))
    assert TranscriptStore(tmp_path, str, pytest.fail).full_id("last") == later


async def test_nothing_is_kept_where_the_user_wants_that(tmp_path: Path) -> None:
    async with chat_host(text("x"), servers={}, chats_path=tmp_path / "chats", chat={"save": False}) as host:
        await host.say("hi")
    assert not (tmp_path / "chats").exists()


async def test_a_disk_that_takes_nothing_is_an_alarm_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with chat_host(text("x"), text("y"), servers={}, chats_path=tmp_path / "file") as host:
        assert [(await host.say("hi")).text, (await host.say("hi")).text] == ["x", "y"]
        await host.chats._context.transcripts.aclose()
    assert len(host.alarms) <= 1


@pytest.mark.hostile("M01")
@pytest.mark.requirement("SEC-13")
async def test_markdown_says_whose_each_part_is_and_no_part_can_break_out(tmp_path: Path) -> None:
    server = given({"name": "t", "answer": tool_result("```\n# Not a heading\x1b[31m\u202e")})
    script = uses(use("a__t", x=1), say="Look:"), text("red\x1b[31m")
    async with chat_host(*script, servers={"a": server}, answers=(YES,)) as host:
        await host.servers.ready()
        await host.say("go")
        told = host.chat.markdown
    assert "### a:t (done" in told
    assert "````\n```\n# Not a heading␛[31m⟨U+202E⟩\n````" in told
    assert "\x1b" not in told
