"""Answers as they come: whole, in pieces, cut, and with unexpected members."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from mcphost.errors import ModelAnswerCut, ModelAnswerMalformed, ModelError, ModelOverloaded, ModelRefused
from mcphost.providers import http
from mcphost.providers.base import (
    AnswerCollector,
    AnswerFinished,
    ProviderEvent,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
)
from mcphost.providers.http import MOST_EVENT
from mcphost.providers.retry import RetryLimits
from tests.conftest import Until
from tests.providers.endpoints import (
    ASKED,
    HELLO,
    TYPED,
    USES,
    VENDORS,
    Steps,
    breaks_off,
    chunk,
    each_vendor,
    gather,
    gathered,
    keeps_alive,
    meeting,
    read,
    stays,
    streams,
    streams_begin,
)
from tests.transports.http.http_connection import Talk


def so_far(vendor: str) -> list[bytes]:
    """The beginning of an answer."""
    made = VENDORS[vendor]
    return [each for each in made.stream((("text", "so far"),)) if b"so far" in each]


@each_vendor
async def test_an_answer_comes_in_pieces_with_its_model_and_its_size(vendor: str) -> None:
    async with meeting(vendor, streams(*VENDORS[vendor].stream(HELLO))) as met:
        events = await met.ask()
    assert [each.text for each in events if isinstance(each, TextDelta)] == ["Hel", "lo \u00e9\U0001f600"]
    assert events[-1] == AnswerFinished("endTurn", VENDORS[vendor].model)
    assert gathered(events).usage == TokenUsage(10, 5)


@pytest.mark.hostile("M01", "M05")
@each_vendor
@pytest.mark.parametrize("steps", [HELLO, USES])
def test_a_stream_cut_anywhere_says_the_same(vendor: str, steps: Steps) -> None:
    data = b"".join(VENDORS[vendor].stream(steps))
    whole = read(vendor, data)
    assert read(vendor, *(data[at : at + 1] for at in range(len(data)))) == whole
    assert all(read(vendor, data[:cut], data[cut:]) == whole for cut in range(1, len(data)))


@pytest.mark.hostile("M05")
@each_vendor
def test_a_stream_that_ends_anywhere_before_its_end_is_cut(vendor: str) -> None:
    """Half an answer is never taken for a whole one."""
    data = b"".join(VENDORS[vendor].stream(USES))
    # What follows the reason to stop is how many tokens there were, and some servers send no end; the end of the last
    # line, or event, is only its newlines.
    reason = {"openai": b'finish_reason": "', "anthropic": b'stop_reason": "', "ollama": b'done_reason": "'}[vendor]
    end = data.find(b"\n", data.find(reason))
    for cut in range(end):
        with pytest.raises(ModelAnswerCut):
            read(vendor, data[:cut])
    assert read(vendor, data[:end])[-1] == AnswerFinished("toolUse", VENDORS[vendor].model)


@each_vendor
async def test_bytes_that_come_one_by_one_over_a_socket_are_one_answer(vendor: str) -> None:
    data = b"".join(VENDORS[vendor].stream(HELLO))
    async with meeting(vendor, streams(*(data[at : at + 1] for at in range(len(data))))) as met:
        assert (await gather(met.provider, ASKED)).result.message.text == "Hello \u00e9\U0001f600"


@pytest.mark.hostile("M05")
@each_vendor
@pytest.mark.parametrize("end", [breaks_off, streams])
async def test_the_part_before_a_broken_off_answer_is_kept(vendor: str, end: Any) -> None:
    """Cut with and without a clean end of the body."""
    *events, _ = VENDORS[vendor].stream((("text", "so far"), ("use", "u1", "add", "{}")))
    async with meeting(vendor, end(*events)) as met:
        with pytest.raises(ModelAnswerCut, match=r"^model big: http://127.* broke off its answer.*try again"):
            await gather(met.provider, ASKED, came := AnswerCollector())
    told = came.gathered.result
    assert (told.message.text, told.stop_reason) == ("so far", None)
    assert len(met.web.visits) == 1  # what was begun is not asked again unasked


@pytest.mark.parametrize(
    ("vendor", "document", "said"),
    [
        ("ollama", {"message": {"thinking": "hm"}}, ThoughtDelta("hm")),
        ("openai", chunk(reasoning_content="hm"), ThoughtDelta("hm")),
        ("openai", chunk(reasoning="hm"), ThoughtDelta("hm")),
        ("openai", chunk(refusal="no"), TextDelta("no")),
        ("anthropic", {"type": "content_block_delta", "delta": {"thinking": "hm"}}, ThoughtDelta("hm")),
        ("anthropic", {"type": "content_block_start", "content_block": {"type": "text", "text": "x"}}, TextDelta("x")),
    ],
)
def test_other_parts_of_an_answer_are_read(vendor: str, document: Any, said: ProviderEvent) -> None:
    assert said in read(vendor, VENDORS[vendor].frame(document), *VENDORS[vendor].stream(HELLO))


def complete(vendor: str) -> list[bytes]:
    """An answer up to the model's reason to stop, without the end of the stream."""
    events = VENDORS[vendor].stream(USES)
    return [each for each in events if b"[DONE]" not in each and b"message_stop" not in each]


COMMENTS = {"openai": b": keepalive\n\n", "anthropic": b'event: ping\ndata: {"type": "ping"}\n\n'}


@pytest.mark.hostile("M05")
@pytest.mark.parametrize("vendor", COMMENTS)
@pytest.mark.parametrize("end", ["says nothing", "keeps alive", "breaks off"])
async def test_a_complete_answer_needs_no_end_of_its_stream(
    vendor: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "COUNTS_SECONDS", 0.1)
    first = complete(vendor)
    answer = {
        "says nothing": stays(*first),
        "keeps alive": keeps_alive(COMMENTS[vendor], *first),
        "breaks off": breaks_off(*first),
    }[end]
    async with meeting(vendor, answer, limits=RetryLimits(first=20.0, idle=20.0)) as met:
        async with asyncio.timeout(10):
            whole = await gather(met.provider, ASKED)
    assert (whole.result.stop_reason, whole.flawed) == ("toolUse", ())
    assert whole.usage == TokenUsage(10, 5)


async def test_token_counts_that_follow_the_reason_to_stop_are_waited_for() -> None:
    *events, counts, _ = VENDORS["openai"].stream(HELLO)

    def answer(talk: Talk) -> None:
        streams_begin(talk, *events)
        talk.linger(0.1)
        talk.events(counts)
        talk.linger()

    async with meeting("openai", answer) as met:
        assert (await gather(met.provider, ASKED)).usage == TokenUsage(10, 5)


PARTS = [{"type": "text", "text": "He"}, "l", {"text": "lo"}, {"type": "image_url", "image_url": {}}, None]
THINKING = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]


@pytest.mark.parametrize(
    ("vendor", "document", "said"),
    [
        ("openai", chunk(content=PARTS), TextDelta("Hello")),
        ("openai", {"choices": [{"message": {"content": PARTS}}]}, TextDelta("Hello")),
        ("openai", chunk(content=THINKING), ThoughtDelta("hm")),
        ("openai", chunk(reasoning_content=PARTS), ThoughtDelta("Hello")),
        ("ollama", {"message": {"content": PARTS}}, TextDelta("Hello")),
        ("ollama", {"message": {"content": THINKING}}, ThoughtDelta("hm")),
    ],
)
def test_content_in_parts_is_its_text(vendor: str, document: Any, said: ProviderEvent) -> None:
    told = read(vendor, VENDORS[vendor].frame(document), *VENDORS[vendor].stream((("stop", "end"),)))
    assert [each for each in told if isinstance(each, TextDelta | ThoughtDelta)] == [said]


@each_vendor
@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("a\ud83d", "\ude00b"), "a\U0001f600b"),
        (("\ud83d", "", "\ude00"), "\U0001f600"),
        (("a\ud83d", "b"), "a\ufffdb"),
        (("a\ud83d",), "a\ufffd"),
        (("\ude00a",), "\ufffda"),
    ],
)
async def test_a_character_split_over_two_pieces_is_one(vendor: str, parts: tuple[str, ...], text: str) -> None:
    marked = [f"<{index}>" for index in range(len(parts))]
    data = b"".join(VENDORS[vendor].stream((("text", *marked), ("stop", "end"))))
    for mark, part in zip(marked, parts, strict=True):  # as an escape: a lone half has no UTF-8
        data = data.replace(mark.encode(), json.dumps(part)[1:-1].encode())
    async with meeting(vendor, streams(data)) as met:
        assert (await gather(met.provider, ASKED)).result.message.text == text


FINISHED = {"stop": "endTurn", "length": "maxTokens", "tool_calls": "toolUse", "content_filter": "contentFilter"}


@each_vendor
def test_an_empty_stop_sequence_ends_nothing(vendor: str) -> None:
    done = gathered(read(vendor, *VENDORS[vendor].stream(HELLO), request=replace(ASKED, stop=("",)))).done
    assert done is not None
    assert done.stop_reason == "endTurn"


@pytest.mark.parametrize(
    ("vendor", "document", "reason"),
    [
        *(("openai", {"choices": [{"finish_reason": each}]}, FINISHED.get(each, each)) for each in (*FINISHED, "odd")),
        *(
            ("ollama", {"done": True, "done_reason": each}, FINISHED.get(each, each))
            for each in ("stop", "length", "load")
        ),
        ("ollama", {"done": True}, "endTurn"),
    ],
)
def test_a_stop_reason_is_in_the_protocols_words(vendor: str, document: Any, reason: str) -> None:
    assert read(vendor, VENDORS[vendor].frame(document))[-1] == AnswerFinished(reason, "asked-for")


SENSELESS = [
    *([], 7, "x", {}, {"type": "future"}),
    {"choices": 7, "type": 7},
    {"choices": [None, {"delta": []}], "type": "content_block_delta"},
    {"choices": [{"delta": {"content": 7, "tool_calls": [None, {"function": 7, "index": "x"}]}}]},
    {"type": "content_block_start", "index": [], "content_block": 7},
    {"type": "message_delta", "delta": None, "usage": []},
    {"message": 7, "done": 1, "prompt_eval_count": {}, "error": ""},
    {"message": {"content": [], "thinking": 7, "tool_calls": {"function": 7}}, "done": "true"},
]


@each_vendor
def test_documents_of_any_shape_break_nothing(vendor: str) -> None:
    told = [VENDORS[vendor].frame(each) for each in SENSELESS]
    events = read(vendor, *told, *VENDORS[vendor].stream(HELLO))
    assert gathered(events).gathered.result.message.text == "Hello \u00e9\U0001f600"


@pytest.mark.hostile("M05")
@pytest.mark.parametrize(
    ("vendor", "kind", "failure"),
    [
        *((vendor, kind, ModelOverloaded) for vendor in TYPED for kind in ("overloaded_error", "rate_limit_error")),
        *((vendor, "invalid_request_error", ModelRefused) for vendor in TYPED),
        *((vendor, kind, ModelOverloaded) for vendor in VENDORS for kind in ("api_error", "odd")),
    ],
)
async def test_an_error_in_mid_stream_ends_it_and_keeps_what_came(
    vendor: str, kind: str, failure: type[ModelError]
) -> None:
    first = so_far(vendor)
    error = VENDORS[vendor].frame(VENDORS[vendor].error(kind, "out of \x1b[2Jluck"))
    async with meeting(vendor, streams(*first, error)) as met:
        with pytest.raises(failure, match="out of ␛\\[2Jluck"):
            await gather(met.provider, ASKED, came := AnswerCollector())
    assert came.gathered.result.message.text == "so far"
    assert len(met.web.visits) == 1


@pytest.mark.hostile("M05")
@each_vendor
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"{broken", "invalid JSON"),
        (b"[" * 200_000, "invalid JSON"),
        (b"x" * (MOST_EVENT + 100), "more than 4.0 MB at once"),
        (lambda talk: talk.whole(200, b"\x1f\x8b", "text/event-stream", content_encoding="gzip"), "compresses"),
        (
            lambda talk: talk.whole(200, b"<html>sign in</html>", "text/html"),
            "answers with a web page; look at base_url",
        ),
        (lambda talk: talk.whole(200, b"hello", "text/plain"), "broke off its answer"),
        (lambda talk: talk.whole(200, b"{broken", "application/json"), "invalid JSON"),
        (lambda talk: talk.whole(204), "HTTP 204, which is not an answer"),
    ],
)
async def test_an_invalid_answer_is_reported_and_not_read_on(vendor: str, answer: Any, words: str) -> None:
    """Bad SSE and bad lines, one without end, a gzip bomb, HTML."""
    broken = isinstance(answer, bytes)
    async with meeting(vendor, streams(VENDORS[vendor].frame(answer)) if broken else answer) as met:
        with pytest.raises((ModelAnswerMalformed, ModelAnswerCut), match=words):
            await met.ask()
    assert len(met.web.visits) == 1


@pytest.mark.parametrize(
    ("vendor", "document"),
    [
        ("openai", {"model": "m", "choices": [{"message": {"content": "hi"}, "finish_reason": "length"}]}),
        ("ollama", {"model": "m", "message": {"content": "hi"}, "done": True, "done_reason": "length"}),
    ],
)
async def test_an_answer_in_one_document_is_one_too(vendor: str, document: Any) -> None:
    async with meeting(vendor, lambda talk: talk.json(document)) as met:
        assert await met.ask() == [TextDelta("hi"), AnswerFinished("maxTokens", "m")]


@pytest.mark.hostile("M03")
@each_vendor
@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_leaving_an_answer_drops_its_connection_at_once(vendor: str, how: str, until: Until) -> None:
    """The wire's part; what calls for ever is for the chat to stop."""
    first = so_far(vendor)
    async with meeting(vendor, stays(*first)) as met:
        task = asyncio.create_task(met.ask())
        await until(lambda: any(isinstance(each, TextDelta) for each in met.events))
        if how == "closed":
            await met.provider.aclose()
        else:
            task.cancel()
        await until(lambda: met.web.hung_up)
        with pytest.raises((asyncio.CancelledError, ModelError)):
            await task


@pytest.mark.hostile("M05")
@pytest.mark.parametrize("begins", [True, False], ids=["after its start", "at once"])
@each_vendor
async def test_an_answer_that_stalls_is_given_up(vendor: str, begins: bool) -> None:
    answer = stays(*so_far(vendor)) if begins else lambda talk: talk.linger()
    async with meeting(vendor, answer, limits=RetryLimits(first=0.2, idle=0.1)) as met:
        with pytest.raises(ModelError, match=r"said nothing for 0\.[12] s; try again"):
            await met.ask()


@each_vendor
async def test_one_connection_serves_the_next_question_too(vendor: str) -> None:
    async with meeting(vendor, streams(*VENDORS[vendor].stream(HELLO))) as met:
        for _ in range(3):
            await met.ask()
    assert len({visit.at for visit in met.web.visits}) == 1
