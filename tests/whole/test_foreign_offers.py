"""A server of another project: every feature it has, through a host, over each of its transports."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from mcphost.errors import InvalidArguments
from mcphost.host.logs import LogSource
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.content import EmbeddedResource, MediaContent, ResourceLink, TextContent
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.prompts import PromptRef, TemplateRef
from mcphost.protocol.uri_templates import UriTemplate
from tests.conftest import Until
from tests.host.conftest import RecordingHost
from tests.whole.peers import PEERS, TRANSPORTS, followed, meeting, read, running

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]  # a first run installs

DOCUMENT = "demo://resource/static/document/architecture.md"
TEMPLATE = "demo://resource/dynamic/{}/{{resourceId}}"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TRANSPORTS)
async def met(request: pytest.FixtureRequest) -> AsyncIterator[RecordingHost]:
    """A host whose server `e` is server-everything over each of its transports, for all tests that follow."""
    with running(PEERS["everything"], request.param) as entry:
        async with meeting(entry) as host:
            yield host


async def test_instructions_and_claims_of_the_server_are_kept(met: RecordingHost) -> None:
    session = met.servers["e"].session
    assert session is not None
    assert session.server.server_info.title == "Everything Reference Server"
    assert (session.server.instructions or "").startswith("# Everything Server")
    echo = met.catalog.tool("e", "echo")
    assert (echo.label, "read-only" in echo.claims) == ("Echo Tool", True)
    assert echo.claims == ("read-only", "idempotent", "closed-world")


@pytest.mark.requirement("RES-01", "RES-02", "RES-03", "RES-07", "COMP-01")
async def test_listed_resources_and_those_of_templates_are_read(met: RecordingHost) -> None:
    assert met.catalog.resources()[0].resource.label == "architecture.md"
    document = await read(met, DOCUMENT)
    assert document.mime_type == "text/markdown"
    assert document.text is not None
    assert document.text.startswith("#")
    for kind in ("text", "blob"):
        template = TEMPLATE.format(kind)
        assert template in [offered.template.uri_template for offered in met.catalog.templates()]
        (choice,) = (await met.completion.complete("e", TemplateRef(template), "resourceId", "1")).usable
        contents = await read(met, UriTemplate.read(template).expand({"resourceId": choice}))
        assert contents.content().startswith(b"Resource 1:")
        assert (contents.text is None) is (kind == "blob")


@pytest.mark.requirement("PROMPT-03", "PROMPT-09", "COMP-03")
async def test_completion_of_a_prompt_knows_the_other_arguments(met: RecordingHost) -> None:
    name = "completable-prompt"
    with pytest.raises(InvalidArguments, match="name: is required"):
        await met.resources.get_prompt("e", name, {"department": "Sales"})
    (department,) = (await met.completion.complete("e", PromptRef(name), "department", "Sal")).usable
    chosen = {"department": department}
    names = await met.completion.suggest("e", PromptRef(name), "name", "", chosen)
    assert names is not None
    assert names.usable == ("David", "Eve", "Frank")
    (message,) = (await met.resources.get_prompt("e", name, {**chosen, "name": names.usable[1]})).messages
    assert isinstance(message.content, TextContent)
    assert message.content.text == "Please promote Eve to the head of the Sales team."


@pytest.mark.requirement("PROMPT-05", "TOOLS-08")
async def test_resources_embedded_in_prompts_and_results_are_kept(met: RecordingHost) -> None:
    chosen = {"resourceType": "Text", "resourceId": "2"}
    said, embedded = (await met.resources.get_prompt("e", "resource-prompt", chosen)).messages
    assert isinstance(said.content, TextContent)
    assert isinstance(embedded.content, EmbeddedResource)
    assert (embedded.content.resource.text or "").startswith("Resource 2:")
    blob = {"resourceType": "Blob", "resourceId": 3}
    _, carried, _ = (await met.tool_calls.call("e", "get-resource-reference", blob).result()).content
    assert isinstance(carried, EmbeddedResource)
    assert carried.resource.content().startswith(b"Resource 3:")


@pytest.mark.requirement("TOOLS-06")
async def test_links_in_a_result_are_followed(met: RecordingHost) -> None:
    _, *links = (await met.tool_calls.call("e", "get-resource-links", {"count": 4}).result()).content
    assert len(links) == 4
    for link in links:
        assert isinstance(link, ResourceLink)
        assert (await read(met, link.uri)).uri == link.uri


@pytest.mark.requirement("TOOLS-04", "TOOLS-25")
async def test_blocks_keep_their_order_and_say_for_whom_they_are(met: RecordingHost) -> None:
    asked = {"messageType": "error", "includeImage": True}
    text, image = (await met.tool_calls.call("e", "get-annotated-message", asked).result()).content
    assert isinstance(text, TextContent)
    assert isinstance(image, MediaContent)
    assert text.annotations is not None
    assert image.annotations is not None
    assert (text.annotations.priority, text.annotations.audience) == (1.0, ["user", "assistant"])
    assert (image.annotations.priority, image.annotations.audience) == (0.5, ["user"])
    assert image.content().startswith(b"\x89PNG")


async def test_structured_content_is_checked_by_the_schema_that_was_listed(met: RecordingHost) -> None:
    call = await met.run("e", "get-structured-content", {"location": "Chicago"})
    assert call.outcome is not None
    assert call.outcome.structured.keys() == {"temperature", "conditions", "humidity"}
    assert call.validity is not None
    assert call.validity.valid


async def test_progress_comes_step_by_step(met: RecordingHost) -> None:
    call, seen = await followed(met, "trigger-long-running-operation", {"duration": 0.1, "steps": 4})
    assert seen == [Progress(step, 4) for step in (1, 2, 3, 4)]
    assert call.state is CallState.DONE


@pytest.mark.requirement("CANC-03", "CANC-05", "HTTP-24")
async def test_a_cancelled_call_is_withdrawn_and_the_session_continues(met: RecordingHost, until: Until) -> None:
    call = met.tool_calls.call("e", "trigger-long-running-operation", {"duration": 2, "steps": 40})
    await until(lambda: call.progress)
    call.cancel()
    await met.end_of(call)
    assert call.state is CallState.CANCELLED
    assert (await met.run("e", "echo", {"message": "still there"})).state is CallState.DONE
    frames = [frame for frame in met.traffic.since(0) if frame.sent]
    (taken_back,) = (frame for frame in frames if frame.method == "notifications/cancelled")
    (asked,) = (frame for frame in frames if frame.method == "tools/call" and frame.call == call.number)
    assert taken_back.facts.about == asked.id


@pytest.mark.requirement("LOG-01", "RES-06")
async def test_only_messages_of_the_level_asked_for_are_sent(met: RecordingHost, until: Until) -> None:
    """The server logs each subscription at the level info."""

    uri = "demo://resource/static/document/features.md"

    def said(words: str) -> list[LogLevel]:
        lines = [it for it in met.logs.of_server("e") if it.source is LogSource.SERVER and uri in it.text]
        return [it.level for it in lines if f"Received {words} Resource request" in it.text]

    await met.servers["e"].set_level(LogLevel.ERROR)
    await met.resources.subscribe("e", uri)
    await met.servers["e"].set_level(LogLevel.INFO)
    await met.resources.unsubscribe("e", uri)
    await until(lambda: said("Unsubscribe"))
    assert said("Unsubscribe") == [LogLevel.INFO]
    assert not said("Subscribe")


async def test_later_tools_and_resources_are_found(met: RecordingHost, until: Until) -> None:
    """Some of its tools are there only after the handshake, and a resource for each file it compressed."""
    await until(lambda: "simulate-research-query" in {offered.tool.name for offered in met.catalog.tools("e")})
    asked = {"name": "hello.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}
    (link,) = (await met.tool_calls.call("e", "gzip-file-as-resource", asked).result()).content
    assert isinstance(link, ResourceLink)
    await until(lambda: met.catalog.resource("e", link.uri), seconds=15)
    assert gzip.decompress((await read(met, link.uri)).content()) == b"hello"


@pytest.mark.requirement("RES-04", "RES-05", "RES-06")
async def test_a_subscribed_resource_is_read_again_by_itself(met: RecordingHost, until: Until) -> None:
    watch = await met.resources.subscribe("e", DOCUMENT)
    await met.run("e", "toggle-subscriber-updates")
    await until(lambda: watch.updates and watch.result, seconds=15)
    assert watch.error is None
    await met.resources.unsubscribe("e", DOCUMENT)
    assert dict(met.resources.subscriptions("e")) == {}


@pytest.mark.requirement("TASK-02", "TASK-03", "TASK-06")
async def test_a_tool_that_runs_as_a_task_reports_and_can_be_cancelled(met: RecordingHost, until: Until) -> None:
    call = met.tool_calls.call("e", "simulate-research-query", {"topic": "tides"})
    stopped = met.tool_calls.call("e", "simulate-research-query", {"topic": "winds"})
    await until(lambda: call.task and stopped.task)
    stopped.cancel()
    assert call.doing.startswith("running as a task, working: ")
    result = await call.result()
    assert call.state is CallState.DONE
    assert "tides" in str(result.raw)
    states = {task.task_id: task.status for task in (await met.tasks.listed("e")).items}
    assert call.task is not None
    assert stopped.task is not None
    assert (states[call.task.task_id], states[stopped.task.task_id]) == ("completed", "cancelled")
