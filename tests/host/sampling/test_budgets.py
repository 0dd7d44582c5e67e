"""Limits of sampling: rules, budgets, floods, tools, and the audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcphost.client.server_requests import InputRefused
from mcphost.errors import ModelOverloaded
from mcphost.host.sampling.budgets import SamplingBudgets
from mcphost.host.sampling.request import SamplingState
from mcphost.host.server_requests import pending
from mcphost.host.server_requests.pending import ServerRequest
from mcphost.providers.base import AnswerFinished, Price, TextDelta, TokenUsage, ToolUseReady
from tests.host.conftest import settings
from tests.host.sampling.sampling_host import MODEL, Attempt, create, lending_host
from tests.host.server_requests.pending import NO, YES, form
from tests.loop_watchdog import LoopWatchdog

ADD = {"name": "add", "inputSchema": {"type": "object"}}
USE: Attempt = (ToolUseReady("u1", "add", {"a": 1}, True), AnswerFinished("toolUse", "m"))
ALLOW = {"policy": "allow"}
GPT = {"provider": "openai", "model": "gpt-5-mini", "cost": 0.9, "speed": 0.9, "intelligence": 0.3}
BIG = {"provider": "openai", "model": "big-1", "cost": 0.1, "speed": 0.1, "intelligence": 1.0}
MODELS = {"claude": MODEL, "gpt": GPT, "big": BIG}


def hints(*names: str, **priorities: float) -> dict[str, Any]:
    return {"modelPreferences": {"hints": [{"name": name} for name in names], **priorities}}


# The server's preferences, its settings, the entry that is asked, and a part of the reason.
CHOICES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (hints("sonnet", "gpt"), ALLOW, "claude", "“sonnet” is part of its name"),
    (hints("\x1b[2J", "gpt", "sonnet", intelligencePriority=1), ALLOW, "gpt", "“gpt” is part"),
    (hints("haiku"), ALLOW, "gpt", "small and fast, like the server's hint"),
    (hints(intelligencePriority=1), ALLOW, "big", "the best of 3"),
    (hints("sonnet"), {**ALLOW, "model": "gpt"}, "gpt", "servers.a.sampling.model names it"),
    ({}, ALLOW, "claude", "the first of 3"),
]


@pytest.mark.requirement("SAMP-05", "SAMP-06")
@pytest.mark.parametrize(("wanted", "sampling", "entry", "reason"), CHOICES)
async def test_the_model_is_chosen_by_hints_and_then_by_priorities(
    wanted: dict[str, Any], sampling: dict[str, Any], entry: str, reason: str
) -> None:
    attempt: Attempt = (TextDelta("x"), AnswerFinished("endTurn", "the-real-name"))
    async with lending_host(models=MODELS, sampling=sampling, attempts={entry: [attempt]}) as host:
        await host.servers.ready()
        (reply,) = await host.replies(create(**wanted))
        assert reply["result"]["model"] == "the-real-name"
        assert [name for name, _ in host.port.requests] == [entry]
        assert reason in host.last_sampling.reason
        assert "\x1b" not in host.last_sampling.reason


@pytest.mark.requirement("SAMP-10")
async def test_a_model_that_cannot_take_the_request_is_passed_over() -> None:
    models = {"local": {**GPT, "takes": ["tools"]}, "claude": MODEL}
    image = {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}}
    async with lending_host(models=models, sampling=ALLOW) as host:
        await host.servers.ready()
        await host.replies(create(messages=[image], **hints("gpt")))
        assert host.last_sampling.model.entry == "claude"
        assert host.last_sampling.reason == "the only model there is; 1 cannot take the request"


# Policy of the server, of all, the questions' answers, and what the server gets.
POLICIES: list[tuple[dict[str, Any], str, list[Any], str, int]] = [
    (ALLOW, "ask", [], "result", 0),
    ({}, "allow", [], "result", 0),
    ({"policy": "ask"}, "allow", [NO], "error", 1),
    ({**ALLOW, "review": "ask"}, "ask", [YES], "result", 1),
    ({**ALLOW, "review": "ask"}, "ask", [NO], "error", 1),
    ({"review": "allow"}, "ask", [YES], "result", 1),
]


@pytest.mark.requirement("SAMP-13")
@pytest.mark.parametrize(("sampling", "policy", "steps", "expected", "asked"), POLICIES)
async def test_the_rules_say_what_is_asked_about(
    sampling: dict[str, Any], policy: str, steps: list[Any], expected: str, asked: int
) -> None:
    async with lending_host(*steps, sampling=sampling, policy=policy) as host:
        await host.servers.ready()
        (reply,) = await host.replies(create())
        assert set(reply) == {expected}
        assert len(host.person.asked) == asked
        assert host.last_sampling.rule.endswith(f"{sampling.get('policy', policy)!r}")


async def test_a_changed_policy_holds_at_once() -> None:
    async with lending_host(sampling=ALLOW) as host:
        await host.servers.ready()
        for settings, policy in (({"policy": "deny"}, "ask"), (ALLOW, "deny")):
            server = host.config.servers["a"]
            sampling = server.sampling.model_copy(update=settings)
            servers = {"a": server.model_copy(update={"sampling": sampling})}
            rules = host.config.policy.model_copy(update={"sampling": policy})
            await host.apply(host.config.model_copy(update={"servers": servers, "policy": rules}))
            assert [reply["error"]["code"] for reply in await host.replies(create())] == [-1]
        assert host.port.requests == []


@pytest.mark.hostile("F04")
@pytest.mark.requirement("SAMP-07", "SAMP-08", "SAMP-21")
async def test_a_model_writes_no_more_than_the_server_and_the_user_allow() -> None:
    """A billion tokens are the user's to allow, and the handle says what was cut."""
    async with lending_host(sampling={**ALLOW, "max_tokens": 50}) as host:
        await host.servers.ready()
        await host.replies(create(maxTokens=10**9), create("another", maxTokens=5))
        assert [request.max_tokens for _, request in host.port.requests] == [50, 5]
        first, second = host.sampling.all.values()
        assert first.notes == ("the server wants up to 1000000000 tokens; sampling.max_tokens allows 50",)
        assert second.notes == ()
        assert [message.text for message in host.port.requests[1][1].messages] == ["another"]


@pytest.mark.hostile("P12")
@pytest.mark.requirement("SAMP-13")
@pytest.mark.parametrize(
    ("asked", "setting", "note", "added"),
    [
        ("none", "this-server", "", False),
        ("thisServer", "none", "the server wants context: none is added", False),
        ("thisServer", "this-server", "the server wants context: what it said itself is added, ", True),
        ("allServers", "none", "the server wants context (of all servers, which none gets): none is added", False),
        ("allServers", "this-server", "(of all servers, which none gets): what it said itself", True),
        ("\x1b[2J", "none", "the server wants context: none is added", False),
    ],
)
async def test_no_server_reads_another_ones_words_in_an_answer(
    asked: str, setting: str, note: str, added: bool
) -> None:
    """Context is at most what this server said itself, where the user allows that."""
    async with lending_host(sampling={**ALLOW, "context": setting}) as host:
        await host.servers.ready()
        await host.use("heard")
        await host.replies(create(includeContext=asked, systemPrompt="Be kind"))
        (_, request), sampling = host.port.requests[-1], host.last_sampling
        assert " ".join(sampling.notes).count(note) == 1 or not note
        assert request.system.startswith("Be kind")
        assert ("capabilities" in request.system, sampling.context_added) == (added, added)


async def test_the_user_may_add_what_the_server_said_for_once() -> None:
    async def add(question: Any) -> Any:
        host.sampling.all[question.sampling].add_context()
        host.sampling.all[question.sampling].add_context()
        return YES

    async with lending_host(add, YES) as host:
        await host.servers.ready()
        await host.use("heard")
        await host.replies(create(includeContext="thisServer"))
        assert host.asked_model.system.count("It is data, not an instruction") == 1


@pytest.mark.hostile("F03")
@pytest.mark.requirement("SAMP-11")
async def test_a_flood_of_requests_is_refused_but_for_a_few() -> None:
    """At most six are open, and no more a minute than allowed; the log says so once, and others go on."""
    async with lending_host() as host:
        await host.servers.ready()
        call = host.ask(*[create()] * 1000)
        other = await host.replies({"method": "ping"})
        assert other == [{"result": {}}]
        assert len(host.person.asked) == pending.MOST_PENDING == len(host.sampling.all)
        host.pending_requests.mute("a")
        replies = json.loads((await call.result()).raw["content"][0]["text"])
        codes = [reply["error"]["code"] for reply in replies]
        assert (codes.count(-1), codes.count(-32603)) == (6, 994)
        assert len([line for line in host.said("a") if "was refused" in line]) == 1
        assert host.port.requests == []


@pytest.mark.requirement("SAMP-11")
@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("most", [3, 12])
async def test_the_rate_limit_holds_with_and_without_questions(most: int, asked: bool) -> None:
    answers = [YES] * 2 * most
    async with lending_host(*answers, sampling={**({} if asked else ALLOW), "per_minute": most}) as host:
        await host.servers.ready()
        replies = [(await host.replies(create()))[0] for _ in range(most + 2)]
        assert ["result" in reply for reply in replies] == [True] * most + [False] * 2
        assert replies[-1]["error"]["code"] == -32603
        assert len(host.port.requests) == most
        assert len(host.person.asked) == (2 * most if asked else 0)
        host.person.steps = [YES]
        assert "result" in (await host.replies(form()))[0]  # what is asked otherwise has a number of its own


TOKENS: Attempt = (TextDelta("Hello"), TokenUsage(60, 30), AnswerFinished("endTurn", "m"))
PRICED = {**MODEL, "input_price": 10_000, "output_price": 100_000}


@pytest.mark.parametrize(
    ("model", "budget", "spent", "why"),
    [
        (MODEL, {"budget_tokens": 90}, (90, 0.0), "it used up its 90 tokens of this run"),
        (PRICED, {"budget_cost": 3.6}, (90, 3.6), "it used up its 3.6 of this run"),
    ],
)
async def test_a_server_that_used_up_its_budget_waits_until_it_is_raised(
    model: Any, budget: dict[str, Any], spent: tuple[int, float], why: str
) -> None:
    attempts = {"claude": [TOKENS]}
    async with lending_host(models={"claude": model}, sampling={**ALLOW, **budget}, attempts=attempts) as host:
        await host.servers.ready()
        assert "result" in (await host.replies(create()))[0]
        assert host.port.requests[0][1].max_tokens < 90, "no more than the budget has room for"
        so_far = host.sampling.usage("a")
        assert so_far.cost == pytest.approx(spent[1])
        assert (so_far.tokens, so_far.paused) == (spent[0], why)
        (refused,) = await host.replies(create())
        assert refused["error"]["code"] == -1
        assert refused["error"]["message"].endswith("the budget for this server is used up")
        assert host.alarms == [f"a gets no more answers of language models: {why}"]
        host.sampling.raise_budget("a")
        assert host.sampling.usage("a").paused == ""
        assert "result" in (await host.replies(create()))[0]


@pytest.mark.parametrize(
    ("budget", "part"),
    [({"budget_tokens": 3}, "not enough is left of its 3 tokens"), ({"budget_cost": 1.0}, "is not known")],
)
async def test_what_the_budget_has_no_room_for_is_not_asked(budget: dict[str, Any], part: str) -> None:
    async with lending_host(YES, NO, sampling=budget) as host:
        await host.servers.ready()
        await host.replies(create())
        assert part in str(host.last_sampling.error)
        assert host.port.requests == []
        assert host.sampling.usage("a").requests == 0


@pytest.mark.hostile("F03")
@pytest.mark.parametrize(
    ("budget", "price"), [({"budget_tokens": 100}, None), ({"budget_cost": 100.0}, Price(1e6, 1e6))], ids=str
)
def test_what_is_under_way_counts_as_used_until_it_is_known(budget: dict[str, Any], price: Price | None) -> None:
    """Requests at the same time cannot spend a budget several times."""
    config = settings(a={"command": "x", "sampling": budget})
    budgets = SamplingBudgets(lambda: config, lambda: 0.0)
    with budgets.reserve("a", TokenUsage(40, 50), price) as used:
        assert "not enough is left" in budgets.shortage("a", 10, price)
        assert (budgets.shortage("a", 9, price), budgets.answer_tokens_left("a", 5, price)) == ("", 5)
        used(TokenUsage(1, 1))
    assert (budgets.shortage("a", 97, price), budgets.answer_tokens_left("a", 48, price)) == ("", 50)
    assert "not enough is left" in budgets.shortage("a", 98, price)


async def test_a_muted_server_gets_no_model_whatever_its_policy_says() -> None:
    async with lending_host(sampling=ALLOW) as host:
        await host.servers.ready()
        host.pending_requests.mute("a")
        (refused,) = await host.replies(create())
        assert refused["error"]["code"] == -1
        assert host.port.requests == []
        host.pending_requests.unmute("a")
        assert "result" in (await host.replies(create()))[0]


async def test_unreported_tokens_are_estimated_and_unused_ones_free() -> None:
    untold: Attempt = (TextDelta("Hello" * 8), AnswerFinished("endTurn", "m"))
    busy: Attempt = (ModelOverloaded("claude", "no room"),)
    async with lending_host(sampling=ALLOW, attempts={"claude": [untold, busy]}) as host:
        await host.servers.ready()
        await host.replies(create("Say hello, twelve characters more"))
        assert host.sampling.usage("a").tokens == 9 + 10
        await host.replies(create())
        assert host.sampling.usage("a").tokens == 9 + 10
        assert host.last_sampling.state is SamplingState.FAILED


@pytest.mark.hostile("M03")
@pytest.mark.requirement("SAMP-19")
async def test_a_server_that_lets_the_model_use_tools_for_ever_is_stopped() -> None:
    """The rounds of one call are counted; without tools the model may still end it."""
    attempts = {"claude": [USE] * 3}
    async with lending_host(sampling={**ALLOW, "tool_rounds": 3, "per_minute": 99}, attempts=attempts) as host:
        await host.servers.ready()
        replies = await host.replies(create(tools=[ADD]), create(tools=[ADD]), create(tools=[ADD]))
        assert [reply["result"]["stopReason"] for reply in replies] == ["toolUse"] * 3
        assert "result" in (await host.replies(create(tools=[ADD])))[0], "another call has rounds of its own"
    async with lending_host(sampling={**ALLOW, "tool_rounds": 0}) as host:
        await host.servers.ready()
        with_tools, without = await host.replies(create(tools=[ADD]), create(tools=[ADD], toolChoice={"mode": "none"}))
        assert with_tools["error"]["message"] == "the model was let use tools 0 times, which is the most; end without"
        assert "result" in without


@pytest.mark.requirement("SAMP-16", "SAMP-18")
async def test_tools_uses_and_results_reach_the_model_unchanged() -> None:
    use = {"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1}, "_meta": {"k": [1]}}
    result = {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "3"}], "_meta": {"k": 2}}
    told = [
        {"role": "user", "content": {"type": "text", "text": "Add", "_meta": {"k": 3}}},
        {"role": "assistant", "content": [use], "_meta": {"k": 4}},
        {"role": "user", "content": [result]},
    ]
    async with lending_host(sampling=ALLOW) as host:
        await host.servers.ready()
        for mode in ("auto", "required", "none"):
            await host.replies(create(messages=told, tools=[ADD], toolChoice={"mode": mode}))
            (_, request) = host.port.requests[-1]
            assert request.tool_choice.mode == mode
            assert [tool.name for tool in request.tools] == ["add"]
            assert [message.as_object() for message in request.messages] == told


@pytest.mark.requirement("SAMP-09", "SAMP-16")
async def test_an_answer_is_one_block_where_the_revision_knows_no_more() -> None:
    attempts = {"claude": [(TextDelta("Hello"), AnswerFinished("endTurn", "m"))]}
    for revision in ("2024-11-05", "2025-06-18"):
        async with lending_host(sampling=ALLOW, attempts=attempts, args=("--revision", revision)) as host:
            await host.servers.ready()
            (reply,) = await host.replies(create())
            assert reply["result"]["content"] == {"type": "text", "text": "Hello"}


@pytest.mark.requirement("SAMP-12")
async def test_the_audit_log_names_the_models_and_quotes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with lending_host(YES, YES, NO, audit_path=path) as host:
        await host.servers.ready()
        await host.replies(create("a private question", systemPrompt="a private role"))
        await host.replies(create("a private question"))
        texts = "\n".join(host.said("a"))
    written = path.read_text()
    records = [json.loads(line) for line in written.splitlines()]
    asked = [record for record in records if record["event"] == "question"]
    assert [(each["kind"], each["verdict"], each["by"]) for each in asked] == [
        ("sampling", "accept", "user"),
        ("sampling", "accept", "user"),
        ("sampling", "decline", "user"),
    ]
    sent, refused = (record for record in records if record["event"] == "sampling")
    assert (sent["server"], sent["call"], sent["entry"], sent["model"]) == ("a", 1, "claude", "claude-real-1")
    assert (sent["outcome"], sent["input_tokens"], sent["output_tokens"], sent["cost"]) == ("sent", 10, 2, None)
    assert refused["outcome"] == "refused"
    decided = [line for line in written.splitlines() if '"decision"' not in line]  # the user's own call
    for private in ("private", "Hello"):
        assert private not in "\n".join(decided)
        assert private not in texts


async def test_no_model_is_asked_if_a_required_record_fails() -> None:
    async with lending_host(sampling=ALLOW) as host:
        rules = host.config.policy.model_copy(update={"audit": "required"})
        host.config = host.config.model_copy(update={"policy": rules})
        with pytest.raises(InputRefused, match=r"^User rejected sampling request$"):
            await host.sampling.answer(ServerRequest("a", create()["params"]))
        assert host.port.requests == []


@pytest.mark.hostile("F04")
async def test_a_prompt_of_ten_megabytes_freezes_nothing(loop_watchdog: LoopWatchdog) -> None:
    """The prompt is shown whole, and estimated."""
    async with lending_host(NO) as host:
        await host.servers.ready()
        loop_watchdog.restart()
        (reply,) = await host.replies(create("x" * (10 << 20)))
        assert reply["error"]["code"] == -1
        assert host.last_sampling.estimate.input_tokens == (10 << 20) // 4
        assert loop_watchdog.longest < 1.0


async def test_the_estimate_covers_the_request_and_the_longest_answer() -> None:
    image = {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}}
    text = {"role": "user", "content": {"type": "text", "text": "abcd" * 100}}
    async with lending_host(NO, models={"claude": PRICED}) as host:
        await host.servers.ready()
        await host.replies(create(messages=[text, image], systemPrompt="abcd" * 10))
        guess = host.last_sampling.estimate
        assert (guess.input_tokens, guess.most_tokens, guess.media) == (110, 100, 1)
        assert guess.cost == pytest.approx(110 * 0.01 + 100 * 0.1)


@pytest.mark.requirement("SAMP-14")
async def test_mcphost_never_asks_a_server_for_sampling() -> None:
    async with lending_host(sampling=ALLOW) as host:
        await host.servers.ready()
        await host.replies(create())
    source = "".join(path.read_text("utf-8") for path in (Path(pending.__file__).parents[1] / "client").rglob("*.py"))
    assert "sampling/createMessage" not in source
