"""Servers on FastMCP and on the official Python SDK: every feature they have, through a host, over each transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from mcphost.errors import CapabilityMissing, InvalidArguments
from mcphost.host.catalog import CatalogKind
from mcphost.host.logs import LogSource
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.content import EmbeddedResource, ResourceLink, TextContent
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.prompts import PromptRef, TemplateRef
from mcphost.protocol.uri_templates import UriTemplate
from tests.conftest import Until
from tests.host.conftest import RecordingHost
from tests.whole.peers import PEERS, TRANSPORTS, followed, meeting, read, running

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]  # a first run installs

MEETINGS = [(name, transport) for name in ("fastmcp", "sdk") for transport in TRANSPORTS]
TEMPLATE = "memo://{day}/{part}"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MEETINGS, ids="-".join)
async def met(request: pytest.FixtureRequest) -> AsyncIterator[RecordingHost]:
    """A host whose server `e` is one of these, over one transport, for all tests that follow."""
    name, transport = request.param
    with running(PEERS[name], transport) as entry:
        async with meeting(entry) as host:
            yield host


def name_of(host: RecordingHost) -> str:
    session = host.servers["e"].session
    assert session is not None
    return session.server.server_info.name


@pytest.mark.requirement("LIFE-01", "LIFE-03")
async def test_what_a_server_says_of_itself_and_of_what_it_offers_is_kept(met: RecordingHost) -> None:
    session = met.servers["e"].session
    assert session is not None
    assert session.revision.version == "2025-11-25"  # both speak a later one too, and this one when greeted with it
    assert next(frame for frame in met.traffic.since(0) if frame.sent and frame.method).method == "initialize"
    assert session.server.instructions == "Ask for the weather first."
    weather = met.catalog.tool("e", "weather")
    assert (weather.label, weather.claims) == ("The weather", ("read-only", "closed-world"))
    today = met.catalog.resource("e", "memo://today")
    assert today is not None
    assert today.annotations is not None
    assert (today.label, today.annotations.audience, today.annotations.priority) == ("Today", ["user"], 0.8)
    (template,) = met.catalog.templates("e")
    assert (template.template.uri_template, template.template.label) == (TEMPLATE, "A part of a day")
    plan = met.catalog.prompt("e", "plan")
    assert (plan.label, [each.name for each in plan.arguments or ()]) == ("Plan a day", ["day", "part"])
    for offered in (weather, today, plan):
        assert offered.definition()["icons"][0]["mimeType"] == "image/svg+xml"


@pytest.mark.requirement("PAGE-01", "PAGE-04")
async def test_a_list_of_several_pages_is_read_to_its_end(met: RecordingHost) -> None:
    """FastMCP was told to put two on a page; MCPServer has but one."""
    await met.resources.relist("e", CatalogKind.TOOLS)
    sent = [frame for frame in met.traffic.since(0) if frame.sent and frame.method == "tools/list"]
    assert any(b'"cursor"' in frame.data for frame in sent) is (name_of(met) == "fastmcp")
    names = {offered.tool.name for offered in met.catalog.tools("e")}
    assert names >= {"weather", "count", "wait", "ended", "say", "show", "fail", "learn"}


async def test_structured_content_is_checked_by_the_schema_that_was_listed(met: RecordingHost) -> None:
    call = await met.run("e", "weather", {"city": "Paris"})
    assert call.outcome is not None
    assert call.outcome.structured == {"city": "Paris", "degrees": 21.5}
    assert call.validity is not None
    assert call.validity.valid


@pytest.mark.requirement("TOOLS-09")
async def test_a_tool_that_fails_says_so(met: RecordingHost) -> None:
    call = await met.run("e", "fail")
    assert call.state is CallState.FAILED
    with pytest.raises(InvalidArguments, match="city"):
        await met.tool_calls.call("e", "weather", {}).result()


@pytest.mark.requirement("TOOLS-06", "TOOLS-08", "RES-03")
async def test_a_link_is_followed_and_an_embedded_resource_is_there(met: RecordingHost) -> None:
    link, embedded = (await met.tool_calls.call("e", "show", {}).result()).content
    assert isinstance(link, ResourceLink)
    assert (link.label, link.mime_type) == ("The seal", "image/png")
    assert (await read(met, link.uri)).content() == bytes(range(256))
    assert isinstance(embedded, EmbeddedResource)
    assert embedded.resource.text == (await read(met, embedded.resource.uri)).text == "# Today"


@pytest.mark.requirement("RES-07", "COMP-01", "COMP-03")
async def test_a_template_is_filled_in_by_suggestions_that_know_each_other(met: RecordingHost) -> None:
    (day,) = (await met.completion.complete("e", TemplateRef(TEMPLATE), "day", "mon")).usable
    parts = (await met.completion.complete("e", TemplateRef(TEMPLATE), "part", "", {"day": day})).usable
    assert (day, parts) == ("monday", ("morning", "noon"))
    contents = await read(met, UriTemplate.read(TEMPLATE).expand({"day": day, "part": parts[1]}))
    assert contents.text == "notes of monday noon"


@pytest.mark.requirement("PROMPT-05", "COMP-03")
async def test_a_prompt_is_filled_in_the_same_way_and_holds_a_resource(met: RecordingHost) -> None:
    parts = (await met.completion.complete("e", PromptRef("plan"), "part", "ni", {"day": "sunday"})).usable
    said = (await met.resources.get_prompt("e", "plan", {"day": "sunday", "part": parts[0]})).messages
    assert [message.role for message in said] == ["user", "assistant"]
    assert isinstance(said[0].content, TextContent)
    assert said[0].content.text == "Plan sunday night."
    assert isinstance(said[1].content, EmbeddedResource)
    assert said[1].content.resource.uri == "memo://today"


async def test_progress_comes_step_by_step(met: RecordingHost) -> None:
    call, seen = await followed(met, "count", {"steps": 3})
    assert seen == [Progress(step, 3, f"step {step}") for step in (1, 2, 3)]
    assert call.outcome is not None
    assert call.outcome.structured == {"steps": 3}


@pytest.mark.requirement("CANC-03", "HTTP-24")
async def test_a_cancelled_call_is_stopped_on_the_server(met: RecordingHost, until: Until) -> None:
    call = met.tool_calls.call("e", "wait", {"name": "tides"})
    await until(lambda: call.progress)
    call.cancel()
    await met.end_of(call)
    assert call.state is CallState.CANCELLED
    async with asyncio.timeout(30):
        while "tides" not in (await met.tool_calls.call("e", "ended", {}).result()).structured["result"]:
            pass


@pytest.mark.requirement("LOG-01")
@pytest.mark.parametrize(("least", "levels"), [("debug", ["debug", "warning", "error"]), ("error", ["error"])])
async def test_only_messages_of_the_level_asked_for_are_sent(
    met: RecordingHost, least: str, levels: list[str], until: Until
) -> None:
    level = LogLevel.read(least)
    assert level is not None
    await met.servers["e"].set_level(level)
    text = f"at least {least}"

    def said() -> list[str]:
        found = (it for it in met.logs.of_server("e") if it.source is LogSource.SERVER and text in it.text)
        return [record.level.wire for record in found if record.logger == "speaker"]

    await met.run("e", "say", {"text": text})
    await until(lambda: "error" in said())
    assert said() == levels


async def test_what_is_offered_later_is_found_by_itself(met: RecordingHost, until: Until) -> None:
    await met.run("e", "learn")
    await until(lambda: met.catalog.resource("e", "memo://later"), seconds=15)
    await until(lambda: "later" in {offered.tool.name for offered in met.catalog.tools("e")}, seconds=15)
    await until(lambda: len(met.catalog.prompts("e")) == 2, seconds=15)
    later = await met.run("e", "later")
    assert later.state is CallState.DONE
    assert (await read(met, "memo://later")).text == "later"


@pytest.mark.requirement("RES-04", "RES-05", "RES-06")
async def test_a_watched_resource_is_read_again_when_it_changes(met: RecordingHost, until: Until) -> None:
    if name_of(met) == "fastmcp":
        with pytest.raises(CapabilityMissing, match="subscribe"):
            await met.resources.subscribe("e", "memo://today")
        return
    watch = await met.resources.subscribe("e", "memo://board")
    await met.run("e", "write", {"text": "news"})
    await until(lambda: watch.result and watch.result.raw["contents"][0]["text"] == "news")
    await met.resources.unsubscribe("e", "memo://board")
    await met.run("e", "write", {"text": "more"})
    notified = [frame for frame in met.traffic.since(0) if frame.method == "notifications/resources/updated"]
    assert len(notified) == watch.updates == 1


@pytest.mark.requirement("TASK-01")
async def test_a_tool_for_the_tasks_of_a_later_revision_is_answered_at_once(met: RecordingHost) -> None:
    """FastMCP has no tasks for a session of 2025-11-25, and MCPServer none at all."""
    tool = "ponder" if name_of(met) == "fastmcp" else "ended"
    call = await met.run("e", tool, as_task=True)
    assert (call.state, call.task) == (CallState.DONE, None)
