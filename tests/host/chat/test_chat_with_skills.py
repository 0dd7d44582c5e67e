"""A conversation that acts on a skill: what the model gets, what it may read, and what the user is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import McphostError
from mcphost.host.catalog import CatalogKind
from mcphost.host.chat.acting_skills import READ_FILE
from mcphost.host.chat.tool_results import said
from mcphost.host.chat.turns import Turn, TurnState
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, Question, ResultQuestion, SkillQuestion, ToolCallQuestion
from mcphost.protocol.models.content import TextContent
from tests.host.chat.scripted_model import ChatHost, chat_host, text, use, uses
from tests.host.conftest import FileStore, ScriptedApprover, script, wire

pytestmark = pytest.mark.slow

TABLE = "skill://tides/references/table.csv"
YES, ALWAYS = Answer(allow=True), Answer(allow=True, lifetime=Lifetime.ALWAYS)


class Person(ScriptedApprover):
    """Answers questions about skills in one way, and all others with yes."""

    def __init__(self, skill: Answer = YES, others: Answer = YES) -> None:
        super().__init__()
        self.asked: list[Question] = []
        self._skill, self._others = skill, others

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return self._skill if isinstance(question, SkillQuestion) else self._others

    def about(self, kind: type) -> list[Any]:
        return [question for question in self.asked if isinstance(question, kind)]


@asynccontextmanager
async def charts(
    tmp_path: Path,
    *answers: Any,
    person: Person | None = None,
    mode: str = "",
    protocol: str = "auto",
    more: Mapping[str, Any] = {},
    **options: Any,
) -> AsyncIterator[ChatHost]:
    """A host with the server `charts`, whose skills may be spoiled in this mode; it records what it receives."""
    record = tmp_path / "wire"
    program = ("skills_hostile.py", mode) if mode else ("skills.py", "--page", "100")
    servers = {"charts": script(*program, "--record", record, protocol=protocol), **more}
    async with chat_host(*answers, servers=servers, approver=person or Person(), **options) as host:
        await host.servers.ready()
        yield host


def reads(tmp_path: Path) -> list[str]:
    """The URIs that the server was asked for."""
    return [message["params"]["uri"] for message in wire(tmp_path / "wire", "resources/read")]


async def act(host: ChatHost, written: str = "/skill charts:tides When can we berth?") -> Turn:
    made = await host.chats.attachments.compose(written)
    return await host.say(made.text, attachments=made.attachments)


def told(host: ChatHost) -> str:
    """The texts of all requests to the model."""
    messages = [message for request in host.model.requests for message in request.messages]
    return "\n".join(f"{message.role}: {message.text} {message.results}" for message in messages)


@pytest.mark.requirement("SKILL-03", "SKILL-15")
async def test_a_skill_is_untrusted_text_and_never_in_the_system_prompt(tmp_path: Path) -> None:
    async with charts(tmp_path, text("At noon.")) as host:
        turn = await act(host)
        (request,) = host.model.requests
        assert (turn.state, host.chat.acting) == (TurnState.DONE, "the skill tides of charts")
        assert host.chat.outside == "the skill tides of charts"
        assert READ_FILE in host.model.offered
        assert reads(tmp_path) == ["skill://tides/SKILL.md"]
        passages = [(each.source, each.server) for each in host.chat.passages() if "# Tides" in each.text]
        exported = host.chat.markdown
    (message,) = request.messages
    head, body, said = [block.text for block in message.blocks if isinstance(block, TextContent)]
    assert (message.role, head) == ("user", "Skill tides of the server charts, untrusted:")
    assert (body.lstrip().startswith("# Tides"), "license" in body, said) == (True, False, "When can we berth?")
    assert "Tides" not in (request.system or "")
    assert passages == [("charts", "charts")]
    assert "*attached, the skill tides of charts, untrusted: skill://tides/SKILL.md" in exported


@pytest.mark.requirement("SKILL-09")
async def test_a_listed_file_is_read_verified_and_marked(tmp_path: Path) -> None:
    wanted = uses(use(READ_FILE, "1", path="references/table.csv"), use(READ_FILE, "2", path="assets/chart.png"))
    async with charts(tmp_path, wanted) as host:
        turn = await act(host)
        (table, picture) = host.model.results()
        assert ("charts", "day,high,low") in [(each.server, each.text[:12]) for each in host.chat.passages()]
    assert table == (
        "File references/table.csv of the skill tides of the server charts, untrusted:\n"
        "day,high,low\n1,4.2,0.9\n2,4.4,0.7\n",
        False,
    )
    assert picture == ("File assets/chart.png of the skill tides of the server charts, untrusted:", False)
    assert [(each.server, each.tool, each.state, each.outside) for each in turn.uses] == [
        ("charts", READ_FILE, "done", True)
    ] * 2


OUTSIDE = (
    "references/more.csv",
    "../harbour/SKILL.md",
    "skill://harbour/SKILL.md",
    "skill://tides-evil/references/table.csv",
    "%2e%2e/harbour/SKILL.md",
    "notice:///board",
    "other:notice:///board",
    "file:///etc/passwd",
    "",
)


@pytest.mark.hostile("SK05", "SK15")
@pytest.mark.requirement("SKILL-09", "SKILL-17")
async def test_the_model_reads_no_file_outside_the_entry(tmp_path: Path) -> None:
    """Unlisted, of another skill, scheme or server, and none at all."""
    other = {"other": script("skills.py", "--record", tmp_path / "other")}
    wanted = uses(*(use(READ_FILE, f"u{number}", path=path) for number, path in enumerate(OUTSIDE)))
    async with charts(tmp_path, wanted, more=other) as host:
        await act(host)
        results = host.model.results()
    assert [(path, words[:10], error) for path, (words, error) in zip(OUTSIDE, results, strict=True)] == [
        (path, "Not read: ", True) for path in OUTSIDE
    ]
    assert reads(tmp_path) == ["skill://tides/SKILL.md"]
    assert not wire(tmp_path / "other", "resources/read")


@pytest.mark.hostile("SK01", "SK05")
@pytest.mark.requirement("SKILL-04", "SKILL-09")
@pytest.mark.parametrize("path", ["references/table.csv", "references/new.csv"])
async def test_what_changed_since_the_skill_was_loaded_is_not_read(tmp_path: Path, path: str) -> None:
    """A file that differs by one byte, and one that was added."""
    async with charts(tmp_path, text("Ready."), uses(use(READ_FILE, path=path))) as host:
        await act(host)
        changed = {"uri": f"skill://tides/{path}", "text": "day,high,low\n1,4.3,0.9\n2,4.4,0.7\n"}
        await host.run("charts", "edit", {**changed, "published": path.endswith("new.csv")})
        await host.say("Go on.")
        ((words, is_error),) = host.model.results()
        assert (is_error, words.startswith("Not read: ")) == (True, True)
        assert "4.3" not in told(host)


@pytest.mark.hostile("SK04")
async def test_a_file_that_changes_between_two_reads_reaches_the_model_once(tmp_path: Path) -> None:
    wanted = [uses(use(READ_FILE, number, path="references/table.csv")) for number in "12"]
    async with charts(tmp_path, *wanted, mode="rotates", protocol="legacy") as host:  # no answer is kept there
        turn = await act(host)
    assert [each.state for each in turn.uses] == ["done", "error"]
    assert turn.uses[1].result is not None
    assert "4.4" not in str(turn.uses[1].result.definition())


@pytest.mark.hostile("SK11", "SK15")
@pytest.mark.requirement("SKILL-16")
@pytest.mark.parametrize("policy", [{}, {"allow": ["charts:*"]}])
async def test_an_earlier_yes_or_a_rule_spares_no_question(tmp_path: Path, policy: Mapping[str, Any]) -> None:
    script_ = [uses(use("charts__reads", "1")), text("So."), uses(use("charts__reads", "2")), text("Done.")]
    person = Person(others=ALWAYS)
    async with charts(tmp_path, *script_, person=person, policy=policy) as host:
        await host.say("How often?")
        before = len(person.about(ToolCallQuestion))
        await act(host, "/skill charts:skill://harbour/pilots/SKILL.md go")
        (asked,) = person.about(ToolCallQuestion)[before:]
    assert before == (0 if policy else 1)
    assert asked.skill == "the skill pilots of charts"
    assert "the skill pilots of charts, so that it is asked" in asked.rule


@pytest.mark.requirement("SKILL-10")
async def test_a_skill_that_is_attached_as_a_resource_is_not_acted_on(tmp_path: Path) -> None:
    person = Person()
    async with charts(tmp_path, text("I see."), person=person) as host:
        await act(host, "see @charts:skill://tides/SKILL.md")
        assert "# Tides" in told(host)
        assert (host.chat.skills, host.chat.acting) == ([], "")
        assert READ_FILE not in host.model.offered
        assert person.asked == []


@pytest.mark.hostile("SK11")
@pytest.mark.requirement("SKILL-14")
async def test_acting_on_a_skill_is_not_acting_on_one_inside_it(tmp_path: Path) -> None:
    person = Person()
    wanted = uses(use(READ_FILE, "1", path="pilots/SKILL.md"), use(READ_FILE, "2", path="channel.md"))
    async with charts(tmp_path, wanted, person=person) as host:
        await act(host, "/skill charts:harbour go")
        (nested, relative) = host.model.results()
        assert [each.words for each in host.chat.skills] == ["harbour of charts"]
        assert len(person.about(SkillQuestion)) == 1
    assert ("# Pilots" in nested[0], nested[1], relative[1]) == (True, False, True)


async def test_a_skill_ends_with_the_message_that_brought_it(tmp_path: Path) -> None:
    async with charts(tmp_path, text("One."), text("Two.")) as host:
        await host.say("Hello.")
        await act(host)
        branches = [host.chats.branch(host.chat, turns) for turns in (1, 2)]
        new = host.chats.begin()
        assert [each.acting for each in (*branches, new)] == ["", "the skill tides of charts", ""]


@pytest.mark.parametrize(("answer", "problem"), [(YES, "You allowed it in another run."), (ALWAYS, "")])
async def test_a_resumed_skill_needs_an_approval_that_covers_its_entry(
    tmp_path: Path, answer: Answer, problem: str
) -> None:
    kept: dict[str, Any] = {"store": FileStore(tmp_path), "chats_path": tmp_path / "chats"}
    async with charts(tmp_path, text("Ready."), person=Person(answer), **kept) as host:
        await act(host)
    wanted = uses(use(READ_FILE, path="references/table.csv"))
    async with charts(tmp_path, wanted, **kept) as host:
        chat = await host.chats.resume("last")
        (skill,) = chat.skills
        chat.send("Go on.")
        await chat.ended()
        ((words, is_error),) = host.model.results()
    assert (skill.words, skill.problem.partition(" /skill")[0]) == ("tides of charts", problem)
    assert (is_error, "4.2" in words) == (bool(problem), not problem)


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({"deny": ["charts:tides"]}, "It must not be used: policy.deny has 'charts:tides'."),
        ({"ask": ["charts:tides"]}, "You allowed it in another run."),
    ],
)
async def test_rules_count_for_a_resumed_skill(tmp_path: Path, rules: dict[str, Any], problem: str) -> None:
    kept: dict[str, Any] = {"store": FileStore(tmp_path), "chats_path": tmp_path / "chats"}
    async with charts(tmp_path, text("Ready."), person=Person(ALWAYS), **kept) as host:
        await act(host)
    async with charts(tmp_path, **kept, policy=rules) as host:
        (skill,) = (await host.chats.resume("last")).skills
    assert skill.problem.partition(" /skill")[0] == problem


async def test_a_skill_whose_entry_changed_is_read_no_further(tmp_path: Path) -> None:
    async with charts(tmp_path, text("Ready."), uses(use(READ_FILE, path="references/table.csv"))) as host:
        await act(host)
        await host.run("charts", "edit", {"uri": TABLE, "text": "day\n"})
        await host.resources.relist("charts", CatalogKind.SKILLS)
        (changed,) = host.chat.skills
        await host.say("Go on.")
        ((words, _),) = host.model.results()
    again = "/skill charts:skill://tides/SKILL.md asks you again."
    assert changed.problem == f'The skill "tides" changed at its server: approve it again. {again}'
    assert words == f"Not read: {changed.problem}"


async def test_files_come_from_the_program_that_a_skill_was_loaded_from(tmp_path: Path) -> None:
    async with charts(tmp_path, uses(use(READ_FILE, path="gone.md"))) as host:
        made = await host.chats.attachments.compose("/skill charts:logbook go")
        entry = host.config.servers["charts"]
        other = entry.model_copy(update={"args": [*entry.args, "--more"]})
        await host.apply(host.config.model_copy(update={"servers": {"charts": other}}))
        await host.servers.ready()
        await host.say(made.text, attachments=made.attachments)
        ((words, is_error),) = host.model.results()
    assert (is_error, words.partition(":")[0]) == (True, "Not read")
    assert "another program" in words


async def test_a_skill_whose_server_left_says_so(tmp_path: Path) -> None:
    async with charts(tmp_path, text("Ready.")) as host:
        await act(host)
        host.servers["charts"].stop()
        await host.servers["charts"].settled()
        assert [each.problem for each in host.chat.skills] == ["The server charts is not connected."]


async def test_reads_of_files_count_as_calls(tmp_path: Path) -> None:
    paths = "assets/chart.png", "assets/chart.png", "references/table.csv", "gone.md"
    wanted = uses(*(use(READ_FILE, path[-5:] + str(number), path=path) for number, path in enumerate(paths)))
    async with charts(tmp_path, wanted, chat={"same_calls": 1, "max_calls": 3}) as host:
        turn = await act(host)
    results = [said(use.result).partition(": ")[2][:22] for use in turn.uses if use.result is not None]
    assert [results[1], results[3]] == ["this very call was mad", "3 calls were made for "]
    assert reads(tmp_path)[1:] == ["skill://tides/assets/chart.png", TABLE]


async def test_files_of_skills_wait_for_the_review_of_results(tmp_path: Path) -> None:
    person = Person(others=Answer(allow=False))
    wanted = uses(use(READ_FILE, path="references/table.csv"))
    async with charts(tmp_path, wanted, person=person, chat={"hold": "outside"}) as host:
        await act(host)
        (question,) = person.about(ResultQuestion)
        assert host.model.results() == [("What it answered was kept back by the user.", True)]
    assert "1,4.2,0.9" in question.text


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("/skill none:tides", "none"),
        ("/skill charts:gone", "gone"),
        ("/skill charts:signals", "skill://north/signals/SKILL.md"),
        ("/skill plain:tides", "plain offers no skills"),
        ("/skill tides", "write /skill server:name"),
    ],
)
async def test_a_skill_that_cannot_be_meant_is_a_sentence(tmp_path: Path, written: str, words: str) -> None:
    person = Person()
    async with charts(tmp_path, more={"plain": script("echo.py")}, person=person) as host:
        with pytest.raises(McphostError) as caught:
            await host.chats.attachments.compose(written)
        assert (person.asked, reads(tmp_path)) == ([], [])
    assert words in str(caught.value)


async def test_a_skill_that_is_too_long_is_refused_before_it_is_read(tmp_path: Path) -> None:
    person = Person()
    async with charts(tmp_path, chat={"attachment_bytes": 100}, person=person) as host:
        with pytest.raises(McphostError, match=r"a part of a skill is never sent"):
            await host.chats.attachments.compose("/skill charts:tides")
        assert (person.asked, reads(tmp_path)) == ([], [])


@pytest.mark.hostile("SK01", "SK02")
@pytest.mark.parametrize("mode", ["other-bytes", "longer", "shorter"])
async def test_a_skill_that_differs_from_its_entry_is_not_attached(tmp_path: Path, mode: str) -> None:
    async with charts(tmp_path, mode=mode) as host:
        with pytest.raises(McphostError):
            await host.chats.attachments.compose("/skill charts:tides go")
        assert host.model.requests == []


async def test_a_declined_skill_is_neither_read_nor_sent(tmp_path: Path) -> None:
    async with charts(tmp_path, person=Person(Answer(allow=False))) as host:
        with pytest.raises(McphostError):
            await host.chats.attachments.compose("/skill charts:tides go")
        assert (reads(tmp_path), host.chats.all) == ([], {})


async def test_skills_are_suggested_without_a_read(tmp_path: Path) -> None:
    async with charts(tmp_path) as host:
        await host.servers["charts"].current(CatalogKind.SKILLS)
        assert host.chats.attachments.candidates("/skill tid", 10).texts == ("charts:tides",)
        assert host.chats.attachments.candidates("/skill sig", 10).texts == (
            "charts:skill://north/signals/SKILL.md",
            "charts:skill://south/signals/SKILL.md",
        )
        assert reads(tmp_path) == []
