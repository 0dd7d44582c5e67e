"""What a question about a model's call says of words that the model read somewhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcphost.headless.consent import question_lines
from mcphost.host.borrowing import NOTHING
from mcphost.host.questions import Answer, ToolCallQuestion
from tests.host.conftest import NO, YES, echo
from tests.host.scripted_model import ChatHost, chat_host, given, says, text, use, uses

DIARY = "Today I hid the treasure under the old oak tree behind the mill."
TREE = "hid the treasure under the old oak tree"
READ_DIARY = given({"name": "read", "answer": says(DIARY)})


def marks(host: ChatHost, number: int = -1) -> list[tuple[str, str]]:
    """What the question of this number says: whose words, and which."""
    return [(mark.source, mark.text) for mark in host.approver.questions[number].borrowed.marks]


@pytest.mark.requirement("HOST-02")
async def test_words_of_another_servers_result_are_marked_and_a_servers_own_are_not() -> None:
    """M04: the second call goes to another server, the third back to where the words came from."""
    script = (
        uses(use("notes__read", "1")),
        uses(use("mail__echo", "2", text=f"Psst: {TREE}!"), use("notes__echo", "3", text=TREE)),
        text("done"),
    )
    servers = {"notes": READ_DIARY, "mail": echo()}
    async with chat_host(*script, servers=servers, answers=(YES, YES, YES)) as host:
        await host.ready()
        await host.say("do it")
        assert [marks(host, number) for number in range(3)] == [[], [("notes", TREE)], []]
        (mark,) = host.approver.questions[1].borrowed.marks
        lines = "\n".join(question_lines(host.approver.questions[1]))
    assert (mark.path, mark.start, mark.end) == (("text",), 6, 6 + len(TREE))
    assert 'the argument "text" has words from notes: 39 characters' in " ".join(lines.split())


async def test_what_was_read_is_known_in_later_messages_and_in_branches() -> None:
    """M04"""
    script = uses(use("notes__read")), text("read"), uses(use("mail__echo", text=TREE)), text("done")
    async with chat_host(*script, servers={"notes": READ_DIARY, "mail": echo()}, answers=(YES, YES, YES)) as host:
        await host.ready()
        await host.say("read it")
        branch = host.branch_chat(host.chat, 1)
        await host.say("mail it")
        assert marks(host) == [("notes", TREE)]
        host.model.script = [uses(use("mail__echo", text=TREE)), text("done")]
        branch.send("mail it")
        await branch.ended()
        assert marks(host) == [("notes", TREE)]


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("never tell that the wallet is in the blue box", "your instructions"),
        ("only the person decides what is done", "mcphost's instructions"),
        ("the combination of the safe is thirty one", "safe.txt"),
        ("use the search before all other things", "notes"),
        ("whatever was typed by the person themselves", ""),
    ],
)
async def test_instructions_and_files_are_sources_and_what_was_typed_is_none(
    words: str, source: str, tmp_path: Path
) -> None:
    """M04: the system prompt, the user's file, another server's instructions."""
    (tmp_path / "safe.txt").write_text("Remember: the combination of the safe is thirty one.")
    servers = {"notes": {**echo("--instructions", "Always use the search before all other things.")}, "mail": echo()}
    chat = {"system": "Please never tell that the wallet is in the blue box."}
    script = uses(use("mail__echo", text=words)), text("done")
    async with chat_host(*script, servers=servers, answers=(NO,), chat=chat) as host:
        await host.ready()
        host.chat.tell_instructions("notes", on=True)
        attached = await host.attach_file(tmp_path / "safe.txt")
        await host.say("I said: whatever was typed by the person themselves", attachments=[attached])
        assert marks(host) == ([(source, words)] if source else [])


async def test_a_result_that_was_kept_back_or_not_shown_is_no_source() -> None:
    """M04, P11: the model never had it, so that it cannot have it from there."""
    script = uses(use("notes__read")), uses(use("mail__echo", text=TREE)), text("done")
    servers = {"notes": READ_DIARY, "mail": echo()}

    asked: list[ToolCallQuestion] = []

    class Keeps:
        async def ask(self, question: Any) -> Answer:
            if isinstance(question, ToolCallQuestion):
                asked.append(question)
            return Answer(allow=isinstance(question, ToolCallQuestion))

    keeps: Any = Keeps()
    async with chat_host(*script, servers=servers, chat={"hold": "always"}, approver=keeps) as host:
        await host.ready()
        await host.say("go")
    assert [each.borrowed for each in asked] == [NOTHING, NOTHING]


async def test_a_call_of_the_users_own_is_not_compared() -> None:
    """M04: whoever types an argument knows where it is from."""
    async with chat_host(uses(use("notes__read")), text("ok"), servers={"notes": READ_DIARY, "mail": echo()},
                         answers=(YES, YES)) as host:  # fmt: skip
        await host.ready()
        await host.say("read")
        await host.call_tool("mail", "echo", {"text": TREE}).ended()
        assert host.approver.questions[-1].borrowed == NOTHING


async def test_a_huge_call_is_asked_about_with_a_word_on_what_was_not_compared() -> None:
    """M04, M02"""
    script = uses(use("notes__read")), uses(use("mail__echo", text="la " * 200_000)), text("done")
    async with chat_host(*script, servers={"notes": READ_DIARY, "mail": echo()}, answers=(YES, NO)) as host:
        await host.ready()
        await host.say("go")
        question = host.approver.questions[-1]
        assert "too large to compare" in question.borrowed.note
        assert "beware      the arguments are too large" in "\n".join(question_lines(question))
