"""What a server nobody here wrote offers besides tools, through a host, over each of its transports."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Values
from mcphost.errors import InvalidArguments
from mcphost.host.calls import CallState
from mcphost.host.catalog import Kind
from mcphost.protocol.templates import UriTemplate
from mcphost.protocol.types import PromptRef, ResourceContents, TemplateRef, Text
from mcphost.wiring import fittings
from tests.conftest import Until
from tests.host.conftest import RecordingHost, ScriptedApprover, settings
from tests.whole.test_http_servers import everything as listening
from tests.whole.test_http_servers import free_port

DOCUMENT = "demo://resource/static/document/architecture.md"
TEMPLATE = "demo://resource/dynamic/{}/{{resourceId}}"


@pytest.fixture(params=["stdio", "streamableHttp", "sse"])
async def everything(request: pytest.FixtureRequest, node_modules: Path) -> AsyncIterator[RecordingHost]:
    """A host whose server `e` is server-everything over each of its transports, all of its lists read."""
    mode, port = request.param, free_port()
    program = node_modules / "@modelcontextprotocol/server-everything/dist/index.js"
    path = "sse" if mode == "sse" else "mcp"
    entry: dict[str, Any] = {"url": f"http://127.0.0.1:{port}/{path}"}
    if mode == "stdio":
        entry = {"command": "node", "args": [str(program), "stdio"], "startup_timeout_sec": 40}
    config = settings(policy={"default": "allow"}, e=entry)
    opener = fittings(ScriptedApprover(), Values(os.environ)).open_transport
    with nullcontext() if mode == "stdio" else listening(node_modules, mode, port):
        async with RecordingHost(config, open_transport=opener) as running:
            await running.ready()
            for kind in Kind:
                await running.current("e", kind)
            yield running


async def read(running: RecordingHost, uri: str) -> ResourceContents:
    (contents,) = (await running.read_resource("e", uri)).contents
    assert isinstance(contents, ResourceContents)
    return contents


@pytest.mark.requirement("RES-01", "RES-02", "RES-03", "RES-07", "COMP-01")
async def test_listed_resources_and_those_of_templates_are_read(everything: RecordingHost) -> None:
    assert everything.catalog.resources()[0].resource.label == "architecture.md"
    document = await read(everything, DOCUMENT)
    assert document.mime_type == "text/markdown"
    assert document.text is not None
    assert document.text.startswith("#")
    for kind in ("text", "blob"):
        template = TEMPLATE.format(kind)
        assert template in [offered.template.uri_template for offered in everything.catalog.templates()]
        (choice,) = (await everything.complete("e", TemplateRef(template), "resourceId", "1")).usable
        contents = await read(everything, UriTemplate.read(template).expand({"resourceId": choice}))
        assert contents.content().startswith(b"Resource 1:")
        assert (contents.text is None) is (kind == "blob")


@pytest.mark.requirement("PROMPT-03", "PROMPT-09", "COMP-03")
async def test_a_prompt_is_filled_by_completion_that_knows_the_other_arguments(everything: RecordingHost) -> None:
    name = "completable-prompt"
    with pytest.raises(InvalidArguments, match="name: is required"):
        await everything.get_prompt("e", name, {"department": "Sales"})
    (department,) = (await everything.complete("e", PromptRef(name), "department", "Sal")).usable
    chosen = {"department": department}
    names = await everything.suggest("e", PromptRef(name), "name", "", chosen)
    assert names is not None
    assert names.usable == ("David", "Eve", "Frank")
    (message,) = (await everything.get_prompt("e", name, {**chosen, "name": names.usable[1]})).messages
    assert isinstance(message.content, Text)
    assert message.content.text == "Please promote Eve to the head of the Sales team."


@pytest.mark.requirement("RES-04", "RES-05", "RES-06")
async def test_a_subscribed_resource_is_read_again_by_itself(everything: RecordingHost, until: Until) -> None:
    watch = await everything.subscribe("e", DOCUMENT)
    await everything.run("e", "toggle-subscriber-updates")
    await until(lambda: watch.updates and watch.result, seconds=15)
    assert watch.error is None
    await everything.unsubscribe("e", DOCUMENT)
    assert dict(everything.watches("e")) == {}


@pytest.mark.requirement("TASK-02", "TASK-03", "TASK-06")
async def test_a_tool_that_runs_as_a_task_reports_and_can_be_cancelled(everything: RecordingHost, until: Until) -> None:
    call = everything.call_tool("e", "simulate-research-query", {"topic": "tides"})
    stopped = everything.call_tool("e", "simulate-research-query", {"topic": "winds"})
    await until(lambda: call.task and stopped.task)
    stopped.cancel()
    assert call.doing.startswith("running as a task, working: ")
    result = await call.result()
    assert call.state is CallState.DONE
    assert "tides" in str(result.raw)
    states = {task.task_id: task.status for task in (await everything.list_tasks("e")).items}
    assert call.task is not None
    assert stopped.task is not None
    assert (states[call.task.task_id], states[stopped.task.task_id]) == ("completed", "cancelled")
