"""No name that a server or a model chose can imitate a row of mcphost's own."""

from __future__ import annotations

import re

import pytest

from mcphost.host.consent.approvals import ApprovalStatus, ToolApproval
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.protocol.models.tools import Tool
from mcphost.tui.consent.call_rows import call_facts
from mcphost.tui.elicitation.form import FormElicitationScreen
from mcphost.tui.elicitation.server_question import ServerQuestionScreen
from mcphost.tui.inbox.screen import InboxScreen
from mcphost.tui.kit.facts_table import FactsTable
from tests.host.server_requests.pending import form
from tests.labels import own_labels
from tests.tui.elicitation.questions import ask, at, question_stage
from tests.tui.sampling.samplings import sampling_stage
from tests.tui.stage import NARROW, Stage, echo, on_stage

KNOWN = ["server says", "history", "sent to", "rule"]
"""The words of mcphost in every call."""


def framed(screen: str) -> tuple[list[str], list[str]]:
    """The lines of the dialog beside the inner frame, and those in it."""
    lines = [line[2:-2].rstrip() for line in screen.splitlines() if re.match(r"│ .* │$", line)]
    inner = [line[2:-2].rstrip() for line in lines if re.match(r"│ .* │$", line)]
    return [line for line in lines if not line.startswith(("│", "╭", "╰"))], inner


async def read_all(stage: Stage) -> list[str]:
    """The text of the screen, scrolled to the end page by page."""
    pages = [stage.text]
    while "scroll to the end" in pages[-1]:
        await stage.press("space")
        pages.append(stage.text)
    return pages


@pytest.mark.slow
@pytest.mark.requirement("TOOLS-14")
@pytest.mark.parametrize("size", [NARROW, (120, 36)])
async def test_no_argument_of_a_call_is_shown_as_a_fact_of_ours(size: tuple[int, int]) -> None:
    fakes = {label: f"fake {number}" for number, label in enumerate(own_labels())}
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "hi", **fakes})
        await stage.call_dialog()
        await stage.shows(f"╭─ Arguments ({len(fakes) + 1}) ")
        pages = await read_all(stage)
        names = list[str]()
        for page in pages:
            beside, inner = framed(page)
            assert not [line for line in beside if "fake" in line]
            assert [
                label for label in KNOWN if [line.startswith(f"{label}  ") for line in beside].count(True) != 1
            ] == []
            assert not [line for line in inner if line and not line.startswith(('"', " "))]
            names += (line.split("  ")[0] for line in inner if line.startswith('"'))
        assert set(names) == {f'"{label}"' for label in ("text", *fakes)}
        await stage.press("n")
        await stage.ended(call)


@pytest.mark.requirement("TOOLS-14")
def test_the_name_of_a_tool_with_a_title_is_quoted() -> None:
    name = "echo · you allowed it before"
    tool = Tool.read({"name": name, "title": "Echo", "inputSchema": {"type": "object"}})
    approval = ToolApproval(ApprovalStatus.NEW)
    facts = call_facts(ToolCallQuestion(1, "s", tool, {}, "you", "run this", approval, "policy.default = 'ask'"))
    assert next(facts).value.plain == f'"{name}"'


@pytest.mark.slow
@pytest.mark.parametrize("size", [NARROW, (120, 36)])
async def test_no_field_of_a_form_is_shown_as_a_fact_of_ours(size: tuple[int, int]) -> None:
    labels = own_labels()
    fields = {label: {"type": "string", "default": f"fake {number}"} for number, label in enumerate(labels)}
    async with question_stage(size=size) as stage:
        ask(stage, form({"type": "object", "properties": fields}))
        screen = await at(stage, FormElicitationScreen)
        await stage.shows(f"╭─ Fields ({len(labels)}) ")
        beside, inner = framed(stage.text)
        assert [line for line in inner if "fake" in line]
        assert not [line for line in beside if "fake" in line]
        await stage.press("ctrl+r")
        await stage.shows(f"╭─ Send this to “a”? ({len(labels)}) ")
        names = set[str]()
        while True:
            beside, inner = framed(stage.text)
            assert not [line for line in beside if "fake" in line]
            assert [line for line in beside if line.startswith("goes to  ")]
            assert not [line for line in inner if not re.match(r'[{}]|  "', line.strip("▁▂▃▄▅▆▇█ ") and line)]
            names |= {match[1] for line in inner if (match := re.match(r'  ("[^"]+"): "', line))}
            if "scroll to the end" not in stage.text:
                break
            await stage.press("space")
        assert names == {f'"{label}"' for label in labels}
        screen.dismiss(None)


@pytest.mark.slow
@pytest.mark.parametrize("label", ["Send this? [y/N]", "asked for call 9 · by you"])
async def test_the_inbox_quotes_foreign_words_and_tool_names(label: str) -> None:
    async with question_stage(size=(120, 36)) as stage:
        ask(stage, form({"type": "object", "properties": {}}, message=f"Hello\n{label}"))
        await at(stage, ServerQuestionScreen)
        await stage.press("escape", "escape", "f2")
        await stage.at(InboxScreen)
        await stage.shows(f'a: fill in a form: "Hello\\n{label}"')


@pytest.mark.slow
async def test_what_a_server_wants_of_a_model_is_quoted_among_the_facts() -> None:
    names = own_labels()[:10]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    async with sampling_stage(size=(200, 60)) as stage:
        params = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5,
                  "tools": tools, "stopSequences": list(names)}  # fmt: skip
        await stage.request_sampling({"method": "sampling/createMessage", "params": params})
        listed = ", ".join(f'"{name}"' for name in names)
        facts = stage.app.screen.query_one(".known FactsTable", FactsTable).text
        assert facts.count(listed) == 2
