from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import ServerError
from mcphost.host.consent.questions import Answer, FormQuestion, UrlQuestion
from mcphost.host.events import ElicitationChanged
from mcphost.host.server_requests import pending
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS, FORM, ROOTS, URL
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.host.tool_calls.call import CallState, ToolCall
from tests.conftest import Until
from tests.host.server_requests.pending import (
    LATER,
    NEVER,
    NO,
    SCHEMA,
    YES,
    AskedHost,
    Step,
    asked_host,
    form,
    page,
    required,
)

pytestmark = pytest.mark.slow

REFUSED = "refused"
TITLED = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "more": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "default": ["a"]},
        "old": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"], "default": "y"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 36},
        "ratio": {"type": "number", "default": 0.5},
        "yes": {"type": "boolean", "default": False},
        "mail": {"type": "string", "format": "email", "default": "a@b.example"},
        "on": {"type": "string", "format": "date"},
    },
    "required": ["age"],
}
DEFAULTS = {"more": ["a"], "old": "y", "age": 36, "ratio": 0.5, "yes": False, "mail": "a@b.example"}


def yes(**content: Any) -> Answer:
    return Answer(True, content=content)


def accepted(**content: Any) -> dict[str, Any]:
    return {"result": {"action": "accept", "content": content}}


def refusal(code: int) -> dict[str, Any]:
    return {"error": code}


def plain(reply: dict[str, Any]) -> dict[str, Any]:
    return {"error": reply["error"]["code"]} if "error" in reply else reply


ANSWERED: list[tuple[Any, list[Step], Any]] = [
    (form(), [yes(name="Bob")], accepted(name="Bob")),
    (form(mode="form"), [YES], accepted(name="Ada")),
    (form(), [NO], {"result": {"action": "decline"}}),
    (form(), [LATER], {"result": {"action": "cancel"}}),
    (form(TITLED), [YES], accepted(**DEFAULTS)),
    (form(TITLED), [yes(age=1, size="l", more=["c", "a"])], accepted(age=1, size="l", more=["c", "a"])),
    # What does not fit never leaves: a person is asked again, a rule is not.
    (form(TITLED), [yes(age=1.5), yes(age=-1), yes(mail="x", age=1), yes(age=7)], accepted(age=7)),
    (form(TITLED), [yes(size="Large"), NO], {"result": {"action": "decline"}}),
    (form(TITLED), [yes(age=1, more=["z"]), LATER], {"result": {"action": "cancel"}}),
    (form(), [Answer(True, content="Bob"), LATER], {"result": {"action": "cancel"}}),
    (form(TITLED), [Answer(True, content={"age": 999}, by="--answers")], {"result": {"action": "cancel"}}),
    (form({"type": "object", "properties": {}}), [YES], accepted()),
    (page(), [YES], {"result": {"action": "accept"}}),
    (page(), [yes(never="sent")], {"result": {"action": "accept"}}),
    (page(), [NO], {"result": {"action": "decline"}}),
    (page(), [LATER], {"result": {"action": "cancel"}}),
    (form(), [RuntimeError("a fault of the front")], refusal(-32603)),
]


@pytest.mark.requirement("ELIC-04", "ELIC-05", "ELIC-06", "ELIC-12", "ELIC-14", "ELIC-15", "ELIC-21")
async def test_the_server_gets_what_was_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "PER_MINUTE", 1000)
    async with asked_host() as host:
        for question, steps, got in ANSWERED:
            host.person.steps, host.person.asked = list(steps), []
            (reply,) = await host.replies(question)
            assert (plain(reply), host.person.steps) == (got, []), (question, steps)
            first, *again = host.person.asked
            assert (first.server, first.origin, first.tool) == ("a", "a", "ask")
            assert host.tool_calls.calls[first.call].request.tool == "ask"
            assert all(each.problem for each in again)


NESTED = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}
HUGE = {"type": "string", "enum": [f"choice {number}" for number in range(100_000)]}


UNFIT: list[tuple[Any, str]] = [
    (form(NESTED), "outside the subset"),
    (form({"type": "object", "properties": {"a": {"$ref": "#/x"}}}), ""),
    (form({"type": "object", "properties": {str(number): {"type": "string"} for number in range(5000)}}), ""),
    (form({"type": "object", "properties": {"a": HUGE}}), "not usable"),
    (form({**SCHEMA, "required": ["nobody"]}), "requires 'nobody', which is not a property"),
    (form({"type": "string"}), "not an object schema"),
    (form(None), ""),
    (form(message=None), "message must be text"),
    (page("javascript:alert(1)"), "not one of the web"),
    (page("file:///etc/passwd"), "not one of the web"),
    (page("http://example.com/"), "not https"),
    (page("https://you:secret@example.com/"), "user name or password"),
    (page("https://example.com/" + "a" * 50_000), "50020 characters"),
    (page("https://example.com/\x1b[2J"), "characters that no URL may hold"),
    (page("--flag"), "not one of the web"),
    (page(elicitation=7), "elicitationId"),
    (page(mode="telepathy"), "did not offer"),
    (page(mode=["url"]), "did not offer"),
]


@pytest.mark.hostile("F06", "F07")
@pytest.mark.requirement("ELIC-10", "ELIC-06", "ROOT-05")
async def test_what_cannot_be_answered_is_refused_and_nobody_is_asked() -> None:
    """Outside the subset, too large, unsatisfiable; not https, credentials, far too long, controls."""
    async with asked_host() as host:
        for (question, words), reply in zip(UNFIT, await host.replies(*[each for each, _ in UNFIT]), strict=True):
            assert (reply["error"]["code"], words in reply["error"]["message"]) == (-32602, True), (question, reply)
        assert host.person.asked == []


async def test_a_message_of_ten_megabytes_is_cut() -> None:
    async with asked_host(NO) as host:
        await host.replies(form(message="x" * 10_000_000))
        (question,) = host.person.asked
    assert len(question.message) < 10_100
    assert question.message.endswith(" … 10 MB more")


# Ways to leave a question, and what the server got.

LEAVE: dict[str, tuple[Callable[[AskedHost], object], list[str]]] = {
    "the server takes it back": (lambda host: host.tool_calls.call("a", "take_back", {}), []),
    "the server is muted": (lambda host: host.pending_requests.mute("a"), ["decline"]),
    "the call is cancelled": (lambda host: host.tool_calls.calls[1].cancel(), ["cancel"]),
    "the server is stopped": (lambda host: host.servers["a"].stop(), ["cancel"]),
    "the server is started again": (lambda host: host.servers["a"].restart(), ["cancel"]),
    "mcphost is left": (lambda host: None, ["cancel"]),
}


@pytest.mark.requirement("ELIC-04", "ELIC-07", "CANC-04")
@pytest.mark.parametrize("way", LEAVE)
@pytest.mark.parametrize("question", [form(), page()], ids=["form", "page"])
async def test_a_question_never_stays_unanswered(
    way: str, question: dict[str, Any], tmp_path: Path, until: Until
) -> None:
    log, audit = tmp_path / "log", tmp_path / "audit"
    leave, actions = LEAVE[way]

    def got() -> list[str]:
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [each["result"]["action"] for each in lines if isinstance(each, dict) and "action" in each["result"]]

    host = asked_host(NEVER, args=("--log", log), audit_path=audit)
    async with host:
        host.ask(question)
        await until(lambda: host.person.asked)
        assert host.pending_requests.waiting("a") == 1
        leave(host)
        if way != "mcphost is left":
            await until(lambda: host.person.left)
            await until(lambda: len(got()) == len(actions))
    assert host.person.left == 1
    assert got() == actions
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    (record,) = [each for each in records if each["event"] == "question"]
    told = "withdrawn" if not actions else actions[0]
    assert (record["verdict"], record["server"], record["call"]) == (told, "a", 1)


async def test_a_question_goes_with_the_connection_that_asked_it(until: Until) -> None:
    async with asked_host(NEVER, NEVER) as host:
        host.ask(form())
        await until(lambda: host.person.asked)
        host.servers["a"].disconnected(OSError("cut"))
        await until(lambda: host.person.left)
        assert host.pending_requests.waiting("a") == 0


@pytest.mark.hostile("F05")
async def test_the_audit_log_has_the_question_and_never_the_answer(tmp_path: Path) -> None:
    async with asked_host(yes(name="canary-answer"), YES, audit_path=tmp_path / "audit") as host:
        await host.replies(form(), page())
    text = (tmp_path / "audit").read_text()
    questions = [each for each in map(json.loads, text.splitlines()) if each["event"] == "question"]
    assert [(each["kind"], each["verdict"], each["by"]) for each in questions] == [
        ("form", "accept", "user"),
        ("url", "accept", "user"),
    ]
    assert "canary-answer" not in text
    assert not any("canary-answer" in line for line in host.said("a"))


# What is declared.


@pytest.mark.requirement("ELIC-01", "ELIC-11", "ELIC-13", "ROOT-01", "CAP-01")
@pytest.mark.parametrize(
    ("answers", "config", "declared", "codes"),
    [
        (DIALOG_KINDS, {}, {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}, [None, None]),
        (frozenset({FORM}), {}, {"elicitation": {"form": {}}}, [None, -32602]),
        (DIALOG_KINDS, {"elicitation": ["url"], "roots": False}, {"elicitation": {"url": {}}}, [-32602, None]),
        (frozenset({URL, ROOTS}), {"elicitation": ["form"], "roots": False}, {}, [-32601, -32601]),
        (frozenset(), {}, {}, [-32601, -32601]),
    ],
)
async def test_only_what_somebody_can_answer_is_declared_and_answered(
    answers: frozenset[str], config: Any, declared: Any, codes: list[int | None]
) -> None:
    async with asked_host(NO, NO, answers=answers, entry={"capabilities": config}) as host:
        assert (await host.use("heard"))["capabilities"] == declared
        replies = await host.replies(form(), page())
        assert [plain(reply).get("error") for reply in replies] == codes


# How much.


@pytest.mark.hostile("F03", "P09")
@pytest.mark.requirement("ELIC-07")
async def test_endless_questions_are_refused_and_logged_once(until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question on screen and five behind it; ten a minute; a muted server is not heard."""
    async with asked_host() as host:
        asking = host.ask(*[form()] * 25)
        await until(lambda: len(host.person.asked) == pending.MOST_PENDING)
        assert host.pending_requests.waiting("a") == pending.MOST_PENDING
        await until(lambda: any("was refused" in line for line in host.said("a")))
        host.pending_requests.mute("a")  # what comes only now is declined, and no longer refused
        replies = [plain(reply) for reply in await _replies(asking)]
        refused, declined = (replies.count(each) for each in ({"error": -32603}, {"result": {"action": "decline"}}))
        assert (refused + declined, declined >= pending.MOST_PENDING) == (25, True)
        assert len([line for line in host.said("a") if "was refused" in line]) == 1
        assert await host.replies(form()) == [{"result": {"action": "decline"}}]
        assert len(host.person.asked) == pending.MOST_PENDING
        host.pending_requests.unmute("a")
        host.person.steps = [NO] * 30
        got = [plain((await host.replies(form()))[0]) for _ in range(6)]
        assert got.count({"error": -32603}) == 6 - (pending.PER_MINUTE - pending.MOST_PENDING)


async def _replies(call: Any) -> list[Any]:
    found: list[Any] = json.loads((await call.result()).raw["content"][0]["text"])
    return found


@pytest.mark.requirement("ELIC-09")
async def test_a_call_waits_as_long_as_a_person_takes() -> None:
    async def slowly(question: FormQuestion) -> Answer:
        await asyncio.sleep(1.6)  # a person who thinks
        return YES

    entry = {"tool_timeout_sec": 1, "tool_timeout_max_sec": 1.5}
    async with asked_host(slowly, entry=entry) as host:
        assert await host.replies(form()) == [accepted(name="Ada")]


# Pages.


class Browser:
    def __init__(self, *answers: str) -> None:
        self.opened: list[str] = []
        self.answers = list(answers)

    async def __call__(self, url: str) -> str:
        self.opened.append(url)
        return self.answers.pop(0) if self.answers else ""


@pytest.mark.hostile("F06")
@pytest.mark.requirement("ELIC-16", "ELIC-17", "ELIC-18", "ELIC-21", "ELIC-22", "ELIC-23")
async def test_an_agreed_page_is_opened_and_waited_for(until: Until) -> None:
    browser = Browser("", "no browser here")
    async with asked_host(NO, YES, YES, YES, open_url=browser) as host:
        await host.replies(page())
        assert browser.opened == []
        await host.replies(page(elicitation="e1"), page("https://xn--pple-43d.com/ä", elicitation="e2"))
        assert browser.opened == ["https://example.com/x", "https://xn--pple-43d.com/%C3%A4"]
        question = host.person.asked[2]
        assert isinstance(question, UrlQuestion)
        assert question.address is not None
        assert (question.address.host, question.address.readable_host) == ("xn--pple-43d.com", "аpple.com")
        assert len(question.address.doubts) == 2
        first, second = host.elicitation.all.values()
        assert (first.state, first.not_opened) == (UrlElicitationState.WAITING, "")
        assert second.not_opened == "no browser here"
        await second.open()
        assert second.not_opened == ""
        await host.use("complete", ids=["e9", "", "e1", "e1"])
        assert (first.state, second.state) == (UrlElicitationState.COMPLETED, UrlElicitationState.WAITING)
        second.go_on()
        await host.use("complete", ids=["e2"])
        assert second.state is UrlElicitationState.CONTINUED
        assert ElicitationChanged("a", second.number) in host.events
        await host.replies(page(elicitation="e3"))
        host.servers["a"].restart()
        await until(lambda: list(host.elicitation.all.values())[2].state is UrlElicitationState.LEFT)


def _visit(host: AskedHost, times: int = 1, *pages: dict[str, Any]) -> ToolCall:
    listed = [required(elicitation="e1"), required(elicitation="e2")] if not pages else list(pages)
    return host.tool_calls.call("a", "demand", {"times": times, "data": {"elicitations": listed}})


@pytest.mark.requirement("ELIC-24", "ELIC-23")
async def test_a_call_is_sent_again_after_its_pages_were_visited(until: Until) -> None:
    browser = Browser()
    entry = {"tool_timeout_max_sec": 77}
    async with asked_host(YES, YES, open_url=browser, entry=entry) as host:
        call = _visit(host)
        await until(lambda: len(host.elicitation.all) == 2)
        moments = {each.until for each in (*host.person.asked, *host.elicitation.all.values())}
        assert 70 < moments.pop() - time.monotonic() <= 77
        assert not moments, "one limit for both pages"
        assert call.state is CallState.VISITING
        assert {each.call for each in host.elicitation.all.values()} == {call.number}
        await host.use("complete", ids=["e1"])
        list(host.elicitation.all.values())[1].go_on()
        assert (await call.result()).raw["content"][0]["text"] == '"visited"'


@pytest.mark.requirement("ELIC-24")
@pytest.mark.parametrize(
    ("steps", "pages", "asked"),
    [
        ([NO], (), 1),
        ([YES, LATER], (), 2),
        ([], (required("ftp://x"),), 0),
        ([], ({"mode": "form"},), 0),
        ([], tuple(required(elicitation=str(number)) for number in range(11)), 0),
        ([], ("https://example.com",), 0),
    ],
)
async def test_without_consent_to_each_page_the_call_fails(
    steps: list[Step], pages: tuple[Any, ...], asked: int
) -> None:
    async with asked_host(*steps) as host:
        call = _visit(host, 1, *pages)
        with pytest.raises(ServerError, match="visit first"):
            await call.result()
        assert len(host.person.asked) == asked
        assert all(each.state.ended for each in host.elicitation.all.values())


@pytest.mark.requirement("ELIC-13", "ELIC-24")
@pytest.mark.parametrize(
    ("answers", "entry"),
    [(DIALOG_KINDS, {"capabilities": {"elicitation": ["form"]}}), (frozenset({FORM, ROOTS}), {})],
    ids=["by-configuration", "by-the-front"],
)
async def test_no_page_is_visited_where_that_was_not_declared(answers: frozenset[str], entry: Any) -> None:
    browser = Browser()
    async with asked_host(YES, YES, answers=answers, entry=entry, open_url=browser) as host:
        declared = (await host.use("heard"))["capabilities"].get("elicitation", {})
        assert "url" not in declared
        with pytest.raises(ServerError, match="visit first"):
            await _visit(host).result()
        assert (host.person.asked, browser.opened, dict(host.elicitation.all)) == ([], [], {})


@pytest.mark.requirement("ELIC-24")
async def test_a_server_that_wants_visits_for_ever_gets_three() -> None:
    async def visited(question: UrlQuestion) -> Answer:
        return YES

    async with asked_host(*[visited] * 9) as host:
        host.bus.observe(lambda event: [*map(UrlElicitation.go_on, host.elicitation.all.values())].clear())
        call = _visit(host, 99, required())
        with pytest.raises(ServerError, match="visit first"):
            await call.result()
        assert len(host.person.asked) == 3


async def test_a_call_shows_that_its_server_waits_for_an_answer(until: Until) -> None:
    answer = asyncio.Event()

    async def later(question: FormQuestion) -> Answer:
        await answer.wait()
        return YES

    async with asked_host(later, YES) as host:
        call = host.ask(form(), form())
        await until(lambda: call.questions)
        assert (call.state, call.doing) == (CallState.RUNNING, "waiting for your answer")
        answer.set()
        await call.result()
        assert (call.questions, call.doing) == (0, "done")
