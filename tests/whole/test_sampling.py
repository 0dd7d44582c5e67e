"""A server and model endpoints of other projects, with mcphost between them."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from mcphost.composition import dependencies
from mcphost.config import Config, Values
from mcphost.host.consent.questions import Answer, SamplingQuestion
from mcphost.host.sampling.request import SamplingEdit, SamplingReply, SamplingState
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.protocol.models.sampling import SamplingMessage, text_block
from tests.host.conftest import RecordingHost
from tests.host.server_requests.pending import NO, YES, Person, Step
from tests.whole.model_endpoints import aimock
from tests.whole.peers import everything, running

pytestmark = pytest.mark.timeout(400)  # a first run installs

FIXTURES = [
    {"match": {"userMessage": "say hello"}, "response": {"content": "Hello, keeper of the light."}},
    {"match": {"userMessage": "say more"}, "response": {"content": "More words than one."}},
    {
        "match": {"userMessage": "no room"},
        "response": {"error": {"message": "full", "type": "overloaded_error"}, "status": 404},
    },
]
VENDORS = ("anthropic", "openai", "ollama")
TOOL = "trigger-sampling-request"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """`[models]` with an entry for each vendor, all at one endpoint that was scripted."""
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as url:
        yield {
            vendor: {"provider": vendor, "model": f"{vendor}-model", "base_url": url, "api_key": "${MODEL_KEY}"}
            for vendor in VENDORS
        }


@pytest.fixture(scope="module", params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Any]]:
    with running(everything, request.param) as entry:
        yield entry


class Meeting(RecordingHost):
    """A host whose server `e` asks for models' answers."""

    person: Person

    async def trigger(self, prompt: str, tokens: int = 50) -> Any:
        """Return the answer as the server reports it, or its error."""
        call = await self.run("e", TOOL, {"prompt": prompt, "maxTokens": tokens})
        assert call.outcome is not None, call.error
        (block,) = call.outcome.raw["content"]
        text: str = block["text"]
        return text if call.outcome.is_error else json.loads(text.partition("\n")[2])


@asynccontextmanager
async def meeting(
    server: Mapping[str, Any], models: Mapping[str, Any], *steps: Step, vendor: str = "openai", **sampling: Any
) -> AsyncIterator[Meeting]:
    person = Person(*steps)
    values = Values({**os.environ, "MODEL_KEY": "sk-canary-0123456789"})
    made = dependencies(person, values, answers=SCREEN_KINDS)
    # if it knew of roots, it would ask for them a moment after its start
    entry = {**server, "sampling": {"model": vendor, **sampling}, "capabilities": {"roots": False}}
    config = Config.model_validate(
        {"servers": {"e": entry}, "models": models, "policy": {"default": "allow"}}, strict=False
    )
    parts = {name: getattr(made, name) for name in ("open_transport", "traffic", "models", "close", "answers", "mask")}
    async with Meeting(config, person, **parts) as host:
        host.person = person
        await host.servers.ready()
        yield host


@pytest.mark.requirement("SAMP-02", "SAMP-03", "SAMP-09")
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_real_server_gets_a_real_endpoints_answer(
    server: Mapping[str, Any], models: Mapping[str, Any], vendor: str
) -> None:
    async with meeting(server, models, YES, YES, vendor=vendor) as host:
        result = await host.trigger("say hello")
        assert result["content"] == {"type": "text", "text": "Hello, keeper of the light."}
        assert (result["role"], result["stopReason"]) == ("assistant", "endTurn")
        sampling = host.sampling.all[1]
        assert (sampling.request.system, sampling.request.temperature) == ("You are a helpful test server.", 0.7)
        assert (sampling.tool, sampling.state) == (TOOL, SamplingState.SENT)
        assert host.sampling.usage("e").tokens > 0
        assert sampling.answered_by == f"{vendor}-model"


@pytest.mark.requirement("SAMP-02", "SAMP-04")
async def test_a_real_server_receives_edits_refusals_and_failures(
    server: Mapping[str, Any], models: Mapping[str, Any]
) -> None:
    async def edit(question: SamplingQuestion) -> Answer:
        request = host.sampling.all[question.sampling].request
        messages = (SamplingMessage.create("user", text_block("say more")),)
        return Answer(True, content=SamplingEdit(replace(request, messages=messages)))

    steps: Sequence[Step] = [
        *(edit, YES),
        *(YES, Answer(True, content=SamplingReply.of("In my words"))),
        NO,
        *(YES, NO),
        *(YES, YES),
    ]
    async with meeting(server, models, *steps) as host:
        assert (await host.trigger("say hello"))["content"]["text"] == "More words than one."
        assert (await host.trigger("say hello"))["content"]["text"] == "In my words"
        for _ in range(2):
            assert "User rejected sampling request: no" in await host.trigger("say hello")
        assert "the language model gave no answer" in await host.trigger("no room")
        assert host.person.steps == []


async def test_a_real_server_is_answered_by_rule(server: Mapping[str, Any], models: Mapping[str, Any]) -> None:
    async with meeting(server, models, policy="allow", vendor="anthropic") as host:
        assert (await host.trigger("say hello"))["content"]["text"] == "Hello, keeper of the light."
        assert host.person.asked == []
