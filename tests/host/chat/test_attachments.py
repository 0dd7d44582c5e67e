"""Prompts, resources and files that the user adds to a conversation."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as every
from hypothesis import strategies

from mcphost.errors import InvalidArguments, McphostError, NotDone
from mcphost.host.catalog import CatalogKind
from mcphost.host.chat.attachments import (
    AttachmentMention,
    PromptMention,
    SkillMention,
    candidates,
    of_file,
    of_prompt,
    of_resource,
    parse,
)
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.prompts import GetPromptResult
from mcphost.protocol.models.resources import ReadResourceResult
from mcphost.providers.base import ModelCapabilities
from tests.host.chat.scripted_model import ABLE, chat_host, text
from tests.host.conftest import echo, script

SERVERS = ("a", "files")
OTHER = "Memo+x:%2fQ"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


@pytest.mark.parametrize(
    ("written", "wish", "rest"),
    [
        ("/a:review language=python", PromptMention("a", "review", {"language": "python"}), ""),
        (
            '/a:review x="two words" y=\nand more\n',
            PromptMention("a", "review", {"x": "two words", "y": ""}),
            "and more",
        ),
        ("/a:hello", PromptMention("a", "hello"), ""),
        ("/b:hello", None, "/b:hello"),
        ("see /a:hello", None, "see /a:hello"),
        ("/etc/passwd", None, "/etc/passwd"),
    ],
)
def test_a_slash_names_a_prompt_of_a_known_server(written: str, wish: PromptMention | None, rest: str) -> None:
    parsed = parse(written, SERVERS)
    assert (parsed.prompt, parsed.text) == (wish, rest)


@pytest.mark.parametrize(
    ("written", "skills", "rest"),
    [
        ("/skill a:tides", [SkillMention("a", "tides")], ""),
        ("/skill a:tides when can\nwe berth?", [SkillMention("a", "tides")], "when can\nwe berth?"),
        ("/skill  b:skill://x/SKILL.md\n\nhm", [SkillMention("b", "skill://x/SKILL.md")], "hm"),
        ("/skill a:tides /skill a:pilots go", [SkillMention("a", "tides"), SkillMention("a", "pilots")], "go"),
        ("/skills a:tides", [], "/skills a:tides"),
        ("see /skill a:tides", [], "see /skill a:tides"),
    ],
)
def test_a_skill_is_named_after_the_word_skill_and_a_blank(written: str, skills: list[SkillMention], rest: str) -> None:
    parsed = parse(written, SERVERS)
    assert (list(parsed.skills), parsed.text) == (skills, rest)


@pytest.mark.parametrize("written", ["/skill", "/skill tides", "/skill a: now", "/skill :tides"])
def test_a_skill_without_server_and_name_is_a_problem(written: str) -> None:
    (named,) = parse(written, SERVERS).skills
    assert named.problem == "write /skill server:name, with the name or the URI of a skill"


def test_a_prompt_of_a_server_called_skill_stays_a_prompt() -> None:
    parsed = parse("/skill:hello x=1", ["skill"])
    assert (parsed.skills, parsed.prompt) == ((), PromptMention("skill", "hello", {"x": "1"}))


def test_a_prompt_and_attachments_may_follow_a_skill() -> None:
    parsed = parse("/skill a:tides\n/a:review\nsee @notes.txt", SERVERS)
    assert (parsed.prompt, parsed.text) == (PromptMention("a", "review"), "see @notes.txt")
    assert parsed.mentions == (AttachmentMention("", "notes.txt"),)


@pytest.mark.parametrize(("written", "problem"), [("/a:x 'open", "no closing quotation"), ("/a:x word", "name=value")])
def test_arguments_that_cannot_be_read_are_told(written: str, problem: str) -> None:
    wish = parse(written, SERVERS).prompt
    assert wish is not None
    assert problem in wish.problem


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("look at @files:memo:///a?b, please", [AttachmentMention("files", "memo:///a?b")]),
        (
            '@"files:memo:///two words" @notes.txt.',
            [AttachmentMention("files", "memo:///two words"), AttachmentMention("", "notes.txt")],
        ),
        ("mail me@example.com or @ nobody", []),
        ("@b:memo @a:x @a:x", [AttachmentMention("", "b:memo"), AttachmentMention("a", "x")]),
    ],
)
def test_an_at_names_a_resource_or_a_file(written: str, found: list[AttachmentMention]) -> None:
    assert list(parse(written, SERVERS).mentions) == found


@every(strategies.text('/@abskil:"\n= \\', max_size=40))
def test_no_message_is_beyond_reading(written: str) -> None:
    parsed = parse(written, SERVERS)
    if parsed.prompt is None and not parsed.skills:
        assert parsed.text == written
    candidates(written, len(written), prompts=[("a", "x")], resources=[("a", "b c")])


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("/a:r", ("/a:review",)),
        ("/", ("/a:review", "/files:hello", "/skill")),
        ("see @read", ("@a:memo:///readme",)),
        ("see @two", ('@"a:memo:///two words"',)),
        ("plain words", ()),
        ("/sk", ("/skill",)),
        ("/skill ", ("a:tides", "b:skill://x/SKILL.md")),
        ("/skill tid", ("a:tides",)),
        ("/skill a:tides /skill x/", ("b:skill://x/SKILL.md",)),
        ("/skill a:tides when", ()),
    ],
)
def test_what_is_being_typed_can_be_completed(typed: str, found: tuple[str, ...]) -> None:
    known = {
        "prompts": [("a", "review"), ("files", "hello")],
        "resources": [("a", "memo:///readme"), ("a", "memo:///two words")],
        "skills": [("a", "tides"), ("b", "skill://x/SKILL.md")],
    }
    assert candidates(typed, len(typed), **known).texts == found


# Files.


def test_a_file_is_attached_as_it_is_or_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("häuser" * 10)
    whole, cut = of_file(path, 1000), of_file(path, 10)
    assert [block.text for block in whole.blocks if isinstance(block, TextContent)] == ["häuser" * 10]
    assert (whole.note, whole.outside, cut.note) == ("", False, "cut: the first 10 B of 70 B")
    assert [block.text for block in cut.blocks if isinstance(block, TextContent)] == ["häuserhä"]
    (tmp_path / "a.png").write_bytes(PNG)
    assert isinstance(of_file(tmp_path / "a.png", 10).blocks[0], MediaContent)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone", "No such"), ("folder", "Is a directory"), ("pipe", "is not a file"), ("link", "leads out of its folder"),
     ("binary", "neither text nor a picture"), ("nul\0", "null")],
)  # fmt: skip
def test_what_is_no_file_of_the_users_to_give_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    folder = tmp_path / "here"
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "binary").write_bytes(bytes(range(256)))
    with pytest.raises(NotDone, match=reason):
        of_file(folder / name, 1000)


# Resources and prompts.


def test_a_resource_is_given_as_far_as_a_model_takes_it() -> None:
    blob = {"uri": "a:2", "mimeType": "application/zip", "blob": "AAAA"}
    picture = {"uri": "a:3", "mimeType": "image/png", "blob": base64.b64encode(PNG).decode()}
    read = ReadResourceResult.read({"contents": [{"uri": "a:1", "text": "x" * 50}, blob, picture, {"uri": "a:4"}]})
    made = of_resource("s", "a:1", "One", read, 20)
    assert [type(block) for block in made.blocks] == [TextContent, MediaContent]
    assert (made.outside, made.server, made.tokens) == (True, "s", 1505)
    assert (
        made.note
        == "application/zip, 3 B, was left out; a part was left out: neither text nor blob; cut: the first 20 B of 50 B"
    )
    with pytest.raises(NotDone, match="nothing in it"):
        of_resource("s", "a:1", "One", ReadResourceResult.read({"contents": []}), 20)


def test_a_prompts_messages_keep_their_roles_and_say_what_is_left_out() -> None:
    inside = {"type": "resource", "resource": {"uri": "a:1", "text": "inside"}}
    hello = {"type": "text", "text": "hi"}
    said = [("user", hello), ("assistant", inside), ("system", hello),
            ("user", {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})]  # fmt: skip
    result = GetPromptResult.read({"messages": [{"role": role, "content": content} for role, content in said]})
    made = of_prompt("s", "p", {}, result)
    assert [(each.role, each.text) for each in made.messages] == [
        ("user", "hi"),
        ("assistant", "Resource a:1:\ninside"),
    ]
    assert (made.outside, "of the role 'system'" in made.note, "audio" in made.note) == (True, True, True)


OFFERS = {"a": script("offers.py"), "b": echo()}


@pytest.mark.hostile("P11")
@pytest.mark.requirement("RES-14", "RES-15", "PROMPT-08")
async def test_the_model_gets_what_the_user_could_preview(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my notes")
    async with chat_host(text("ok"), servers=OFFERS) as host:
        await host.servers.ready()
        await host.resources.read("a", OTHER)  # read by the user, and not attached
        made = await host.chats.attachments.compose(
            "/a:review language=python\nlook at @a:memo:///readme.md and @notes.txt but not @nobody"
        )
        assert host.model.requests == []
        assert [message.role for message in made.prompts[0].messages] == ["user", "assistant"]
        await host.say(made.text, attachments=made.attachments, prompts=made.prompts)
        told = "\n".join(message.text for message in host.model.requests[0].messages)
        assert host.chat.outside == "memo:///readme.md"
    assert "review [('language', 'python')]" in told
    assert "Attached from the server a: memo:///readme.md" in told
    assert all(part in told for part in ("# Read me", "my notes", "look at @a:memo:///readme.md"))
    assert "never listed" not in told


async def test_a_preview_is_what_is_sent_part_by_part_with_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "notes.txt").write_text("see https://mine.test\u200b")
    text_only = ModelCapabilities(tools=True)
    for able, picture in ((ABLE, "(image, image/png, 18 B)"), (text_only, "(image, image/png; not shown to you)")):
        async with chat_host(text("ok"), servers=OFFERS, able=able) as host:
            await host.servers.ready()
            made = await host.chats.attachments.compose("/a:review language=c\n@a.png @notes.txt @a:memo:///readme.md")
            preview = host.chat.preview(made.text, made.attachments, made.prompts)
            titles = [piece.title.partition(" ")[0] for piece in preview.pieces]
            assert titles == ["/a:review", "/a:review", "@a.png", "@notes.txt", "@a:memo:///readme.md", "your"]
            assert [piece.foreign for piece in preview.pieces] == [True, True, False, False, True, False]
            first = preview.pieces[0]
            assert (first.text, first.size, first.tokens) == ("review [('language', 'c')]", 26, 7)
            assert picture in preview.pieces[2].text
            assert (preview.hidden, preview.must_be_read, preview.links) == (1, True, ("memo:///readme.md",))
            await host.say(made.text, attachments=made.attachments, prompts=made.prompts)
            sent = "\n".join(message.text for message in host.model.requests[0].messages)
            assert all(piece.text.split("\n")[0] in sent for piece in preview.pieces)
            assert (preview.tokens > 20, preview.besides > 100) == (True, True)


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("/a:review", InvalidArguments),
        ("/a:review x", NotDone),
        ("/a:gone", McphostError),
        ("@a:memo:///gone", McphostError),
    ],
)
async def test_what_cannot_be_composed_is_an_error_and_nothing_is_sent(written: str, error: Any) -> None:
    async with chat_host(servers=OFFERS) as host:
        await host.servers.ready()
        with pytest.raises(error):
            await host.chats.attachments.compose(written)
        assert host.chats.all == {}


async def test_completion_knows_what_servers_offer() -> None:
    async with chat_host(servers=OFFERS) as host:
        await host.servers.ready()
        await host.resources.current("a", CatalogKind.PROMPTS)
        await host.resources.current("a", CatalogKind.RESOURCES)
        assert host.chats.attachments.candidates("/rev", 4).texts == ("/a:review",)
        assert host.chats.attachments.candidates("@memo:///pix", 12).texts == ("@a:memo:///pixel.png",)


async def test_a_text_from_a_pipe_is_attached_and_counts_as_from_outside() -> None:
    async with chat_host(servers={}) as host:
        turn = await host.say("sum up", attachments=[host.chats.attachments.text("stdin", "long story")])
        assert (turn.message.attachments[0].outside, host.chat.outside) == (True, "stdin")
