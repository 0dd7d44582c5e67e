"""The official Python SDK's own example servers, of its newest version and of the one before the protocol's new era."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from mcphost.errors import CapabilityMissing
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.content import EmbeddedResource, MediaContent, TextContent
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.prompts import PromptRef
from mcphost.protocol.uri_templates import UriTemplate
from tests.conftest import Until
from tests.host.conftest import RecordingHost
from tests.whole.peers import SDKS, example, followed, meeting, read, running

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]  # a first run installs

TEMPLATE = "test://template/{id}/data"
PAGED = [("2.3.0", "stdio"), ("2.3.0", "http"), ("1.30.0", "stdio"), ("1.30.0", "sse")]
PNG = b"\x89PNG"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SDKS)
async def met(request: pytest.FixtureRequest) -> AsyncIterator[RecordingHost]:
    """A host whose server `e` is the SDK's everything-server, which speaks Streamable HTTP."""
    with running(partial(example, request.param, "everything-server"), "http") as entry:
        async with meeting(entry) as host:
            yield host


@pytest.mark.requirement("TOOLS-04", "TOOLS-05")
async def test_blocks_of_every_kind_are_read(met: RecordingHost) -> None:
    (audio,) = (await met.tool_calls.call("e", "test_audio_content", {}).result()).content
    assert isinstance(audio, MediaContent)
    assert audio.mime_type == "audio/wav"
    assert audio.content().startswith(b"RIFF")
    text, image, embedded = (await met.tool_calls.call("e", "test_multiple_content_types", {}).result()).content
    assert isinstance(text, TextContent)
    assert isinstance(image, MediaContent)
    assert image.content().startswith(PNG)
    assert isinstance(embedded, EmbeddedResource)
    assert json.loads(embedded.resource.text or "") == {"test": "data", "value": 123}


@pytest.mark.requirement("TOOLS-09")
async def test_a_tool_that_fails_says_so(met: RecordingHost) -> None:
    call = await met.run("e", "test_error_handling")
    assert call.state is CallState.FAILED
    assert call.outcome is not None
    assert "intentionally returns an error" in str(call.outcome.raw["content"])


async def test_progress_and_messages_come_while_a_tool_runs(met: RecordingHost) -> None:
    call, seen = await followed(met, "test_tool_with_progress", {})
    assert [(each.progress, each.total) for each in seen] == [(0, 100), (50, 100), (100, 100)]
    call = await met.run("e", "test_tool_with_logging")
    said = [record.text for record in met.logs.of_server("e") if record.call == call.number]
    assert said == ["Tool execution started", "Tool processing data", "Tool execution completed"]


@pytest.mark.requirement("SSE-04", "SSE-06")
async def test_a_stream_that_is_closed_during_a_call_is_taken_up_again(met: RecordingHost) -> None:
    call = await met.run("e", "test_reconnection")
    assert call.state is CallState.DONE
    assert "Reconnection test completed" in str(call.outcome and call.outcome.raw)
    said = [record.text for record in met.logs.of_server("e") if record.call == call.number]
    assert said == ["Before disconnect", "After reconnect"]


@pytest.mark.requirement("RES-03", "RES-07", "COMP-06")
async def test_resources_are_read_as_text_as_bytes_and_by_a_template(met: RecordingHost) -> None:
    assert (await read(met, "test://static-text")).text == "This is the content of the static text resource."
    assert (await read(met, "test://static-binary")).content().startswith(PNG)
    contents = await read(met, UriTemplate.read(TEMPLATE).expand({"id": "7"}))
    assert json.loads(contents.text or "")["id"] == "7"
    assert (await met.completion.complete("e", PromptRef("test_prompt_with_arguments"), "arg1", "x")).usable == ()


@pytest.mark.requirement("RES-04", "RES-06", "LOG-01")
async def test_a_level_is_set_and_only_what_may_be_watched_is_watched(met: RecordingHost) -> None:
    """The older version has what it takes to be watched, but does not say so."""
    session, uri = met.servers["e"].session, "test://watched-resource"
    assert session is not None
    await met.servers["e"].set_level(LogLevel.INFO)
    if session.server.capabilities["resources"]["subscribe"]:
        await met.resources.subscribe("e", uri)
        await met.resources.unsubscribe("e", uri)
    else:
        with pytest.raises(CapabilityMissing, match="subscribe"):
            await met.resources.subscribe("e", uri)
    assert dict(met.resources.subscriptions("e")) == {}


@pytest.mark.requirement("PROMPT-05")
async def test_prompts_hold_arguments_resources_and_pictures(met: RecordingHost) -> None:
    async def said(name: str, **arguments: str) -> list[object]:
        return [message.content for message in (await met.resources.get_prompt("e", name, arguments)).messages]

    (answered,) = await said("test_prompt_with_arguments", arg1="one", arg2="two")
    assert isinstance(answered, TextContent)
    assert answered.text == "Prompt with arguments: arg1='one', arg2='two'"
    embedded, _ = await said("test_prompt_with_embedded_resource", resourceUri="test://mine")
    assert isinstance(embedded, EmbeddedResource)
    assert embedded.resource.uri == "test://mine"
    picture, _ = await said("test_prompt_with_image")
    assert isinstance(picture, MediaContent)
    assert picture.content().startswith(PNG)


@pytest.mark.requirement("PAGE-01", "PAGE-02", "PROMPT-01", "RES-01")
@pytest.mark.parametrize(("version", "transport"), PAGED)
async def test_lists_of_many_pages_are_read_to_their_end(version: str, transport: str) -> None:
    with running(partial(example, version, "simple-pagination"), transport) as entry:
        async with meeting(entry) as host:
            catalog = host.catalog
            assert [len(them) for them in (catalog.tools(), catalog.resources(), catalog.prompts())] == [25, 30, 20]
            assert "tool_25" in str((await host.tool_calls.call("e", "tool_25", {}).result()).raw)
            assert "sample content" in ((await read(host, "file:///path/to/resource_30.txt")).text or "")


@pytest.mark.requirement("TASK-02", "TASK-03", "TASK-05")
async def test_a_task_of_the_official_sdk_is_followed_collected_and_stopped(until: Until) -> None:
    with running(partial(example, "1.30.0", "simple-task"), "http") as entry:
        async with meeting(entry) as host:
            call, stopped = (host.tool_calls.call("e", "long_running_task", {}) for _ in range(2))
            await until(lambda: call.task and stopped.task)
            stopped.cancel()
            assert "Task completed!" in str((await call.result()).raw)
            assert call.task is not None
            assert stopped.task is not None
            states = {task.task_id: task.status for task in (await host.tasks.listed("e")).items}
            assert (states[call.task.task_id], states[stopped.task.task_id]) == ("completed", "cancelled")


async def test_structured_content_that_does_not_fit_its_schema_is_told() -> None:
    """A time without a zone is none of the format date-time."""
    with running(partial(example, "2.3.0", "structured-output-lowlevel"), "stdio") as entry:
        async with meeting(entry) as host:
            call = await host.run("e", "get_weather", {"city": "Oslo"})
            assert call.state is CallState.DONE
            assert call.validity is not None
            assert [problem.path for problem in call.validity.problems] == ["timestamp"]
