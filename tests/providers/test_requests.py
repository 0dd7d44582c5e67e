"""Requests to models, in the form of each vendor."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from mcphost.errors import ModelRefused
from mcphost.protocol.models.sampling import CreateMessageRequest, ToolChoice
from mcphost.providers import anthropic, ollama, openai
from mcphost.providers.base import ModelCapabilities, ModelRequest
from mcphost.providers.tool_names import NameMapping, tool_names
from tests.providers.endpoints import ASKED, HELLO, VENDORS, meeting, refuses, streams
from tests.providers.messages import AUDIO, BLOB, EMBEDDED, IMAGE, LINK, TEXT, USE, asking, result
from tests.transports.http.http_connection import Talk


def to_anthropic(request: ModelRequest) -> dict[str, Any]:
    return anthropic.body("m", request, tool_names(request), cache=False)


def to_openai(request: ModelRequest) -> dict[str, Any]:
    return openai.body("m", request, tool_names(request), openai.Dialect())


def to_ollama(request: ModelRequest) -> dict[str, Any]:
    return ollama.body("m", request, tool_names(request))


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PICTURE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.requirement("SAMP-10", "SAMP-16")
@pytest.mark.parametrize(
    ("messages", "for_anthropic", "for_openai", "for_ollama"),
    [
        ([("user", TEXT)],
         [{"role": "user", "content": [TEXT]}],
         [{"role": "user", "content": "look"}],
         [{"role": "user", "content": "look"}]),
        ([("user", [TEXT, IMAGE, TEXT])],
         [{"role": "user", "content": [TEXT, PICTURE, TEXT]}],
         [{"role": "user", "content": [TEXT, PICTURE_URL, TEXT]}],
         [{"role": "user", "content": "look\nlook", "images": ["AAAA"]}]),
        ([("user", AUDIO)],
         None,
         [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}]}],
         None),
        ([("assistant", [TEXT, USE])],
         [{"role": "assistant", "content": [
             TEXT, {"type": "tool_use", "id": "a_1_1", "name": "files_read_all_1", "input": {"p": "é"}}]}],
         [{"role": "assistant", "content": "look", "tool_calls": [{"id": "a_1_1", "type": "function", "function": {
             "name": "files_read_all_1", "arguments": '{"p": "é"}'}}]}],
         [{"role": "assistant", "content": "look", "tool_calls": [
             {"id": "a_1_1", "function": {"name": "files_read_all_1", "arguments": {"p": "é"}}}]}]),
        ([("assistant", USE), ("user", [result(TEXT), TEXT])],
         None,
         None,
         [{"role": "assistant", "content": "", "tool_calls": [
             {"id": "a_1_1", "function": {"name": "files_read_all_1", "arguments": {"p": "é"}}}]},
          {"role": "tool", "content": "look", "tool_name": "files_read_all_1", "tool_call_id": "a_1_1"},
          {"role": "user", "content": "look"}]),
        ([("user", result(TEXT, LINK, EMBEDDED, BLOB, isError=True))],
         [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a_1_1", "is_error": True, "content": [
             TEXT, {"type": "text", "text": "(link to resource one: x:/1)"},
             {"type": "text", "text": "Resource x:/2:\ninside"},
             {"type": "text", "text": "(resource x:/3, image/tiff)"}]}]}],
         [{"role": "tool", "tool_call_id": "a_1_1", "content":
             "The tool reports an error:\nlook\n(link to resource one: x:/1)\nResource x:/2:\ninside\n"
             "(resource x:/3, image/tiff)"}],
         [{"role": "tool", "tool_call_id": "a_1_1", "content":
             "The tool reports an error:\nlook\n(link to resource one: x:/1)\nResource x:/2:\ninside\n"
             "(resource x:/3, image/tiff)"}]),
        ([("user", result(TEXT, IMAGE))],
         [{"role": "user", "content": [
             {"type": "tool_result", "tool_use_id": "a_1_1", "is_error": False, "content": [TEXT, PICTURE]}]}],
         [{"role": "tool", "tool_call_id": "a_1_1", "content": "look\n(image, image/png)"},
          {"role": "user", "content": [{"type": "text", "text": "Pictures from the tools:"}, PICTURE_URL]}],
         [{"role": "tool", "tool_call_id": "a_1_1", "content": "look\n(image, image/png)"},
          {"role": "user", "content": "Pictures from the tools:", "images": ["AAAA"]}]),
        ([("user", result(structuredContent={"n": 1}))],
         [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a_1_1", "is_error": False,
                                        "content": [{"type": "text", "text": '{"n": 1}'}]}]}],
         [{"role": "tool", "tool_call_id": "a_1_1", "content": '{"n": 1}'}],
         [{"role": "tool", "tool_call_id": "a_1_1", "content": '{"n": 1}'}]),
        ([("user", {"type": "text", "text": " "}), ("user", TEXT)],
         [{"role": "user", "content": [TEXT]}],
         [{"role": "user", "content": " "}, {"role": "user", "content": "look"}],
         [{"role": "user", "content": " "}, {"role": "user", "content": "look"}]),
    ],
)  # fmt: skip
def test_messages_have_the_vendors_form(messages: Any, for_anthropic: Any, for_openai: Any, for_ollama: Any) -> None:
    request = asking(*messages)
    for told, expected in (
        (to_anthropic(request), for_anthropic),
        (to_openai(request), for_openai),
        (to_ollama(request), for_ollama),
    ):
        assert expected is None or told["messages"] == expected


@pytest.mark.requirement("SAMP-07", "SAMP-08")
def test_a_servers_wishes_reach_the_model_within_the_users_limit() -> None:
    params = {
        "messages": [{"role": "user", "content": TEXT}],
        "maxTokens": 5000,
        "systemPrompt": "be brief",
        "temperature": 1.5,
        "stopSequences": ["", "END", " ", "3", "4", "5"],
        "metadata": {"user_id": "u", "other": 1},
    }
    request = ModelRequest.from_sampling(CreateMessageRequest.read(params), most_tokens=4096)
    theirs, ours, local = to_anthropic(request), to_openai(request), to_ollama(request)
    assert (theirs["max_tokens"], ours["max_tokens"]) == (4096, 4096)
    assert (theirs["system"], ours["messages"][0]) == ("be brief", {"role": "system", "content": "be brief"})
    assert local["messages"][0] == ours["messages"][0]
    assert local["options"] == {"num_predict": 4096, "temperature": 1.5, "stop": ["END", " ", "3", "4", "5"]}
    assert (theirs["temperature"], ours["temperature"]) == (1.0, 1.5)
    assert (theirs["stop_sequences"], ours["stop"]) == (["END", "3", "4", "5"], ["END", " ", "3", "4"])
    assert theirs["metadata"] == {"user_id": "u"}
    small = ModelRequest.from_sampling(CreateMessageRequest.read({**params, "maxTokens": 5}), most_tokens=4096)
    assert (to_anthropic(small)["max_tokens"], to_openai(small)["max_tokens"]) == (5, 5)


@pytest.mark.requirement("SAMP-18")
@pytest.mark.parametrize(
    ("choice", "for_anthropic", "for_openai"),
    [
        (ToolChoice(), {"type": "auto"}, "auto"),
        (ToolChoice("required"), {"type": "any"}, "required"),
        (ToolChoice("none"), {"type": "none"}, "none"),
        (ToolChoice("required", "files.read/all"), {"type": "tool", "name": "files_read_all_1"},
         {"type": "function", "function": {"name": "files_read_all_1"}}),
    ],
)  # fmt: skip
def test_tools_and_tool_choice_are_sent_faithfully(choice: ToolChoice, for_anthropic: Any, for_openai: Any) -> None:
    request = replace(ASKED, tool_choice=choice)
    theirs, ours = to_anthropic(request), to_openai(request)
    assert (theirs["tool_choice"], ours["tool_choice"]) == (for_anthropic, for_openai)
    assert [tool["name"] for tool in theirs["tools"]] == ["add", "files_read_all_1"]
    assert ours["tools"][0] == {
        "type": "function",
        "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}},
    }
    plain = asking(("user", TEXT))
    assert not {"tools", "tool_choice"} & {*to_anthropic(plain), *to_openai(plain), *to_ollama(plain)}


@pytest.mark.requirement("SAMP-18")
@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (ToolChoice(), ["add", "files_read_all_1"]),
        (ToolChoice("required"), ["add", "files_read_all_1"]),
        (ToolChoice("none"), None),
        (ToolChoice("required", "files.read/all"), ["files_read_all_1"]),
    ],
)
def test_an_api_without_tool_choice_gets_the_allowed_tools_only(choice: ToolChoice, names: Any) -> None:
    told = to_ollama(replace(ASKED, tool_choice=choice))
    functions = [tool["function"] for tool in told["tools"]] if names else None
    assert (functions and [each["name"] for each in functions]) == names
    assert ("tools" in told) == bool(names)


def test_an_ollama_is_on_this_machine_unless_something_else_is_said() -> None:
    endpoint = ollama.OllamaProvider("big", "m")._endpoint
    assert (endpoint.url, endpoint.local) == ("http://localhost:11434/api/chat", True)


@pytest.mark.hostile("M02")
def test_names_that_look_alike_to_a_vendor_stay_apart() -> None:
    names = ["a_b_1", "a.b", "a/b", "a b", "\u200b", "x" * 300, "x" * 299, "add", "add"]
    mapping = NameMapping(names)
    spelled = [mapping.for_vendor(name) for name in names]
    assert len(set(spelled)) == len(set(names))
    assert [mapping.original(each) for each in spelled] == names
    assert all(len(each) <= 64 and each.isascii() and "." not in each for each in spelled)
    assert (mapping.for_vendor("add"), mapping.original("nobody")) == ("add", "nobody")


@pytest.mark.hostile("M02")
def test_many_names_of_one_beginning_take_little_time() -> None:
    """The names come from a server, and are mapped on the event loop."""
    names, began = [f"{'x' * 60}.{number}" for number in range(10_000)], time.process_time()
    mapping = NameMapping(names)
    assert time.process_time() - began < 0.5
    assert len(set(map(mapping.for_vendor, names))) == len(names)


@pytest.mark.requirement("SAMP-10")
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (IMAGE, "it takes no image"),
        (AUDIO, "it takes no audio"),
        (USE, "it takes no tools"),
        ({"type": "smell"}, "it takes no content of the type 'smell'"),
    ],
)
async def test_content_that_a_model_cannot_take_is_refused_unsent(vendor: str, content: Any, words: str) -> None:
    async with meeting(vendor, refuses(500), capabilities=ModelCapabilities()) as met:
        with pytest.raises(ModelRefused, match=f"model big: {words}; choose another model"):
            await met.ask(asking(("user", content)))
        with pytest.raises(ModelRefused, match="it takes no tools"):
            await met.ask(ASKED)
    assert not met.web.visits


async def test_a_type_of_picture_that_no_vendor_takes_is_named() -> None:
    async with meeting("openai", refuses(500)) as met:
        with pytest.raises(ModelRefused, match="takes no image of the type 'image/tiff'"):
            await met.ask(asking(("user", {**IMAGE, "mimeType": "image/tiff"})))


@pytest.mark.parametrize(
    ("base", "path"), [("", "{}"), ("/", "{}"), ("{}", "{}"), ("{}/", "{}"), ("/x{}", "/x{}"), ("/x", "/x{}")]
)
@pytest.mark.parametrize(
    ("vendor", "version", "end"),
    [("anthropic", "/v1", "/messages"), ("openai", "/v1", "/chat/completions"), ("ollama", "/api", "/chat")],
)
async def test_an_address_is_understood_with_and_without_its_version(
    vendor: str, version: str, end: str, base: str, path: str
) -> None:
    async with meeting(vendor, streams(*VENDORS[vendor].stream(HELLO))) as met:
        url = f"http://127.0.0.1:{met.web.port}{base.format(version)}"
        provider = VENDORS[vendor].provider("big", "m", base_url=url)
        assert [event async for event in provider.stream(ASKED)]
        await provider.aclose()
    (visit,) = met.web.visits
    assert visit.path == path.format(version) + end
    assert not {"authorization", "x-api-key", "cookie"} & visit.headers.keys()


@pytest.mark.hostile("M05")
@pytest.mark.parametrize(
    ("vendor", "header", "value"),
    [
        ("anthropic", "x-api-key", "sk-canary-0123456789"),
        ("openai", "authorization", "Bearer sk-canary-0123456789"),
        ("ollama", "authorization", "Bearer sk-canary-0123456789"),
    ],
)
async def test_the_key_travels_in_its_header_and_nowhere_else(vendor: str, header: str, value: str) -> None:
    """No cookie is kept."""
    stream = VENDORS[vendor].stream(HELLO)
    answer = streams(*stream)

    def with_cookie(talk: Any) -> None:
        talk.begin_events(set_cookie="a=b; Path=/")
        talk.events(*stream)
        talk.end_events()

    async with meeting(vendor, with_cookie, answer) as met:
        await met.ask()
        await met.ask()
        shown = repr(met.provider.__dict__) + repr(met.provider._endpoint)
    for visit in met.web.visits:
        assert visit.headers[header] == value
        assert [name for name, each in visit.headers.items() if "canary" in each] == [header]
        assert b"canary" not in visit.body
        assert "canary" not in visit.path
        assert "cookie" not in visit.headers
        assert vendor != "anthropic" or visit.headers["anthropic-version"] == "2023-06-01"
    assert "canary" not in shown


UNSUPPORTED = "Unsupported parameter: '{0}' is not supported with this model."


def complaint(param: str, message: str = UNSUPPORTED) -> Any:
    return refuses(400, {"error": {"message": message.format(param), "type": "invalid_request_error", "param": param}})


@pytest.mark.parametrize(
    ("answers", "differences"),
    [
        ([complaint("max_tokens")], [{"max_tokens"}, {"max_completion_tokens"}]),
        ([complaint("stream_options", "Extra inputs are not permitted: stream_options")], [{"stream_options"}, set()]),
        ([complaint("temperature")], [{"temperature"}, set()]),
        ([complaint("max_tokens"), complaint("temperature")],
         [{"max_tokens", "temperature"}, {"max_completion_tokens", "temperature"}, {"max_completion_tokens"}]),
    ],
)  # fmt: skip
async def test_a_rejected_parameter_is_replaced_once(answers: list[Any], differences: list[Any]) -> None:
    optional = {"max_tokens", "max_completion_tokens", "stream_options", "temperature"}
    request = replace(ASKED, temperature=0.5)
    async with meeting("openai", *answers, streams(*VENDORS["openai"].stream(HELLO))) as met:
        await met.ask(request)
        await met.ask(request)
        told = [optional & body.keys() for body in met.bodies]
    changing = set().union(*differences)
    assert [each & changing for each in told] == [*differences, differences[-1]]  # and remembered


@pytest.mark.parametrize("param", ["max_tokens", "temperature", "messages", "stream_options"])
async def test_an_invalid_parameter_is_not_replaced(param: str) -> None:
    async with meeting("openai", complaint(param, "{0} is too large: 50000")) as met:
        with pytest.raises(ModelRefused, match=f"it says: {param} is too large"):
            await met.ask()
    assert len(met.web.visits) == 1


async def test_requests_at_the_same_time_find_the_same_remedy() -> None:
    """Both are refused before either has learned the remedy; neither gives up because of the other."""
    both, taken = threading.Barrier(2), streams(*VENDORS["openai"].stream(HELLO))

    def answer(talk: Talk) -> None:
        if "max_tokens" in json.loads(talk.visit.body):
            both.wait(30)
            complaint("max_tokens", UNSUPPORTED + " Use 'max_completion_tokens' instead.")(talk)
        else:
            taken(talk)

    async with meeting("openai", answer) as met:
        await asyncio.gather(met.ask(), met.ask())
    assert len(met.bodies) == 4


async def test_remedies_end() -> None:
    async with meeting("openai", complaint("max_tokens max_completion_tokens")) as met:
        with pytest.raises(ModelRefused):
            await met.ask()
    assert len(met.web.visits) == 2
